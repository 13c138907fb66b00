package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/bucket/redisclient"
	"github.com/gqlgen-ratelimit/ratelimit/internal/freeze"
)

// pipelining compares a store that sends each decision by itself with one that sends those of callers that
// wait at the same time together. Here the deadline of a call is the usual one.
func pipelining(ctx context.Context, e effort) (*findings, error) {
	server, err := startRedis() //nolint:contextcheck // a start has a deadline of its own
	if err != nil {
		return nil, err
	}
	defer server.close()
	patient := patientClient(server.Addr)
	defer func() { _ = patient.Close() }()
	one, err := returnsOne(ctx, patient)
	if err != nil {
		return nil, err
	}
	decisions, stop, err := pipelinedDecisions(server.Addr)
	if err != nil {
		return nil, err
	}
	defer stop()
	all := &findings{}
	for _, atOnce := range []int{1, 8, pipelinedAtOnce} {
		contenders := []contender{server.calling(e, "EVALSHA `return 1`, pooled", atOnce, false, one)}
		for _, d := range decisions {
			contenders = append(contenders, server.calling(e, d.name, atOnce, true, d.decide))
		}
		outcomes, err := contest(ctx, e, contenders)
		if err != nil {
			return nil, err
		}
		t := &table{
			title:  fmt.Sprintf("Automatic pipelining, callers at once: %d", atOnce),
			note:   fmt.Sprintf("A call has a deadline of %v; late calls are those that it ended.", bucket.DefaultTimeout),
			header: []string{"", "decisions/s", "× return 1", "p50 µs", "p99 µs", "server µs", "late %"},
		}
		for i := range outcomes {
			o := &outcomes[i]
			t.add(o.name, digits(o.median(perSecond)), digits(o.ratio(&outcomes[0], perSecond)), micros(o.median(p50)), micros(o.median(p99)),
				micros(o.median(serverProcessor)), digits(100*o.median(failed)))
		}
		all.tables = append(all.tables, t)
		if atOnce == pipelinedAtOnce {
			all.aims = append(all.aims, atLeast("decisions over 4 limits with automatic pipelining ÷ `return 1` over a pooled client, callers at once 64",
				0.95, outcomes[len(outcomes)-1].ratio(&outcomes[0], perSecond), times))
		}
	}
	frozen, longest, err := server.frozen(ctx, e, decisions)
	if err != nil {
		return nil, err
	}
	all.tables, all.aims = append(all.tables, frozen), append(all.aims, longest...)
	return all, nil
}

// pipelinedDecisions returns decisions over four limits of a store without and of one with pipelining.
func pipelinedDecisions(address string) (decisions []named, stop func(), err error) {
	client, err := boundClient(address)
	if err != nil {
		return nil, nil, err
	}
	four, err := fourLimits(usualLimit)
	if err != nil {
		return nil, nil, err
	}
	for _, c := range []struct {
		name, namespace string
		apart           bool
	}{{"4 limits, each by itself", "apart", true}, {"4 limits, pipelined", "together", false}} {
		store, err := bucket.NewRedis(bucket.RedisConfig{Client: client, Namespace: c.namespace, SeparateCalls: c.apart})
		if err != nil {
			return nil, nil, err
		}
		f := feature{name: c.name, buckets: levels(four, 1), verdict: bucket.Admitted}
		decisions = append(decisions, f.on(store, nil))
	}
	return decisions, func() { _ = client.Close() }, nil
}

// boundClient is a client as the library makes it, with the connections of the other tables, and without breakers: each
// call is to reach a server that is stopped.
func boundClient(address string) (goredis.UniversalClient, error) {
	return redisclient.Open(address, redisclient.Config{PoolSize: poolSize, Breaker: redisclient.BreakerConfig{Disabled: true}})
}

// pipelinedAtOnce is how many callers the aim of pipelining is about.
const pipelinedAtOnce = 64

// frozenAtOnce is how many callers call a frozen server at once in the end.
const frozenAtOnce = 64

// frozen stops the server for a while and shows how long calls took: alone, and many at once.
func (s *redisServer) frozen(ctx context.Context, e effort, decisions []named) (*table, []aim, error) {
	// A process that had too little of the processors gives nodes more time for a while: it is the usual time that is shown here.
	select {
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	case <-time.After(e.rest):
	}
	if err := freeze.Process(s.Process()); err != nil {
		return nil, nil, err
	}
	timer := func(ctx context.Context, _ string) error {
		timer, cancel := context.WithTimeout(ctx, bucket.DefaultTimeout)
		defer cancel()
		<-timer.Done()
		return timer.Err()
	}
	decisions = append(slices.Clone(decisions), named{name: "a bare timer", decide: timer})
	waits := map[int][][]float64{}
	for _, atOnce := range []int{1, frozenAtOnce} {
		waits[atOnce] = make([][]float64, len(decisions))
		for range e.frozen/atOnce + 1 {
			for i, d := range decisions {
				took, err := stopped(ctx, atOnce, d)
				if err != nil {
					return nil, nil, err
				}
				waits[atOnce][i] = append(waits[atOnce][i], took...)
			}
		}
	}
	t := &table{
		title:  "Calls into a stopped server",
		note:   fmt.Sprintf("The server is stopped by a signal; a call has a deadline of %v.", bucket.DefaultTimeout),
		header: []string{"", "one caller: median", "longest", fmt.Sprintf("%d callers: median", frozenAtOnce), "longest"},
	}
	for i, d := range decisions {
		alone, many := waits[1][i], waits[frozenAtOnce][i]
		t.add(d.name, duration(median(alone)), duration(slices.Max(alone)), duration(median(many)), duration(slices.Max(many)))
	}
	var aims []aim
	timed := len(decisions) - 1
	for _, atOnce := range []int{1, frozenAtOnce} {
		// A process whose timers are later than this gives a node more time: then that is what is seen here.
		const longest, late = float64(15 * time.Millisecond), float64(bucket.DefaultTimeout + 2*time.Millisecond)
		aims = append(aims, atMost(fmt.Sprintf("longest call into a stopped Redis at a deadline of %v, callers at once %d", bucket.DefaultTimeout, atOnce),
			longest, slices.Max(waits[atOnce][timed-1]), duration).unless(slices.Max(waits[atOnce][timed]), late))
	}
	return t, aims, freeze.Thaw(s.Process())
}

// stopped returns how long calls into a stopped server took that were made at the same time, in nanoseconds.
func stopped(ctx context.Context, atOnce int, d named) ([]float64, error) {
	took, errs := make([]float64, atOnce), make([]error, atOnce)
	var group sync.WaitGroup
	for i := range atOnce {
		group.Go(func() {
			start := time.Now()
			if err := d.decide(ctx, tenantNames[i]); err == nil {
				errs[i] = errNotFrozen
			}
			took[i] = float64(time.Since(start))
		})
	}
	group.Wait()
	return took, errors.Join(errs...)
}
