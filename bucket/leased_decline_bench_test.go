package bucket_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
)

// exchangeCounter counts what a Redis is asked.
type exchangeCounter struct {
	*bucket.Redis
	takes, exchanges *atomic.Int64
}

func (c *exchangeCounter) Take(ctx context.Context, take bucket.Take) (bucket.Result, error) {
	c.takes.Add(1)
	return c.Redis.Take(ctx, take)
}

func (c *exchangeCounter) Exchange(ctx context.Context, e bucket.Exchange) (bucket.Exchanged, error) {
	c.exchanges.Add(1)
	return c.Redis.Exchange(ctx, e)
}

// BenchmarkBackstopOfEight has eight instances take what may be declined from one budget of all, under load that moves to another one each second, and
// says how many calls a second the one key of it takes: while the budget suffices, and while more is asked for than there is. With an operation each
// take is one of the budget of an operation as well, which is leased by itself or not.
func BenchmarkBackstopOfEight(b *testing.B) {
	const instances, each = 8, 20 // takes in a millisecond at most
	for name, of := range map[string]struct {
		capacity  int64
		operation bool
		leaseEach bool
	}{
		"enough": {1_000_000, false, true}, "used up": {2000, false, true},
		"with an operation of the store/enough": {1_000_000, true, false}, "with an operation of the store/used up": {2000, true, false},
		"with a leased operation/enough": {1_000_000, true, true}, "with a leased operation/used up": {2000, true, true},
	} {
		capacity := of.capacity
		b.Run(name, func(b *testing.B) {
			client := patientClient(b, redistest.Start(b).Addr)
			limits, err := bucket.Compile(bucket.Limit{Name: "second", Capacity: capacity, Refill: capacity, Period: time.Second})
			require.NoError(b, err)
			var takes, exchanges, decided, admitted atomic.Int64
			ctx, cancel := context.WithCancel(b.Context())
			var running sync.WaitGroup
			all := make([]*bucket.Leased, instances)
			for i := range all {
				store, err := bucket.NewRedis(bucket.RedisConfig{Client: client})
				require.NoError(b, err)
				all[i] = bucket.NewLeased(&exchangeCounter{store, &takes, &exchanges}, bucket.LeasedConfig{})
				all[i].Allow(true)
				running.Go(func() { all[i].Run(ctx) })
			}
			begin := time.Now()
			for i, leased := range all {
				running.Go(func() {
					take := bucket.Take{Buckets: []bucket.Bucket{{Limits: limits}}, Amounts: points(1), Lease: bucket.LeaseAlways, Declinable: true, LeaseEach: of.leaseEach}
					if of.operation {
						take.Buckets = append(take.Buckets, bucket.Bucket{Owner: bucket.Owner{Level: bucket.Operation, Name: "Query.all"}, Limits: limits})
					}
					ticker := time.NewTicker(time.Millisecond)
					defer ticker.Stop()
					for n := 0; ctx.Err() == nil; n++ {
						<-ticker.C
						share := 1 + each*((i+int(time.Since(begin)/time.Second))%instances)/instances
						for range share {
							result, err := leased.Take(ctx, take)
							decided.Add(1)
							if err != nil || result.Verdict != bucket.Admitted {
								continue
							}
							admitted.Add(1)
							leased.Keep(result.Receipt)
						}
					}
				})
			}
			for b.Loop() {
				time.Sleep(time.Second) //nolint:forbidigo // Instances are real.
			}
			seconds := time.Since(begin).Seconds()
			cancel()
			running.Wait()
			b.ReportMetric(float64(exchanges.Load())/seconds, "exchanges/s")
			b.ReportMetric(float64(takes.Load())/seconds, "takes/s")
			b.ReportMetric(float64(decided.Load())/seconds, "decisions/s")
			b.ReportMetric(float64(admitted.Load())/seconds, "admitted/s")
		})
	}
}
