package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/policy/directory"
)

// keyed has custom limits by values from each place that a request has one in.
const keyed = `
version: 1
default: free
parameters:
  lang: {header: X-Lang}
  plan: {claim: plan}
  region: {query: region}
  shop: {path: 2}
  first: {variable: page.first}
tiers:
  free: {limits: {minute: {capacity: 100, per: minute}}}
custom:
  lang:en,tenant:acme: {instead: true, limits: {minute: {capacity: 1000, per: minute}}}
  lang:de: {limits: {minute: {capacity: 30, per: minute}}}
  plan:gold: {limits: {minute: {capacity: 41, per: minute}}}
  region:a%2Cb: {limits: {minute: {capacity: 42, per: minute}}}
  shop:s-1: {limits: {minute: {capacity: 43, per: minute}}}
  first:7: {limits: {minute: {capacity: 44, per: minute}}}
  tier:free,lang:all: {across: true, limits: {minute: {capacity: 50, per: minute}}}
`

func newKeyed(t *testing.T) *fixture {
	t.Helper()
	return newFixture(t, func(cfg *ratelimit.Config) {
		cfg.Policy = policyOf(t, keyed)
		cfg.Subject = func(ctx context.Context, r *ratelimit.Request) (ratelimit.Subject, error) {
			subject, err := byTenantHeader(ctx, r)
			if r.Header.Get("X-Gold") != "" {
				subject.Claims = &ratelimit.Claims{"plan": "gold"}
			}
			return subject, err
		}
	})
}

// owners are those that the last operation was charged in.
func (f *fixture) owners() string {
	f.t.Helper()
	takes := f.store.Takes()
	require.NotEmpty(f.t, takes)
	var all []string
	for _, b := range takes[len(takes)-1].Buckets {
		all = append(all, strings.TrimSpace(b.Owner.Level.String()+" "+b.Owner.Name))
	}
	return strings.Join(all, ", ")
}

func TestACustomLimitIsFoundByWhatARequestCarries(t *testing.T) {
	t.Parallel()
	f := newKeyed(t)
	for _, test := range []struct {
		name, path string
		header     http.Header
		want       string
	}{
		{"nothing", "", nil, "tenant"},
		{"a header", "", http.Header{"X-Lang": {"de"}}, "tenant, operation lang:de"},
		{"a header that is there twice", "", http.Header{"X-Lang": {"de", "de"}}, "tenant"},
		{"a claim", "", http.Header{"X-Gold": {"1"}}, "tenant, operation plan:gold"},
		{"the query", "/?region=a%2Cb", nil, "tenant, operation region:a%2Cb"},
		{"the query twice", "/?region=a%2Cb&region=x", nil, "tenant"},
		{"the path", "/shops/s-1/graphql", nil, "tenant, operation shop:s-1"},
		{"another path", "/s-1/graphql", nil, "tenant"},
		{"a value of nobody", "/shops/s-9?region=zz", http.Header{"X-Lang": {"xx"}}, "tenant"},
	} {
		r := request{Query: "{ me { name } }", Header: test.header}
		got := f.do(http.MethodPost, f.url+test.path, r, "application/json")
		require.Equal(t, http.StatusOK, got.Status, got.Body)
		require.Equal(t, test.want, f.owners(), test.name)
	}
}

func TestACustomLimitStandsInThePlaceOfTheTenantsOnlyWhereThePolicySaysSo(t *testing.T) {
	t.Parallel()
	f := newKeyed(t)
	ask := func(tenant, lang string, first int) reply {
		return f.post(request{Query: fmt.Sprintf(`{ users(first: %d) { name } }`, first), Tenant: tenant, Header: http.Header{"X-Lang": {lang}}})
	}
	for range 9 {
		require.Equal(t, http.StatusOK, ask("acme", "en", 100).Status)
	}
	require.Equal(t, http.StatusTooManyRequests, ask("acme", "en", 100).Status, "its own budget is used up")
	require.Equal(t, http.StatusOK, ask("acme", "fr", 90).Status, "and the general one is not")
	// An attacker of another tenant tries values.
	require.Equal(t, http.StatusOK, ask("evil", "en", 90).Status)
	for _, lang := range []string{"en", "de", "en,tenant:acme", "all", "", "x"} {
		require.Equal(t, http.StatusTooManyRequests, ask("evil", lang, 20).Status, lang)
	}
	require.Equal(t, http.StatusOK, ask("evil", "de", 1).Status)
	limited := ask("other", "de", 40)
	require.Contains(t, limited.Body, `"owner":"lang:de"`, "and a key bounds who carries it")

	require.Equal(t, http.StatusOK, ask("one", "all", 40).Status)
	shared := ask("two", "all", 40)
	require.Equal(t, http.StatusTooManyRequests, shared.Status, "all tenants share it: %s", shared.Body)
	require.Equal(t, http.StatusOK, ask("two", "x", 40).Status)
}

func TestARecordOfTheDirectoryHasCustomLimits(t *testing.T) {
	t.Parallel()
	records := directory.NewMemory()
	_, err := records.Put(t.Context(), "acme", []byte(`{"custom": {"lang:fr": {"instead": true, "limits": {"minute": {"capacity": 300, "per": "minute"}}}}}`), 0)
	require.NoError(t, err)
	d, err := directory.Open(t.Context(), policyOf(t, keyed), records, directory.Config{Observe: directory.ObserveConfig{Logger: discard}})
	require.NoError(t, err)
	t.Cleanup(func() { _ = d.Close() })
	f := newFixture(t, func(cfg *ratelimit.Config) { cfg.Policy = d })
	for tenant, want := range map[string]string{"acme": "operation lang:fr", "other": "tenant"} {
		f.post(request{Query: "{ me { name } }", Tenant: tenant, Header: http.Header{"X-Lang": {"fr"}}})
		require.Equal(t, want, f.owners())
	}
}

func TestUnknownValuesMakeNoKeysInTheStore(t *testing.T) {
	t.Parallel()
	f := newKeyed(t)
	owners := map[bucket.Owner]bool{}
	for i := range 200 {
		f.do(http.MethodPost, fmt.Sprintf("%s/shops/%d?region=r%d", f.url, i, i), request{
			Query: "{ __typename }", Header: http.Header{"X-Lang": {fmt.Sprint("lang", i)}},
		}, "application/json")
	}
	for _, take := range f.store.Takes() {
		for _, b := range take.Buckets {
			owners[b.Owner] = true
		}
	}
	require.Len(t, owners, 1)
}

func TestAVariableIsReadAsItIsSpelledInAKey(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(cfg *ratelimit.Config) {
		cfg.Policy = policyOf(t, `{version: 1, default: free, parameters: {first: {variable: n}, name: {variable: input.name}},
			tiers: {free: {limits: {minute: {capacity: 1000, per: minute}}}},
			custom: {"first:7": {limits: {minute: {capacity: 44, per: minute}}}, "name:Ada": {limits: {minute: {capacity: 44, per: minute}}}}}`)
	})
	for value, want := range map[string]string{"7": "tenant, operation first:7", "8": "tenant", "null": "tenant"} {
		var n any
		require.NoError(t, json.Unmarshal([]byte(value), &n))
		f.post(request{Query: `query ($n: Int) { users(first: $n) { name } }`, Variables: map[string]any{"n": n}})
		require.Equal(t, want, f.owners(), value)
	}
	for name, want := range map[string]string{"Ada": "tenant, operation name:Ada", "ada": "tenant"} {
		f.post(request{Query: `mutation ($input: NewUser!) { createUser(input: $input) { id } }`, Variables: map[string]any{"input": map[string]any{"name": name}}})
		require.Equal(t, want, f.owners(), name)
	}
}

func TestANumberIsOneKeyInEachOfItsSpellings(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(cfg *ratelimit.Config) {
		cfg.Policy = policyOf(t, `{version: 1, default: free, parameters: {n: {variable: id}}, tiers: {free: {limits: {minute: {capacity: 1000, per: minute}}}},
			custom: {"n:1": {limits: {minute: {capacity: 44, per: minute}}}}}`)
	})
	for value, want := range map[string]string{
		`1`: "tenant, operation n:1", `1.0`: "tenant, operation n:1", `1e0`: "tenant, operation n:1", `1.5`: "tenant", `"1"`: "tenant, operation n:1", `"1.0"`: "tenant",
	} {
		got := f.post(request{
			Query: `query ($id: ID!) { matrix(origins: [$id], destinations: [$id]) }`, Variables: map[string]any{"id": json.RawMessage(value)},
		})
		require.Equal(t, http.StatusOK, got.Status, got.Body)
		require.Equal(t, want, f.owners(), value)
	}
}

func TestAHeaderThatComesTwiceIsToldOnce(t *testing.T) {
	t.Parallel()
	var log sharedLog
	f := newFixture(t, func(cfg *ratelimit.Config) {
		cfg.Policy, cfg.Observe.Logger = policyOf(t, keyed), slog.New(slog.NewTextHandler(&log, nil))
	})
	f.post(request{Query: "{ me { name } }", Header: http.Header{"X-Lang": {"de"}, "X-Other": {"a", "b"}}})
	require.NotContains(t, log.String(), "came twice")
	for _, values := range [][]string{{"de", "de"}, {"a", "secret"}, {"x", "y"}} {
		f.post(request{Query: "{ me { name } }", Header: http.Header{"X-Lang": values}})
		require.Equal(t, "tenant", f.owners())
	}
	require.Equal(t, 1, strings.Count(log.String(), "came twice"), log.String())
	require.Contains(t, log.String(), "header=X-Lang")
	require.NotContains(t, log.String(), "secret")
}
