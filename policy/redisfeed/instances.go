package redisfeed

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/gqlgen-ratelimit/ratelimit/policy"
)

const (
	// life is after which time an instance that says nothing is forgotten.
	life = 3 * policy.ReportEvery
	// maxInstances is how many there may be, and maxReports how many bytes all that is read of them has.
	maxInstances = 10_000
	maxReports   = 4 << 20
)

//go:embed report.lua
var reportSource string

//go:embed instances.lua
var instancesSource string

var (
	reportScript    = redis.NewScript(reportSource)
	instancesScript = redis.NewScript(instancesSource)
)

// errTooMany says that there is no room for another instance.
var errTooMany = fmt.Errorf("redisfeed: more than %d instances report", maxInstances)

// Report implements policy.Reporter: the Redis keeps for half a minute what this instance serves.
func (f *Feed) Report(ctx context.Context, s policy.Status) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	kept, err := reportScript.Run(ctx, f.client, []string{f.instances, f.seen},
		f.instance, s.Report(), life.Milliseconds(), maxInstances).Int()
	if err == nil && kept == 0 {
		err = errTooMany
	}
	return err
}

// Instances returns the instances that have reported within half a minute, by name. Those whose report cannot be read are
// left out, and the error is a *policy.UnreadError that says how many. Whatever stands in the Redis, it reads 10 000 reports and 4 MiB of
// them at most.
func (f *Feed) Instances(ctx context.Context) ([]policy.Instance, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	reply, err := instancesScript.Run(ctx, f.client, []string{f.instances, f.seen},
		life.Milliseconds(), maxInstances, policy.MaxInstanceName, policy.MaxReport, maxReports).StringSlice()
	if err != nil {
		return nil, fmt.Errorf("redisfeed: %w", err)
	}
	var all []policy.Instance
	unread := 0
	const parts = 3
	for i := 0; i+parts <= len(reply); i += parts {
		instance, err := instanceOf(reply[i], reply[i+1], reply[i+2])
		if err != nil {
			unread++
			continue
		}
		all = append(all, instance)
	}
	slices.SortFunc(all, func(a, b policy.Instance) int { return cmp.Compare(a.Name, b.Name) })
	if unread > 0 {
		return all, fmt.Errorf("redisfeed: %w", &policy.UnreadError{Instances: unread})
	}
	return all, nil
}

// instanceOf reads what an instance says, which anybody may have written.
func instanceOf(name, seen, report string) (i policy.Instance, _ error) {
	if err := policy.CheckInstanceName(name); err != nil {
		return i, err
	}
	ms, err := strconv.ParseFloat(seen, 64)
	if err != nil {
		return i, err
	}
	i.Name, i.Seen = name, time.UnixMilli(int64(ms)).UTC()
	if err := json.Unmarshal([]byte(report), &i.Status); err != nil {
		return i, err
	}
	if r := i.Status.Refused; i.Status.Number > policy.MaxNumber || r != nil && r.Number > policy.MaxNumber {
		return i, errors.New("a number that no revision has")
	}
	return i, nil
}

// ACLRules returns the least rights in Redis with which everything in this package works, as rules for ACL SETUSER that are
// added to those of bucket.ACLRules. Empty names mean main. The error is that of names which [New] refuses.
func ACLRules(namespace, name string) ([]string, error) {
	keys, err := keysOf(cmp.Or(namespace, "main"), cmp.Or(name, "main"))
	if err != nil {
		return nil, err
	}
	rules := []string{"~" + keys + "*", "&" + keys + ":hint"}
	for _, command := range [...]string{
		"evalsha", "eval", "time", "ping", "subscribe", "unsubscribe", "publish", "hexists", "hmget", "hstrlen", "hset", "hget", "hdel",
		"del", "zadd", "zrem", "zscore", "zcard", "zrangebyscore", "pexpire",
	} {
		rules = append(rules, "+"+command)
	}
	return rules, nil
}
