package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/cost"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// standing has rules that stand in the place of the limits of the tenant, whose larger budgets nobody else may use.
const standing = `
version: 1
default: free
tiers:
  free:
    limits:
      minute: {capacity: 100, per: minute}
      requests: {capacity: 10, per: minute, unit: requests}
      rows: {capacity: 20, per: minute, unit: exports}
    operations:
      Query.page: {instead: true, limits: {minute: {capacity: 1000, per: minute}}}
      Query.export:
        instead: true
        failMode: bounded
        limits: {calls: {capacity: 50, per: minute, unit: requests}, rows: {capacity: 500, per: minute, unit: exports}}
      Mutation.createUser: {instead: true, limits: {minute: {capacity: 300, per: minute}}}
`

// stands is a server under that policy, and what is left of its budgets.
type stands struct {
	*fixture

	policy *tiers.Snapshot
}

func newStands(t *testing.T, configure func(*ratelimit.Config)) *stands {
	t.Helper()
	s := &stands{policy: policyOf(t, standing)}
	s.fixture = newFixture(t, func(cfg *ratelimit.Config) {
		cfg.Policy = s.policy
		if configure != nil {
			configure(cfg)
		}
	})
	return s
}

// remains returns what is left of each limit, the tenant's first.
func (s *stands) remains() map[string]int64 {
	s.t.Helper()
	s.settled()
	left := map[string]int64{}
	rules := s.policy.Rules(tiers.Subject{Tenant: "free"}, tiers.Selection{})
	buckets := rules.Buckets
	for _, field := range []string{"Query.page", "Query.export", "Mutation.createUser"} {
		rules := s.policy.Rules(tiers.Subject{Tenant: "free"}, tiers.Selection{Fields: []string{field}})
		buckets = append(buckets, rules.Buckets[len(rules.Buckets)-1])
	}
	states, err := s.store.Peek(s.t.Context(), "free", buckets)
	require.NoError(s.t, err)
	for _, state := range states {
		if spent := state.Limit.Capacity - state.Remaining + state.Overdraft; spent != 0 {
			left[strings.TrimPrefix(state.Owner.Name+" ", " ")+state.Limit.Name] = spent
		}
	}
	return left
}

const (
	// paged costs 52 points, of which the root type is one.
	paged = `{ page(first: 50) { name } }`
	// mine costs 3.
	mine = `me { name }`
)

func TestAnOperationUnderARuleThatStandsIsToldOfThatRule(t *testing.T) {
	t.Parallel()
	s := newStands(t, nil)
	got := s.post(request{Query: paged})
	require.Equal(t, http.StatusOK, got.Status)
	signal := got.rateLimit(t)
	for name, want := range map[string]any{"cost": 52.0, "charged": 52.0, "limit": "minute", "level": "operation", "capacity": 1000.0, "remaining": 948.0} {
		require.Equal(t, want, signal[name], name)
	}
	require.Equal(t, `"operation:Query.page:minute";r=948;t=1`, got.Header.Get("RateLimit"))
	require.Equal(t, map[string]int64{"Query.page minute": 52}, s.remains())

	full := s.post(request{Query: `{ page(first: 50) { name } ` + mine + ` }`, Cost: "full"})
	require.EqualValues(t, 54, full.rateLimit(t)["charged"])
	require.Contains(t, full.Header.Get("RateLimit"), `"minute";r=46`)
	require.Contains(t, full.Header.Get("RateLimit"), `"operation:Query.page:minute";r=894`)
}

func TestNeitherBudgetIsUsedForWhatBelongsToTheOther(t *testing.T) {
	t.Parallel()
	s := newStands(t, nil)
	require.Equal(t, http.StatusOK, s.post(request{Query: `{ users(first: 90) { name } }`}).Status)
	refused := s.post(request{Query: `{ users(first: 20) { name } }`})
	require.Equal(t, http.StatusTooManyRequests, refused.Status, "the tenant has 8 left")
	// What an attacker would combine it with.
	for _, query := range []string{
		`{ users(first: 20) { name } page(first: 1) { name } }`,
		`{ users(first: 20) { name } ` + strings.Repeat(`...F `, 3) + `} fragment F on Query { page(first: 1) { name } }`,
		`{ page(first: 1) { name } a: users(first: 10) { name } b: users(first: 10) { name } }`,
		`{ users(first: 20) { name } page(first: 1) @skip(if: true) { name } }`,
		`{ users(first: 20) { name } export(rows: 1) }`,
	} {
		mixed := s.post(request{Query: query})
		require.Equal(t, http.StatusTooManyRequests, mixed.Status, query)
		require.Contains(t, mixed.Body, `"level":"tenant"`, query)
	}
	require.Equal(t, map[string]int64{"minute": 92, "requests": 1}, s.remains(), "all or nothing")
	for range 18 {
		require.Equal(t, http.StatusOK, s.post(request{Query: paged}).Status, "an empty tenant does not refuse what it does not pay")
	}
	require.Equal(t, http.StatusOK, s.post(request{Query: paged}).Status)
	require.Equal(t, http.StatusTooManyRequests, s.post(request{Query: `{ page(first: 10) { name } ` + mine + ` }`}).Status, "the tenant has 8 left")
	require.Equal(t, map[string]int64{"minute": 92, "requests": 1, "Query.page minute": 19 * 52}, s.remains())
	refused = s.post(request{Query: paged})
	require.Equal(t, http.StatusTooManyRequests, refused.Status)
	require.Contains(t, refused.Body, `"owner":"Query.page"`)
	require.Equal(t, http.StatusOK, s.post(request{Query: "{" + mine + "}"}).Status, "and the other way round")
}

// TestMixedCallsNeverPayLess sends calls together and in operations of their own, with each kind of settlement.
func TestMixedCallsNeverPayLess(t *testing.T) {
	t.Parallel()
	parts := map[string]string{
		"Query.page minute":  `page(first: 30) { name } two: page(first: 7) { friends(first: 2) { id } }`,
		"minute":             mine + ` users(first: 3) { name }`,
		"Query.export calls": `export(rows: 2)`,
	}
	for _, settlement := range []ratelimit.SettlementConfig{
		{}, {Refund: true}, {ChargeExcess: true}, {Refund: true, ChargeExcess: true}, {FailedShare: 1},
	} {
		for _, users := range []int{1, 30} {
			// Ten users are listed: with one assumed they are an excess, with thirty a refund.
			settling := func() *stands {
				return newStands(t, func(cfg *ratelimit.Config) {
					cfg.Pricing.Cost.ListSizes = map[string]cost.ListSize{"Query.users": {AssumedSize: &users}}
					cfg.Settlement = settlement
				})
			}
			alone, together, all := settling(), settling(), ""
			for _, part := range parts {
				alone.post(request{Query: "{" + part + "}"})
				all += part + " "
			}
			require.Equal(t, http.StatusOK, together.post(request{Query: "{" + all + "}"}).Status)
			for budget, spent := range alone.remains() {
				require.GreaterOrEqual(t, together.remains()[budget], spent, "%s with %+v and %d users", budget, settlement, users)
			}
		}
	}
}

func TestAnOperationWhoseCallsAreAllSkippedIsARequestOfTheTenant(t *testing.T) {
	t.Parallel()
	s := newStands(t, nil)
	for range 10 {
		require.Equal(t, http.StatusOK, s.post(request{Query: `query ($no: Boolean = true) { page(first: 1) @skip(if: $no) { name } __typename }`}).Status)
	}
	require.Equal(t, http.StatusTooManyRequests, s.post(request{Query: `query ($no: Boolean = true) { page(first: 1) @skip(if: $no) { name } __typename }`}).Status)
	require.EqualValues(t, 10, s.remains()["requests"])
}

func TestAResolverChargesWhatHasPaidThePrice(t *testing.T) {
	t.Parallel()
	s := newStands(t, nil)
	var charges []error
	s.resolver.OnExport = func(ctx context.Context, rows int) error {
		charges = append(charges, ratelimit.Charge(ctx, "exports", int64(rows)))
		return nil
	}
	require.Equal(t, http.StatusOK, s.post(request{Query: `{ export(rows: 300) }`}).Status)
	require.NoError(t, charges[0])
	require.Equal(t, map[string]int64{"Query.export calls": 1, "Query.export rows": 300}, s.remains())
	s.post(request{Query: `{ export(rows: 300) }`})
	require.ErrorIs(t, charges[1], ratelimit.ErrRefused)
	s.post(request{Query: `{ export(rows: 15) ` + mine + ` }`})
	require.NoError(t, charges[2])
	require.EqualValues(t, 15, s.remains()["rows"], "both have paid")
	s.post(request{Query: `{ export(rows: 15) ` + mine + ` }`})
	require.ErrorIs(t, charges[3], ratelimit.ErrRefused, "the tenant has 5 left")
}

func TestATenantWhoseAnswersAreCountedPaysNothingElseForCallsOfARule(t *testing.T) {
	t.Parallel()
	counting := policyOf(t, strings.Replace(standing, "      rows:", "      bytes: {capacity: 5000, per: minute, unit: response_bytes}\n      rows:", 1))
	s := newStands(t, func(cfg *ratelimit.Config) { cfg.Policy = counting })
	s.policy = counting
	require.Equal(t, http.StatusOK, s.post(request{Query: `{ users(first: 50) { name } }`}).Status)
	before := s.remains()
	got := s.post(request{Query: paged})
	require.Equal(t, "operation", got.rateLimit(t)["level"], "it paces itself by what it pays, not by what is scarcer")
	after := s.remains()
	require.Greater(t, after["bytes"], before["bytes"]+500)
	before["bytes"], before["Query.page minute"] = after["bytes"], 52
	require.Equal(t, before, after)
}

func TestRefundsGoToTheBudgetsThatHavePaid(t *testing.T) {
	t.Parallel()
	s := newStands(t, func(cfg *ratelimit.Config) {
		many := 30
		cfg.Pricing.Cost.ListSizes = map[string]cost.ListSize{"Query.users": {AssumedSize: &many}}
		cfg.Settlement = ratelimit.SettlementConfig{Refund: true, FailedShare: 0.5}
	})
	// The list has a hundred at most.
	got := s.post(request{Query: `{ page(first: 300) { name } }`})
	require.EqualValues(t, 200, got.rateLimit(t)["refunded"], got.Body)
	require.EqualValues(t, 898, got.rateLimit(t)["remaining"])
	require.Equal(t, map[string]int64{"Query.page minute": 102}, s.remains())

	// Both have paid for the whole operation, and both get back what it did not come to: twenty of thirty users.
	got = s.post(request{Query: `{ page(first: 5) { name } users { name } }`, Cost: "full"})
	require.EqualValues(t, 38, got.rateLimit(t)["charged"], got.Body)
	require.EqualValues(t, 20, got.rateLimit(t)["refunded"], got.Body)
	require.Equal(t, map[string]int64{"minute": 18, "requests": 1, "Query.page minute": 102 + 18}, s.remains())
	shown := map[string]any{}
	limits, _ := got.rateLimit(t)["limits"].([]any)
	for _, limit := range limits {
		fields, _ := limit.(map[string]any)
		shown[fmt.Sprint(fields["level"], fields["name"])] = fields["remaining"]
	}
	require.EqualValues(t, 100-18, shown["tenantminute"])
	require.EqualValues(t, 1000-120, shown["operationminute"])

	s.resolver.OnExport = func(context.Context, int) error { return context.DeadlineExceeded }
	got = s.post(request{Query: `{ page(first: 5) { name } export(rows: 1) }`})
	require.EqualValues(t, 6, got.rateLimit(t)["refunded"], "half of 12: %s", got.Body)
	require.Equal(t, map[string]int64{"minute": 24, "requests": 2, "Query.page minute": 126, "Query.export calls": 1}, s.remains())
}

func TestAKeyedOperationPaysItsRuleOnce(t *testing.T) {
	t.Parallel()
	s := newStands(t, nil)
	first := s.post(request{Query: createUser, Key: testKey})
	again := s.post(request{Query: createUser, Key: testKey})
	require.Equal(t, true, again.rateLimit(t)["replayed"], again.Body)
	require.EqualValues(t, 0, again.rateLimit(t)["charged"])
	require.EqualValues(t, 1, s.resolver.Created.Load())
	const price = 14
	require.EqualValues(t, price, first.rateLimit(t)["charged"])
	require.Equal(t, map[string]int64{"Mutation.createUser minute": price}, s.remains())

	refuse := &refusingResponses{}
	refuse.active.Store(true)
	s.server.Use(refuse)
	mixed := `mutation { createUser(input: {name: "x"}) { id } createAndFail(name: "y") { id } }`
	require.Contains(t, s.post(request{Query: mixed, Key: "another-key"}).Body, "refused by another")
	require.Equal(t, map[string]int64{"requests": 1, "minute": 16, "Mutation.createUser minute": 30}, s.remains(),
		"it failed, and is charged as without a key")
}

func TestWhileTheStoreIsAwayTheRuleIsJudgedAndNotTheTenant(t *testing.T) {
	t.Parallel()
	a := newAbsent(t, tiers.Tier{
		FailMode: "closed",
		Limits:   map[string]*tiers.Limit{"minute": {Capacity: 100, Per: tiers.Minute}},
		Operations: map[string]tiers.OperationRule{
			"Query.page": {Instead: true, FailMode: "bounded", Limits: map[string]*tiers.Limit{"minute": {Capacity: 100, Per: tiers.Minute}}},
		},
	}, nil)
	a.store.Fail(bucket.ErrUnavailable)
	for range 3 {
		got := a.post(request{Query: paged})
		require.Equal(t, http.StatusOK, got.Status, "twice the budget of the rule, by this instance")
		require.EqualValues(t, 52, got.rateLimit(t)["charged"])
	}
	require.Equal(t, http.StatusTooManyRequests, a.post(request{Query: paged}).Status)
	require.Equal(t, http.StatusServiceUnavailable, a.post(request{Query: "{" + mine + "}"}).Status)
	require.Equal(t, http.StatusServiceUnavailable, a.post(request{Query: `{ page(first: 1) { name } ` + mine + ` }`}).Status, "who calls both is under both")
}

func TestACandidateIsTriedWithTheRulesThatStandInIt(t *testing.T) {
	t.Parallel()
	plain := policyOf(t, strings.ReplaceAll(standing, "instead: true, ", ""))
	for name, test := range map[string]struct {
		live, candidate *tiers.Snapshot
		want            map[string]int64
	}{
		"the candidate stands": {plain, policyOf(t, standing), map[string]int64{"Query.page minute": 52}},
		"the live one stands":  {policyOf(t, standing), plain, map[string]int64{"minute": 52, "Query.page minute": 52}},
	} {
		rollout := tiers.NewRollout(test.live)
		require.NoError(t, rollout.Propose("next", test.candidate))
		f := newFixture(t, func(cfg *ratelimit.Config) { cfg.Policy = rollout })
		var last *ratelimit.CandidateDecision
		see(f.server, func(d ratelimit.Decision) { last = d.Candidate })
		require.Equal(t, http.StatusOK, f.post(request{Query: paged}).Status)
		require.NotNil(t, last, name)
		spent := map[string]int64{}
		for _, l := range last.Limits {
			if l.Limit.Unit == bucket.Points {
				spent[strings.TrimPrefix(l.Owner.Name+" ", " ")+l.Limit.Name] = l.Asked
			}
		}
		require.Equal(t, test.want, spent, name)
	}
}

func TestATenantWithoutRequestsIsParsedWhereARuleMayStand(t *testing.T) {
	t.Parallel()
	f := newDoored(t, func(cfg *ratelimit.Config) { cfg.Policy = policyOf(t, standing) })
	for range 11 {
		f.post(request{Query: "{" + mine + "}"})
	}
	require.Equal(t, ratelimitclient.CodeRateLimited, f.post(request{Query: `{ me { id } }`}).errorCode(t))
	require.Equal(t, http.StatusOK, f.post(request{Query: paged}).Status, "it was parsed, and found to pay elsewhere")
}

func TestInsteadInShadowTakesNoRefund(t *testing.T) {
	t.Parallel()
	trial := policyOf(t, strings.Replace(standing, "Query.page: {instead: true,", "Query.page: {instead: true, mode: shadow,", 1))
	s := newStands(t, func(cfg *ratelimit.Config) {
		many := 30
		cfg.Pricing.Cost.ListSizes = map[string]cost.ListSize{"Query.users": {AssumedSize: &many}}
		cfg.Policy, cfg.Settlement.Refund = trial, true
	})
	s.policy = trial
	got := s.post(request{Query: `{ users { name } page(first: 5) { name } }`})
	require.EqualValues(t, 38, got.rateLimit(t)["charged"], got.Body)
	require.EqualValues(t, 20, got.rateLimit(t)["refunded"], got.Body)
	require.Equal(t, map[string]int64{"minute": 18, "requests": 1, "Query.page minute": 18}, s.remains())
}
