package e2e_test

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/cost"
	"github.com/gqlgen-ratelimit/ratelimit/internal/testserver"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// settledPolicy has limits of each kind that are large enough to give back to.
const settledPolicy = `
version: 1
default: token
tiers:
  token: {limits: {minute: {capacity: 1000, per: minute}, requests: {unit: requests, capacity: 6000, per: minute}}}
  fixed: {limits: {minute: {capacity: 1000, per: minute, window: fixed}}}
  sliding: {limits: {minute: {capacity: 1000, per: minute, window: sliding}}}
  day: {limits: {day: {capacity: 1000, per: day, window: calendar}}}
  soft: {limits: {minute: {capacity: 150, per: minute, soft: true}, hour: {capacity: 1000, per: hour}}}
  shadow: {limits: {minute: {capacity: 100, per: minute, mode: shadow}, hour: {capacity: 1000, per: hour}}}
tenants:
  fixed: {tier: fixed}
  sliding: {tier: sliding}
  day: {tier: day}
  soft: {tier: soft}
  shadow: {tier: shadow}
`

const (
	// generous is estimated at 302 points and comes to 102: the list has no more.
	generous = `{ users(first: 300) { name } }`
	// failing is estimated at 36 points, and its answer is null with an error.
	failing = `{ users(first: 29) { name } export(rows: 1) }`
)

// newSettledFixture is newFixture under settledPolicy.
func newSettledFixture(t *testing.T, settlement ratelimit.SettlementConfig, configure func(*ratelimit.Config)) *fixture {
	t.Helper()
	policy, err := tiers.Parse([]byte(settledPolicy))
	require.NoError(t, err)
	snapshot, err := tiers.Compile(policy)
	require.NoError(t, err)
	return newFixture(t, func(cfg *ratelimit.Config) {
		cfg.Policy, cfg.Settlement = snapshot, settlement
		if configure != nil {
			configure(cfg)
		}
	})
}

// settled waits until no settlement is under way.
func (f *fixture) settled() {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), 10*time.Second)
	defer cancel()
	require.NoError(f.t, f.limiter.AwaitSettled(ctx))
}

// spent returns what the first limit of the tenant has spent, after settlements.
func (f *fixture) spent(tenant string) int64 {
	f.t.Helper()
	f.settled()
	var buckets []bucket.Bucket
	for _, take := range f.store.Takes() {
		if take.Tenant == tenant {
			buckets = take.Buckets
		}
	}
	limits, err := f.store.Peek(f.t.Context(), tenant, buckets)
	require.NoError(f.t, err)
	return limits[0].Limit.Capacity - limits[0].Remaining + limits[0].Overdraft
}

func TestWhatAnOperationDidNotComeToIsGivenBack(t *testing.T) {
	t.Parallel()
	f := newSettledFixture(t, ratelimit.SettlementConfig{Refund: true}, nil)
	got := f.post(request{Query: generous})
	signal := got.rateLimit(t)
	for name, want := range map[string]float64{"cost": 302, "charged": 302, "actual": 102, "refunded": 200, "remaining": 898} {
		require.InDelta(t, want, signal[name], 0, name)
	}
	require.Equal(t, `"minute";r=898;t=1`, got.Header.Get("RateLimit"))
	require.EqualValues(t, 102, f.spent("free"))
	require.Len(t, f.store.Settlements(), 1)
}

func TestWhatIsShownIsWhatIsLeftWhenTheChargeIsSettled(t *testing.T) {
	t.Parallel()
	for _, tenant := range []string{"token", "fixed", "sliding", "day", "soft", "shadow"} {
		t.Run(tenant, func(t *testing.T) {
			t.Parallel()
			f := newSettledFixture(t, ratelimit.SettlementConfig{Refund: true, FailedShare: 1}, nil)
			f.resolver.OnExport = func(context.Context, int) error { return context.DeadlineExceeded }
			// The first leaves a full limit, and each other begins with what the one before has left.
			for _, query := range []string{failing, generous, generous, failing} {
				shown, _ := f.post(request{Query: query, Tenant: tenant}).rateLimit(t)["limits"].([]any)
				f.settled()
				now, _ := f.post(request{Query: `{ __typename }`, Tenant: tenant}).rateLimit(t)["limits"].([]any)
				require.Len(t, shown, len(now))
				for i := range shown {
					before, _ := shown[i].(map[string]any)
					after, _ := now[i].(map[string]any)
					if before["unit"] == "requests" {
						continue
					}
					for _, number := range []string{"remaining", "overdraft", "resetAfter"} {
						require.Equal(t, after[number], before[number], "%s of %s", number, before["name"])
					}
				}
			}
		})
	}
}

func TestNothingIsGivenBackWhereTheResponseDoesNotTellTheWork(t *testing.T) {
	t.Parallel()
	all := ratelimit.SettlementConfig{Refund: true}
	for _, test := range []struct {
		name       string
		settlement ratelimit.SettlementConfig
		run        func(f *fixture)
		spent      int64
	}{
		{"by default", ratelimit.SettlementConfig{}, func(f *fixture) { f.post(request{Query: generous}) }, 302},
		{"beside an error", all, func(f *fixture) { f.post(request{Query: `{ users(first: 300) { name } fails }`}) }, 302},
		{"for nothing but errors", all, func(f *fixture) { f.post(request{Query: failing}) }, 36},
		{"where an operation came to its estimate", all, func(f *fixture) { f.post(request{Query: `{ users(first: 5) { name } }`}) }, 7},
		{"for a subscription without events", all, func(f *fixture) {
			f.sse(request{Query: `subscription { ticks(count: 0) }`})
		}, 13},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			f := newSettledFixture(t, test.settlement, nil)
			f.resolver.OnExport = func(context.Context, int) error { return context.DeadlineExceeded }
			test.run(f)
			require.Equal(t, test.spent, f.spent("free"))
			for _, settlement := range f.store.Settlements() {
				require.True(t, settlement.Receipt.IsZero(), "no charge was settled")
			}
		})
	}
}

func TestAShareIsGivenBackForAnOperationThatEndsInErrors(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		share float64
		spent int64
	}{{0.51, 36 - 18}, {1, 0}} {
		f := newSettledFixture(t, ratelimit.SettlementConfig{FailedShare: test.share}, nil)
		f.resolver.OnExport = func(context.Context, int) error { return context.DeadlineExceeded }
		require.InDelta(t, 36-test.spent, f.post(request{Query: failing}).rateLimit(t)["refunded"], 0)
		require.Equal(t, test.spent, f.spent("free"))
		require.NotContains(t, f.post(request{Query: `{ users(first: 300) { name } fails }`}).rateLimit(t), "refunded", "part of it failed")
	}
}

func TestMoreThanTheEstimateIsChargedOnByOption(t *testing.T) {
	t.Parallel()
	// A list without a size is taken to have one element and has ten.
	unsized := func(cfg *ratelimit.Config) {
		one := 1
		cfg.Pricing.Cost.ListSizes = map[string]cost.ListSize{"Query.users": {AssumedSize: &one}}
	}
	const users = `{ users { name } }`
	f := newSettledFixture(t, ratelimit.SettlementConfig{}, unsized)
	f.post(request{Query: users})
	require.EqualValues(t, 3, f.spent("free"))

	f = newSettledFixture(t, ratelimit.SettlementConfig{ChargeExcess: true}, unsized)
	signal := f.post(request{Query: users}).rateLimit(t)
	for name, want := range map[string]float64{"cost": 3, "charged": 12, "actual": 12, "remaining": 988} {
		require.InDelta(t, want, signal[name], 0, name)
	}
	require.EqualValues(t, 12, f.spent("free"))
}

func TestAChargeInsideAnOperationIsNotGivenBack(t *testing.T) {
	t.Parallel()
	f := newSettledFixture(t, ratelimit.SettlementConfig{Refund: true}, nil)
	f.resolver.OnExport = func(ctx context.Context, rows int) error {
		return ratelimit.Charge(ctx, bucket.Points, int64(rows))
	}
	signal := f.post(request{Query: `{ users(first: 300) { name } export(rows: 50) }`}).rateLimit(t)
	require.InDelta(t, 307+50, signal["charged"], 0)
	require.InDelta(t, 200, signal["refunded"], 0)
	require.InDelta(t, 1000-107-50, signal["remaining"], 0)
	require.EqualValues(t, 107+50, f.spent("free"))
}

func TestAMutationWithAKeyIsSettledInTheCallThatStoresItsAnswer(t *testing.T) {
	t.Parallel()
	f := newSettledFixture(t, ratelimit.SettlementConfig{Refund: true}, nil)
	mutation := request{Query: `mutation { createUser(input: {name: "Grace"}) { friends(first: 300) { name } } }`, Key: testKey}
	require.InDelta(t, 200, f.post(mutation).rateLimit(t)["refunded"], 0)
	settlements := f.store.Settlements()
	require.Len(t, settlements, 1)
	require.NotNil(t, settlements[0].Claim)
	require.NotEmpty(t, settlements[0].Claim.Answer)
	require.True(t, settlements[0].Settled.Applied)
	spent := f.spent("free")
	require.Equal(t, f.store.Takes()[0].Amounts.Of(bucket.Points)-200, spent)

	require.Equal(t, true, f.post(mutation).rateLimit(t)["replayed"])
	require.Equal(t, spent, f.spent("free"), "a replay is settled no second time")
}

func TestWhatIsGivenBackIsHiddenWithTheCost(t *testing.T) {
	t.Parallel()
	f := newSettledFixture(t, ratelimit.SettlementConfig{Refund: true}, func(cfg *ratelimit.Config) { cfg.Response.Hide.Cost = true })
	require.NotContains(t, f.post(request{Query: generous}).rateLimit(t), "refunded")
	require.EqualValues(t, 102, f.spent("free"))
}

func TestADeferredAnswerIsSettledWithItsLastPart(t *testing.T) {
	t.Parallel()
	f := newSettledFixture(t, ratelimit.SettlementConfig{Refund: true}, nil)
	body := f.multipartMixed(request{Query: `{ me { name ... @defer { friends(first: 300) { name } } } }`}).Body
	require.Contains(t, body, `"hasNext":false`)
	require.NotContains(t, body, "refunded", "the first part cannot know")
	require.Equal(t, f.store.Takes()[0].Amounts.Of(bucket.Points)-200, f.spent("free"))
}

func TestMistakesInTheSettlementAreReported(t *testing.T) {
	t.Parallel()
	for _, share := range []float64{1.01, -0.5, math.NaN()} {
		cfg := ratelimit.Config{Settlement: ratelimit.SettlementConfig{FailedShare: share}}
		err := ratelimit.New(cfg).Validate(testserver.NewExecutableSchema(testserver.Config{}))
		require.ErrorContains(t, err, fmt.Sprintf("FailedShare is %v", share))
	}
}
