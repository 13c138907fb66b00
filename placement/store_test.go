package placement_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
	"github.com/gqlgen-ratelimit/ratelimit/placement"
)

var day = bucket.Limit{Name: "day", Capacity: 100, Period: 24 * time.Hour}

// twoStores is a world of two stores, and a map that has acme in the first one.
func twoStores() (*world, *placement.Map) {
	w := newWorld()
	w.add("a")
	w.add("b")
	return w, &placement.Map{Generation: 1, Candidates: 1, Stores: members("a", "b"), Pins: map[string]string{"acme": "a"}}
}

// charged is two stores, a map that has acme in the first one, and a take of acme there.
func charged(t *testing.T, n int64) (s *placement.Store, m *placement.Map, take bucket.Take, result bucket.Result) {
	t.Helper()
	w, m := twoStores()
	s = w.instance(t, m)
	take = bucket.Take{Tenant: "acme", Buckets: compile(t, day), Amounts: points(n)}
	result, err := s.Take(t.Context(), take)
	require.NoError(t, err)
	return s, m, take, result
}

func TestATenantThatChangesItsStore(t *testing.T) {
	t.Parallel()
	s, m, take, result := charged(t, 40)
	ctx := t.Context()
	remaining := func() int64 {
		states, err := s.Peek(ctx, "acme", take.Buckets)
		require.NoError(t, err)
		return states[0].Remaining
	}
	require.NoError(t, s.Apply(ctx, pinned(m, "b")))
	require.EqualValues(t, 100, remaining(), "it starts full")
	settled, err := s.Settle(ctx, bucket.Settlement{Receipt: result.Receipt, Actual: points(10)})
	require.NoError(t, err)
	require.True(t, settled.Applied)
	require.EqualValues(t, 100, remaining(), "what was charged in a store is settled there")
	require.NoError(t, s.Apply(ctx, pinned(s.Map(), "a")))
	require.EqualValues(t, 90, remaining())

	result, err = s.Take(ctx, take)
	require.NoError(t, err)
	require.NoError(t, s.Apply(ctx, &placement.Map{Generation: 4, Candidates: 1, Stores: members("b")}))
	_, err = s.Settle(ctx, bucket.Settlement{Receipt: result.Receipt, Actual: points(10)})
	require.ErrorIs(t, err, placement.ErrNowhere, "the map does not have the store any more")
}

func TestAClaimIsSettledWhereItWasMade(t *testing.T) {
	t.Parallel()
	w, m := twoStores()
	s := w.instance(t, m)
	claim := &idempotency.Claim{Subject: "acme", Key: "12345678", Attempt: idempotency.NewAttemptID()}
	take := bucket.Take{Tenant: "acme", Buckets: compile(t, day), Amounts: points(30), Claim: claim}
	result, err := s.Take(t.Context(), take)
	require.NoError(t, err)
	require.NoError(t, s.Apply(t.Context(), pinned(m, "b")))
	settled, err := s.Settle(t.Context(), bucket.Settlement{Receipt: result.Receipt, Actual: points(30), Claim: &bucket.ClaimSettlement{
		Tenant: "acme", Claim: claim, Outcome: idempotency.Done, Answer: []byte("the answer"),
	}})
	require.NoError(t, err)
	require.True(t, settled.Applied)
	require.NoError(t, s.Apply(t.Context(), pinned(s.Map(), "a")))
	claim.Attempt = idempotency.NewAttemptID()
	result, err = s.Take(t.Context(), take)
	require.NoError(t, err)
	require.Equal(t, "the answer", string(result.Answer))
}

func TestATenantWhoseCandidatesAreAllGoneIsNowhere(t *testing.T) {
	t.Parallel()
	w, m := twoStores()
	s := w.instance(t, m)
	next := m.Next([]placement.Member{{Name: "a", Lost: true}, {Name: "b"}})
	require.NoError(t, s.Apply(t.Context(), next))
	_, err := s.Take(t.Context(), bucket.Take{Tenant: "acme", Buckets: compile(t, day), Amounts: points(1)})
	require.ErrorIs(t, err, placement.ErrNowhere)
	require.ErrorIs(t, err, bucket.ErrUnavailable)
}

func TestAStoreThatCannotBeOpenedLeavesTheOldMap(t *testing.T) {
	t.Parallel()
	w, m := twoStores()
	s := w.instance(t, m)
	err := s.Apply(t.Context(), m.Next(members("a", "b", "c")))
	var refused *placement.RefusedError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, "c", refused.Store)
	require.EqualValues(t, 2, refused.Generation)
	require.EqualValues(t, 1, s.Map().Generation)
	_, err = s.Take(t.Context(), bucket.Take{Tenant: "acme", Buckets: compile(t, day), Amounts: points(1)})
	require.NoError(t, err)
	w.add("c")
	require.NoError(t, s.Apply(t.Context(), m.Next(members("a", "b", "c"))))
}

func TestStoresThatAreNoLongerNamedAreClosedOnce(t *testing.T) {
	t.Parallel()
	closed := map[string]int{}
	s, err := placement.New(t.Context(), placement.Config{Open: func(_ context.Context, m placement.Member) (placement.Opened, error) {
		return placement.Opened{Backend: bucket.NewMemory(bucket.MemoryConfig{}), Close: func() error { closed[m.Name]++; return nil }}, nil
	}}, &placement.Map{Generation: 1, Candidates: 1, Stores: members("a", "b")})
	require.NoError(t, err)
	require.NoError(t, s.Apply(t.Context(), &placement.Map{Generation: 2, Candidates: 1, Stores: members("b", "c")}))
	require.Equal(t, map[string]int{"a": 1}, closed)
	require.NoError(t, s.Close())
	require.NoError(t, s.Close())
	require.Equal(t, map[string]int{"a": 1, "b": 1, "c": 1}, closed)
	_, err = s.Peek(t.Context(), "acme", nil)
	require.ErrorIs(t, err, placement.ErrClosed)
	require.ErrorIs(t, s.Apply(t.Context(), &placement.Map{Generation: 3, Candidates: 1, Stores: members("b")}), placement.ErrClosed)
}
