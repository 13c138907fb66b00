package e2e_test

import (
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/cost"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimittest"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// tellingPolicy has numbers and names that stand nowhere else in an answer.
func tellingPolicy(t *testing.T, hide tiers.Hide) *tiers.Snapshot {
	t.Helper()
	minute := func(capacity int64) map[string]*tiers.Limit {
		return map[string]*tiers.Limit{"minute": {Capacity: capacity, Per: tiers.Minute}}
	}
	snapshot, err := tiers.Compile(tiers.Policy{
		Default: "told",
		Tiers: map[string]tiers.Tier{
			"told": {
				MaxCost: 9001, Limits: minute(7919), Hide: &hide, CostReport: true, CostValidate: true,
				Users: &tiers.UserRule{OwnerRule: tiers.OwnerRule{Limits: minute(7907)}},
				Operations: map[string]tiers.OperationRule{
					"Query.us*":  {Limits: minute(7901)},
					"Query.use*": {Limits: minute(7883)},
				},
			},
			"warned": {Mode: "warn", MaxCost: 9001, Limits: minute(7919), Hide: &hide},
		},
		Tenants: map[string]tiers.Exception{"warned": {Tier: "warned"}},
	})
	require.NoError(t, err)
	return snapshot
}

// toldTo are requests whose last answer tells a client much, by what happens to it.
func toldTo() map[string][]request {
	of := func(first int) request {
		return request{Query: fmt.Sprintf(`{ users(first: %d) { name } }`, first), User: "secret-user"}
	}
	warned := func(r request) request { r.Tenant, r.User = "warned", ""; return r }
	return map[string][]request{
		"admitted":     {of(4511)},
		"limited":      {of(4511), of(4511)},
		"never":        {of(8000)},
		"too-dear":     {of(9100)},
		"warned":       {warned(of(4511)), warned(of(4511))},
		"warned, dear": {warned(of(9100))},
		"shape":        {{Query: `{ a: me { name } b: me { name } }`, User: "secret-user"}},
		"field":        {of(4511), {Query: readBudget, User: "secret-user"}},
		"report":       {{Query: of(4511).Query, User: "secret-user", Cost: "report"}},
		"validate":     {{Query: of(9100).Query, User: "secret-user", Cost: "validate"}},
	}
}

// secrets are what must not stand in an answer from which a part is hidden.
var secrets = map[string]*regexp.Regexp{
	"cost":      regexp.MustCompile(`4513|8002|9102|9001|"(cost|charged|actual|refunded|maxCost|breakdown)":[^{n]`),
	"limits":    regexp.MustCompile(`7919|7907|7901|7883|9001|"allowed"|;q=|"(limit|capacity)":\d|-Limit:|"used":\d|-Used:`),
	"remaining": regexp.MustCompile(`3393|3381|3375|3357|"resetAfter":\d|"resetAt":"|;r=|-Remaining:|-Reset:|-Used:|"used":\d`),
	"owners":    regexp.MustCompile(`secret-user|Query\.us\*|Query\.use\*`),
}

// TestWhatIsHiddenStandsNowhere looks through whole answers: status, headers and body.
func TestWhatIsHiddenStandsNowhere(t *testing.T) {
	t.Parallel()
	for part, hide := range map[string]tiers.Hide{
		"nothing": {}, "cost": {Cost: true}, "limits": {Limits: true}, "remaining": {Remaining: true}, "owners": {Owners: true},
		"everything": {Cost: true, Limits: true, Remaining: true, Owners: true},
	} {
		// Short answers are those of the policy, whole ones those of the server.
		for _, globally := range []bool{false, true} {
			shown := map[string]bool{}
			for name, requests := range toldTo() {
				synctest.Test(t, func(t *testing.T) {
					p := newInProcess(t, ratelimittest.NewStore(&ratelimittest.Clock{}), func(cfg *ratelimit.Config) {
						cfg.Pricing.Cost.Shape = cost.Shape{MaxAliases: 1}
						cfg.Response = ratelimit.ResponseConfig{
							Headers: ratelimit.HeadersDraft10 | ratelimit.HeadersDraft6 | ratelimit.HeadersGitHub,
						}
						if globally {
							cfg.Policy, cfg.Response.Hide, cfg.Response.Full = tellingPolicy(t, tiers.Hide{}), hide, true
						} else {
							cfg.Policy = tellingPolicy(t, hide)
						}
					})
					var last reply
					// What is used is not what the last operation costs.
					p.post(request{Query: `{ users(first: 11) { name } }`, User: "secret-user", Tenant: requests[0].Tenant})
					for _, r := range requests {
						last = p.post(r)
					}
					answer := ownHeaders(last.Header) + last.Body
					if !globally && (part == "nothing" || part == "everything") {
						golden(t, "hidden-"+part+"-"+strings.ReplaceAll(name, ", ", "-"), last.transcript())
					}
					for secret, pattern := range secrets {
						found := pattern.FindString(answer)
						if part == secret || part == "everything" {
							require.Empty(t, found, "%s of %s: %s", secret, name, answer)
						}
						shown[secret] = shown[secret] || found != ""
					}
					response, err := ratelimitclient.FromResponse([]byte(last.Body))
					require.NoError(t, err)
					if name == "limited" {
						require.True(t, response.Refusal.Temporary())
						require.Positive(t, response.Refusal.RetryAfter)
						require.Equal(t, "minute", response.Refusal.Limit)
						require.NotEmpty(t, last.Header.Get("Retry-After"))
					}
				})
			}
			for secret := range secrets {
				require.Equal(t, part != secret && part != "everything", shown[secret], "%s while %s is hidden", secret, part)
			}
		}
	}
}

func TestEveryNumberOfTheExtensionIsKnownToWhatHides(t *testing.T) {
	t.Parallel()
	// retryAfter is never hidden.
	known := []string{"cost", "charged", "actual", "refunded", "capacity", "remaining", "resetAfter", "retryAfter"}
	goType := reflect.TypeFor[ratelimitclient.RateLimit]()
	for i := range goType.NumField() {
		field := goType.Field(i)
		kind := field.Type.Kind()
		if kind == reflect.Pointer {
			kind = field.Type.Elem().Kind()
		}
		key, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if kind == reflect.Int64 || kind == reflect.Float64 {
			require.Contains(t, known, key, "hide it in partial.go with what it tells of, and name it here and in docs/reference/responses.md")
		}
	}
}

func TestAnOverdraftIsHiddenWithWhatRemains(t *testing.T) {
	t.Parallel()
	for _, hidden := range []bool{false, true} {
		snapshot, err := tiers.Compile(tiers.Policy{Default: "soft", Tiers: map[string]tiers.Tier{
			"soft": {
				Hide:   &tiers.Hide{Remaining: hidden},
				Limits: map[string]*tiers.Limit{"minute": {Capacity: 10, Per: tiers.Minute, Soft: true}},
			},
		}})
		require.NoError(t, err)
		f := newFixture(t, func(cfg *ratelimit.Config) { cfg.Policy = snapshot })
		f.post(request{Query: `{ users(first: 6) { name } }`})
		reply := f.post(request{Query: `{ users(first: 6) { name } }`, Cost: "full"})
		require.Equal(t, !hidden, strings.Contains(reply.Body, `"overdraft":6`), reply.Body)
	}
}
