package web_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/web"
)

const (
	record      = "/v1/tenants/acme"
	allocations = record + "/allocations"
	assigned    = `{"tier": "free", "limits": {"minute": {"capacity": 7000, "per": "minute"}}}`
	allocated   = `{"teams": {"apps": {"minute": {"capacity": 600, "per": "minute"}}}}`
)

// recorded writes a record of acme.
func recorded(s *scene) string {
	s.Helper()
	s.want(http.StatusOK, s.ask(http.MethodPut, record, s.admin, first, assigned))
	return ""
}

// recordAttempts are requests for the statuses of the routes of records.
func recordAttempts() []attempt {
	const one, divided = "/v1/tenants/{org}", "/v1/tenants/{org}/allocations"
	const get, put, remove, set = "GET " + one, "PUT " + one, "DELETE " + one, "PUT " + divided
	hugeJSON := `"` + strings.Repeat("x", web.MaxJSON) + `"`
	return []attempt{
		{status: 200, route: "GET /v1/tenants"},
		{status: 400, route: "GET /v1/tenants", path: "?limit=1001"},
		{status: 404, route: get, path: record},
		{status: 404, route: remove, path: record, h: on(`"1"`)},
		{status: 400, route: put, path: record + "?oversubscribe=perhaps", h: first, body: assigned},
		{status: 412, route: put, path: record, h: on(`"9000"`), body: assigned},
		{status: 413, route: put, path: record, h: first, body: hugeJSON},
		{status: 422, route: put, path: record, h: first, body: `{"tier": "gold"}`},
		{status: 428, route: put, path: record, h: because(), body: assigned},
		{status: 400, route: set, path: allocations, h: first, body: `{"team": {}}`},
		{status: 412, route: set, path: allocations, h: on(`"9000"`), body: allocated},
		{status: 413, route: set, path: allocations, h: first, body: hugeJSON},
		{status: 422, route: set, path: allocations, h: first, body: `{"teams": {"apps": {"minute": {"capacity": 1001, "per": "minute"}}}}`},
		{status: 428, route: set, path: allocations, h: because(), body: allocated},
		{status: 200, route: set, path: allocations, h: first, body: allocated},
		{status: 200, route: get, path: record},
		{status: 400, route: get, path: record + "?form=other"},
		{status: 400, route: remove, path: record, h: on("x")},
		{status: 412, route: remove, path: record, h: on(`"9000"`)},
		{status: 422, route: remove, path: record, h: header{"If-Match": `"3"`}},
		{status: 428, route: remove, path: record, h: because()},
		{status: 200, route: remove, path: record, h: on(`"3"`)},
		{status: 200, route: put, path: record, h: first, body: assigned},
	}
}

// recordOut is a record as clients read it.
type recordOut struct {
	Tenant, By, Reason string
	Revision           uint64
	Document           json.RawMessage
	Allocations        json.RawMessage
	Oversubscribe      bool
	Warnings           []string
}

// wrote reads a record that was answered, and holds its ETag to it.
func (s *scene) wrote(a answer) (out recordOut) {
	s.Helper()
	s.read(s.want(http.StatusOK, a), &out)
	require.Equal(s, web.Tag(out.Revision), a.Header.Get("ETag"))
	return out
}

func TestRecords(t *testing.T) {
	t.Parallel()
	t.Run("keep allocations and say what they replace", func(t *testing.T) {
		t.Parallel()
		s := newScene(t, plenty).start().publish()
		_, admin := s.issue(s.admin, "theirs", []string{"acme"}, access.Operator)
		put := s.wrote(s.ask(http.MethodPut, record, s.admin, first, assigned))
		require.JSONEq(t, assigned, string(put.Document))
		divided := s.wrote(s.ask(http.MethodPut, allocations, admin, on(web.Tag(put.Revision)), allocated))
		require.JSONEq(t, allocated, string(divided.Allocations))
		require.JSONEq(t, assigned, string(divided.Document))

		p := s.problem(http.StatusPreconditionFailed, s.ask(http.MethodPut, record, s.admin, on(web.Tag(put.Revision)), assigned))
		require.Equal(t, divided.Revision, *p.Current)
		require.True(t, strings.HasPrefix(p.By, "theirs"), p.By)
		less := s.wrote(s.ask(http.MethodPut, record, s.admin, on(web.Tag(divided.Revision)), `{"limits": {"minute": {"capacity": 500, "per": "minute"}}}`))
		require.JSONEq(t, allocated, string(less.Allocations))
		require.Len(t, less.Warnings, 1, "they come to more than is left")
		permitted := s.wrote(s.ask(http.MethodPut, record+"?oversubscribe=true", s.admin, on(web.Tag(less.Revision)), `{"tier": "free"}`))
		require.True(t, permitted.Oversubscribe)
		require.Empty(t, permitted.Warnings)

		s.wrote(s.ask(http.MethodDelete, record, s.admin, on(web.Tag(permitted.Revision)), ""))
		s.problem(http.StatusNotFound, s.ask(http.MethodGet, record, admin, nil, ""))
		s.problem(http.StatusForbidden, s.ask(http.MethodPut, record, admin, first, assigned))
	})
	t.Run("are read by page", func(t *testing.T) {
		t.Parallel()
		s := newScene(t, plenty).start().publish()
		for _, tenant := range []string{"b", "a%2Fb", "c"} {
			s.wrote(s.ask(http.MethodPut, "/v1/tenants/"+tenant, s.admin, first, assigned))
		}
		require.Equal(t, "a/b", s.wrote(s.ask(http.MethodGet, "/v1/tenants/a%2Fb", s.admin, nil, "")).Tenant)
		var names []string
		for after := ""; len(names) < 4; {
			var page struct{ Tenants []recordOut }
			s.read(s.want(http.StatusOK, s.ask(http.MethodGet, "/v1/tenants?limit=2&after="+after, s.admin, nil, "")), &page)
			if len(page.Tenants) == 0 {
				break
			}
			for _, one := range page.Tenants {
				names = append(names, one.Tenant)
			}
			after = names[len(names)-1]
		}
		require.Equal(t, []string{"a/b", "b", "c"}, names)
	})
}
