package e2e_test

import (
	"context"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/cost"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// askingPolicy has a tier for each thing that a client may ask about prices. Tenants are named after
// their tier.
func askingPolicy(t *testing.T) *tiers.Snapshot {
	t.Helper()
	limits := map[string]*tiers.Limit{"minute": {Capacity: 100, Per: tiers.Minute}}
	snapshot, err := tiers.Compile(tiers.Policy{
		Default: "nothing",
		Tiers: map[string]tiers.Tier{
			"nothing": {Limits: limits, MaxCost: 50},
			"report":  {Limits: limits, MaxCost: 50, CostReport: true},
			"both":    {Limits: limits, MaxCost: 50, CostReport: true, CostValidate: true},
			"off":     {Limits: limits, MaxCost: 50, CostValidate: true, Mode: "off"},
			"blocked": {Blocked: true, CostValidate: true},
		},
		Tenants: map[string]tiers.Exception{
			"report": {Tier: "report"}, "both": {Tier: "both"}, "off": {Tier: "off"}, "blocked": {Tier: "blocked"},
		},
	})
	require.NoError(t, err)
	return snapshot
}

func newAskingFixture(t *testing.T) *fixture {
	t.Helper()
	return newFixture(t, func(cfg *ratelimit.Config) { cfg.Policy = askingPolicy(t) })
}

const asked = `query ($n: Int!) { search(first: $n) { ... on User { friends(first: 2) { name } } ... on Repository { name } } }`

func TestWhatAClientAsksAboutAPriceIsAnsweredOnEveryTransport(t *testing.T) {
	t.Parallel()
	r := request{Query: asked, Variables: map[string]any{"n": 3}, Tenant: "both"}
	for name, send := range map[string]func(*fixture, request) string{
		"post": func(f *fixture, r request) string { return f.post(r).transcript() },
		"sse":  func(f *fixture, r request) string { return f.sse(r).transcript() },
		"websocket": func(f *fixture, r request) string {
			return indented(strings.Join(f.dial(r.tenant(), nil).run("1", r), "\n"))
		},
	} {
		for _, word := range []string{"full", "report", "validate"} {
			t.Run(name+"/"+word, func(t *testing.T) {
				t.Parallel()
				f, r := newAskingFixture(t), r
				r.Cost = word
				golden(t, "asked-"+name+"-"+word, send(f, r))
				ran := int64(1)
				if word == "validate" {
					ran = 0
				}
				require.Equal(t, ran, f.resolver.Asked.Load())
			})
		}
	}
}

func TestValidateNeitherRunsNorChargesNorUsesTheKey(t *testing.T) {
	t.Parallel()
	f := newAskingFixture(t)
	mutation := request{Query: `mutation { createUser(input: {name: "Grace"}) { id } }`, Tenant: "both", Key: testKey}
	dry := mutation
	dry.Cost = "Validate"
	reply := f.post(dry)
	require.Equal(t, http.StatusOK, reply.Status)
	require.Equal(t, true, reply.rateLimit(t)["validated"])
	require.EqualValues(t, 0, reply.rateLimit(t)["charged"])
	require.Zero(t, f.resolver.Created.Load())
	require.Empty(t, f.store.Takes())

	reply = f.post(mutation)
	require.NotContains(t, reply.rateLimit(t), "replayed")
	require.EqualValues(t, 1, f.resolver.Created.Load())
}

func TestValidateSaysWhetherTheOperationCouldEverRun(t *testing.T) {
	t.Parallel()
	f := newAskingFixture(t)
	dear := request{Query: asked, Variables: map[string]any{"n": 90}, Tenant: "both", Cost: "validate"}
	reply := f.post(dear)
	require.Equal(t, http.StatusOK, reply.Status)
	require.Equal(t, ratelimitclient.CodeCostLimitExceeded, reply.rateLimit(t)["wouldRefuse"])

	dear.Query, dear.Variables = `{ page(first: 1, last: 1) { name } }`, nil
	require.Equal(t, ratelimitclient.CodeQueryLimitExceeded, f.post(dear).rateLimit(t)["wouldRefuse"])

	stream := request{Query: `subscription { ticks(count: 1) }`, Tenant: "both", Cost: "validate"}
	require.Equal(t, ratelimitclient.CodeQueryLimitExceeded, f.post(stream).rateLimit(t)["wouldRefuse"], "it needs an answer that streams")
	require.NotContains(t, f.sse(stream).Body, "wouldRefuse")

	dear.Tenant = "off"
	require.NotContains(t, f.post(dear).rateLimit(t), "wouldRefuse", "a mode that judges nothing refuses nothing")
}

func TestARefusalForItsPriceIsExplainedToWhoMayAsk(t *testing.T) {
	t.Parallel()
	f := newAskingFixture(t)
	reply := f.post(request{Query: asked, Variables: map[string]any{"n": 90}, Tenant: "report", Cost: "report"})
	require.Equal(t, ratelimitclient.CodeCostLimitExceeded, reply.errorCode(t))
	require.Contains(t, reply.rateLimit(t), "breakdown")
}

func TestOnlyWhomTheTierPermitsGetsAnAnswer(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, tenant, word string
		code               string
		status             int
		ran                int64
	}{
		{"a report that is not permitted is left out", "nothing", "report", "", http.StatusOK, 1},
		{"a dry run that is not permitted must not run", "report", "validate", ratelimitclient.CodeCostRequestForbidden, http.StatusForbidden, 0},
		{"a blocked tenant learns nothing", "blocked", "validate", ratelimitclient.CodeTenantBlocked, http.StatusForbidden, 0},
		{"a word that nobody knows must not run", "both", "dry-run", ratelimitclient.CodeCostRequestInvalid, http.StatusBadRequest, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			f := newAskingFixture(t)
			reply := f.post(request{Query: `{ me { name } }`, Tenant: test.tenant, Cost: test.word})
			require.Equal(t, test.status, reply.Status)
			require.Equal(t, test.code, reply.errorCode(t))
			require.NotContains(t, reply.rateLimit(t), "breakdown")
			if test.ran == 0 && test.tenant == "report" {
				require.NotContains(t, reply.Body, `"cost"`, "nothing tells the price")
				require.NotContains(t, reply.Body, "charged")
			}
			require.Equal(t, test.ran, f.resolver.Asked.Load())
			require.Len(t, f.store.Takes(), int(test.ran), "what does not run takes nothing")
		})
	}
}

func TestTwoWordsAreNotOne(t *testing.T) {
	t.Parallel()
	f := newAskingFixture(t)
	reply := f.post(request{
		Query: `{ me { name } }`, Tenant: "both", Header: http.Header{"Graphql-Cost": {"report", "validate"}},
	})
	require.Equal(t, ratelimitclient.CodeCostRequestInvalid, reply.errorCode(t))
}

func TestTheHeaderOfAnUpgradeAsksForNoOperation(t *testing.T) {
	t.Parallel()
	f := newAskingFixture(t)
	s := f.dial("both", http.Header{"Graphql-Cost": {"report"}})
	messages := s.run("1", request{Query: `{ me { name } }`})
	require.Contains(t, messages[0], `"name":"Ada"`)
	require.NotContains(t, messages[0], "breakdown")
}

func TestAnOperationOnAWebSocketOfAnUpgradeThatMayMeanValidateDoesNotRun(t *testing.T) {
	t.Parallel()
	for _, words := range [][]string{{"validate"}, {"dry-run"}, {"report", "validate"}} {
		f := newAskingFixture(t)
		s := f.dial("both", http.Header{"Graphql-Cost": words})
		mutation := request{Query: `mutation { createUser(input: {name: "Grace"}) { id } }`}
		messages := s.run("1", mutation)
		require.Contains(t, messages[0], ratelimitclient.CodeCostRequestInvalid, words)
		require.Contains(t, messages[0], "on a WebSocket say it in extensions.cost")
		require.Zero(t, f.resolver.Created.Load(), words)

		mutation.Cost = "report"
		require.Contains(t, s.run("2", mutation)[0], "breakdown", "an operation that says itself what it asks for runs")
		require.EqualValues(t, 1, f.resolver.Created.Load())
	}
}

func TestAnExemptSubjectMayAskWhatItsTierMay(t *testing.T) {
	t.Parallel()
	for _, tenant := range []string{"both", ""} {
		f := newFixture(t, func(cfg *ratelimit.Config) {
			cfg.Policy = askingPolicy(t)
			cfg.Subject = func(context.Context, *ratelimit.Request) (ratelimit.Subject, error) {
				return ratelimit.Subject{Tenant: tenant, Tier: "both", Exempt: true}, nil
			}
		})
		dry := f.post(request{Query: `{ me { name } }`, Cost: "validate"})
		require.Equal(t, true, dry.rateLimit(t)["validated"])
		require.Zero(t, f.resolver.Asked.Load())
		require.Contains(t, f.post(request{Query: `{ me { name } }`, Cost: "report"}).rateLimit(t), "breakdown")
		require.Nil(t, f.post(request{Query: `{ me { name } }`}).rateLimit(t))
	}
}

// A client reads of a breakdown what package cost says, in the same words. What only an operator can
// use is left out.
func TestABreakdownReadsTheSameOnTheWire(t *testing.T) {
	t.Parallel()
	left := []string{"points", "free", "approximate", "configured"}
	var compare func(at string, said, told reflect.Type)
	compare = func(at string, said, told reflect.Type) {
		for told.Kind() == reflect.Slice || told.Kind() == reflect.Pointer {
			said, told = said.Elem(), told.Elem()
		}
		if told.Kind() != reflect.Struct || said == reflect.TypeFor[cost.Cost]() {
			require.Equal(t, said.Kind(), told.Kind(), at)
			return
		}
		for i := range said.NumField() {
			name, _, _ := strings.Cut(said.Field(i).Tag.Get("json"), ",")
			if slices.Contains(left, name) {
				continue
			}
			field, found := told.FieldByName(said.Field(i).Name)
			require.True(t, found, at+"."+name)
			require.Equal(t, said.Field(i).Tag.Get("json"), field.Tag.Get("json"), at)
			compare(at+"."+name, said.Field(i).Type, field.Type)
		}
	}
	compare("breakdown", reflect.TypeFor[cost.Breakdown](), reflect.TypeFor[ratelimitclient.Breakdown]())
}

func TestACostRequestMayComeInExtensionsOverHTTP(t *testing.T) {
	t.Parallel()
	f := newAskingFixture(t)
	for _, r := range []request{
		{Extensions: map[string]any{"cost": "validate"}},
		{Extensions: map[string]any{"cost": "Validate"}, Cost: "validate "},
	} {
		r.Query, r.Tenant = createUser, "both"
		require.NotEmpty(t, f.post(r).rateLimit(t)["breakdown"])
	}
	for _, r := range []request{
		{Extensions: map[string]any{"cost": "validate"}, Cost: "report"},
		{Extensions: map[string]any{"cost": true}},
	} {
		r.Query, r.Tenant = createUser, "both"
		require.Equal(t, ratelimitclient.CodeCostRequestInvalid, f.post(r).errorCode(t))
	}
	require.Zero(t, f.resolver.Created.Load(), "effects")
}
