package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	usageOfAcme = "GET /v1/orgs/acme/ratelimit/usage/series"
	usageOfAll  = "GET /v1/ratelimit/usage/series"
)

// asked is what the daemon was asked last.
func (c *control) asked(parameter string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seen[len(c.seen)-1].URL.Query().Get(parameter)
}

// byUnit is an answer with what orders to terminals look like.
const byUnit = `{"tenant": "acme", "window": "day", "by": "unit", "zone": "Europe/Berlin", "from": "2026-11-20T23:00:00Z", "to": "2026-11-24T23:00:00Z",
	"since": "2026-11-21T12:00:00Z", "kept": "2026-11-21T00:00:00Z", "collected": "2026-11-24T09:30:00Z", "counts": "none", "rows": [
	{"begin": "2026-11-20T23:00:00Z", "end": "2026-11-21T23:00:00Z", "open": false, "known": "none", "name": "", "grade": "exact"},
	{"begin": "2026-11-21T23:00:00Z", "end": "2026-11-22T23:00:00Z", "open": false, "known": "part", "name": "points", "grade": "exact", "charged": 40, "givenBack": 10, "net": 30, "calls": 0},
	{"begin": "2026-11-22T23:00:00Z", "end": "2026-11-23T23:00:00Z", "open": false, "known": "all", "name": "points", "grade": "exact", "charged": 5, "givenBack": 0, "net": 5, "calls": 0},
	{"begin": "2026-11-22T23:00:00Z", "end": "2026-11-23T23:00:00Z", "open": false, "known": "all", "name": "x\u001b[2J\r\n, y", "grade": "local", "charged": 90, "givenBack": 0, "net": 90, "calls": 0},
	{"begin": "2026-11-23T23:00:00Z", "end": "2026-11-24T23:00:00Z", "open": true, "known": "all", "name": "", "grade": "exact", "charged": 0, "givenBack": 0, "net": 0, "calls": 0}]}`

func TestUsageIsATableOfWhatIsKnown(t *testing.T) {
	t.Parallel()
	c := newControl(t)
	c.answer(usageOfAcme, http.StatusOK, nil, byUnit)
	require.Equal(t, `PERIOD      NAME        CHARGED  GIVEN BACK  NET  GRADE
2026-11-21              ?        ?           ?    exact  nobody knows
2026-11-22  points      40       10          30   exact  at least
2026-11-23  points      5        0           5    exact
2026-11-23  x?[2J??, y  90       0           90   local
2026-11-24              0        0           0    exact  open

Collected from 2026-11-21T12:00:00Z to 2026-11-24T09:30:00Z. Times are of Europe/Berlin.
By the day there is nothing from before 2026-11-21T00:00:00Z: a longer -window has it.
The policy counts nothing of acme in the step that charges: its tier has no usage: totals or fields.
`, c.want(exitOK, "usage -tenant acme -by unit -window day -last 4d"))
	for parameter, want := range map[string]string{"by": "unit", "window": "day", "format": "json", "to": ""} {
		require.Equal(t, want, c.asked(parameter), parameter)
	}
	from, err := time.Parse(time.RFC3339Nano, c.asked("from"))
	require.NoError(t, err)
	require.WithinRange(t, from, time.Now().Add(-5*24*time.Hour), time.Now().Add(-4*24*time.Hour))
	c.answer(usageOfAcme, http.StatusOK, nil, byUnit)
	told := c.want(exitOK, "usage -tenant acme -by unit -json")
	require.Contains(t, told, `"version": 1`)
	require.Contains(t, told, `"name": "x\u001b[2J\r\n, y"`)
	require.NotContains(t, told, "\x1b", "also where it is JSON")
}

func TestUsageOfAllTenantsIsByTheDayUnlessSomethingElseIsSaid(t *testing.T) {
	t.Parallel()
	c := newControl(t)
	c.answer(usageOfAll, http.StatusOK, nil, `{"window": "day", "by": "limit", "zone": "UTC", "from": "2026-11-21T00:00:00Z", "to": "2026-11-22T00:00:00Z", "kept": "2020-01-01T00:00:00Z", "rows": [
		{"begin": "2026-11-21T00:00:00Z", "end": "2026-11-22T00:00:00Z", "open": true, "known": "part", "tenant": "acme", "name": "tenant:minute", "grade": "instance", "refused": 8}]}`)
	require.Equal(t, `PERIOD      TENANT  NAME           REFUSED  GRADE
2026-11-21  acme    tenant:minute  8        instance  at least, open

Nothing was ever collected: the daemon needs -redis, and tiers that count usage.
`, c.want(exitOK, "usage -by limit -last 36h"))
	require.Equal(t, "day", c.asked("window"))
	require.Equal(t, "limit", c.asked("by"))
	require.NotEmpty(t, c.asked("from"))
}

func TestPeriodsOfWhichNobodyKnowsAnythingAreOneLine(t *testing.T) {
	t.Parallel()
	c := newControl(t)
	period := func(day int, known, numbers string) string {
		return fmt.Sprintf(`{"begin": "2026-11-%02dT00:00:00Z", "end": "2026-11-%02dT00:00:00Z", "known": %q, "name": "", "grade": "exact"%s}`, day, day+1, known, numbers)
	}
	const nothing = `, "charged": 0, "givenBack": 0, "net": 0, "calls": 0`
	c.answer(usageOfAcme, http.StatusOK, nil, `{"tenant": "acme", "window": "day", "by": "unit", "zone": "UTC", "from": "2026-11-01T00:00:00Z", "to": "2026-11-07T00:00:00Z", "rows": [`+
		strings.Join([]string{period(1, "none", ""), period(2, "none", ""), period(3, "none", ""), period(4, "part", nothing), period(5, "all", nothing), period(6, "none", "")}, ", ")+`]}`)
	require.Equal(t, `PERIOD                    NAME  CHARGED  GIVEN BACK  NET  GRADE
2026-11-01 to 2026-11-03        ?        ?           ?    exact  nobody knows
2026-11-04                      0        0           0    exact  at least
2026-11-05                      0        0           0    exact
2026-11-06                      ?        ?           ?    exact  nobody knows

Nothing was ever collected: the daemon needs -redis, and tiers that count usage.
`, c.want(exitOK, "usage -tenant acme -window day"))
}

func TestWhatTheDaemonRefusesOfUsageIsSaid(t *testing.T) {
	t.Parallel()
	c := newControl(t)
	c.problem(usageOfAcme, http.StatusUnprocessableEntity, `{"title": "This cannot be done", "detail": "from: it comes to more than 100000 rows: ask for the window month"}`)
	require.Contains(t, c.want(exitUsage, "usage -tenant acme"), "the daemon says: This cannot be done. from: it comes to more than 100000 rows: ask for the window month")
}

func TestATimeOfUsageThatIsNoneSaysWhatWouldBe(t *testing.T) {
	t.Parallel()
	c := newControl(t)
	for line, want := range map[string]string{
		"-last 7":            "say 90m, 24h or 7d",
		"-last -7d":          "say 90m, 24h or 7d",
		"-last 99999999999d": "say 90m, 24h or 7d",
		"acme":               "an argument without a flag",
		"-last 7d -nonsense": "nonsense",
	} {
		require.Contains(t, c.want(exitUsage, "usage -tenant acme "+line), want, line)
	}
	require.Empty(t, c.seen, "nobody was asked")
	require.Contains(t, c.want(exitOK, "usage -h"), "-window")
}
