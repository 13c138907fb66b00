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
	"github.com/gqlgen-ratelimit/ratelimit/bucket/buckettest"
	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
	"github.com/gqlgen-ratelimit/ratelimit/internal/backend"
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
	gate := backend.NewGate(store, backend.GateConfig{Clock: c.now})
	buckets := []bucket.Bucket{{Limits: compile(t, bucket.Limit{Name: "minute", Capacity: 600, Refill: 60, Period: time.Minute})}}
	take := func(n int64, claim *idempotency.Claim) bucket.Verdict {
		result, _, err := gate.Take(t.Context(), bucket.Take{Tenant: "acme", Buckets: buckets, Amounts: points(n), Claim: claim}, backend.Caller{})
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
	require.LessOrEqual(t, asked, int64(2*backend.DefaultCappedCalls+4))

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
	gate := backend.NewGate(store, backend.GateConfig{MaxConcurrent: share})
	proxy.DropReplies()

	var calls sync.WaitGroup
	var busy, failed atomic.Int64
	buckets := tenPerSecond(t)
	for range 200 {
		calls.Go(func() {
			_, _, err := gate.Take(context.Background(), bucket.Take{Tenant: "acme", Buckets: buckets, Amounts: points(1)}, backend.Caller{})
			switch {
			case errors.Is(err, backend.ErrTenantBusy):
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
// reports how many scripts Redis runs each second for it, without and with a memory of refusals.
func BenchmarkHammeredTenant(b *testing.B) {
	client := patientClient(b, redistest.Start(b).Addr)
	store := newRedisStore(b, client)
	gate := backend.NewGate(store, backend.GateConfig{})
	gated := func(ctx context.Context, take bucket.Take) (bucket.Result, error) {
		result, _, err := gate.Take(ctx, take, backend.Caller{})
		return result, err
	}
	hour := []bucket.Bucket{{Limits: compile(b, bucket.Limit{Name: "hour", Capacity: 1000, Period: time.Hour})}}
	for _, bench := range []struct {
		name  string
		take  func(context.Context, bucket.Take) (bucket.Result, error)
		keyed bool
	}{
		{"bare", store.Take, false},
		{"memory of refusals", gated, false},
		{"bare, each with a key", store.Take, true},
		{"memory of refusals, each with a key", gated, true},
	} {
		b.Run(bench.name, func(b *testing.B) {
			ctx := context.Background()
			take := bucket.Take{Tenant: bench.name, Buckets: hour, Amounts: points(1000)}
			_, err := bench.take(ctx, take)
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
					if _, err := bench.take(ctx, take); err != nil {
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

// gatedStore is a store whose takes, renewals and settlements go through a gate, which is told of what gives back beside
// it.
type gatedStore struct {
	bucket.Store
	bucket.OverrideStore
	gate *backend.Gate
}

func (s *gatedStore) Take(ctx context.Context, take bucket.Take) (bucket.Result, error) {
	result, _, err := s.gate.Take(ctx, take, backend.Caller{})
	return result, err
}

func (s *gatedStore) Settle(ctx context.Context, settlement bucket.Settlement) (bucket.Settled, error) {
	return s.gate.Settle(ctx, settlement)
}

func (s *gatedStore) Renew(ctx context.Context, tenant string, claim *idempotency.Claim) (bool, error) {
	return s.gate.Renew(ctx, tenant, claim)
}

func (s *gatedStore) Grant(ctx context.Context, tenant string, buckets []bucket.Bucket, amounts bucket.Amounts) ([]bucket.LimitState, error) {
	defer s.gate.Forget(tenant)
	return s.Store.Grant(ctx, tenant, buckets, amounts)
}

func (s *gatedStore) Reset(ctx context.Context, tenant string, buckets []bucket.Bucket) error {
	defer s.gate.Forget(tenant)
	return s.Store.Reset(ctx, tenant, buckets)
}

func (s *gatedStore) SetOverride(ctx context.Context, tenant string, override bucket.Override) (*bucket.Override, error) {
	defer s.gate.Forget(tenant)
	return s.OverrideStore.SetOverride(ctx, tenant, override)
}

func (s *gatedStore) DeleteOverride(ctx context.Context, tenant string, owner bucket.Owner, limit string) (*bucket.Override, error) {
	defer s.gate.Forget(tenant)
	return s.OverrideStore.DeleteOverride(ctx, tenant, owner, limit)
}

func (s *gatedStore) ClearOverrides(ctx context.Context, tenant string) ([]bucket.Override, error) {
	defer s.gate.Forget(tenant)
	return s.OverrideStore.ClearOverrides(ctx, tenant)
}

func TestAGateBeforeAStoreKeepsTheContract(t *testing.T) {
	t.Parallel()
	client := patientClient(t, redistest.Start(t).Addr)
	for name, open := range map[string]func(*testing.T, *clock) buckettest.Harness{
		"memory": func(_ *testing.T, c *clock) buckettest.Harness {
			store := bucket.NewMemory(bucket.MemoryConfig{Clock: c.now})
			return buckettest.Harness{Store: &gatedStore{store, store, backend.NewGate(store, backend.GateConfig{MaxConcurrent: 100, Clock: c.now})}}
		},
		"redis": func(t *testing.T, c *clock) buckettest.Harness {
			t.Helper()
			store := newRedisStore(t, client)
			require.NoError(t, store.SetTestClock(c.unixMilli))
			return buckettest.Harness{Store: &gatedStore{store, store, backend.NewGate(store, backend.GateConfig{MaxConcurrent: 100, Clock: c.now})}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			harness := func(t *testing.T) buckettest.Harness {
				t.Helper()
				c := newClock()
				h := open(t, c)
				h.Advance = c.advance
				return h
			}
			buckettest.Run(t, harness)
			buckettest.RunOverrides(t, harness)
		})
	}
}

// tenPerSecond is a bucket of the tenant with ten points that come back in a second.
func tenPerSecond(t *testing.T) []bucket.Bucket {
	t.Helper()
	return []bucket.Bucket{{Limits: compile(t, bucket.Limit{Name: "second", Capacity: 10, Period: time.Second})}}
}

// newClaim is a first attempt under a key.
func newClaim(key idempotency.Key) *idempotency.Claim {
	return &idempotency.Claim{Key: key, Attempt: idempotency.NewAttemptID()}
}
