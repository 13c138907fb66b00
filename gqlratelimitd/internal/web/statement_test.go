package web_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/statement"
)

// frozenDays are days that are over, and of which everything is collected.
func frozenDays() (from, to time.Time) {
	today := time.Now().UTC().Truncate(24 * time.Hour)
	return today.AddDate(0, 0, -9), today.AddDate(0, 0, -5)
}

// frozenPeriod asks to freeze them.
func frozenPeriod() string {
	from, to := frozenDays()
	return "/ratelimit/statements?from=" + from.Format(time.DateOnly) + "&to=" + to.Format(time.DateOnly)
}

// counted has counts of acme in these days.
func counted(s *scene) string {
	s.Helper()
	from, _ := frozenDays()
	now := time.Now()
	require.NoError(s, s.db.Count(s.Context(), func(tx *store.UsageTx) error {
		_, err := tx.KeepUsage(store.UsageState{MinutesFrom: store.DayOf(from), MinutesUntil: store.DayOf(now) + 1})
		require.NoError(s, err)
		_, err = tx.PutUsage([]store.UsageCount{
			{Tenant: "acme", Minute: from.Unix() / 60, Unit: "points", Charged: 50, GivenBack: 8},
			{Tenant: "acme", Minute: from.Unix() / 60, Unit: "points", Field: "Query.a", Charged: 50, Calls: 2},
		})
		require.NoError(s, err)
		for _, minute := range []int64{from.Unix()/60 - 60, now.Unix()/60 - 1} {
			require.NoError(s, tx.PutUsagePass("told", minute))
			require.NoError(s, tx.PutUsagePass("search", minute))
		}
		return nil
	}))
	for found := 1; found > 0; {
		require.NoError(s, s.db.Count(s.Context(), func(tx *store.UsageTx) (err error) {
			found, err = tx.RollUp(now.Add(time.Minute), store.MaxPage)
			return err
		}))
	}
	return ""
}

// frozen has a statement of them.
func frozen(s *scene) string {
	s.Helper()
	counted(s)
	s.want(http.StatusOK, s.ask(http.MethodPost, "/v1/orgs/acme"+frozenPeriod(), s.admin, because(), ""))
	return ""
}

func TestAStatementIsServedWithItsNumbersAndAsTheTextThatWasSigned(t *testing.T) {
	t.Parallel()
	s := newScene(t, plenty).start()
	counted(s)
	var made struct{ Statements []map[string]any }
	s.read(s.want(http.StatusOK, s.ask(http.MethodPost, "/v1"+frozenPeriod(), s.admin, because(), "")), &made)
	require.Len(t, made.Statements, 1)
	require.Equal(t, true, made.Statements[0]["new"])
	const path = "/v1/orgs/acme/ratelimit/statements"
	_, tenant := s.issue(s.admin, "theirs", []string{"acme"}, access.Viewer)
	text := s.want(http.StatusOK, s.ask(http.MethodGet, path+"/1?format=text", tenant, nil, ""))
	require.Equal(t, "text/plain; charset=utf-8", text.Header.Get("Content-Type"))
	require.Equal(t, text.body, s.ask(http.MethodGet, path+"/1", tenant, header{"Accept": "text/plain"}, "").body)
	signed, _, err := statement.Open([]byte(text.body), s.public)
	require.NoError(t, err)
	var told map[string]any
	s.read(s.want(http.StatusOK, s.ask(http.MethodGet, path+"/1", tenant, nil, "")), &told)
	require.Equal(t, text.body, told["signed"])
	require.Equal(t, signed.Hash().String(), told["hash"])
	require.Equal(t, []any{
		map[string]any{"unit": "points", "grade": "exact", "charged": 50., "givenBack": 8., "net": 42.},
		map[string]any{"unit": "points", "field": "Query.a", "grade": "exact", "charged": 50., "givenBack": 0., "net": 50., "calls": 2.},
	}, told["lines"])
	var list struct{ Statements []map[string]any }
	s.read(s.want(http.StatusOK, s.ask(http.MethodGet, path, tenant, nil, "")), &list)
	require.Len(t, list.Statements, 1)
	s.read(s.want(http.StatusOK, s.ask(http.MethodGet, path+"?below=1", tenant, nil, "")), &list)
	require.Empty(t, list.Statements)
	s.problem(http.StatusForbidden, s.ask(http.MethodGet, "/v1/ratelimit/statements", tenant, nil, ""))
	_, other := s.issue(s.admin, "others", []string{"globex"}, access.Viewer)
	s.problem(http.StatusForbidden, s.ask(http.MethodGet, path+"/1", other, nil, ""))
	s.problem(http.StatusNotFound, s.ask(http.MethodGet, "/v1/orgs/globex/ratelimit/statements/1", other, nil, ""))
}

// statementAttempts are requests about statements.
func (s *scene) statementAttempts() []attempt {
	const org, all = "/v1/orgs/{org}/ratelimit/statements", "/v1/ratelimit/statements"
	counted(s)
	acme := "/v1/orgs/acme/ratelimit/statements"
	return []attempt{
		{status: 200, route: "POST " + org, path: "/v1/orgs/acme" + frozenPeriod(), h: because()},
		{status: 400, route: "POST " + org, path: acme + "?nothing=1", h: because()},
		{status: 422, route: "POST " + org, path: acme + "?month=2026-13", h: because()},
		{status: 200, route: "POST " + all, path: "/v1" + frozenPeriod(), h: because()},
		{status: 400, route: "POST " + all, path: "?limit=x", h: because()},
		{status: 422, route: "POST " + all, h: because()},
		{status: 400, route: "POST " + org, path: acme + "?incomplete=perhaps", h: because()},
		{status: 200, route: "GET /v1/ratelimit/freezing"},
		{status: 400, route: "GET /v1/ratelimit/freezing", path: "?x=1"},
		{status: 200, route: "GET " + org, path: acme},
		{status: 400, route: "GET " + org, path: acme + "?below=x"},
		{status: 200, route: "GET " + all},
		{status: 400, route: "GET " + all, path: "?limit=1001"},
		{status: 200, route: "GET " + org + "/{number}", path: acme + "/1"},
		{status: 400, route: "GET " + org + "/{number}", path: acme + "/x"},
		{status: 404, route: "GET " + org + "/{number}", path: acme + "/2"},
	}
}
