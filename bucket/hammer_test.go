package bucket_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
)

// scriptCalls returns how many scripts the server has run, as INFO commandstats counts them.
func scriptCalls(t testing.TB, client *redis.Client) int64 {
	t.Helper()
	stats, err := client.InfoMap(context.Background(), "commandstats").Result()
	require.NoError(t, err)
	all := int64(0)
	for _, name := range []string{"cmdstat_evalsha", "cmdstat_eval"} {
		for field := range strings.SplitSeq(stats["Commandstats"][name], ",") {
			if text, found := strings.CutPrefix(field, "calls="); found {
				n, err := strconv.ParseInt(text, 10, 64)
				require.NoError(t, err)
				all += n
			}
		}
	}
	return all
}

func TestATenantRefusedTenThousandTimesInASecondCostsRedisAFewCalls(t *testing.T) {
	t.Parallel()
	client := patientClient(t, redistest.Start(t).Addr)
	store := newRedisStore(t, client)
	c := newClock()
	require.NoError(t, store.SetTestClock(c.unixMilli))
	cache, err := bucket.NewRefusalCache(store, bucket.RefusalCacheConfig{Clock: c.now})
	require.NoError(t, err)
	buckets := []bucket.Bucket{{Limits: compile(t, bucket.Limit{Name: "minute", Capacity: 600, Refill: 60, Period: time.Minute})}}
	take := func(n int64, claim *idempotency.Claim) bucket.Verdict {
		result, err := cache.Take(t.Context(), bucket.Take{Tenant: "acme", Buckets: buckets, Amounts: points(n), Claim: claim})
		require.NoError(t, err)
		return result.Verdict
	}
	require.Equal(t, bucket.Admitted, take(600, nil))
	before := scriptCalls(t, client)
	for i := range 10_000 {
		if i%10 == 0 {
			c.advance(time.Millisecond)
		}
		var claim *idempotency.Claim
		if i%2 == 0 {
			claim = newClaim(idempotency.Key("key-" + strconv.Itoa(10_000+i)))
		}
		require.Equal(t, bucket.Limited, take(5+int64(i%500), claim))
	}
	asked := scriptCalls(t, client) - before
	t.Logf("10000 refusals, half of them with a key of their own, cost Redis %d scripts", asked)
	require.LessOrEqual(t, asked, int64(2*bucket.DefaultCappedCalls+4))

	// A second has brought one point back. The next cheaper operation has it, and a later one what comes back.
	require.Equal(t, bucket.Admitted, take(1, nil))
	require.Equal(t, bucket.Limited, take(3, nil))
	c.advance(3 * time.Second)
	require.Equal(t, bucket.Admitted, take(3, nil))
}

func TestABulkheadBoundsTheConnectionsIntoAStoreThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	const share = 8
	server := redistest.Start(t)
	proxy := redistest.StartProxy(t, server.Addr)
	options := patientOptions(proxy.Addr)
	options.PoolSize, options.MinIdleConns = 200, 0
	client := redis.NewClient(options)
	t.Cleanup(func() { _ = client.Close() })
	store, err := bucket.NewRedis(bucket.RedisConfig{Client: client, Timeout: time.Second})
	require.NoError(t, err)
	bulkhead, err := bucket.NewBulkhead(store, bucket.BulkheadConfig{MaxConcurrent: share})
	require.NoError(t, err)
	proxy.DropReplies()

	var calls sync.WaitGroup
	var busy, failed atomic.Int64
	buckets := tenPerSecond(t)
	for range 200 {
		calls.Go(func() {
			_, err := bulkhead.Take(context.Background(), bucket.Take{Tenant: "acme", Buckets: buckets, Amounts: points(1)})
			switch {
			case errors.Is(err, bucket.ErrBusy):
				busy.Add(1)
			case err != nil:
				failed.Add(1)
			}
		})
	}
	calls.Wait()
	t.Logf("200 calls: %d were too many, %d got no answer, %d connections were opened", busy.Load(), failed.Load(), proxy.Opened())
	require.EqualValues(t, 200, busy.Load()+failed.Load())
	require.Positive(t, busy.Load())
	require.LessOrEqual(t, proxy.Opened(), failed.Load())
}

// BenchmarkHammeredTenant lets one tenant, whose budget is used up, try as fast as eight callers can, and
// reports how many scripts Redis runs each second for it, without and with a refusal cache.
func BenchmarkHammeredTenant(b *testing.B) {
	client := patientClient(b, redistest.Start(b).Addr)
	store := newRedisStore(b, client)
	cache, err := bucket.NewRefusalCache(store, bucket.RefusalCacheConfig{})
	require.NoError(b, err)
	hour := []bucket.Bucket{{Limits: compile(b, bucket.Limit{Name: "hour", Capacity: 1000, Period: time.Hour})}}
	for _, bench := range []struct {
		name  string
		store bucket.Store
		keyed bool
	}{
		{"bare", store, false},
		{"refusal cache", cache, false},
		{"bare, each with a key", store, true},
		{"refusal cache, each with a key", cache, true},
	} {
		b.Run(bench.name, func(b *testing.B) {
			ctx := context.Background()
			take := bucket.Take{Tenant: bench.name, Buckets: hour, Amounts: points(1000)}
			_, err := bench.store.Take(ctx, take)
			require.NoError(b, err)
			before, start := scriptCalls(b, client), time.Now()
			var keys atomic.Int64
			b.SetParallelism(4)
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					take := take
					if bench.keyed {
						take.Claim = newClaim(idempotency.Key(fmt.Sprintf("key-%08d", keys.Add(1))))
					}
					if _, err := bench.store.Take(ctx, take); err != nil {
						b.Error(err)
					}
				}
			})
			b.StopTimer()
			seconds := time.Since(start).Seconds()
			b.ReportMetric(float64(b.N)/seconds, "refusals/s")
			b.ReportMetric(float64(scriptCalls(b, client)-before)/seconds, "scripts/s")
		})
	}
}
