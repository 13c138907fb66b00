package bucket_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
)

// neighbour returns a tenant in the same shard.
func neighbour(store *bucket.Memory, tenant string) string {
	name := "few-0"
	for i := 1; store.ShardOf(name) != store.ShardOf(tenant); i++ {
		name = fmt.Sprint("few-", i)
	}
	return name
}

// replayable takes under a key and stores an answer of the size.
func replayable(t *testing.T, store *bucket.Memory, tenant string, i, size int) *idempotency.Claim {
	t.Helper()
	claim := &idempotency.Claim{Key: idempotency.Key(fmt.Sprintf("key-%06d", i)), Attempt: idempotency.NewAttemptID()}
	_, err := store.Take(t.Context(), bucket.Take{Tenant: tenant, Claim: claim})
	require.NoError(t, err)
	_, err = store.Settle(t.Context(), bucket.Settlement{Claim: &bucket.ClaimSettlement{
		Tenant: tenant, Claim: claim, Outcome: idempotency.Done, Answer: make([]byte, size),
	}})
	require.NoError(t, err)
	return claim
}

func TestFewLargeAnswersOfOneTenantDisplaceFewOfManySmallOnesBesideThem(t *testing.T) {
	t.Parallel()
	const small = 1000
	for name, test := range map[string]struct {
		config bucket.MemoryConfig
		size   int
	}{
		"answers that fit a slab, short of bytes":  {bucket.MemoryConfig{MaxBytes: 8 << 20}, 1500},
		"answers of 16 KiB, short of bytes":        {bucket.MemoryConfig{MaxBytes: 8 << 20}, 16 << 10},
		"answers of 300 kB, short of bytes":        {bucket.MemoryConfig{MaxBytes: 8 << 20}, 300_000},
		"answers of 300 kB, short of entries":      {bucket.MemoryConfig{MaxEntries: 20_000}, 300_000},
		"answers of a quarter, short of both":      {bucket.MemoryConfig{MaxBytes: 8 << 20, MaxEntries: 20_000}, 500_000},
		"answers that fit a slab, short of either": {bucket.MemoryConfig{MaxBytes: 8 << 20, MaxEntries: 20_000}, 1500},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := bucket.NewMemory(test.config)
			victim := neighbour(store, "attacker")
			var claims []*idempotency.Claim
			for i := range small {
				claims = append(claims, replayable(t, store, victim, i, 50))
			}
			for i := range 12_000_000 / test.size {
				replayable(t, store, "attacker", i, test.size)
			}
			require.NoError(t, store.CheckAccounts())
			left := 0
			for _, claim := range claims {
				again := *claim
				again.Attempt = idempotency.NewAttemptID()
				result, err := store.Take(t.Context(), bucket.Take{Tenant: victim, Claim: &again})
				require.NoError(t, err)
				if result.Verdict == bucket.Replayed {
					left++
				}
			}
			t.Logf("%d of %d are left", left, small)
			require.GreaterOrEqual(t, left, small*9/10)
		})
	}
}

func TestFewLargeOwnersOfOneTenantRefillFewOfManySmallOnesBesideThem(t *testing.T) {
	t.Parallel()
	store := bucket.NewMemory(bucket.MemoryConfig{MaxBytes: 1 << 20})
	var many []bucket.Limit
	for i := range bucket.MaxLimits {
		many = append(many, bucket.Limit{Name: fmt.Sprint(i), Capacity: 1000, Period: 24 * time.Hour})
	}
	large, small := compile(t, many...), compile(t, many[0])
	victim := neighbour(store, "attacker")
	const owners = 800
	take := func(tenant string, i int, limits *bucket.Limits) int64 {
		owner := bucket.Owner{Level: bucket.User, Name: fmt.Sprint("user-", i)}
		result, err := store.Take(t.Context(), bucket.Take{Tenant: tenant, Buckets: []bucket.Bucket{{Owner: owner, Limits: limits}}, Amounts: points(1)})
		require.NoError(t, err)
		return result.Limits[0].Remaining
	}
	for i := range owners {
		take(victim, i, small)
	}
	for i := range owners {
		take("attacker", i, large)
	}
	require.NoError(t, store.CheckAccounts())
	refilled := 0
	for i := range owners {
		if take(victim, i, small) == 999 {
			refilled++
		}
	}
	t.Logf("%d of %d are full again, of %d that were forgotten", refilled, owners, store.Evicted())
	require.LessOrEqual(t, refilled, owners/10)
	require.Greater(t, store.Evicted(), uint64(owners/4))
}

// TestTheWeightOfAMemoryIsThatOfItsEntries has entries of all sizes come, grow, shrink, move and go.
func TestTheWeightOfAMemoryIsThatOfItsEntries(t *testing.T) {
	t.Parallel()
	c, random := newClock(), rand.New(rand.NewPCG(11, 12))
	store := bucket.NewMemory(bucket.MemoryConfig{Clock: c.now, MaxEntries: 1500, MaxBytes: 1 << 20})
	var kinds []*bucket.Limits
	for _, n := range []int{1, 2, 4, 16, 60} {
		var limits []bucket.Limit
		for i := range n {
			limits = append(limits, bucket.Limit{Name: fmt.Sprint(n, i), Capacity: 1000, Period: time.Duration(1+random.IntN(5000)) * time.Minute})
		}
		kinds = append(kinds, compile(t, limits...))
	}
	var tenants []string
	for len(tenants) < 100 {
		// Entries lie beside each other in few shards.
		if name := fmt.Sprint(len(tenants), strings.Repeat("x", random.IntN(120)), random.Uint32()); store.ShardOf(name) < 2 {
			tenants = append(tenants, name)
		}
	}
	for i := range 10_000 {
		tenant := tenants[random.IntN(len(tenants))]
		switch random.IntN(4) {
		case 0:
			replayable(t, store, tenant, random.IntN(1000), random.IntN(1<<random.IntN(16)))
		case 1:
			_, err := store.SetOverride(t.Context(), tenant, bucket.Override{
				Limit: "10", Capacity: 5, Period: time.Minute, Reason: strings.Repeat("r", 1+random.IntN(200)), Actor: "a", Expires: c.now().Add(time.Second),
			})
			if err != nil {
				require.ErrorIs(t, err, bucket.ErrOverridesFull)
			}
		default:
			owner := bucket.Owner{Level: bucket.User, Name: fmt.Sprint(random.IntN(30))}
			buckets := []bucket.Bucket{{Owner: owner, Limits: kinds[random.IntN(len(kinds))]}}
			_, err := store.Take(t.Context(), bucket.Take{Tenant: tenant, Buckets: buckets, Amounts: points(1 + random.Int64N(9))})
			require.NoError(t, err)
		}
		c.advance(time.Duration(random.IntN(300)) * time.Millisecond)
		if i%500 == 0 {
			require.NoError(t, store.CheckAccounts())
		}
	}
	require.NoError(t, store.CheckAccounts())
	require.Positive(t, store.Evicted())
}
