package bucket_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
)

// crowd has budgets for one operation each. Whatever else happens in the store, each is admitted once.
type crowd struct {
	store   *bucket.Memory
	limits  *bucket.Limits
	tenants int
}

func (c *crowd) admitted(t *testing.T) int {
	t.Helper()
	n := 0
	for i := range c.tenants {
		result, err := c.store.Take(context.Background(), bucket.Take{
			Tenant: fmt.Sprintf("victim-%d", i), Buckets: []bucket.Bucket{{Limits: c.limits}}, Amounts: points(1),
		})
		require.NoError(t, err)
		if result.Verdict == bucket.Admitted {
			n++
		}
	}
	return n
}

func newCrowd(t *testing.T, most int) *crowd {
	t.Helper()
	limits := compile(t, bucket.Limit{Name: "day", Capacity: 1, Period: 24 * time.Hour})
	return &crowd{store: bucket.NewMemory(bucket.MemoryConfig{MaxEntries: most}), limits: limits, tenants: 200}
}

func TestAnswersOfOneTenantRefillNobodysBudget(t *testing.T) {
	t.Parallel()
	c := newCrowd(t, 4000)
	require.Equal(t, c.tenants, c.admitted(t))
	answer := make([]byte, idempotency.DefaultMaxAnswer)
	for i := range 300 {
		claim := &idempotency.Claim{
			Key: idempotency.Key(fmt.Sprintf("attack-%06d", i)), Attempt: idempotency.NewAttemptID(),
		}
		_, err := c.store.Take(context.Background(), bucket.Take{Tenant: "attacker", Claim: claim})
		require.NoError(t, err)
		_, err = c.store.Settle(context.Background(), bucket.Settlement{Claim: &bucket.ClaimSettlement{
			Tenant: "attacker", Claim: claim, Outcome: idempotency.Done, Answer: answer,
		}})
		require.NoError(t, err)
	}
	require.Zero(t, c.admitted(t))
}

func TestOwnersOfOneTenantRefillNobodysBudget(t *testing.T) {
	t.Parallel()
	c := newCrowd(t, 4000)
	require.Equal(t, c.tenants, c.admitted(t))
	for i := range 20_000 {
		_, err := c.store.Take(context.Background(), bucket.Take{
			Tenant:  "attacker",
			Buckets: []bucket.Bucket{{Owner: bucket.Owner{Level: bucket.User, Name: fmt.Sprint(i)}, Limits: c.limits}},
			Amounts: points(1),
		})
		require.NoError(t, err)
	}
	require.Zero(t, c.admitted(t))
}

func TestOwnersWhoseNamesAreThoseOfOtherTenantsDisplaceNobody(t *testing.T) {
	t.Parallel()
	c := newCrowd(t, 100_000)
	const names = 1000
	take := func(tenant, user string) bucket.Verdict {
		result, err := c.store.Take(context.Background(), bucket.Take{
			Tenant:  tenant,
			Buckets: []bucket.Bucket{{Limits: c.limits}, {Owner: bucket.Owner{Level: bucket.User, Name: user}, Limits: c.limits}},
			Amounts: points(1),
		})
		require.NoError(t, err)
		return result.Verdict
	}
	for tenant := range names {
		// The budget of the tenant is for one operation as well.
		require.Equal(t, bucket.Admitted, take(fmt.Sprint(tenant), fmt.Sprint(names-1-tenant)))
	}
	for tenant := range names {
		owner := bucket.Owner{Level: bucket.User, Name: fmt.Sprint(names - 1 - tenant)}
		states, err := c.store.Peek(context.Background(), fmt.Sprint(tenant), []bucket.Bucket{{Limits: c.limits}, {Owner: owner, Limits: c.limits}})
		require.NoError(t, err)
		require.Zero(t, states[0].Remaining+states[1].Remaining)
	}
}

func TestTheBoundHoldsWhateverIsKept(t *testing.T) {
	t.Parallel()
	for _, most := range []int{1, 4, 100} {
		t.Run(fmt.Sprint(most), func(t *testing.T) {
			t.Parallel()
			c := newCrowd(t, most)
			c.admitted(t)
			for i := range 200 {
				claim := &idempotency.Claim{
					Key: idempotency.Key(fmt.Sprintf("bounded-%06d", i)), Attempt: idempotency.NewAttemptID(),
				}
				_, err := c.store.Take(context.Background(), bucket.Take{Tenant: fmt.Sprint(i), Claim: claim})
				require.NoError(t, err)
			}
			// At least one entry of each kind has to be.
			require.LessOrEqual(t, c.store.Entries(), max(2, most))
		})
	}
}

func TestRecordsOfRunningOperationsGiveWayLast(t *testing.T) {
	t.Parallel()
	store := bucket.NewMemory(bucket.MemoryConfig{MaxEntries: 16})
	running := &idempotency.Claim{Key: "running-0001", Attempt: idempotency.NewAttemptID()}
	_, err := store.Take(context.Background(), bucket.Take{Tenant: "acme", Claim: running})
	require.NoError(t, err)
	for i := range 100 {
		claim := &idempotency.Claim{
			Key: idempotency.Key(fmt.Sprintf("ended-%06d", i)), Attempt: idempotency.NewAttemptID(),
		}
		_, err := store.Take(context.Background(), bucket.Take{Tenant: "acme", Claim: claim})
		require.NoError(t, err)
		_, err = store.Settle(context.Background(), bucket.Settlement{Claim: &bucket.ClaimSettlement{
			Tenant: "acme", Claim: claim, Outcome: idempotency.Done,
		}})
		require.NoError(t, err)
	}
	held, err := store.Renew(context.Background(), "acme", running)
	require.NoError(t, err)
	require.True(t, held)
}

// TestTenantsThatAreMadeAtOnceDisplaceTheBusiestAlone has one tenant make owners from several goroutines
// while others take: a shard that is busy is no reason to make room at the cost of those.
func TestTenantsThatAreMadeAtOnceDisplaceTheBusiestAlone(t *testing.T) {
	t.Parallel()
	c := newCrowd(t, 4000)
	stop := make(chan struct{})
	var attacking sync.WaitGroup
	for worker := range 4 {
		attacking.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				_, err := c.store.Take(context.Background(), bucket.Take{
					Tenant:  "attacker",
					Buckets: []bucket.Bucket{{Owner: bucket.Owner{Level: bucket.User, Name: fmt.Sprint(worker, i)}, Limits: c.limits}},
					Amounts: points(1),
				})
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	// Each is admitted once; those of the attacker's own shard may be displaced now and then.
	admitted := 0
	for range 20 {
		admitted += c.admitted(t)
	}
	close(stop)
	attacking.Wait()
	require.GreaterOrEqual(t, admitted, c.tenants)
	require.LessOrEqual(t, admitted, c.tenants+c.tenants/20)
}

func TestAnAnswerThatNoRoomCanHoldIsNotStored(t *testing.T) {
	t.Parallel()
	store := bucket.NewMemory(bucket.MemoryConfig{MaxEntries: 8})
	claim := &idempotency.Claim{Key: "large-0001", Attempt: idempotency.NewAttemptID()}
	_, err := store.Take(context.Background(), bucket.Take{Tenant: "acme", Claim: claim})
	require.NoError(t, err)
	_, err = store.Settle(context.Background(), bucket.Settlement{Claim: &bucket.ClaimSettlement{
		Tenant: "acme", Claim: claim, Outcome: idempotency.Done, Answer: make([]byte, 1<<20),
	}})
	require.NoError(t, err)
	again := *claim
	again.Attempt = idempotency.NewAttemptID()
	result, err := store.Take(context.Background(), bucket.Take{Tenant: "acme", Claim: &again})
	require.NoError(t, err)
	require.Equal(t, bucket.AnswerUnavailable, result.Verdict)
}
