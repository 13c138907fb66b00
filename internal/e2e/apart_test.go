package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/cost"
)

// settling is a server under rules that stand in the place of limits. Its estimates take a list of users, which has ten elements,
// for one of a single element, and the list of the rule has no more than a hundred.
func settling(t *testing.T, settlement ratelimit.SettlementConfig) *stands {
	t.Helper()
	return newStands(t, func(cfg *ratelimit.Config) {
		one := 1
		cfg.Pricing.Cost.ListSizes = map[string]cost.ListSize{"Query.users": {AssumedSize: &one}}
		cfg.Settlement = settlement
	})
}

func TestALongListIsChargedOnWhateverShortListOfARuleIsBesideIt(t *testing.T) {
	t.Parallel()
	alone := settling(t, ratelimit.SettlementConfig{ChargeExcess: true})
	alone.post(request{Query: `{ users { name } }`})
	require.Equal(t, map[string]int64{"minute": 12, "requests": 1}, alone.remains())
	mixed := settling(t, ratelimit.SettlementConfig{ChargeExcess: true})
	got := mixed.post(request{Query: `{ page(first: 300) { name } users { name } }`})
	require.Equal(t, map[string]int64{"minute": 12, "requests": 1, "Query.page minute": 302}, mixed.remains())
	signal := got.rateLimit(t)
	require.EqualValues(t, 304+9, signal["charged"], got.Body)
	require.NotContains(t, signal, "refunded")
}

func TestEachOwnerIsSettledByWhatItsOwnCallsCameTo(t *testing.T) {
	t.Parallel()
	const short, long = `page(first: 300) { name }`, `users { name } me { name }`
	for _, test := range []struct {
		settlement     ratelimit.SettlementConfig
		tenant, rule   int64
		refunded, more int
	}{
		{ratelimit.SettlementConfig{}, 5, 302, 0, 0},
		{ratelimit.SettlementConfig{Refund: true}, 5, 102, 200, 0},
		{ratelimit.SettlementConfig{ChargeExcess: true}, 14, 302, 0, 9},
		{ratelimit.SettlementConfig{Refund: true, ChargeExcess: true}, 14, 102, 200, 9},
	} {
		name := fmt.Sprintf("%+v", test.settlement)
		for _, key := range []string{"", testKey} {
			s := settling(t, test.settlement)
			got := s.post(request{Query: "{ " + short + " " + long + " }", Key: key, Cost: "full"})
			require.Equal(t, map[string]int64{"minute": test.tenant, "requests": 1, "Query.page minute": test.rule}, s.remains(), name)
			signal := got.rateLimit(t)
			require.EqualValues(t, 306+test.more, signal["charged"], name)
			if test.refunded > 0 {
				require.EqualValues(t, test.refunded, signal["refunded"], name)
			}
			limits, _ := signal["limits"].([]any)
			for _, limit := range limits {
				fields, _ := limit.(map[string]any)
				switch fmt.Sprint(fields["level"], fields["name"]) {
				case "tenantminute":
					require.EqualValues(t, 100-test.tenant, fields["remaining"], name)
				case "operationminute":
					require.EqualValues(t, 1000-test.rule, fields["remaining"], name)
				}
			}
			require.NotEmpty(t, limits)
		}
		// Sent apart they cost each owner the same.
		apart := settling(t, test.settlement)
		apart.post(request{Query: "{ " + short + " }"})
		apart.post(request{Query: "{ " + long + " }"})
		require.Equal(t, map[string]int64{"minute": test.tenant, "requests": 1, "Query.page minute": test.rule}, apart.remains(), name)
	}
}

func TestAnErrorKeepsTheEstimatesOfAllPartsAndHidesNoExcess(t *testing.T) {
	t.Parallel()
	s := settling(t, ratelimit.SettlementConfig{Refund: true, ChargeExcess: true})
	s.post(request{Query: `{ page(first: 300) { name } users { name } fails }`})
	require.Equal(t, map[string]int64{"minute": 12, "requests": 1, "Query.page minute": 302}, s.remains())
}

func TestARuleOnTrialTakesNoRefundFromTheTenant(t *testing.T) {
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
	require.Equal(t, map[string]int64{"minute": 18, "requests": 1, "Query.page minute": 7}, s.remains())
}
