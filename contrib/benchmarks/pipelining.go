package main

import (
	"context"
	"fmt"
	"slices"
	"syscall"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// pipelining compares a plain pooled client with the automatic pipelining of go-redis, which sends the
// commands of callers that wait at the same time together. Here the deadline of a call is the usual one.
func pipelining(ctx context.Context, e effort) (string, error) {
	server, err := startRedis() //nolint:contextcheck // a start has a deadline of its own
	if err != nil {
		return "", err
	}
	defer server.close()
	patient := patientClient(server.Addr)
	defer func() { _ = patient.Close() }()
	one, err := returnsOne(ctx, patient)
	if err != nil {
		return "", err
	}
	decisions, stop, err := pipelinedDecisions(server.Addr)
	if err != nil {
		return "", err
	}
	defer stop()
	const atOnce = 64
	contenders := []contender{server.calling(e, "EVALSHA `return 1`, pooled", atOnce, false, one)}
	for _, d := range decisions {
		contenders = append(contenders, server.calling(e, d.name, atOnce, true, d.decide))
	}
	outcomes, err := contest(ctx, e, contenders)
	if err != nil {
		return "", err
	}
	frozen, err := server.frozen(ctx, decisions)
	if err != nil {
		return "", err
	}
	t := &table{
		title: "Automatic pipelining, callers at once: 64",
		note: fmt.Sprintf("A call has a deadline of %v; late calls are those that it ended. The last column is the median and "+
			"the longest of %d calls into a server that was stopped by a signal; a bare timer in turn with them took %v.",
			bucket.DefaultTimeout, frozenCalls, frozen[len(decisions)]),
		header: []string{"", "decisions/s", "× return 1", "p50 µs", "p99 µs", "server µs", "late %", "stopped server"},
	}
	for i := range outcomes {
		o, stopped := &outcomes[i], "–"
		if i > 0 {
			stopped = frozen[i-1].String()
		}
		t.add(o.name, digits(o.median(perSecond)), digits(o.ratio(&outcomes[0], perSecond)), micros(o.median(p50)), micros(o.median(p99)),
			micros(o.median(serverProcessor)), digits(100*o.median(failed)), stopped)
	}
	return tables(t), nil
}

// pipelinedDecisions returns decisions over four limits by a pooled and by a pipelined client.
func pipelinedDecisions(address string) (decisions []named, stop func(), err error) {
	pooled := boundClient(address)
	below := boundClient(address)
	pipeline, err := below.AsyncAutoPipeline()
	if err != nil {
		return nil, nil, err
	}
	four, err := fourLimits(usualLimit)
	if err != nil {
		return nil, nil, err
	}
	for _, c := range []struct {
		name   string
		client goredis.UniversalClient
	}{{"4 limits, pooled", pooled}, {"4 limits, pipelined", pipelined{pipeline}}} {
		store, err := bucket.NewRedis(bucket.RedisConfig{Client: c.client, Namespace: c.name[len("4 limits, "):]})
		if err != nil {
			return nil, nil, err
		}
		f := feature{name: c.name, buckets: levels(four, 1), verdict: bucket.Admitted}
		decisions = append(decisions, f.on(store, nil))
	}
	return decisions, func() {
		_ = pipeline.Close()
		_ = below.Close()
		_ = pooled.Close()
	}, nil
}

// boundClient is a client as the library makes it, with the connections of the other tables.
func boundClient(address string) *goredis.Client {
	options := &goredis.Options{Addr: address, PoolSize: poolSize}
	bucket.BoundOptions(options)
	return goredis.NewClient(options)
}

// pipelined is a client whose commands ride in shared pipelines and whose callers wait no longer than
// their deadline. The blocking form of the pipeline has no deadline of the caller's.
type pipelined struct{ *goredis.AutoPipeliner }

// Process implements goredis.UniversalClient.
func (p pipelined) Process(ctx context.Context, cmd goredis.Cmder) error {
	return p.Submit(ctx, cmd).WaitContext(ctx)
}

// frozenCalls is how often a frozen server is called.
const frozenCalls = 50

// waits are how long calls into a stopped server took, in nanoseconds.
type waits []float64

// String shows the median and the longest.
func (w waits) String() string { return duration(median(w)) + ", " + duration(slices.Max(w)) }

// frozen stops the server for a while and returns how long the calls of each decision took, and at the
// end how long a bare timer of the same deadline took in turn with them.
func (s *redisServer) frozen(ctx context.Context, decisions []named) ([]waits, error) {
	if err := s.Signal(syscall.SIGSTOP); err != nil {
		return nil, err
	}
	all := make([]waits, len(decisions)+1)
	for range frozenCalls {
		for i, d := range decisions {
			start := time.Now()
			if err := d.decide(ctx, tenantNames[0]); err == nil {
				return nil, errNotFrozen
			}
			all[i] = append(all[i], float64(time.Since(start)))
		}
		start := time.Now()
		timer, cancel := context.WithTimeout(ctx, bucket.DefaultTimeout)
		<-timer.Done()
		cancel()
		all[len(decisions)] = append(all[len(decisions)], float64(time.Since(start)))
	}
	return all, s.Signal(syscall.SIGCONT)
}
