package e2e_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// showShadow tells clients of trials, for tests of what is judged.
func showShadow(cfg *ratelimit.Config) { cfg.Response.ShowShadow = true }

// transports send a request and return all that its client sees.
var transports = map[string]func(*fixture, request) string{
	"post":            func(f *fixture, r request) string { return seenOf(f.post(r)) },
	"get":             func(f *fixture, r request) string { return seenOf(f.get(r)) },
	"multipart/mixed": func(f *fixture, r request) string { return seenOf(f.multipartMixed(r)) },
	"sse":             func(f *fixture, r request) string { return seenOf(f.sse(r)) },
	"websocket": func(f *fixture, r request) string {
		run := f.dial(r.tenant(), http.Header{"X-User": {r.User}}).run("1", r)
		return refusalIDs.ReplaceAllString(strings.Join(run, "\n"), `$1""`)
	},
}

// seenOf writes status, headers and body, without the date and ids, which are never the same twice.
func seenOf(r reply) string {
	r.Header.Del("Date")
	return refusalIDs.ReplaceAllString(fmt.Sprintf("%d %v\n%s", r.Status, r.Header, r.Body), `$1""`)
}

// onTrial is a tier with enforced limits beside limits of every level, and a maximum cost, on trial. %s is the mode.
const onTrial = `{version: 1, default: pro, tiers: {pro: {costReport: true, costValidate: true,
	limits: {requests: {unit: requests, capacity: 3, per: minute}, exports: {unit: exports, capacity: 10, per: minute},
		minute: {capacity: 70, per: minute, mode: %[1]s}, hour: {capacity: 100, per: hour, mode: %[1]s, window: fixed}},
	users: {mode: %[1]s, limits: {minute: {capacity: 30, per: minute}}},
	operations: {
		Query.users: {mode: %[1]s, maxCost: 60, limits: {calls: {unit: requests, capacity: 1, per: minute}}},
		"Query.*": {limits: {all: {unit: requests, capacity: 100, per: minute}}}}}}}`

// withoutTrial is the same policy before the trial began.
const withoutTrial = `{version: 1, default: pro, tiers: {pro: {costReport: true, costValidate: true,
	limits: {requests: {unit: requests, capacity: 3, per: minute}, exports: {unit: exports, capacity: 10, per: minute}},
	operations: {"Query.*": {limits: {all: {unit: requests, capacity: 100, per: minute}}}}}}}`

// trialRequests go on until the enforced limit of three requests refuses, and long after those on trial would have.
var trialRequests = []request{
	{Query: dear, User: "ann", Cost: "validate"},
	{Query: dear, User: "ann"},
	{Query: half, User: "ann", Cost: "report"},
	{Query: `{ users(first: 20) { name } rateLimit { cost unit limit remaining used } }`, User: "ann"},
	{Query: dear, User: "ann"},
	{Query: `{ nobody }`, User: "ann"},
}

func TestAnswersAreTheSameWithAndWithoutATrialBesideLimitsThatRefuse(t *testing.T) {
	t.Parallel()
	everyForm := ratelimit.HeadersDraft10 | ratelimit.HeadersDraft6 | ratelimit.HeadersLegacy
	for name, send := range transports {
		for _, mode := range []string{"shadow", `"off"`} {
			for _, hide := range []tiers.Hide{{}, {Owners: true}, {Limits: true, Remaining: true}} {
				t.Run(fmt.Sprint(name, mode, hide), func(t *testing.T) {
					t.Parallel()
					under := func(policy string) *fixture {
						f := newFixture(t, func(cfg *ratelimit.Config) {
							cfg.Policy = policyOf(t, policy)
							cfg.Response = ratelimit.ResponseConfig{Headers: everyForm, ExposeHeaders: true, Hide: hide}
						})
						f.resolver.OnExport = func(ctx context.Context, rows int) error { return ratelimit.Charge(ctx, "exports", int64(rows)) }
						return f
					}
					trial, before := under(fmt.Sprintf(onTrial, mode)), under(withoutTrial)
					for i, r := range append([]request{{Query: `{ export(rows: 11) }`}}, trialRequests...) {
						require.Equal(t, send(before, r), send(trial, r), "request %d", i)
					}
				})
			}
		}
	}
}

func TestAClientWhoseLimitsAreAllOnTrialSeesNothing(t *testing.T) {
	t.Parallel()
	for _, tier := range []string{
		"mode: shadow, maxCost: 50, limits: {minute: {capacity: 30, per: minute}}",
		`mode: "off", maxCost: 50, limits: {minute: {capacity: 30, per: minute}}`,
		"limits: {minute: {capacity: 30, per: minute, mode: shadow}, soft: {capacity: 1, per: hour, mode: shadow, soft: true}}",
		"operations: {Query.users: {mode: shadow, maxCost: 10, limits: {minute: {capacity: 30, per: minute}}}}, users: {mode: shadow, limits: {minute: {capacity: 9, per: day}}}",
		"unlimited: true, mode: shadow",
	} {
		for name, send := range transports {
			t.Run(name+"/"+tier, func(t *testing.T) {
				t.Parallel()
				f := newFixture(t, func(cfg *ratelimit.Config) {
					cfg.Policy = policyOf(t, "{version: 1, default: p, tiers: {p: {"+tier+"}}}")
					cfg.Response = ratelimit.ResponseConfig{Headers: ratelimit.HeadersDraft10 | ratelimit.HeadersGitHub, ExposeHeaders: true}
				})
				for _, query := range []string{dear, half, half, `{ users(first: 9) { name } rateLimit { cost } }`} {
					answer := send(f, request{Query: query, User: "ann"})
					require.Contains(t, answer, `"users"`, "it runs")
					require.NotContains(t, strings.ReplaceAll(strings.ToLower(answer), `"ratelimit":null`, ""), "ratelimit")
				}
				f.store.Fail(bucket.ErrUnavailable)
				require.NotContains(t, strings.ToLower(send(f, request{Query: half})), "ratelimit", "nor while the store is away")
			})
		}
	}
}

func TestAClientOnTrialReadsWhatIsRefusedInEveryModeFromTheErrorAlone(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	f.overrideOf("shadow", bucket.Override{Blocked: true})
	blocked := f.post(request{Query: half, Tenant: "shadow"})
	require.Equal(t, ratelimitclient.CodeTenantBlocked, blocked.errorCode(t))
	require.Equal(t, http.StatusForbidden, blocked.Status)
	require.Nil(t, blocked.rateLimit(t))
	require.Equal(t, []string{"Content-Length", "Content-Type", "Date"}, slices.Sorted(maps.Keys(blocked.Header)))
}

func TestAStoredAnswerSaysOnTrialThatItIsOneAndNotItsPrice(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	keyed := request{Query: createUser, Key: testKey, Tenant: "shadow"}
	require.Nil(t, f.post(keyed).rateLimit(t))
	again := f.post(keyed)
	require.Equal(t, "true", again.Header.Get("Idempotent-Replayed"))
	require.Equal(t, map[string]any{"mode": "off", "replayed": true}, again.rateLimit(t))
}

func TestAnOverrideRecordThatEnforcesIsSeenInAShadowTier(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	enforce := bucket.Enforce
	f.overrideOf("shadow", bucket.Override{Limit: "minute", Mode: &enforce})
	seen := f.post(request{Query: half, Tenant: "shadow", Cost: "full"})
	require.Equal(t, `"minute";r=8;t=2`, seen.Header.Get("RateLimit"))
	require.Equal(t, "enforce", seen.rateLimit(t)["mode"])
	require.EqualValues(t, 22, seen.rateLimit(t)["charged"])
	require.Equal(t, http.StatusTooManyRequests, f.post(request{Query: half, Tenant: "shadow"}).Status)
}

func TestWhatWasChargedToLimitsOnTrialAloneIsNotToldAsCharged(t *testing.T) {
	t.Parallel()
	const minute = "{version: 1, default: p, tiers: {p: {limits: {requests: {unit: requests, capacity: 9, per: day}, " +
		"minute: {capacity: 100, per: minute, mode: shadow}}}}}"
	f := newFixture(t, func(cfg *ratelimit.Config) {
		cfg.Policy = policyOf(t, minute)
		cfg.Settlement.Refund = true
	})
	var decided ratelimit.Decision
	see(f.server, func(d ratelimit.Decision) { decided = d })
	signal := f.post(request{Query: `{ users(first: 20) { name } }`, Cost: "full"}).rateLimit(t)
	require.EqualValues(t, 22, decided.Charged, "the operator sees it")
	require.EqualValues(t, 0, signal["charged"])
	require.NotContains(t, signal, "refunded")
	require.Len(t, signal["limits"], 1)
}

func TestAnOperatorCanShowATrial(t *testing.T) {
	t.Parallel()
	f := newFixture(t, showShadow)
	f.post(request{Query: half, Tenant: "shadow"})
	over := f.post(request{Query: `{ users(first: 20) { name } rateLimit { remaining } }`, Tenant: "shadow"})
	require.Equal(t, `"minute";r=8;t=28`, over.Header.Get("RateLimit"))
	require.Equal(t, "shadow", over.rateLimit(t)["mode"])
	require.Equal(t, ratelimitclient.CodeRateLimited, over.rateLimit(t)["wouldRefuse"])
	require.EqualValues(t, 8, over.data(t)["rateLimit"].(map[string]any)["remaining"])
}
