package backend_test

import (
	"context"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/backend"
)

// countingStore counts the takes that reach a store.
type countingStore struct {
	*bucket.Memory

	takes atomic.Int64
}

func (s *countingStore) Take(ctx context.Context, take bucket.Take) (bucket.Result, error) {
	s.takes.Add(1)
	return s.Memory.Take(ctx, take)
}

// verdict is what a gate has answered.
type verdict struct {
	bucket.Result

	Origin backend.Origin
}

func ask(gate *backend.Gate, ctx context.Context, take bucket.Take) (verdict, error) { //nolint:revive // The gate is asked.
	result, origin, err := gate.Take(ctx, take, backend.Caller{})
	return verdict{result, origin}, err
}

// gated is a gate before a memory store that counts, on one clock.
type gated struct {
	*backend.Gate

	t     *testing.T
	clock *clock
	store *countingStore
}

func newGated(t *testing.T, config backend.GateConfig) *gated {
	t.Helper()
	c := &gated{t: t, clock: newClock()}
	c.store = &countingStore{Memory: bucket.NewMemory(bucket.MemoryConfig{Clock: c.clock.now})}
	config.Clock = c.clock.now
	c.Gate = backend.NewGate(c.store, config)
	return c
}

func (c *gated) take(take bucket.Take) verdict {
	c.t.Helper()
	if take.Tenant == "" {
		take.Tenant = "acme"
	}
	result, err := ask(c.Gate, c.t.Context(), take)
	require.NoError(c.t, err)
	return result
}

// asked returns how many takes have reached the store while f ran.
func (c *gated) asked(f func()) int64 {
	before := c.store.takes.Load()
	f()
	return c.store.takes.Load() - before
}

// tenPerSecond is a bucket of the tenant with ten points that come back in a second.
func tenPerSecond(t *testing.T) []bucket.Bucket {
	t.Helper()
	return []bucket.Bucket{{Limits: compile(t, bucket.Limit{Name: "second", Capacity: 10, Period: time.Second})}}
}

func TestTenThousandRefusalsInASecondCostTheStoreAFewCalls(t *testing.T) {
	t.Parallel()
	c := newGated(t, backend.GateConfig{})
	minute := []bucket.Bucket{{Limits: compile(t, bucket.Limit{Name: "minute", Capacity: 600, Refill: 60, Period: time.Minute})}}
	c.take(bucket.Take{Buckets: minute, Amounts: points(600)})
	asked := c.asked(func() {
		for i := range 10_000 {
			if i%10 == 0 {
				c.clock.advance(time.Millisecond)
			}
			require.Equal(t, bucket.Limited, c.take(bucket.Take{Buckets: minute, Amounts: points(5 + int64(i%500))}).Verdict)
		}
	})
	t.Logf("%d of 10000 takes reached the store", asked)
	require.LessOrEqual(t, asked, int64(3))

	// By now one point has come back: a cheaper operation is admitted, and the next one refused again.
	require.Equal(t, bucket.Admitted, c.take(bucket.Take{Buckets: minute, Amounts: points(1)}).Verdict)
	next := c.take(bucket.Take{Buckets: minute, Amounts: points(1)})
	require.Equal(t, bucket.Limited, next.Verdict)
	require.Equal(t, backend.FromMemory, next.Origin, "what was just admitted is known")
	// And so is a later one as soon as it fits, and not a millisecond before.
	require.Equal(t, bucket.Limited, c.take(bucket.Take{Buckets: minute, Amounts: points(2)}).Verdict)
	c.clock.advance(1999 * time.Millisecond)
	require.Equal(t, bucket.Limited, c.take(bucket.Take{Buckets: minute, Amounts: points(2)}).Verdict)
	c.clock.advance(time.Millisecond)
	require.Equal(t, bucket.Admitted, c.take(bucket.Take{Buckets: minute, Amounts: points(2)}).Verdict)
}

func TestARefusalFromTheGateIsWhatTheStoreWouldSay(t *testing.T) {
	t.Parallel()
	c := newGated(t, backend.GateConfig{})
	limits := []bucket.Limit{
		{Name: "second", Capacity: 10, Period: time.Second},
		{Name: "window", Capacity: 20, Period: time.Minute, Window: bucket.Window{Kind: bucket.FixedWindow}},
		{Name: "shadow", Capacity: 5, Period: time.Second, Mode: bucket.Shadow},
		{Name: "soft", Capacity: 7, Period: time.Second, Soft: true},
	}
	buckets := []bucket.Bucket{
		{Limits: compile(t, limits...)},
		{Owner: bucket.Owner{Level: bucket.User, Name: "ann"}, Limits: compile(t, limits[0])},
	}
	take := bucket.Take{Tenant: "acme", Buckets: buckets, Amounts: points(9)}
	c.take(take)
	first := c.take(take)
	require.Equal(t, backend.FromStore, first.Origin)
	c.clock.advance(123 * time.Millisecond)
	take.Amounts = points(8)
	var fromMemory verdict
	require.Zero(t, c.asked(func() { fromMemory = c.take(take) }))
	fromStore, err := c.store.Memory.Take(t.Context(), take)
	require.NoError(t, err)
	require.Equal(t, backend.FromMemory, fromMemory.Origin)
	require.Less(t, fromMemory.RetryAfter, first.RetryAfter)
	require.Equal(t, fromStore.Verdict, fromMemory.Verdict)
	require.Equal(t, fromStore.RetryAfter, fromMemory.RetryAfter)
	require.Equal(t, fromStore.Limits, fromMemory.Limits)
}

func TestWhatIsNeverAdmittedAndWhoIsBlockedIsRefusedFromTheGate(t *testing.T) {
	t.Parallel()
	c := newGated(t, backend.GateConfig{})
	ten := tenPerSecond(t)
	require.Equal(t, bucket.Never, c.take(bucket.Take{Buckets: ten, Amounts: points(11)}).Verdict)
	require.Zero(t, c.asked(func() {
		require.Equal(t, bucket.Never, c.take(bucket.Take{Buckets: ten, Amounts: points(12)}).Verdict)
	}))
	require.Equal(t, bucket.Admitted, c.take(bucket.Take{Buckets: ten, Amounts: points(10)}).Verdict)

	_, err := c.store.SetOverride(t.Context(), "acme", bucket.Override{
		Blocked: true, Reason: "abuse", Actor: "test", Expires: c.clock.now().Add(300 * time.Millisecond),
	})
	require.NoError(t, err)
	keyed := bucket.Take{Buckets: ten, Owners: []bucket.Owner{{}}, Amounts: points(1), Claim: newClaim("blocked-1")}
	require.Equal(t, bucket.Blocked, c.take(keyed).Verdict)
	require.Zero(t, c.asked(func() {
		result := c.take(keyed)
		require.Equal(t, bucket.Blocked, result.Verdict)
		require.Equal(t, "abuse", result.BlockedBy().Reason)
	}))
	c.clock.advance(300 * time.Millisecond)
	require.Equal(t, bucket.Admitted, c.take(keyed).Verdict, "the record has expired before the refusal")
}

func TestBudgetGivenBackIsNoticedAtOnceWhereTheGateIsTold(t *testing.T) {
	t.Parallel()
	for name, giveBack := range map[string]func(*testing.T, *gated, []bucket.Bucket, bucket.Receipt) error{
		"grant": func(t *testing.T, c *gated, buckets []bucket.Bucket, _ bucket.Receipt) error {
			t.Helper()
			_, err := c.store.Grant(t.Context(), "acme", buckets, points(10))
			return err
		},
		"reset": func(t *testing.T, c *gated, buckets []bucket.Bucket, _ bucket.Receipt) error {
			t.Helper()
			return c.store.Reset(t.Context(), "acme", buckets)
		},
		"settle": func(t *testing.T, c *gated, _ []bucket.Bucket, receipt bucket.Receipt) error {
			t.Helper()
			_, err := c.Settle(t.Context(), bucket.Settlement{Receipt: receipt, Actual: points(0)})
			return err
		},
		"override": func(t *testing.T, c *gated, _ []bucket.Bucket, _ bucket.Receipt) error {
			t.Helper()
			_, err := c.store.SetOverride(t.Context(), "acme", bucket.Override{Limit: "second", Capacity: 100, Reason: "sale", Actor: "test"})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newGated(t, backend.GateConfig{})
			ten := tenPerSecond(t)
			receipt := c.take(bucket.Take{Buckets: ten, Amounts: points(10)}).Receipt
			require.Equal(t, bucket.Limited, c.take(bucket.Take{Buckets: ten, Amounts: points(8)}).Verdict)
			require.Equal(t, backend.FromMemory, c.take(bucket.Take{Buckets: ten, Amounts: points(8)}).Origin)
			require.NoError(t, giveBack(t, c, ten, receipt))
			if name != "settle" {
				c.Forget("acme")
			}
			require.Equal(t, bucket.Admitted, c.take(bucket.Take{Buckets: ten, Amounts: points(8)}).Verdict)
		})
	}
}

func TestRemovedOverridesAreNoticedAtOnceWhereTheGateIsTold(t *testing.T) {
	t.Parallel()
	for name, lift := range map[string]func(context.Context, *gated) error{
		"delete": func(ctx context.Context, c *gated) error {
			_, err := c.store.DeleteOverride(ctx, "acme", bucket.Owner{}, "")
			return err
		},
		"clear": func(ctx context.Context, c *gated) error {
			_, err := c.store.ClearOverrides(ctx, "acme")
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newGated(t, backend.GateConfig{})
			_, err := c.store.SetOverride(t.Context(), "acme", bucket.Override{Blocked: true, Reason: "abuse", Actor: "test"})
			require.NoError(t, err)
			take := bucket.Take{Buckets: tenPerSecond(t), Amounts: points(1)}
			require.Equal(t, bucket.Blocked, c.take(take).Verdict)
			require.NoError(t, lift(t.Context(), c))
			c.Forget("acme")
			require.Equal(t, bucket.Admitted, c.take(take).Verdict)
		})
	}
}

func TestBudgetGivenBackElsewhereIsNoticedWithinMaxAge(t *testing.T) {
	t.Parallel()
	c := newGated(t, backend.GateConfig{RefusalAge: 200 * time.Millisecond})
	hour := []bucket.Bucket{{Limits: compile(t, bucket.Limit{Name: "hour", Capacity: 10, Period: time.Hour})}}
	take := bucket.Take{Buckets: hour, Amounts: points(10)}
	c.take(take)
	require.Equal(t, bucket.Limited, c.take(take).Verdict)
	require.NoError(t, c.store.Reset(t.Context(), "acme", hour))
	require.Equal(t, bucket.Limited, c.take(take).Verdict)
	c.clock.advance(100 * time.Millisecond)
	require.Equal(t, bucket.Admitted, c.take(take).Verdict, "half the age is when one take asks again")
}

func TestAnotherPolicyNeverMeetsAnOldRefusal(t *testing.T) {
	t.Parallel()
	c := newGated(t, backend.GateConfig{})
	ten := tenPerSecond(t)
	c.take(bucket.Take{Buckets: ten, Amounts: points(10)})
	require.Equal(t, bucket.Limited, c.take(bucket.Take{Buckets: ten, Amounts: points(10)}).Verdict)
	twenty := []bucket.Bucket{{Limits: compile(t, bucket.Limit{Name: "second", Capacity: 20, Period: time.Second})}}
	require.Equal(t, bucket.Admitted, c.take(bucket.Take{Buckets: twenty, Amounts: points(10)}).Verdict)
}

func TestTheMemoryOfRefusalsIsBounded(t *testing.T) {
	t.Parallel()
	c := newGated(t, backend.GateConfig{MaxRefusals: 128})
	ten := tenPerSecond(t)
	for i := range 5000 {
		tenant := strconv.Itoa(i % 2500)
		c.take(bucket.Take{Tenant: tenant, Buckets: ten, Amounts: points(11)})
		c.take(bucket.Take{Tenant: "many", Amounts: points(11), Buckets: []bucket.Bucket{{
			Owner: bucket.Owner{Level: bucket.User, Name: strconv.Itoa(i)}, Limits: ten[0].Limits,
		}}})
	}
	require.LessOrEqual(t, c.Entries(), 128)
	require.Positive(t, c.Entries())
	c.clock.advance(time.Second)
	require.Equal(t, bucket.Admitted, c.take(bucket.Take{Tenant: "many", Buckets: ten, Amounts: points(10)}).Verdict)
}

func TestInvalidCallsAndCallersWhoAreGoneAreToldSoByTheGate(t *testing.T) {
	t.Parallel()
	c := newGated(t, backend.GateConfig{})
	ten := tenPerSecond(t)
	c.take(bucket.Take{Buckets: ten, Amounts: points(11)})
	_, err := ask(c.Gate, t.Context(), bucket.Take{Tenant: "acme", Buckets: ten, Amounts: points(-1)})
	require.ErrorIs(t, err, bucket.ErrInvalid)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = ask(c.Gate, gone, bucket.Take{Tenant: "acme", Buckets: ten, Amounts: points(11)})
	require.ErrorIs(t, err, bucket.ErrUnavailable)
}

func TestAGateThatLeavesBothOutIsTheStore(t *testing.T) {
	t.Parallel()
	c := newGated(t, backend.GateConfig{RefusalAge: backend.None, MaxConcurrent: backend.None})
	ten := tenPerSecond(t)
	require.EqualValues(t, 100, c.asked(func() {
		for range 100 {
			answer := c.take(bucket.Take{Buckets: ten, Amounts: points(11)})
			require.Equal(t, bucket.Never, answer.Verdict)
			require.Equal(t, backend.FromStore, answer.Origin)
		}
	}))
	require.Zero(t, c.Entries())
}

func TestNothingIsRefusedThatCouldPassByTheClockOfTheStore(t *testing.T) {
	t.Parallel()
	t.Run("whose milliseconds end within those of the cache", func(t *testing.T) {
		t.Parallel()
		c := newClock()
		store := bucket.NewMemory(bucket.MemoryConfig{Clock: c.now})
		var early time.Duration
		gate := backend.NewGate(store, backend.GateConfig{Clock: func() time.Time { return c.now().Add(-early) }})
		take := bucket.Take{Tenant: "acme", Buckets: tenPerSecond(t), Amounts: points(5)}
		for range 3 {
			_, err := ask(gate, t.Context(), take)
			require.NoError(t, err)
		}
		// From the second refusal on the call is timed.
		c.advance(450 * time.Millisecond)
		result, err := ask(gate, t.Context(), take)
		require.NoError(t, err)
		require.Equal(t, backend.FromStore, result.Origin)
		early = 500 * time.Microsecond
		c.advance(49 * time.Millisecond)
		result, err = ask(gate, t.Context(), take)
		require.NoError(t, err)
		require.Equal(t, bucket.Limited, result.Verdict)
		c.advance(time.Millisecond)
		result, err = ask(gate, t.Context(), take)
		require.NoError(t, err)
		require.Equal(t, bucket.Admitted, result.Verdict)
	})
	t.Run("although the first refusal was long on its way", func(t *testing.T) {
		t.Parallel()
		c := newClock()
		store := newLateStore()
		store.Memory = bucket.NewMemory(bucket.MemoryConfig{Clock: c.now})
		gate := backend.NewGate(store, backend.GateConfig{Clock: c.now})
		take := bucket.Take{Tenant: "acme", Buckets: tenPerSecond(t), Amounts: points(10)}
		_, err := ask(gate, t.Context(), take)
		require.NoError(t, err)
		take.Amounts = points(1)
		store.behind = func() { c.advance(80 * time.Millisecond) }
		result, err := ask(gate, t.Context(), take)
		require.NoError(t, err)
		require.Equal(t, bucket.Limited, result.Verdict)
		store.behind = func() {}
		c.advance(20 * time.Millisecond)
		result, err = ask(gate, t.Context(), take)
		require.NoError(t, err)
		require.Equal(t, bucket.Admitted, result.Verdict)
	})
}

func TestARefusalDoesNotOutliveAClockThatIsSetBack(t *testing.T) {
	t.Parallel()
	c := newGated(t, backend.GateConfig{})
	hour := []bucket.Bucket{{Limits: compile(t, bucket.Limit{Name: "hour", Capacity: 10, Period: time.Hour})}}
	take := bucket.Take{Buckets: hour, Amounts: points(10)}
	c.take(take)
	require.Equal(t, bucket.Limited, c.take(take).Verdict)
	c.clock.advance(-time.Hour)
	require.NoError(t, c.store.Reset(t.Context(), "acme", hour))
	require.Equal(t, bucket.Admitted, c.take(take).Verdict)
}

func TestATenantThatIsRefusedNoMoreIsForgotten(t *testing.T) {
	t.Parallel()
	c := newGated(t, backend.GateConfig{})
	take := bucket.Take{Buckets: tenPerSecond(t), Amounts: points(10)}
	c.take(take)
	require.Equal(t, bucket.Limited, c.take(take).Verdict)
	require.Equal(t, 1, c.Entries())
	take.Amounts = points(1)
	for range 9 {
		c.clock.advance(100 * time.Millisecond)
		require.Equal(t, bucket.Admitted, c.take(take).Verdict)
		require.Equal(t, 1, c.Entries())
	}
	c.clock.advance(100 * time.Millisecond)
	require.Equal(t, bucket.Admitted, c.take(take).Verdict)
	require.Zero(t, c.Entries())
}
