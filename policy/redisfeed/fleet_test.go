package redisfeed_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket/redisclient"
	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
	"github.com/gqlgen-ratelimit/ratelimit/policy"
	"github.com/gqlgen-ratelimit/ratelimit/policy/redisfeed"
)

const (
	fleetSize      = 50
	fleetRevisions = 200
	// firstFault is the revision before which connections end for the first time.
	firstFault = 10
	// naiveSize is how many there are of each kind that does not follow as it should.
	naiveSize = 5
)

// arrival is a revision that a follower has applied.
type arrival struct {
	number uint64
	at     time.Time
}

// instance is one follower of the fleet, and what it has applied.
type instance struct {
	follower *policy.Follower
	mu       sync.Mutex
	arrivals []arrival
}

func (i *instance) Observe(_ context.Context, e event.Event) {
	if applied, ok := e.(event.PolicyApplied); ok && !applied.Again {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.arrivals = append(i.arrivals, arrival{applied.Revision, applied.At})
	}
}

// naive is who has a revision in a way that loses some.
type naive struct {
	has  atomic.Uint64
	asks atomic.Bool
}

// listen is the first naive way: it trusts its subscription, which is made again when it breaks, and reads at a message.
func (n *naive) listen(ctx context.Context, feed *redisfeed.Feed, subscription *redis.PubSub) {
	defer func() { _ = subscription.Close() }()
	for {
		select {
		case <-ctx.Done():
			return
		case <-subscription.Channel():
			n.asks.Store(true)
			if r, err := feed.Newest(ctx, policy.Head{}); err == nil {
				n.has.Store(r.Number)
			}
			n.asks.Store(false)
		}
	}
}

// since is the second one: it asks, and takes what has changed since the time that it knows.
func (n *naive) since(ctx context.Context, feed *redisfeed.Feed) {
	var last time.Time
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if r, err := feed.Newest(ctx, policy.Head{}); err == nil && r.Published.After(last) {
				last = r.Published
				n.has.Store(r.Number)
			}
		}
	}
}

// fleet is a Redis behind a network that breaks, and those who follow it.
type fleet struct {
	t         testing.TB
	server    *redistest.Server
	proxy     *redistest.Proxy
	publisher *redisfeed.Feed
	instances []*instance
	listeners []*naive
	sinces    []*naive
	published map[uint64]time.Time
	severed   int
}

func newFleet(t *testing.T) *fleet {
	t.Helper()
	server := redistest.Start(t, "--appendonly", "yes")
	fl := &fleet{
		t: t, server: server, proxy: redistest.StartProxy(t, server.Addr),
		publisher: open(t, redistest.Plain(t, server.Addr)), published: map[uint64]time.Time{},
	}
	fl.publish(1)
	var running sync.WaitGroup
	ctx, stop := context.WithCancel(context.Background())
	t.Cleanup(func() {
		stop()
		running.Wait()
	})
	for range fleetSize {
		i := &instance{}
		feed := open(t, redistest.ConnectWith(t, fl.proxy.Addr, redisclient.Config{PoolSize: 2}))
		i.follower = follow(t, feed, policy.Config{Observe: policy.ObserveConfig{Observer: i}})
		fl.instances = append(fl.instances, i)
	}
	for range naiveSize {
		listener, since := &naive{}, &naive{}
		client := redistest.Plain(t, fl.proxy.Addr)
		feed := open(t, client)
		subscription := client.Subscribe(ctx, key+":hint")
		running.Go(func() { listener.listen(ctx, feed, subscription) })
		running.Go(func() { since.since(ctx, feed) })
		fl.listeners, fl.sinces = append(fl.listeners, listener), append(fl.sinces, since)
	}
	return fl
}

// publish publishes past the network that breaks, until it has succeeded. Every other publisher has a clock that is behind.
func (fl *fleet) publish(number uint64) {
	fl.t.Helper()
	r := revision(number)
	r.Published = time.Now()
	if number%2 == 0 {
		r.Published = r.Published.Add(-time.Hour)
	}
	require.Eventually(fl.t, func() bool {
		fl.published[number] = time.Now()
		err := fl.publisher.Publish(context.Background(), r, number-1)
		// What the Redis has lost comes back from the instances, and is what is expected then.
		if !errors.Is(err, policy.ErrConflict) && err != nil {
			fl.t.Logf("revision %d: %v", number, err)
		}
		return err == nil
	}, redistest.Patience, 5*time.Millisecond)
}

// reached returns after how long each instance had each of the first revisions, or a newer one. Those who have gone back fail
// the test.
func (fl *fleet) reached(last uint64) []time.Duration {
	fl.t.Helper()
	var all []time.Duration
	for _, i := range fl.instances {
		i.mu.Lock()
		arrivals := slices.Clone(i.arrivals)
		i.mu.Unlock()
		require.True(fl.t, slices.IsSortedFunc(arrivals, func(a, b arrival) int {
			return int(a.number) - int(b.number)
		}), "an instance has gone back: %v", arrivals)
		next := 0
		for number := arrivals[0].number; number <= last; number++ {
			for next < len(arrivals)-1 && arrivals[next].number < number {
				next++
			}
			if number > 1 {
				all = append(all, max(0, arrivals[next].at.Sub(fl.published[number])))
			}
		}
	}
	slices.Sort(all)
	return all
}

func TestEveryInstanceHasTheNewestRevisionWhateverBreaksAndNaiveOnesDoNot(t *testing.T) {
	t.Parallel()
	fl := newFleet(t)
	admin := redistest.Plain(t, fl.server.Addr)
	require.Eventually(t, func() bool {
		return admin.PubSubNumSub(t.Context(), key+":hint").Val()[key+":hint"] == fleetSize+naiveSize
	}, redistest.Patience, 5*time.Millisecond, "subscriptions are missing")
	pace := time.NewTicker(10 * time.Millisecond)
	defer pace.Stop()
	for number := uint64(2); number < fleetRevisions; number++ {
		<-pace.C
		if number%30 == firstFault {
			fl.severed += fl.proxy.Sever()
		}
		switch number {
		case 75:
			fl.server.Kill()
			require.NoError(t, fl.server.Restart())
		case 125:
			require.NoError(t, admin.FlushAll(t.Context()).Err())
		}
		fl.publish(number)
	}
	stuck := func(at uint64) (n int) {
		for _, i := range fl.instances {
			if i.follower.Status().Number != at {
				n++
			}
		}
		return n
	}
	// The last one is published while nobody is connected and nobody is asking, by the publisher whose clock is behind.
	require.Eventually(t, func() bool {
		return stuck(fleetRevisions-1) == 0 && !slices.ContainsFunc(fl.listeners, func(n *naive) bool { return n.asks.Load() })
	}, redistest.Patience, 20*time.Millisecond, "instances are stuck")
	fl.proxy.Cut()
	fl.severed += fl.proxy.Sever()
	fl.publish(fleetRevisions)
	fl.proxy.Heal()

	require.Eventually(t, func() bool { return stuck(fleetRevisions) == 0 }, redistest.Patience, 5*time.Millisecond, "instances are stuck")
	for _, i := range fl.instances {
		require.EqualValues(t, fleetRevisions, maxCost(i.follower))
	}
	t.Logf("%d instances, %d revisions, %d connections ended, a restart and a flush", fleetSize, fleetRevisions, fl.severed)
	for what, last := range map[string]uint64{"before the first fault": firstFault - 1, "all": fleetRevisions} {
		reached := fl.reached(last)
		at := func(share float64) time.Duration { return reached[int(share*float64(len(reached)-1))] }
		t.Logf("reached, %s: p50 %v, p99 %v, at most %v", what, at(0.5), at(0.99), at(1))
	}

	behind := func(all []*naive) (n int) {
		for _, one := range all {
			if one.has.Load() != fleetRevisions {
				n++
			}
		}
		return n
	}
	t.Logf("behind: %d of %d that listen without reading, %d of %d that ask for what has changed since", behind(fl.listeners), naiveSize,
		behind(fl.sinces), naiveSize)
	require.NotZero(t, behind(fl.listeners), "a run in which those who listen without reading lose nothing proves nothing")
	require.NotZero(t, behind(fl.sinces), "a run in which those who ask for what has changed since lose nothing proves nothing")
}
