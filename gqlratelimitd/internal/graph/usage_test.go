package graph_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/control"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

func TestUsageIsWhatBudgetsHaveNow(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	policy, err := tiers.Load([]byte(document), 1)
	require.NoError(t, err)
	buckets := policy.Snapshot().Rules(tiers.Subject{Tenant: "new"}, tiers.Selection{}).Buckets
	_, err = s.budgets.Take(t.Context(), bucket.Take{Tenant: "new", Buckets: buckets, Amounts: bucket.Amounts{{Unit: bucket.Points, N: 1000}}})
	require.NoError(t, err)
	const query = `{ tenant(id: "new") { usage(user: "zoe") { grade policy tier mode blocked unlimited misfit
		budgets { owner { level name } limit unit capacity overdraft refill periodMs window mode overridden }
		now: budgets { used remaining fullAt held holders heldBy { holder } } backstop { limit } } } }`
	a := s.ask("viewer", query, nil)
	require.Empty(t, a.Errors, a.Body)
	usage := a.Data["tenant"].(map[string]any)["usage"].(map[string]any)
	now := usage["now"].([]any)
	delete(usage, "now")
	require.Equal(t, []any{}, usage["backstop"], "the policy has none")
	delete(usage, "backstop")
	row := func(level, name, unit string, capacity float64) map[string]any {
		return map[string]any{
			"owner": map[string]any{"level": level, "name": name}, "limit": "minute", "unit": unit, "capacity": capacity, "overdraft": 0.0,
			"refill": capacity, "periodMs": 60000.0, "window": "NONE", "mode": "SHADOW", "overridden": false,
		}
	}
	require.Equal(t, map[string]any{
		"grade": "budget", "policy": 2.0, "tier": "free", "mode": "SHADOW", "blocked": false, "unlimited": false, "misfit": nil, "budgets": []any{
			row("TENANT", "", "points", 1000), row("USER", "zoe", "points", 100), row("OPERATION", "Mutation.*", "requests", 10),
		},
	}, usage)
	require.NotNil(t, now[0].(map[string]any)["fullAt"])
	require.Equal(t, map[string]any{"used": 0.0, "remaining": 100.0, "fullAt": nil, "held": 0.0, "holders": 0.0, "heldBy": []any{}}, now[1])
	require.Equal(t, "FORBIDDEN", s.ask("tenant-admin", query, nil).code())

	s.control, err = control.New(control.Config{Store: s.db})
	require.NoError(t, err)
	s.serve(actors())
	require.Equal(t, "UNAVAILABLE", s.ask("viewer", query, nil).code())
}

// endless is a body that never ends.
type endless struct{ read int }

func (e *endless) Read(p []byte) (int, error) {
	e.read += len(p)
	return copy(p, strings.Repeat(" ", len(p))), nil
}

func TestNothingOfAStrangerIsRead(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	for actor, want := range map[string]struct{ status, least, most int }{
		"stranger":     {http.StatusUnauthorized, 0, 0},
		"tenant-admin": {http.StatusBadRequest, 1, 1 << 20},
	} {
		body := &endless{}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/graphql", io.NopCloser(body))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Actor", actor)
		require.Equal(t, want.status, s.send(r).Status, actor)
		require.GreaterOrEqual(t, body.read, want.least, actor)
		require.LessOrEqual(t, body.read, want.most, "%s: who may not read documents sends none", actor)
	}
	large := s.post("tenant-admin", "application/json", `{"query": "{ me { subject } }", "variables": {"x": "`+strings.Repeat("x", 200<<10)+`"}}`)
	require.Equal(t, http.StatusRequestEntityTooLarge, large.Status, large.Body)
	require.Equal(t, "PAYLOAD_TOO_LARGE", large.code())
	require.Empty(t, s.post("viewer", "application/json", `{"query": "{ me { subject } }", "variables": {"x": "`+strings.Repeat("x", 200<<10)+`"}}`).Errors)
}
