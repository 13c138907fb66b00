package backend_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
	"github.com/gqlgen-ratelimit/ratelimit/internal/backend"
)

func TestAReplayIsServedAlthoughTheBudgetIsUsedUp(t *testing.T) {
	t.Parallel()
	c := newGated(t, backend.GateConfig{})
	ten := tenPerSecond(t)
	claim := newClaim("order-00001")
	c.take(bucket.Take{Buckets: ten, Amounts: points(10), Claim: claim})
	_, err := c.Settle(t.Context(), bucket.Settlement{Claim: &bucket.ClaimSettlement{
		Tenant: "acme", Claim: claim, Outcome: idempotency.Done, Answer: []byte("paid"),
	}})
	require.NoError(t, err)
	require.Equal(t, bucket.Limited, c.take(bucket.Take{Buckets: ten, Amounts: points(10)}).Verdict)
	// Replays do not count as calls of a tenant that is refused, however many there are.
	for range 20 {
		again := *claim
		again.Attempt = idempotency.NewAttemptID()
		result := c.take(bucket.Take{Buckets: ten, Amounts: points(10), Claim: &again})
		require.Equal(t, bucket.Replayed, result.Verdict)
		require.Equal(t, "paid", string(result.Answer))
	}
}

func TestATenantThatIsRefusedWithEverNewKeysCostsTheStoreAFewCallsASecond(t *testing.T) {
	t.Parallel()
	c := newGated(t, backend.GateConfig{CappedCalls: 4})
	hour := []bucket.Bucket{{Limits: compile(t, bucket.Limit{Name: "hour", Capacity: 10, Period: time.Hour})}}
	c.take(bucket.Take{Buckets: hour, Amounts: points(10)})
	var last verdict
	asked := c.asked(func() {
		for i := range 10_000 {
			if i%10 == 0 {
				c.clock.advance(time.Millisecond)
			}
			last = c.take(bucket.Take{Buckets: hour, Amounts: points(5), Claim: newClaim(idempotency.Key("key-" + strconv.Itoa(10_000+i)))})
			require.Equal(t, bucket.Limited, last.Verdict)
		}
	})
	t.Logf("%d of 10000 keyed takes reached the store", asked)
	require.LessOrEqual(t, asked, int64(1+2*4))
	require.Equal(t, backend.FromCap, last.Origin)
	// The key may be a replay: it is worth another try as soon as the store may be asked again.
	require.LessOrEqual(t, last.RetryAfter, 250*time.Millisecond)
	require.Positive(t, last.RetryAfter)
	require.Equal(t, last.RetryAfter, last.Limits[0].RetryAfter)
	c.clock.advance(last.RetryAfter)
	require.EqualValues(t, 1, c.asked(func() { c.take(bucket.Take{Buckets: hour, Amounts: points(5), Claim: newClaim("key-99999")}) }))
}

// oncePerDay is a bucket whose budget is used up for the length of a test.
func oncePerDay(t *testing.T) []bucket.Bucket {
	t.Helper()
	return []bucket.Bucket{{Limits: compile(t, bucket.Limit{Name: "day", Capacity: 100, Refill: 1, Period: 24 * time.Hour})}}
}

func TestKeysThatAreReusedOrInFlightUseTheCappedCallsUp(t *testing.T) {
	t.Parallel()
	for want, fingerprint := range map[bucket.Verdict]byte{bucket.KeyReused: 2, bucket.InFlight: 1} {
		c := newGated(t, backend.GateConfig{})
		day := oncePerDay(t)
		try := func(key idempotency.Key, fingerprint byte) verdict {
			claim := newClaim(key)
			claim.Fingerprint = idempotency.Fingerprint{fingerprint}
			return c.take(bucket.Take{Buckets: day, Amounts: points(100), Claim: claim})
		}
		try("order-00001", 1)
		require.Equal(t, bucket.Limited, try("order-00002", 1).Verdict)
		verdicts := map[bucket.Verdict]int{}
		asked := c.asked(func() {
			for range 1000 {
				verdicts[try("order-00001", fingerprint).Verdict]++
			}
		})
		require.EqualValues(t, backend.DefaultCappedCalls, asked, "%v", want)
		require.Equal(t, backend.DefaultCappedCalls, verdicts[want])
		require.Equal(t, 1000-backend.DefaultCappedCalls, verdicts[bucket.Limited])
	}
}

func TestGivingBackReturnsNoCappedCalls(t *testing.T) {
	t.Parallel()
	c := newGated(t, backend.GateConfig{})
	day := oncePerDay(t)
	keyed := func(i int) {
		claim := newClaim(idempotency.Key("key-" + strconv.Itoa(10_000+i)))
		require.Equal(t, bucket.Limited, c.take(bucket.Take{Buckets: day, Amounts: points(100), Claim: claim}).Verdict)
	}
	c.take(bucket.Take{Buckets: day, Amounts: points(50)})
	const rounds, tries = 20, 50
	asked := c.asked(func() {
		for round := range rounds {
			own := c.take(bucket.Take{Buckets: day, Amounts: points(2)})
			require.Equal(t, bucket.Admitted, own.Verdict)
			_, err := c.Settle(t.Context(), bucket.Settlement{Receipt: own.Receipt, Actual: points(0)})
			require.NoError(t, err)
			for i := range tries {
				keyed(round*tries + i)
			}
		}
	})
	// Each round has its own operation, and one take that finds out that the budget is not back.
	require.EqualValues(t, 2*rounds+backend.DefaultCappedCalls, asked)
	c.drop()
	require.Equal(t, 1, c.Entries(), "a tenant that has used its calls up")

	// Nothing is kept of a tenant whose calls are back.
	c.clock.advance(time.Second)
	c.take(bucket.Take{Buckets: day, Amounts: points(1)})
	require.Zero(t, c.Entries())
}

// drop lets the cache forget all refusals of the tenant.
func (c *gated) drop() {
	c.Forget("acme")
}

func TestATenantThatIsRefusedInEverNewOwnersCostsTheStoreAFewCallsASecond(t *testing.T) {
	t.Parallel()
	c := newGated(t, backend.GateConfig{})
	hour := bucket.Bucket{Limits: compile(t, bucket.Limit{Name: "hour", Capacity: 10, Period: time.Hour})}
	perUser := compile(t, bucket.Limit{Name: "user", Capacity: 1000, Period: time.Hour})
	c.take(bucket.Take{Buckets: []bucket.Bucket{hour}, Amounts: points(10)})
	users := func(i int) bucket.Take {
		user := bucket.Owner{Level: bucket.User, Name: strconv.Itoa(i)}
		return bucket.Take{Buckets: []bucket.Bucket{hour, {Owner: user, Limits: perUser}}, Amounts: points(5)}
	}
	var last verdict
	asked := c.asked(func() {
		for i := range 1000 {
			last = c.take(users(i))
			require.Equal(t, bucket.Limited, last.Verdict)
		}
	})
	require.LessOrEqual(t, asked, int64(1+backend.DefaultCappedCalls))
	require.Equal(t, backend.FromCap, last.Origin)
	// Of the user nothing is known, so that nothing is shown; the wait is that of the tenant.
	require.Len(t, last.Limits, 1)
	require.Equal(t, last.Limits[0].RetryAfter, last.RetryAfter)

	// After MaxAge nothing is known any more: budget that came back elsewhere is found.
	require.NoError(t, c.store.Reset(t.Context(), "acme", []bucket.Bucket{hour}))
	require.Equal(t, bucket.Limited, c.take(users(2000)).Verdict)
	c.clock.advance(backend.DefaultRefusalAge)
	for i := range 10 {
		take := users(3000 + i)
		take.Amounts = points(1)
		require.Equal(t, bucket.Admitted, c.take(take).Verdict)
	}

	// What nothing known refuses is judged by the store, whatever the tenant has cost it.
	cheap := users(1)
	cheap.Buckets = cheap.Buckets[1:]
	require.Equal(t, bucket.Admitted, c.take(cheap).Verdict)
}

func TestACandidateIsJudgedWithinTheCapAndThenLeftOut(t *testing.T) {
	t.Parallel()
	c := newGated(t, backend.GateConfig{CappedCalls: 2})
	ten := tenPerSecond(t)
	c.take(bucket.Take{Buckets: ten, Amounts: points(10)})
	candidate := &bucket.Candidate{ID: "next", Buckets: []bucket.Bucket{{Limits: compile(t, bucket.Limit{Name: "second", Capacity: 1000, Period: time.Second})}}}
	judged := 0
	for range 50 {
		result := c.take(bucket.Take{Buckets: ten, Amounts: points(10), Candidate: candidate})
		require.Equal(t, bucket.Limited, result.Verdict)
		if result.Candidate != nil {
			require.Equal(t, bucket.Admitted, result.Candidate.Verdict)
			judged++
		}
	}
	require.Equal(t, 1+2, judged)
}

// newClaim is a first attempt under a key.
func newClaim(key idempotency.Key) *idempotency.Claim {
	return &idempotency.Claim{Key: key, Attempt: idempotency.NewAttemptID()}
}

func TestAChargeUnderOtherLimitsThroughTheGateIsNoticedAtOnce(t *testing.T) {
	t.Parallel()
	c := newGated(t, backend.GateConfig{RefusalAge: time.Minute})
	slow := []bucket.Bucket{{Limits: compile(t, bucket.Limit{Name: "b", Capacity: 100, Refill: 1, Period: time.Hour})}}
	fast := []bucket.Bucket{{Limits: compile(t, bucket.Limit{Name: "b", Capacity: 100, Period: time.Second})}}
	require.Equal(t, bucket.Admitted, c.take(bucket.Take{Buckets: slow, Amounts: points(100)}).Verdict)
	require.Equal(t, bucket.Limited, c.take(bucket.Take{Buckets: slow, Amounts: points(1)}).Verdict)
	c.clock.advance(900 * time.Millisecond)
	require.Equal(t, backend.FromMemory, c.take(bucket.Take{Buckets: slow, Amounts: points(1)}).Origin)
	require.Equal(t, bucket.Admitted, c.take(bucket.Take{Buckets: fast, Amounts: points(1)}).Verdict)
	require.Equal(t, bucket.Admitted, c.take(bucket.Take{Buckets: slow, Amounts: points(1)}).Verdict)
}
