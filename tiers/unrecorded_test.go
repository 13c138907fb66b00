package tiers_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

func TestAPolicySaysWhatRecordsOfPricesCannotJudge(t *testing.T) {
	t.Parallel()
	const document = `
version: 1
default: free
tiers:
  free:
    limits: {minute: {capacity: 100, per: minute}}
    operations:
      Mutation.login: {limits: {account: {unit: requests, capacity: 5, per: minute, by: email}, all: {unit: requests, capacity: 50, per: minute}}}
      Query.export: {instead: true, limits: {rows: {unit: requests, capacity: 5, per: minute}}}
`
	s, err := tiers.Load([]byte(document), 1)
	require.NoError(t, err)
	require.Equal(t, []string{`tiers.free.operations["Mutation.login"].limits.account`, `tiers.free.operations["Query.export"].instead`}, s.Unrecorded(tiers.Recorded{}))
	require.Equal(t, []string{`tiers.free.operations["Mutation.login"].limits.account`}, s.Unrecorded(tiers.Recorded{Parts: true}))
	require.Equal(t, []bucket.Unit{bucket.Points, bucket.Requests}, s.Counted())

	s, err = tiers.Load([]byte(document+"tenants:\n  acme: {operations: {Mutation.pay: {limits: {card: {unit: requests, capacity: 1, per: minute, by: card}}}}}\n"), 1)
	require.NoError(t, err)
	require.Equal(t, "tenants", s.Unrecorded(tiers.Recorded{})[2])
}

func TestAPolicySaysWhichOfItsKeysRecordsCannotJudge(t *testing.T) {
	t.Parallel()
	const document = `
version: 1
default: free
parameters: {lang: {header: x-lang}, plan: {claim: plan}}
tiers:
  free:
    limits: {minute: {capacity: 100, per: minute}}
    operations:
      Query.export: {instead: true, limits: {rows: {unit: requests, capacity: 5, per: minute}}}
      Query.matrix: {units: {elements: [rows]}, limits: {rows: {unit: elements, capacity: 5, per: minute}}}
custom:
  lang:en: {limits: {minute: {capacity: 5, per: minute}}}
  plan:gold: {across: true, limits: {minute: {capacity: 5, per: minute}}}
  lang:de,user:ann: {limits: {minute: {capacity: 5, per: minute}}}
`
	s, err := tiers.Load([]byte(document), 1)
	require.NoError(t, err)
	require.Equal(t, []string{
		`tiers.free.operations["Query.export"].instead`, "parameters.lang", "parameters.plan", `custom["lang:de,user:ann"]`, `custom["plan:gold"]`,
	}, s.Unrecorded(tiers.Recorded{}))
	require.Equal(t, []string{`tiers.free.operations["Query.export"].instead`, `custom["plan:gold"]`}, s.Unrecorded(tiers.Recorded{
		Parts: true, Users: true, Parameters: []string{"claim:plan", "header:X-Lang"},
	}), "work that is computed is known for the whole operation alone")
	s, err = tiers.Load([]byte(document+"tenants: {acme: {custom: {\"lang:fr,user:bob\": {limits: {minute: {capacity: 5, per: minute}}}}}}\n"), 1)
	require.NoError(t, err)
	known := tiers.Recorded{Parts: true, Parameters: []string{"claim:plan", "header:X-Lang"}}
	require.Contains(t, s.Unrecorded(known), "tenants")
	known.Users = true
	require.NotContains(t, s.Unrecorded(known), "tenants")
}

type carries map[string]string

func (c carries) Parameter(p tiers.Parameter) (string, bool) {
	value, ok := c[p.String()]
	return value, ok
}

func TestWhatARequestCarriesIsNamedByItsPlaceAndNotByThePolicy(t *testing.T) {
	t.Parallel()
	s, err := tiers.Load([]byte(`
version: 1
default: free
parameters: {lang: {header: x-lang}, plan: {claim: plan}, shop: {path: 2}, n: {variable: input.n}, region: {query: r}, again: {header: X-LANG}}
tiers: {free: {limits: {minute: {capacity: 100, per: minute}}}}
custom:
  "lang:a%2Cb,n:7": {limits: {minute: {capacity: 5, per: minute}}}
tenants: {acme: {custom: {"shop:s": {limits: {minute: {capacity: 5, per: minute}}}}}}
`), 1)
	require.NoError(t, err)
	collect := func(rules tiers.Rules, subject tiers.Subject, from tiers.Parameters) map[string]string {
		found := map[string]string{}
		for p, value := range rules.Carried(subject, from) {
			found[p.String()] = value
		}
		return found
	}
	subject := tiers.Subject{Tenant: "x", Claims: &tiers.Claims{"plan": "gold", "other": "secret"}}
	rules := s.Rules(subject, tiers.Selection{})
	require.Equal(t, map[string]string{"header:X-Lang": "en", "claim:plan": "gold", "path:2": "", "variable:input.n": "", "query:r": ""},
		collect(rules, subject, carries{"header:X-Lang": "en", "header:Authorization": "secret", "path:2": strings.Repeat("x", 300)}))
	require.Empty(t, collect(tiers.Rules{}, subject, nil))

	values := func(record *tiers.Record) []string {
		var found []string
		for p, value := range s.KeyValues(record) {
			found = append(found, p.String()+"="+value)
		}
		slices.Sort(found)
		return found
	}
	require.Equal(t, []string{"header:X-Lang=a,b", "path:2=s", "variable:input.n=7"}, values(nil))
	record, err := tiers.ParseRecord([]byte(`{"custom": {"n:8": {"limits": {"minute": {"capacity": 3, "per": "minute"}}}}}`))
	require.NoError(t, err)
	require.Equal(t, []string{"variable:input.n=8"}, values(record))
	require.Empty(t, values(tiers.AssignedTo("free")))
}
