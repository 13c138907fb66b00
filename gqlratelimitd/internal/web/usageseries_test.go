package web_test

import (
	"encoding/csv"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
)

// hostile are names that a spreadsheet or a terminal would take for an order, and what is shown of them.
var hostile = map[string]string{
	`=cmd|' /C calc'!A0`: `=cmd|' /C calc'!A0`,
	"@SUM(1+1)":          "@SUM(1+1)",
	"+1":                 "+1",
	"-2+3":               "-2+3",
	"\t=1":               `\t=1`,
	"a,b\n\"c\"\r\nd":    `a,b\n"c"\r\nd`,
	// Where a comma is for decimals, cells end with a semicolon, and in East Asia formulas begin with wide signs.
	"x;=1+1;-2; @b;y":  "x;=1+1;-2; @b;y",
	"\uFF1D1+1":        "\uFF1D1+1",
	"\x1b]0;owned\x07": `\x1b]0;owned\a`,
	"\xff\x00":         `\xff\x00`,
	"rtl\u202Egnp":     `rtl\u202egnp`,
}

// used has refusals of a tenant counted in the hour before this one, and returns when that began.
func (s *scene) used(names map[string]string) time.Time {
	s.Helper()
	hour := time.Now().UTC().Truncate(time.Hour).Add(-time.Hour)
	at := hour.Unix() / 3600
	require.NoError(s, s.db.Count(s.Context(), func(tx *store.UsageTx) error {
		_, err := tx.KeepUsage(store.UsageState{HoursFrom: at - 24})
		require.NoError(s, err)
		require.NoError(s, tx.PutUsagePass(store.UsagePass{Began: at*60 - 30, Collected: (at + 1) * 60}))
		var counts []store.RefusedCount
		for name := range names {
			counts = append(counts, store.RefusedCount{Tenant: "acme", Hour: at, Name: name, Refused: 3})
		}
		_, err = tx.PutRefused(counts)
		require.NoError(s, err)
		_, err = tx.PutUsage(store.UsageHours, []store.UsageCount{{Tenant: "acme", At: at, Unit: "points", Charged: 3, GivenBack: 5}})
		return err
	}))
	return hour
}

func TestNamesOfClientsAreHarmlessInATableOfUsage(t *testing.T) {
	t.Parallel()
	s := newScene(t, plenty).start()
	hour := s.used(hostile)
	path := "/v1/orgs/acme/ratelimit/usage/series?by=limit&from=" + hour.Add(-2*time.Hour).Format(time.RFC3339) + "&to=" + hour.Add(time.Hour).Format(time.RFC3339)
	a := s.want(http.StatusOK, s.ask(http.MethodGet, path, s.admin, header{"Accept": "text/csv"}, ""))
	require.Equal(t, "text/csv; charset=utf-8; header=present", a.Header.Get("Content-Type"))
	require.Equal(t, `attachment; filename="usage.csv"`, a.Header.Get("Content-Disposition"))
	require.Equal(t, a.body, s.want(http.StatusOK, s.ask(http.MethodGet, path+"&format=csv", s.admin, nil, "")).body)
	rows, err := csv.NewReader(strings.NewReader(a.body)).ReadAll()
	require.NoError(t, err)
	require.Equal(t, []string{"begin", "end", "open", "known", "tenant", "name", "grade", "refused"}, rows[0])
	require.Equal(t, []string{"none", "", "instance", ""}, append(rows[1][3:4:4], rows[1][5:]...), "what nobody knows is no zero")
	require.Equal(t, []string{"part", "", "instance", "0"}, append(rows[2][3:4:4], rows[2][5:]...))
	shown := map[string]bool{}
	for _, row := range rows[3:] {
		require.Equal(t, []string{hour.Format(time.RFC3339), hour.Add(time.Hour).Format(time.RFC3339), "false", "all", "acme"}, row[:5])
		require.Equal(t, []string{"instance", "3"}, row[6:])
		require.NotContains(t, "=+-@\t\r", row[5][:1], row[5])
		require.False(t, strings.ContainsFunc(row[5], func(r rune) bool { return r < ' ' || r == '\u202e' }), "%q", row[5])
		for _, part := range strings.Split(row[5], ";") {
			require.NotRegexp(t, `^\s*[=+\-@\x{FF0B}\x{FF0D}\x{FF1D}\x{FF20}]`, part)
		}
		shown[strings.ReplaceAll(strings.ReplaceAll(strings.TrimPrefix(row[5], "'"), ";'", ";"), "; '", "; ")] = true
	}
	for _, name := range hostile {
		require.True(t, shown[name], name)
	}
	require.Len(t, rows, 3+len(hostile))
	head := strings.Split(s.want(http.StatusOK, s.ask(http.MethodGet, strings.Replace(path, "by=limit", "by=unit", 1)+"&format=csv", s.admin, nil, "")).body, "\n")
	require.Equal(t, "begin,end,open,known,tenant,name,grade,charged,given_back,net,calls", head[0])
	require.True(t, strings.HasSuffix(head[3], ",points,exact,3,5,-2,0"), "a number below zero is one: %s", head[3])
}

func TestAnExportOfUsageHasThePagesOfItInOneObject(t *testing.T) {
	t.Parallel()
	s := newScene(t, plenty).start()
	hour := s.used(hostile)
	path := "/v1/orgs/acme/ratelimit/usage/series?by=limit&from=" + hour.Add(-2*time.Hour).Format(time.RFC3339) + "&to=" + hour.Add(time.Hour).Format(time.RFC3339)
	type series struct {
		Tenant, Window, By, Zone, Next   string
		From, To, Since, Kept, Collected time.Time
		Rows                             []map[string]any
	}
	var whole, pages series
	require.NoError(t, json.Unmarshal([]byte(s.want(http.StatusOK, s.ask(http.MethodGet, path, s.admin, nil, "")).body), &whole))
	for after := ""; ; after = pages.Next {
		rows := pages.Rows
		pages = series{}
		s.read(s.want(http.StatusOK, s.ask(http.MethodGet, path+"&limit=2&after="+after, s.admin, nil, "")), &pages)
		if pages.Rows = append(rows, pages.Rows...); pages.Next == "" {
			break
		}
	}
	require.Equal(t, pages, whole)
	require.Equal(t, []string{"acme", "hour", "limit", "UTC"}, []string{whole.Tenant, whole.Window, whole.By, whole.Zone})
	require.Equal(t, []time.Time{hour.Add(-2 * time.Hour), hour.Add(time.Hour), hour.Add(-30 * time.Minute), hour.Add(time.Hour)}, []time.Time{whole.From, whole.To, whole.Since, whole.Collected})
	require.Len(t, whole.Rows, 2+len(hostile))
	require.Equal(t, map[string]any{"begin": hour.Add(-2 * time.Hour).Format(time.RFC3339), "end": hour.Add(-time.Hour).Format(time.RFC3339), "open": false, "known": "none", "name": "", "grade": "instance"}, whole.Rows[0])
	require.Equal(t, 3.0, whole.Rows[2]["refused"])
	empty := s.want(http.StatusOK, s.ask(http.MethodGet, "/v1/ratelimit/usage/series?window=month&from=2020-01-01T00:00:00Z&to=2020-01-01T00:00:01Z", s.admin, nil, ""))
	require.True(t, json.Valid([]byte(empty.body)), empty.body)
	p := s.problem(http.StatusBadRequest, s.ask(http.MethodGet, path+"&limit=2&format=csv", s.admin, nil, ""))
	require.Contains(t, p.Detail, "leave limit and after away for CSV")
	p = s.problem(http.StatusUnprocessableEntity, s.ask(http.MethodGet, "/v1/orgs/acme/ratelimit/usage/series?window=minute&format=csv&from=2020-01-01T00:00:00Z", s.admin, nil, ""))
	require.Contains(t, p.Detail, "ask for a shorter range, or for the window hour")
}
