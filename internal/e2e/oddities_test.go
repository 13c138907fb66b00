package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/cost"
	"github.com/gqlgen-ratelimit/ratelimit/internal/testserver"
	"github.com/gqlgen-ratelimit/ratelimit/policy"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// logging is a fixture with what it logs.
func logging(t *testing.T, configure func(*ratelimit.Config)) (*fixture, *sharedLog) {
	t.Helper()
	var log sharedLog
	return newFixture(t, func(cfg *ratelimit.Config) {
		cfg.Observe.Logger = slog.New(slog.NewTextHandler(&log, nil))
		if configure != nil {
			configure(cfg)
		}
	}), &log
}

// said is how often a line of the log has the text.
func (l *sharedLog) said(text string) int { return strings.Count(l.String(), text) }

func TestATierThatThePolicyDoesNotHaveIsSaidOnce(t *testing.T) {
	t.Parallel()
	carried := "glod"
	f, log := logging(t, func(cfg *ratelimit.Config) {
		cfg.Subject = func(context.Context, *ratelimit.Request) (ratelimit.Subject, error) {
			return ratelimit.Subject{Tenant: "acme", Tier: carried}, nil
		}
	})
	for range 3 {
		f.post(request{Query: cheapQuery})
	}
	require.Equal(t, 1, log.said("a subject carries a tier that the policy does not have"))
	require.Equal(t, 1, log.said("carried=glod tier=free"))
	carried = strings.Repeat("x", 500)
	f.post(request{Query: cheapQuery})
	require.Equal(t, 2, log.said("a subject carries a tier"), "another one")
	require.NotContains(t, log.String(), strings.Repeat("x", 65))
	carried = "free"
	f.post(request{Query: cheapQuery})
	require.Equal(t, 2, log.said("a subject carries a tier"), "a tier of the policy")
}

func TestAChargeInAUnitThatNoLimitCountsIsSaidOnce(t *testing.T) {
	t.Parallel()
	f, log := logging(t, nil)
	require.Equal(t, 1, log.said("limits in these units are charged by ratelimit.Charge alone"))
	unit := bucket.Unit("export")
	f.resolver.OnExport = func(ctx context.Context, rows int) error { return ratelimit.Charge(ctx, unit, int64(rows)) }
	for range 3 {
		f.post(request{Query: `{ export(rows: 1) }`})
	}
	require.Equal(t, 1, log.said("ratelimit.Charge is given a unit that no limit of the policy counts"))
	require.Equal(t, 1, log.said("unit=export units=[exports]"))
	for _, unit = range []bucket.Unit{"exports", bucket.Points} {
		f.post(request{Query: `{ export(rows: 1) }`})
	}
	require.Equal(t, 1, log.said("ratelimit.Charge is given"))
}

func TestASizeThatIsNoNumberIsLoggedAtTheStart(t *testing.T) {
	t.Parallel()
	f, log := logging(t, func(cfg *ratelimit.Config) {
		cfg.Pricing.Cost.ListSizes = map[string]cost.ListSize{
			"Mutation.createUser": {SlicingArguments: []string{"input"}, SizedFields: []string{"friends"}},
		}
	})
	const line = "these arguments size lists and are no numbers"
	require.Equal(t, 1, log.said(line))
	require.Contains(t, log.String(), "count=1 arguments=[Mutation.createUser(input:)]")
	reply := f.post(request{Query: `mutation { createUser(input: {name: "Ada"}) { friends(first: 1) { name } } }`})
	require.Equal(t, ratelimitclient.CodeCostLimitExceeded, reply.errorCode(t), "no budget is large enough")
	require.Equal(t, 1, log.said(line))
}

func TestAnAnonymousCallerWithAKeyIsToldThatItIsIgnored(t *testing.T) {
	t.Parallel()
	anonymous := true
	f := newFixture(t, func(cfg *ratelimit.Config) {
		cfg.Subject = func(context.Context, *ratelimit.Request) (ratelimit.Subject, error) {
			return ratelimit.Subject{Tenant: "free", Anonymous: anonymous}, nil
		}
	})
	const key = "idempotencyKeyIgnored"
	require.Contains(t, f.post(request{Query: cheapQuery, Key: testKey}).rateLimit(t), key)
	require.NotContains(t, f.post(request{Query: cheapQuery}).rateLimit(t), key)
	anonymous = false
	require.NotContains(t, f.post(request{Query: cheapQuery, Key: testKey}).rateLimit(t), key)
}

func TestAnOverrideRecordThatChangesNothingIsSaidOnce(t *testing.T) {
	t.Parallel()
	f, log := logging(t, nil)
	f.override(bucket.Override{Limit: "minuet", Capacity: 500})
	f.override(bucket.Override{Limit: "minute", Capacity: 500})
	for range 3 {
		f.post(request{Query: cheapQuery})
	}
	require.Equal(t, 1, log.said("an override record changes nothing"))
	require.Equal(t, 1, log.said("limit=minuet actor=audited-actor"))
}

func TestAServerThatUsesALimiterTwiceIsToldWithEachOperation(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	f.server.Use(f.limiter)
	answer := f.post(request{Query: cheapQuery})
	require.Contains(t, answer.Body, "call srv.Use with one ratelimit.Extension, once")
	require.NotContains(t, answer.Body, "U-1", "nothing runs")
}

func TestAStoreOrPolicyWhoseErrorWasNotLookedAtIsAMistake(t *testing.T) {
	t.Parallel()
	server := newGraphQLServer(nil)
	_, err := policy.OpenFile("no-such-policy.yaml", policy.Config{})
	require.Error(t, err)
	var store *bucket.Redis
	var source *policy.Follower
	mistakes := errorOf(func() {
		server.Use(ratelimit.New(ratelimit.Config{
			Store: store, Stores: map[string]bucket.Store{"eu": store}, Policy: source, Subject: byTenantHeader,
		}))
	})
	for _, mistake := range []string{"Config.Store is nil", `Config.Stores["eu"] is nil`, "Config.Policy is nil"} {
		require.Contains(t, mistakes, mistake)
	}
}

func TestWhatIsOddAboutAPolicyIsSaidWhenItIsLoadedAgain(t *testing.T) {
	t.Parallel()
	const document = "{version: 1, default: free, tiers: {free: {limits: {minute: {capacity: 10, per: minute, unit: %s}}}}}"
	path := filepath.Join(t.TempDir(), "policy.yaml")
	require.NoError(t, os.WriteFile(path, fmt.Appendf(nil, document, "requests"), 0o600))
	file, err := policy.OpenFile(path, policy.Config{Interval: policy.None})
	require.NoError(t, err)
	_, log := logging(t, func(cfg *ratelimit.Config) { cfg.Policy = file })
	require.Zero(t, log.said("the policy is odd"))
	require.NoError(t, os.WriteFile(path, fmt.Appendf(nil, document, "request"), 0o600))
	require.NoError(t, file.Reload(t.Context()))
	require.Equal(t, 1, log.said("the policy is odd"))
	require.Contains(t, log.String(), "is requests meant?")
}

func TestThatLimitsFailLocalBeforeTheInstancesAreCountedIsSaidOnce(t *testing.T) {
	t.Parallel()
	f, log := logging(t, func(cfg *ratelimit.Config) {
		underLimits(t, "minute: {capacity: 100, per: minute, failMode: local}")(cfg)
		cfg.Outage.Instances = 0
	})
	f.store.Fail(bucket.ErrUnavailable)
	for range 2 {
		require.Equal(t, ratelimitclient.CodeUnavailable, f.post(request{Query: cheapQuery}).errorCode(t))
	}
	require.Equal(t, 1, log.said("nobody knows yet how many instances share the store"))
	require.Equal(t, 1, log.said("run limiter.Run in the background"))
}

func TestWhatCallersChooseDoesNotFillTheLog(t *testing.T) {
	t.Parallel()
	calls := 0
	f, log := logging(t, func(cfg *ratelimit.Config) {
		cfg.Subject = func(context.Context, *ratelimit.Request) (ratelimit.Subject, error) {
			calls++
			return ratelimit.Subject{Tenant: "acme", Tier: fmt.Sprint("tier", calls)}, nil
		}
	})
	for range 100 {
		f.post(request{Query: cheapQuery})
	}
	require.Equal(t, 20, log.said("a subject carries a tier"))
	require.Equal(t, 1, log.said("silentFor="))
}

func TestManyWhoUseALimiterAtOnceForOneSchemaFindItReady(t *testing.T) {
	t.Parallel()
	for range 20 {
		limiter, _ := newUnused(t)
		schema := testserver.NewExecutableSchema(testserver.Config{Resolvers: &testserver.Resolver{}})
		var all sync.WaitGroup
		errs := make([]error, 4)
		for i := range errs {
			all.Go(func() { errs[i] = limiter.Validate(schema) })
		}
		all.Wait()
		require.NoError(t, errors.Join(errs...))
	}
}

func TestWhatATierHidesIsHiddenFromTheExemptToo(t *testing.T) {
	t.Parallel()
	policy, err := tiers.Parse([]byte("{version: 1, default: free, tiers: {free: {costReport: true, hide: {cost: true}, limits: {minute: {capacity: 10, per: minute}}}}}"))
	require.NoError(t, err)
	snapshot, err := tiers.Compile(policy)
	require.NoError(t, err)
	f := newFixture(t, func(cfg *ratelimit.Config) {
		cfg.Policy = snapshot
		cfg.Subject = func(context.Context, *ratelimit.Request) (ratelimit.Subject, error) {
			return ratelimit.Subject{Tenant: "acme", Exempt: true}, nil
		}
	})
	answer := f.post(request{Query: cheapQuery, Cost: "report"})
	require.NotContains(t, answer.Body, `"cost"`)
}

func TestAnOperationRuleThatTheSchemaDoesNotHaveIsSaidOfABackstopAsOfATier(t *testing.T) {
	t.Parallel()
	const document = `{version: 1, default: free,
  backstop: {operations: {Mutation.%[1]s: {limits: {second: {capacity: 1000, per: second}}}}},
  tiers: {free: {limits: {minute: {capacity: 10000, per: minute}}, operations: {Query.%[2]s: {maxCost: 900}, Subscription.*: {maxCost: 900}, Query.__schema: {maxCost: 900}}}}}`
	path := filepath.Join(t.TempDir(), "policy.yaml")
	require.NoError(t, os.WriteFile(path, fmt.Appendf(nil, document, "createUser", "me"), 0o600))
	file, err := policy.OpenFile(path, policy.Config{Interval: policy.None})
	require.NoError(t, err)
	f, log := logging(t, func(cfg *ratelimit.Config) { cfg.Policy = file })
	require.Zero(t, log.said("the policy is odd"), log.String())
	require.NoError(t, os.WriteFile(path, fmt.Appendf(nil, document, "createUsers", "nobody"), 0o600))
	require.NoError(t, file.Reload(t.Context()), "it may be a policy for several servers")
	require.Equal(t, 2, log.said("the policy is odd"), log.String())
	const why = `: no root field of the schema matches, so that nothing falls under the rule`
	require.Equal(t, 1, log.said(`line 2, column 27: backstop.operations[\"Mutation.createUsers\"]`+why+`; is \"Mutation.createUser\" meant?"`), log.String())
	require.Equal(t, 1, log.said(`line 3, column 81: tiers.free.operations[\"Query.nobody\"]`+why+`"`), log.String())
	require.Empty(t, f.post(request{Query: cheapQuery}).errorCode(t))
}

func TestOfManyOperationRulesThatTheSchemaDoesNotHaveTenAreNamed(t *testing.T) {
	t.Parallel()
	rules := make(map[string]tiers.OperationRule)
	for i := range 15 {
		rules[fmt.Sprintf("Query.other%d", i)] = tiers.OperationRule{MaxCost: 5}
	}
	s, err := tiers.Compile(tiers.Policy{Version: 1, Default: "free", Tiers: map[string]tiers.Tier{"free": {Unlimited: true, Operations: rules}}})
	require.NoError(t, err)
	_, log := logging(t, func(cfg *ratelimit.Config) { cfg.Policy = s })
	require.Equal(t, 10, log.said("no root field of the schema matches"))
	require.Equal(t, 1, log.said(`warning="nothing falls under 5 more operation rules"`))
	require.Equal(t, 11, log.said("the policy is odd"))
}
