package fleettest_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/internal/freeze"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
	"github.com/gqlgen-ratelimit/ratelimit/observe/report"
	"github.com/gqlgen-ratelimit/ratelimit/policy"
	"github.com/gqlgen-ratelimit/ratelimit/policy/redisfeed"
)

var (
	all    = flag.Bool("all", false, "run 50 processes, 200 revisions and 1000 followers, instead of a few")
	update = flag.Bool("update", false, "write the tables to docs/reports/control-plane.md; needs -all")
)

// hints is the channel of the feed.
const hints = "rl:main:policy:{main}:hint"

// ours is the name of the connections that nobody ends.
const ours = "publisher"

// scale is how large a run is.
type scale struct {
	// processes follow, and naive ones of each kind do not.
	processes, naive int
	revisions        uint64
	// calm is the revision at which connections end for the first time; every so many revisions some more of them end.
	calm, every uint64
	ended       int
	// restart, flush and failover are the revisions before which these happen.
	restart, flush, failover uint64
	// lost is the first revision that somebody who only polls may not have had by the restart.
	lost uint64
}

func scaleOf() scale {
	if *all {
		return scale{processes: 50, naive: 3, revisions: 200, calm: 60, every: 6, ended: 30, restart: 120, flush: 145, failover: 170, lost: 105}
	}
	return scale{processes: 6, naive: 1, revisions: 30, calm: 10, every: 4, ended: 6, restart: 13, flush: 18, failover: 23, lost: 12}
}

// fleet is a Redis with a replica and Sentinels, and the processes that follow it.
type fleet struct {
	t *testing.T
	scale

	group     *redistest.Sentinel
	admin     *redis.Client
	publisher *redisfeed.Feed
	followers []*instance
	naive     []*instance
	// published is when the call began that has published it.
	published map[uint64]time.Time
	killed    int
}

func newFleet(t *testing.T, is kind) *fleet {
	t.Helper()
	group := redistest.StartSentinel(t, time.Second)
	admin := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: group.Name, SentinelAddrs: group.Addrs, ClientName: ours})
	t.Cleanup(func() { _ = admin.Close() })
	publisher, err := redisfeed.New(redisfeed.Config{Client: admin})
	require.NoError(t, err)
	fl := &fleet{t: t, scale: scaleOf(), group: group, admin: admin, publisher: publisher, published: map[uint64]time.Time{}}
	fl.publish(1)
	for range fl.processes {
		fl.followers = append(fl.followers, startInstance(t, is, group))
	}
	for range fl.scale.naive {
		fl.naive = append(fl.naive, startInstance(t, subscribes, group), startInstance(t, reads, group))
	}
	fl.eventually(func() bool {
		subscribed := admin.PubSubNumSub(t.Context(), hints).Val()[hints]
		return fl.behind(fl.followers, 1) == 0 && subscribed == int64(len(fl.followers)+len(fl.naive))
	}, "instances are missing")
	return fl
}

func (fl *fleet) eventually(is func() bool, text string) {
	fl.t.Helper()
	require.Eventually(fl.t, is, patience, 10*time.Millisecond, text)
}

// behind is how many of the instances do not have the revision, or a newer one.
func (*fleet) behind(instances []*instance, number uint64) (n int) {
	for _, i := range instances {
		if i.has() < number {
			n++
		}
	}
	return n
}

// publish publishes until it has succeeded: what the Redis has lost is given back by the instances, and is what is expected.
func (fl *fleet) publish(number uint64) {
	fl.t.Helper()
	document := fmt.Appendf(nil, "version: 1\ndefault: free\ntiers: {free: {maxCost: %d}}\n", number)
	r := &policy.Revision{Number: number, Document: document, Hash: policy.HashOf(document), Published: time.Now()}
	fl.eventually(func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		fl.published[number] = time.Now()
		return fl.publisher.Publish(ctx, r, number-1) == nil
	}, "the revision was not published")
}

// kill ends so many connections of instances, or all of them.
func (fl *fleet) kill(most int) {
	fl.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	list, err := fl.admin.ClientList(ctx).Result()
	require.NoError(fl.t, err)
	var ids []string
	for line := range strings.Lines(list) {
		properties := map[string]string{}
		for property := range strings.FieldsSeq(line) {
			name, value, _ := strings.Cut(property, "=")
			properties[name] = value
		}
		replica := strings.ContainsAny(properties["flags"], "SM")
		if name := properties["name"]; name != ours && !strings.HasPrefix(name, "sentinel") && !replica {
			ids = append(ids, properties["id"])
		}
	}
	rand.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	ids = ids[:min(most, len(ids))]
	pipeline := fl.admin.Pipeline()
	for _, id := range ids {
		pipeline.ClientKillByFilter(ctx, "ID", id)
	}
	replies, _ := pipeline.Exec(ctx) // Of each reply below.
	for _, reply := range replies {
		if n, ok := reply.(*redis.IntCmd); ok {
			fl.killed += int(n.Val())
		}
	}
}

// before does what happens before a revision.
func (fl *fleet) before(number uint64) {
	fl.t.Helper()
	if number >= fl.calm && (number-fl.calm)%fl.every == 0 {
		fl.kill(fl.ended)
	}
	switch number {
	case fl.restart, fl.flush, fl.failover:
		// What nobody but the Redis had is gone with it.
		fl.eventually(func() bool { return fl.behind(fl.followers, number-1) < len(fl.followers) }, "nobody has the revision")
	}
	switch number {
	case fl.restart:
		fl.group.Master.Kill()
		require.NoError(fl.t, fl.group.Master.Restart())
	case fl.flush:
		fl.eventually(func() bool { return fl.admin.FlushAll(context.Background()).Err() == nil }, "the Redis was not emptied")
	case fl.failover:
		fl.group.Master.Kill()
	}
}

// each calls for each process.
func (fl *fleet) each(call func(*instance)) {
	for _, i := range append(fl.naive[:len(fl.naive):len(fl.naive)], fl.followers...) {
		call(i)
	}
}

// run publishes the revisions, and the last one while every process stands still and no connection is left.
func (fl *fleet) run() {
	fl.t.Helper()
	for number := uint64(2); number < fl.revisions; number++ {
		<-time.After(time.Until(time.Now().Truncate(tick).Add(tick)))
		fl.before(number)
		fl.publish(number)
	}
	fl.eventually(func() bool { return fl.behind(fl.followers, fl.revisions-1) == 0 }, "instances are stuck")
	fl.each(func(i *instance) { require.NoError(fl.t, freeze.Process(i.command.Process)) })
	// The Redis may accept a connection that an instance has made before it stood still after others were ended.
	fl.eventually(func() bool {
		fl.kill(int(^uint(0) >> 1))
		subscribed := fl.admin.PubSubNumSub(fl.t.Context(), hints)
		return subscribed.Err() == nil && subscribed.Val()[hints] == 0
	}, "connections of processes that stand still are left")
	fl.publish(fl.revisions)
	// From now on it can reach somebody.
	fl.published[fl.revisions] = time.Now()
	fl.each(func(i *instance) { require.NoError(fl.t, freeze.Thaw(i.command.Process)) })
	fl.eventually(func() bool { return fl.behind(fl.followers, fl.revisions) == 0 }, "instances are stuck")
}

// outcome is what a run has shown.
type outcome struct {
	scale
	is                   kind
	killed, stuck, backs int
	subscribed, read     int
	// calm, broken, gone and last are about revisions, timer about timers.
	calm, broken, gone, last, timer reach
	loadBefore, loadBehind          string
}

// proof runs a fleet and holds it to what must be so.
func proof(t *testing.T, is kind) *outcome {
	t.Helper()
	o := &outcome{is: is, loadBefore: load(t)}
	fl := newFleet(t, is)
	fl.run()
	// What it says is what it decides by, and what it reports.
	for _, i := range fl.followers {
		fl.eventually(func() bool { return i.answered(t) == fl.revisions }, "an instance decides by another revision")
	}
	reader, err := report.NewReader(report.Place{Client: fl.admin})
	require.NoError(t, err)
	fl.eventually(func() bool {
		said, err := reader.Summary(context.Background(), 0)
		if err != nil {
			return false
		}
		n := 0
		for _, i := range said.Instances {
			if i.Policy != nil && i.Policy.Revision == fl.revisions {
				n++
			}
		}
		return n == len(fl.followers)
	}, "reports are missing")
	o.scale, o.killed, o.stuck = fl.scale, fl.killed, fl.behind(fl.followers, fl.revisions)
	for _, i := range fl.followers {
		o.backs += i.backwardSteps()
		require.Empty(t, i.wrong)
	}
	for _, i := range fl.naive {
		behind := fl.behind([]*instance{i}, fl.revisions)
		if i.is == reads {
			o.read += behind
		} else {
			o.subscribed += behind
		}
	}
	o.calm, o.broken = fl.reach(2, fl.calm-1), fl.reach(fl.calm, fl.lost-1)
	o.gone, o.last = fl.reach(fl.lost, fl.revisions-1), fl.reach(fl.revisions, fl.revisions)
	o.timer, o.loadBehind = fl.timer(), load(t)
	require.Zero(t, o.stuck, "instances are stuck")
	require.Zero(t, o.backs, "instances have gone back")
	require.GreaterOrEqual(t, o.killed, fl.ended*int((fl.revisions-fl.calm+fl.every-1)/fl.every)/2, "connections have stayed")
	if *all {
		require.GreaterOrEqual(t, o.killed, 600)
	}
	require.Equal(t, fl.scale.naive, o.subscribed, "a run in which those who only subscribe lose nothing proves nothing")
	require.Equal(t, fl.scale.naive, o.read, "a run in which those who subscribe, read and never poll lose nothing proves nothing")
	return o
}

func TestEveryProcessHasTheNewestRevisionWhateverBreaksAndNaiveOnesDoNot(t *testing.T) {
	// One after the other: they measure.
	var outcomes []*outcome
	for _, is := range []kind{follows, deaf} {
		t.Run(string(is), func(t *testing.T) { outcomes = append(outcomes, proof(t, is)) })
	}
	if t.Failed() {
		return
	}
	table := renderReach(outcomes)
	t.Log("\n" + table)
	writeTable(t, "reach", table)
}
