package e2e_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

const (
	// half costs 22 points.
	half = `{ users(first: 20) { name } }`
	// dear costs 62 points.
	dear = `{ users(first: 60) { name } }`
)

func TestARefusalNamesTheLevelTheOwnerAndTheLimit(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	byAlice := request{Query: half, Tenant: "levels", Team: "search", User: "alice"}
	require.Equal(t, http.StatusOK, f.post(byAlice).Status)
	golden(t, "post-user-refused", f.post(byAlice).transcript())

	byBob := request{Query: half, Tenant: "levels", Team: "search", User: "bob"}
	require.Equal(t, http.StatusOK, f.post(byBob).Status)
	byCarol := request{Query: half, Tenant: "levels", Team: "search", User: "carol"}
	golden(t, "post-team-refused", f.post(byCarol).transcript())

	reply := f.post(request{Query: half, Tenant: "levels"})
	require.Equal(t, http.StatusOK, reply.Status)
	require.EqualValues(t, 100-3*22, reply.rateLimit(t)["remaining"], "two of the team and this one: refusals charge nobody")
}

func TestWarnRunsTheOperationAndTellsTheClientTheDay(t *testing.T) {
	t.Parallel()
	i := &instruments{t: t}
	f := newFixture(t, i.configure)
	first := f.post(request{Query: half, Tenant: "warned"})
	require.Nil(t, first.rateLimit(t)["warning"])
	require.Empty(t, first.Header.Get("RateLimit-Warning"))

	over := f.post(request{Query: half, Tenant: "warned"})
	require.Equal(t, http.StatusOK, over.Status)
	require.Empty(t, over.errorCode(t))
	require.Equal(t, `RATE_LIMITED;limit="minute";enforced-from=@4951756800`, over.Header.Get("RateLimit-Warning"))
	require.EqualValues(t, 8, over.rateLimit(t)["remaining"], "what would be refused is left uncharged")
	require.Subset(t, over.rateLimit(t)["warning"], map[string]any{
		"code": ratelimitclient.CodeRateLimited, "limit": "minute", "level": "tenant", "unit": "points", "enforcedFrom": "2126-12-01",
	})

	tooExpensive := f.post(request{Query: dear, Tenant: "warned"})
	require.Equal(t, http.StatusOK, tooExpensive.Status)
	require.Equal(t, `COST_LIMIT_EXCEEDED;enforced-from=@4951756800`, tooExpensive.Header.Get("RateLimit-Warning"))
	require.Subset(t, tooExpensive.rateLimit(t)["warning"], map[string]any{
		"code": ratelimitclient.CodeCostLimitExceeded, "cost": 62.0, "maxCost": 50.0, "enforcedFrom": "2126-12-01",
	})
	require.Equal(t, map[string]float64{"admitted": 1, "warned": 2}, i.sums("ratelimit.decisions", "ratelimit.outcome"))
}

func TestWithoutHeadersAWarningStandsInTheAnswerOnly(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(cfg *ratelimit.Config) { cfg.Response.Headers = ratelimit.HeadersNone })
	reply := f.post(request{Query: dear, Tenant: "warned"})
	require.NotNil(t, reply.rateLimit(t)["warning"])
	require.Empty(t, reply.Header.Get("RateLimit-Warning"))
}

// sourceAt is a policy as it holds at a time.
type sourceAt struct {
	snapshot *tiers.Snapshot
	now      *time.Time
}

func (s sourceAt) Snapshot() *tiers.Snapshot { return s.snapshot.At(*s.now) }

func TestAWarningIsARefusalFromItsDayOn(t *testing.T) {
	t.Parallel()
	day := time.Date(2126, time.December, 1, 0, 0, 0, 0, time.UTC)
	now := day.Add(-time.Second)
	f := newFixture(t, func(cfg *ratelimit.Config) { cfg.Policy = sourceAt{compiledPolicy(t), &now} })
	f.post(request{Query: half, Tenant: "warned"})
	require.Equal(t, http.StatusOK, f.post(request{Query: half, Tenant: "warned"}).Status)
	now = day
	refused := f.post(request{Query: half, Tenant: "warned"})
	require.Equal(t, http.StatusTooManyRequests, refused.Status)
	require.EqualValues(t, 8, refused.rateLimit(t)["remaining"], "what was spent before counts")
	require.Empty(t, refused.Header.Get("RateLimit-Warning"))
}

func TestAWarningNamesTheFirstDayOnWhichTheOperationIsRefused(t *testing.T) {
	t.Parallel()
	day := time.Date(2126, time.December, 1, 0, 0, 0, 0, time.UTC)
	const dated = `RATE_LIMITED;limit="minute";enforced-from=@4951756800`
	const minute = `minute: {capacity: 30, per: minute, mode: warn, enforceFrom: 2126-12-01}}}`
	for _, test := range []struct{ name, tier, query, warning string }{
		{
			name: "a smaller maximum without a day", query: dear, warning: `COST_LIMIT_EXCEEDED;enforced-from=@4951756800`,
			tier: `{maxCost: 30, mode: warn, operations: {Query.users: {maxCost: 50, mode: warn, enforceFrom: 2126-12-01}}}`,
		},
		{
			name: "an equal maximum without a day", query: dear, warning: `COST_LIMIT_EXCEEDED;enforced-from=@4951756800`,
			tier: `{maxCost: 50, mode: warn, operations: {Query.users: {maxCost: 50, mode: warn, enforceFrom: 2126-12-01}}}`,
		},
		{
			name: "a longer wait from a later day on", query: half, warning: dated,
			tier: `{mode: warn, limits: {day: {capacity: 30, per: day, mode: warn, enforceFrom: 2130-12-01}, ` + minute,
		},
		{
			name: "a longer wait without a day", query: half, warning: dated,
			tier: `{mode: warn, limits: {day: {capacity: 30, per: day}, ` + minute,
		},
		{
			name: "a maximum without a day before a limit", query: half, warning: dated,
			tier: `{maxCost: 10, mode: warn, limits: {` + minute,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			now := day.Add(-time.Hour)
			snapshot := policyOf(t, "{version: 1, default: pro, tiers: {pro: "+test.tier+"}}")
			f := newFixture(t, func(cfg *ratelimit.Config) { cfg.Policy = sourceAt{snapshot, &now} })
			f.post(request{Query: test.query})
			require.Equal(t, test.warning, f.post(request{Query: test.query}).Header.Get("RateLimit-Warning"))
			now = day
			require.NotEqual(t, http.StatusOK, f.post(request{Query: test.query}).Status)
		})
	}
}

// ofLimits returns what each limit in the answer has under the key, nil where it is absent.
func (r reply) ofLimits(t *testing.T, key string) map[string]any {
	t.Helper()
	values := make(map[string]any)
	list, _ := r.rateLimit(t)["limits"].([]any)
	for _, limit := range list {
		fields, _ := limit.(map[string]any)
		name, _ := fields["name"].(string)
		values[name] = fields[key]
	}
	return values
}

func TestALimitSaysItsModeUnlessItIsEnforced(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(cfg *ratelimit.Config) {
		showShadow(cfg)
		cfg.Policy = policyOf(t, `{version: 1, default: pro, tiers: {pro: {limits: {
			minute: {capacity: 50, per: minute}, hour: {capacity: 30, per: hour, mode: warn}, day: {capacity: 30, per: day, mode: shadow},
			soft: {capacity: 30, per: day, soft: true}}}}}`)
	})
	modes := func(reply reply) map[string]any { return reply.ofLimits(t, "mode") }
	f.post(request{Query: half, Tenant: "free"})
	over := f.post(request{Query: half, Tenant: "free"})
	require.Equal(t, http.StatusOK, over.Status)
	require.Equal(t, map[string]any{"minute": nil, "hour": true, "day": true, "soft": true}, over.ofLimits(t, "exceeded"))
	require.Equal(t, map[string]any{"minute": nil, "hour": "warn", "day": "shadow", "soft": nil}, modes(over))
	require.Equal(t, map[string]any{"minute": nil, "hour": nil, "day": nil, "soft": true}, over.ofLimits(t, "soft"))

	enforce, warn := bucket.Enforce, bucket.Warn
	f.override(bucket.Override{Limit: "minute", Mode: &warn})
	f.override(bucket.Override{Limit: "hour", Mode: &enforce})
	over = f.post(request{Query: half, Tenant: "free"})
	require.Equal(t, http.StatusTooManyRequests, over.Status)
	require.Equal(t, map[string]any{"minute": "warn", "hour": nil, "day": "shadow", "soft": nil}, modes(over), "a record has changed them")
}

func TestAShadowLimitNeverStarvesAnEnforcedOne(t *testing.T) {
	t.Parallel()
	policy, err := tiers.Parse([]byte(`
version: 1
default: pro
tiers:
  pro:
    limits:
      minute: {capacity: 50, per: minute}
      requests: {unit: requests, capacity: 1, per: minute, mode: shadow}
      hour: {capacity: 30, per: hour, mode: warn}
`))
	require.NoError(t, err)
	snapshot, err := tiers.Compile(policy)
	require.NoError(t, err)
	f := newFixture(t, func(cfg *ratelimit.Config) {
		showShadow(cfg)
		cfg.Policy = snapshot
	})
	remaining := func(reply reply) map[string]any { return reply.ofLimits(t, "remaining") }
	f.post(request{Query: half})
	second := f.post(request{Query: half})
	require.Equal(t, map[string]any{"minute": 6.0, "requests": 0.0, "hour": 8.0}, remaining(second))
	require.NotNil(t, second.rateLimit(t)["warning"], "the client is told what is in mode warn, not what is in shadow")
	refused := f.post(request{Query: half})
	require.Equal(t, http.StatusTooManyRequests, refused.Status)
	require.Equal(t, remaining(second), remaining(refused), "a refusal writes nothing anywhere")
}

func TestAWarningGoesBeforeWhatIsInShadow(t *testing.T) {
	t.Parallel()
	policy, err := tiers.Compile(tiers.Policy{Default: "pro", Tiers: map[string]tiers.Tier{"pro": {
		Mode: "warn", Limits: map[string]*tiers.Limit{"minute": {Capacity: 30, Per: tiers.Minute}},
		Operations: map[string]tiers.OperationRule{"Query.users": {Mode: "shadow", MaxCost: 10}},
	}}})
	require.NoError(t, err)
	f := newFixture(t, func(cfg *ratelimit.Config) {
		showShadow(cfg)
		cfg.Policy = policy
	})
	first := f.post(request{Query: half})
	require.Equal(t, ratelimitclient.CodeCostLimitExceeded, first.rateLimit(t)["wouldRefuse"])
	require.Nil(t, first.rateLimit(t)["warning"])
	second := f.post(request{Query: half})
	require.Equal(t, ratelimitclient.CodeRateLimited, second.rateLimit(t)["wouldRefuse"])
	require.Equal(t, `RATE_LIMITED;limit="minute"`, second.Header.Get("RateLimit-Warning"))
}

func TestNoOverrideRecordIsStricterThanTheSwitchOfTheOperator(t *testing.T) {
	t.Parallel()
	var emergency *tiers.ModeSwitch
	f := newFixture(t, func(cfg *ratelimit.Config) {
		emergency = tiers.NewModeSwitch(cfg.Policy)
		cfg.Policy = emergency
	})
	enforce := bucket.Enforce
	f.override(bucket.Override{Limit: "minute", Mode: &enforce})
	f.post(request{Query: dear})
	require.Equal(t, http.StatusTooManyRequests, f.post(request{Query: dear}).Status)
	for _, mode := range []bucket.Mode{bucket.Warn, bucket.Shadow, bucket.Off} {
		emergency.AtMost(mode)
		require.Equal(t, http.StatusOK, f.post(request{Query: dear}).Status, mode)
	}
	emergency.AtMost(bucket.Enforce)
	require.Equal(t, http.StatusTooManyRequests, f.post(request{Query: dear}).Status)
}

func TestAnOperatorLetsEverybodyThroughAtOnce(t *testing.T) {
	t.Parallel()
	var emergency *tiers.ModeSwitch
	f := newFixture(t, func(cfg *ratelimit.Config) {
		showShadow(cfg)
		emergency = tiers.NewModeSwitch(cfg.Policy)
		cfg.Policy = emergency
	})
	f.post(request{Query: dear})
	require.Equal(t, http.StatusTooManyRequests, f.post(request{Query: dear}).Status)
	emergency.AtMost(bucket.Shadow)
	eased := f.post(request{Query: dear})
	require.Equal(t, http.StatusOK, eased.Status)
	require.Equal(t, ratelimitclient.CodeRateLimited, eased.rateLimit(t)["wouldRefuse"])
	emergency.AtMost(bucket.Off)
	f.store.Fail(bucket.ErrUnavailable)
	require.Equal(t, http.StatusOK, f.post(request{Query: dear}).Status, "the store is not asked")
	f.store.Fail(nil)
	emergency.AtMost(bucket.Enforce)
	require.Equal(t, http.StatusTooManyRequests, f.post(request{Query: dear}).Status)
}

func TestWhatIsAboutNoLimitIsRefusedInEveryMode(t *testing.T) {
	t.Parallel()
	for _, mode := range []bucket.Mode{bucket.Enforce, bucket.Shadow, bucket.Off} {
		f := newFixture(t, func(cfg *ratelimit.Config) {
			emergency := tiers.NewModeSwitch(cfg.Policy)
			emergency.AtMost(mode)
			cfg.Policy = emergency
			cfg.Subject = func(ctx context.Context, r *ratelimit.Request) (ratelimit.Subject, error) {
				if r.Header.Get("X-Tenant") == "nobody" {
					return ratelimit.Subject{}, ratelimit.ErrNoSubject
				}
				return byTenantHeader(ctx, r)
			}
		})
		keyed := request{Query: createUser, Key: testKey}
		require.Equal(t, http.StatusOK, f.post(keyed).Status, mode)
		for name, c := range map[string]struct {
			asked request
			code  string
		}{
			"unknown":                  {request{Query: cheapQuery, Tenant: "nobody"}, ratelimitclient.CodeSubjectUnknown},
			"blocked":                  {request{Query: cheapQuery, Tenant: "blocked"}, ratelimitclient.CodeTenantBlocked},
			"a malformed key":          {request{Query: createUser, Key: "short"}, ratelimitclient.CodeKeyInvalid},
			"a key of something else":  {request{Query: cheapQuery, Key: testKey}, ratelimitclient.CodeKeyReused},
			"validate without a right": {request{Query: cheapQuery, Cost: "validate"}, ratelimitclient.CodeCostRequestForbidden},
			"no word":                  {request{Query: cheapQuery, Cost: "nonsense"}, ratelimitclient.CodeCostRequestInvalid},
		} {
			require.Equal(t, c.code, f.post(c.asked).errorCode(t), "%v: %s", mode, name)
		}
		f.store.Fail(bucket.ErrUnavailable)
		require.Equal(t, ratelimitclient.CodeUnavailable, f.post(keyed).errorCode(t), mode)
		require.Equal(t, http.StatusOK, f.post(request{Query: createUser}).Status, "%v: without a key the fail mode decides", mode)
	}
}
