package graph_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheFleetIsToldAPageAtATimeWithItsCounts(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	a := s.ask("viewer", `{ fleet(first: 1) { newest total current stale refusing behind unread revisions { revision instances } nodes { name } pageInfo { hasNextPage } } }`, nil)
	require.Empty(t, a.Errors, a.Body)
	require.Equal(t, map[string]any{
		"newest": 2.0, "total": 2.0, "current": 1.0, "stale": 1.0, "refusing": 1.0, "behind": 1.0, "unread": 1.0,
		"revisions": []any{map[string]any{"revision": 2.0, "instances": 1.0}, map[string]any{"revision": 1.0, "instances": 1.0}},
		"nodes":     []any{map[string]any{"name": "shop-1"}}, "pageInfo": map[string]any{"hasNextPage": true},
	}, a.Data["fleet"])
	a = s.ask("viewer", `{ fleet(only: {refusing: true, state: STALE, revision: 1}, after: "shop-1") { nodes { name refused { revision cause error } } pageInfo { hasNextPage } } }`, nil)
	require.Equal(t, map[string]any{
		"nodes":    []any{map[string]any{"name": `shop-2\n`, "refused": map[string]any{"revision": 2.0, "cause": "check", "error": "no store"}}},
		"pageInfo": map[string]any{"hasNextPage": false},
	}, a.Data["fleet"], a.Body)
	a = s.ask("viewer", `{ relay { leads holder failure refused { kind name error } unmanaged } }`, nil)
	require.Equal(t, map[string]any{
		"leads": true, "holder": "here", "failure": nil, "unmanaged": 0.0,
		"refused": []any{map[string]any{"kind": "overrides", "name": "acme", "error": "too many"}},
	}, a.Data["relay"], a.Body)
}

func TestTheIndexOfOverridesHasPages(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	for _, tenant := range []string{"b", "c"} {
		a := s.ask("operator", `mutation($t: ID!) { setOverride(input: {tenant: $t, blocked: true, expectedRevision: 0, reason: "why"}) { managed revision } }`, map[string]any{"t": tenant})
		require.Empty(t, a.Errors, a.Body)
		require.Equal(t, true, a.Data["setOverride"].(map[string]any)["managed"])
	}
	const page = `query($after: String) { overrides(filter: {blocked: true, by: "operator"}, order: EXPIRES, first: 1, after: $after) { nodes { tenant managed replaced found } next pageInfo { hasNextPage } } }`
	var tenants []any
	for after := any(nil); ; {
		a := s.ask("viewer", page, map[string]any{"after": after})
		require.Empty(t, a.Errors, a.Body)
		found := a.Data["overrides"].(map[string]any)
		require.Equal(t, found["next"] != nil, found["pageInfo"].(map[string]any)["hasNextPage"])
		tenants = append(tenants, found["nodes"].([]any)[0].(map[string]any)["tenant"])
		if after = found["next"]; after == nil {
			break
		}
	}
	require.Equal(t, []any{"b", "c"}, tenants)
}
