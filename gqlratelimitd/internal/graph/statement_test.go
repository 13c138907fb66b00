package graph_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/control"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/statement"
)

// midnight is when a day began so many days ago.
func midnight(days int) time.Time {
	return time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -days)
}

// daysAgo is that day.
func daysAgo(days int) string { return midnight(days).Format(time.DateOnly) }

// count has counts collected.
func (s *scene) count(counts ...store.UsageCount) {
	s.Helper()
	now := time.Now()
	require.NoError(s, s.db.Count(s.Context(), func(tx *store.UsageTx) error {
		_, err := tx.KeepUsage(store.UsageState{MinutesFrom: store.DayOf(midnight(9)), MinutesUntil: store.DayOf(now) + 1})
		require.NoError(s, err)
		left, err := tx.PutUsage(counts)
		require.NoError(s, err)
		require.Zero(s, left)
		for _, at := range []time.Time{midnight(9).Add(-time.Hour), now} {
			require.NoError(s, tx.PutUsagePass("told", at.Unix()/60))
			require.NoError(s, tx.PutUsagePass("search", at.Unix()/60))
		}
		return nil
	}))
	for found := 1; found > 0; {
		require.NoError(s, s.db.Count(s.Context(), func(tx *store.UsageTx) (err error) {
			found, err = tx.RollUp(now.Add(time.Minute), store.MaxPage)
			return err
		}))
	}
}

// at is a count of a tenant on a day.
func at(tenant string, days int, charged int64) store.UsageCount {
	return store.UsageCount{Tenant: tenant, Minute: midnight(days).Unix() / 60, Unit: "points", Charged: charged}
}

// freeze makes statement 1, which is of acme and the day nine days ago. Of the day after it there is something to freeze.
func (s *scene) freeze(r control.Request) {
	s.Helper()
	of := func(days int) store.UsageCount {
		field := at("acme", days, 50)
		field.Field, field.Calls = "Query.a", 2
		return field
	}
	s.count(at("acme", 9, 50), of(9), at("acme", 8, 7), of(8))
	_, err := s.control.FreezeUsage(s.Context(), r, control.FreezeInput{Tenant: "acme", From: daysAgo(9), To: daysAgo(8)})
	require.NoError(s, err)
}

// node is an object of an answer, without the fields that it does not have.
func node(v any) map[string]any {
	object := map[string]any{}
	for name, value := range v.(map[string]any) {
		if value != nil {
			object[name] = value
		}
	}
	return object
}

func TestAStatementIsReadWithItsLinesItsSignatureAndWhatItCorrects(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	const query = `query($number: Long!) { statement(tenant: "acme", number: $number) {
		summary { number tenant from to frozen hash corrects new } collected unknown previous
		lines { unit field grade charged givenBack net calls } differences { unit field charged givenBack net calls } signed } }`
	read := func(number uint64) (map[string]any, *statement.Statement) {
		a := s.ask("tenant-admin", query, map[string]any{"number": number})
		require.Empty(t, a.Errors, a.Body)
		told := node(a.Data["statement"])
		signed, _, err := statement.Open([]byte(told["signed"].(string)), s.public)
		require.NoError(t, err)
		return told, signed
	}
	told, first := read(1)
	require.Equal(t, map[string]any{
		"number": 1.0, "tenant": "acme", "from": daysAgo(9), "to": daysAgo(8), "frozen": first.Frozen.Format(time.RFC3339Nano), "hash": first.Hash().String(), "new": false,
	}, node(told["summary"]))
	require.Equal(t, first.Collected.Format(time.RFC3339), told["collected"])
	require.NotContains(t, told, "previous")
	require.NotContains(t, told, "unknown")
	require.Empty(t, told["differences"])
	lines := told["lines"].([]any)
	require.Len(t, lines, 2)
	require.Equal(t, map[string]any{"unit": "points", "grade": "exact", "charged": 50.0, "givenBack": 0.0, "net": 50.0}, node(lines[0]))
	require.Equal(t, map[string]any{"unit": "points", "field": "Query.a", "grade": "exact", "charged": 50.0, "givenBack": 0.0, "net": 50.0, "calls": 2.0}, node(lines[1]))

	late := at("acme", 9, 12)
	late.Generation, late.GivenBack = 7, 5
	s.count(late)
	const freeze = `mutation($from: String!, $to: String!) { freezeUsage(input: {from: $from, to: $to, reason: "late"}) { statements { number corrects new } left { tenant } next } }`
	period := map[string]any{"from": daysAgo(9), "to": daysAgo(8)}
	for _, made := range []bool{true, false} {
		a := s.ask("operator", freeze, period)
		require.Empty(t, a.Errors, a.Body)
		require.Equal(t, map[string]any{
			"statements": []any{map[string]any{"number": 2.0, "corrects": 1.0, "new": made}}, "left": []any{}, "next": nil,
		}, a.Data["freezeUsage"])
	}
	told, second := read(2)
	require.Equal(t, 1.0, told["previous"])
	require.Equal(t, map[string]any{"unit": "points", "charged": 12.0, "givenBack": 5.0, "net": 7.0}, node(told["differences"].([]any)[0]))
	_, err := statement.Check([]*statement.Statement{first, second})
	require.NoError(t, err)
}

func TestStatementsAreListedAPageAtATimeAndThoseOfOthersAreNotThere(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.count(at("other", 8, 3))
	freeze := func(actor, tenant string) *answer {
		return s.ask(actor, `mutation($tenant: ID, $from: String!, $to: String!) { freezeUsage(input: {tenant: $tenant, from: $from, to: $to, first: 1, reason: "why"}) { next } }`,
			map[string]any{"tenant": given(tenant), "from": daysAgo(8), "to": daysAgo(7)})
	}
	a := freeze("operator", "")
	require.Empty(t, a.Errors, a.Body)
	require.NotEmpty(t, a.Data["freezeUsage"].(map[string]any)["next"])
	require.Empty(t, freeze("operator", "other").Errors)
	list := func(actor, arguments string) (numbers []any, more any) {
		a := s.ask(actor, `{ statements`+arguments+` { nodes { number } pageInfo { hasNextPage } } }`, nil)
		require.Empty(t, a.Errors, a.Body)
		page := a.Data["statements"].(map[string]any)
		for _, n := range page["nodes"].([]any) {
			numbers = append(numbers, n.(map[string]any)["number"])
		}
		return numbers, page["pageInfo"].(map[string]any)["hasNextPage"]
	}
	numbers, more := list("auditor", "(first: 2)")
	require.Equal(t, []any{3.0, 2.0}, numbers)
	require.Equal(t, true, more)
	numbers, more = list("auditor", "(first: 2, before: 2)")
	require.Equal(t, []any{1.0}, numbers)
	require.Equal(t, false, more)
	numbers, _ = list("auditor", "(before: 0)")
	require.Empty(t, numbers)
	numbers, _ = list("another-admin", `(tenant: "other")`)
	require.Equal(t, []any{3.0}, numbers)
	numbers, _ = list("tenant-admin", `(tenant: "acme")`)
	require.Equal(t, []any{2.0, 1.0}, numbers)

	for _, query := range []string{`{ statements(tenant: "acme") { nodes { number } } }`, `{ statements { nodes { number } } }`, `{ statement(tenant: "acme", number: 1) { signed } }`} {
		require.Equal(t, "FORBIDDEN", s.ask("another-admin", query, nil).code(), query)
	}
	for number := range 5 {
		if number == 3 {
			continue
		}
		a := s.ask("another-admin", `{ statement(tenant: "other", number: `+strconv.Itoa(number)+`) { signed } }`, nil)
		require.Empty(t, a.Errors, a.Body)
		require.Nil(t, a.Data["statement"], "statement %d is not theirs", number)
	}
	require.Equal(t, "FORBIDDEN", freeze("tenant-admin", "acme").code())
	require.Equal(t, "FORBIDDEN", freeze("publisher", "").code())
}

// given is nil for an empty text.
func given(text string) any {
	if text == "" {
		return nil
	}
	return text
}
