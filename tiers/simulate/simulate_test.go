package simulate_test

import (
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/tiers"
	"github.com/gqlgen-ratelimit/ratelimit/tiers/simulate"
)

var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// each yields the records without an error.
func each(records ...simulate.Record) iter.Seq2[simulate.Record, error] {
	return func(yield func(simulate.Record, error) bool) {
		for _, record := range records {
			if !yield(record, nil) {
				return
			}
		}
	}
}

const tenAMinute = `
version: 1
default: free
tiers:
  free:
    mode: shadow
    maxCost: 100
    limits:
      minute: {capacity: 10, per: minute}
      hour: {capacity: 600, per: hour, mode: off}
    operations:
      Mutation.*: {limits: {minute: {unit: requests, capacity: 1, per: minute}}}
  free-enough: {unlimited: true}
  quiet: {mode: "off", maxCost: 1, limits: {minute: {capacity: 1, per: minute}}}
  banned: {blocked: true}
`

func TestSimulateCountsWhatTheLimitsWouldRefuse(t *testing.T) {
	t.Parallel()
	at := func(seconds int, points int64, operations ...string) simulate.Record {
		return simulate.Record{At: noon.Add(time.Duration(seconds) * time.Second), Tenant: "acme", Operations: operations, Points: points}
	}
	report, err := simulate.Run(each(
		// Out of order: the last comes first.
		at(90, 10),               // Refilled: 9 of 10 came back by second 60, the rest by now.
		at(0, 4),                 // 6 left.
		at(0, 6, "Mutation.buy"), // 0 left, and the only mutation of the minute.
		at(6, 1, "Mutation.buy"), // The minute has 1, the rule nothing.
		at(6, 1),                 // The refused mutation charged nothing.
		at(7, 11),                // Never.
		at(7, 101),               // More than the maximum cost.
		at(8, 5),                 // The minute is empty.
	), compiled(t, tenAMinute))
	require.NoError(t, err)
	require.Len(t, report.Tenants, 1)
	want := simulate.TenantReport{
		Tenant: "acme", Tier: "free", Operations: 8, Points: 139, P50: 5, P95: 101, P99: 101, Max: 101,
		Refused: 4, RefusedShare: 0.5, TooExpensive: 1,
		Limits: []simulate.LimitReport{
			{Level: "tenant", Name: "minute", Unit: "points", Refused: 2, RefusedShare: 0.25, Never: 1},
			{Level: "operation", Owner: "Mutation.*", Name: "minute", Unit: "requests", Refused: 1, RefusedShare: 0.125},
		},
	}
	require.Equal(t, want, report.Tenants[0])
	want.Tenant, want.Tier = "", ""
	require.Equal(t, want, report.Total)
	require.Contains(t, report.String(), "  50.0%  maxCost 1 (12.5%), minute 2 (25.0%, never 1), Mutation.*/minute 1 (12.5%)\n")
	require.Equal(t, noon, report.From)
	require.Equal(t, noon.Add(90*time.Second), report.To)
}

func TestSimulateLooksAtTheTierOfTheRecord(t *testing.T) {
	t.Parallel()
	record := func(tenant, tier string) simulate.Record {
		return simulate.Record{At: noon, Tenant: tenant, Tier: tier, Points: 50}
	}
	report, err := simulate.Run(each(
		record("b", "free"), record("a", "free"), record("c", "free-enough"), record("d", "banned"), record("e", "quiet"),
	), compiled(t, tenAMinute))
	require.NoError(t, err)
	var names []string
	for _, tenant := range report.Tenants {
		names = append(names, tenant.Tenant)
	}
	require.Equal(t, []string{"a", "b", "d", "c", "e"}, names, "the largest refused share first, then by name")
	require.EqualValues(t, 3, report.Total.Refused)
	require.EqualValues(t, 1, report.Total.Blocked)
	require.InDelta(t, 0.6, report.Total.RefusedShare, 1e-9)
	require.InDelta(t, 1, report.Tenants[0].Limits[0].RefusedShare, 1e-9, "of the operations of the tenant")
	require.InDelta(t, 0.4, report.Total.Limits[0].RefusedShare, 1e-9, "of the operations of all")
}

func TestSimulateChargesTheRulesOfAllRootFields(t *testing.T) {
	t.Parallel()
	policy := compiled(t, `
version: 1
default: free
tiers:
  free:
    limits: {minute: {capacity: 100, per: minute}}
    operations:
      Query.search: {maxCost: 5}
      Mutation.buy: {limits: {minute: {unit: requests, capacity: 1, per: minute}}}
      Mutation.sell: {limits: {minute: {unit: requests, capacity: 2, per: minute}}}
`)
	// The caller's list is another one for each record.
	fields := make([]string, 2)
	report, err := simulate.Run(func(yield func(simulate.Record, error) bool) {
		for _, both := range [][2]string{
			{"Mutation.buy", "Mutation.sell"},  // Neither has refused yet.
			{"Mutation.keep", "Mutation.sell"}, // The second sale.
			{"Mutation.keep", "Mutation.sell"}, // One too many.
			{"Mutation.buy", "Mutation.keep"},  // The second purchase.
			{"Query.me", "Query.search"},       // 6 points are too many for a search.
			{"Query.me", "Query.orders"},       // And not for others.
		} {
			copy(fields, both[:])
			if !yield(simulate.Record{At: noon, Tenant: "acme", Operations: fields, Points: 6}, nil) {
				return
			}
		}
	}, policy)
	require.NoError(t, err)
	require.EqualValues(t, 3, report.Total.Refused)
	require.EqualValues(t, 1, report.Total.TooExpensive)
	refused := make(map[string]int64)
	for _, limit := range report.Total.Limits {
		refused[limit.Owner] = limit.Refused
	}
	require.Equal(t, map[string]int64{"": 0, "Mutation.buy": 1, "Mutation.sell": 1}, refused)
}

func TestSimulateGoesByTheModesOfTheLimits(t *testing.T) {
	t.Parallel()
	policy := compiled(t, `
version: 1
default: quiet
tiers:
  quiet:
    mode: "off"
    maxCost: 1
    limits:
      second: {capacity: 1, per: second}
      minute: {capacity: 10, per: minute, mode: enforce}
      hour: {capacity: 20, per: hour, mode: shadow}
    operations:
      Mutation.*: {limits: {day: {unit: requests, capacity: 1, per: day, mode: enforce}}}
  loud:
    maxCost: 100
    limits: {minute: {capacity: 1, per: minute, mode: "off"}}
`)
	record := func(minute int, points int64, tier string, operations ...string) simulate.Record {
		at := noon.Add(time.Duration(minute) * time.Minute)
		return simulate.Record{At: at, Tenant: tier, Tier: tier, Operations: operations, Points: points}
	}
	report, err := simulate.Run(each(
		record(0, 9, "quiet", "Mutation.buy"), // The maximum cost and the second are off.
		record(0, 9, "quiet"),                 // The minute has 1.
		record(1, 1, "quiet", "Mutation.buy"), // The day has no request left.
		record(1, 10, "quiet"),                // The minute is full again.
		record(2, 10, "quiet"),                // The hour, in shadow, has 2 and counts as enforced.
		record(0, 100, "loud"),                // The minute is off.
		record(0, 101, "loud"),                // More than the maximum cost.
	), policy)
	require.NoError(t, err)
	require.Len(t, report.Tenants, 2)
	quiet, loud := report.Tenants[0], report.Tenants[1]
	require.EqualValues(t, 3, quiet.Refused)
	require.Zero(t, quiet.TooExpensive)
	refused := make(map[string]int64)
	for _, limit := range quiet.Limits {
		refused[limit.Name] = limit.Refused
	}
	require.Equal(t, map[string]int64{"minute": 1, "hour": 1, "day": 1}, refused)
	require.EqualValues(t, 1, loud.Refused)
	require.EqualValues(t, 1, loud.TooExpensive)
	require.Empty(t, loud.Limits)
}

func TestSimulateCountsTeamsAndUsersTogether(t *testing.T) {
	t.Parallel()
	policy := compiled(t, `
version: 1
default: pro
tiers:
  pro:
    limits: {hour: {capacity: 100, per: hour}}
    teams: {limits: {hour: {capacity: 60, per: hour}}}
    users: {mode: warn, enforceFrom: 2126-01-01, limits: {hour: {capacity: 30, per: hour}}}
`)
	record := func(team, user string, points int64) simulate.Record {
		return simulate.Record{At: noon, Tenant: "acme", Team: team, User: user, Points: points}
	}
	report, err := simulate.Run(each(
		record("search", "alice", 30),
		record("search", "alice", 1), // The user has nothing left: what is in mode warn counts as enforced.
		record("search", "bob", 30),  // The team is at its end.
		record("search", "carol", 1), // The team has nothing left.
		record("", "dave", 30),       // Without a team. 10 of the tenant are left.
		record("ads", "erin", 11),    // The tenant has 10.
	), policy)
	require.NoError(t, err)
	require.EqualValues(t, 3, report.Total.Refused)
	refused := make(map[string]int64)
	for _, limit := range report.Total.Limits {
		require.Empty(t, limit.Owner)
		refused[limit.Level] = limit.Refused
	}
	require.Equal(t, map[string]int64{"tenant": 1, "team": 1, "user": 1}, refused)
	require.Contains(t, report.String(), "user/hour 1 (16.7%)")
}

func TestQuantilesAreTheNearestRank(t *testing.T) {
	t.Parallel()
	var records []simulate.Record
	for i := range int64(200) {
		records = append(records, simulate.Record{At: noon, Tenant: "x", Tier: "free-enough", Points: 200 - i})
	}
	report, err := simulate.Run(each(records...), compiled(t, tenAMinute))
	require.NoError(t, err)
	total := report.Total
	require.Equal(t, []int64{100, 190, 198, 200}, []int64{total.P50, total.P95, total.P99, total.Max})
}

func TestSimulateEndsAtTheFirstError(t *testing.T) {
	t.Parallel()
	policy := compiled(t, tenAMinute)
	broken := errors.New("disk on fire")
	_, err := simulate.Run(func(yield func(simulate.Record, error) bool) { yield(simulate.Record{}, broken) }, policy)
	require.ErrorIs(t, err, broken)
	for _, record := range []simulate.Record{
		{Tenant: "x", Points: 1}, {At: noon, Points: 1}, {At: noon, Tenant: "x", Points: -1},
	} {
		_, err := simulate.Run(each(record), policy)
		require.ErrorContains(t, err, "simulate: record 1: a record with")
	}
	_, err = simulate.Run(each(), nil)
	require.Error(t, err)

	report, err := simulate.Run(each(), policy)
	require.NoError(t, err)
	require.Equal(t, simulate.Report{}, report)
}

func TestReadRecordsNamesTheLineThatDoesNotFit(t *testing.T) {
	t.Parallel()
	const good = `{"at":"2026-06-01T12:00:00Z","tenant":"acme","operations":["Query.me","Query.orders"],"points":3}` + "\n"
	for _, test := range []struct{ name, lines, want string }{
		{"all good", good + "\n" + good, ""},
		{"not JSON", good + "secret", "simulate: line 2: not a record in JSON"},
		{"without a time", good + good + `{"tenant":"x"}`, "simulate: line 3: a record without a time after 1970"},
		{"too long", good + strings.Repeat("x", 70_000), "simulate: line 2: bufio.Scanner: token too long"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var failure error
			for record, err := range simulate.Read(strings.NewReader(test.lines)) {
				if failure = err; err == nil {
					require.Equal(t, simulate.Record{
						At: noon, Tenant: "acme", Operations: []string{"Query.me", "Query.orders"}, Points: 3,
					}, record)
				}
			}
			if test.want == "" {
				require.NoError(t, failure)
			} else {
				require.EqualError(t, failure, test.want)
			}
		})
	}
}

func TestTheTableStaysWholeWhateverTenantsAreCalled(t *testing.T) {
	t.Parallel()
	report, err := simulate.Run(each(
		simulate.Record{At: noon, Tenant: "a\tb\n" + strings.Repeat("x", 10_000), Points: 1},
	), compiled(t, tenAMinute))
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSuffix(report.String(), "\n"), "\n")
	require.Len(t, lines, 3)
	for _, line := range lines {
		require.Less(t, len(line), 200)
	}
	require.True(t, slices.ContainsFunc(lines, func(line string) bool { return strings.HasPrefix(line, `"a\tb\nxxx`) }))
}

func compiled(t testing.TB, document string) *tiers.Snapshot {
	t.Helper()
	policy, err := tiers.Parse([]byte(document))
	require.NoError(t, err)
	snapshot, err := tiers.Compile(policy)
	require.NoError(t, err)
	return snapshot
}

func TestSimulateHonoursWindows(t *testing.T) {
	t.Parallel()
	policy := compiled(t, `
version: 1
default: pro
tiers:
  pro:
    limits:
      day: {capacity: 100, per: day, window: calendar, zone: Europe/Berlin}
      fixed: {capacity: 60, per: minute, window: fixed}
      report: {capacity: 1, per: hour, window: fixed, soft: true}
`)
	// In Berlin the day ends at 22:00 UTC.
	evening := time.Date(2026, 6, 1, 21, 58, 0, 0, time.UTC)
	record := func(seconds int, points int64) simulate.Record {
		return simulate.Record{At: evening.Add(time.Duration(seconds) * time.Second), Tenant: "acme", Points: points}
	}
	report, err := simulate.Run(each(
		record(0, 60),
		record(59, 1),   // The minute has nothing left.
		record(60, 40),  // Another minute. The day is at its end.
		record(61, 1),   // The day has nothing left.
		record(120, 60), // Another day and another minute.
	), policy)
	require.NoError(t, err)
	require.EqualValues(t, 2, report.Total.Refused)
	refused := make(map[string]int64)
	for _, limit := range report.Total.Limits {
		refused[limit.Name] = limit.Refused
	}
	require.Equal(t, map[string]int64{"day": 1, "fixed": 1, "report": 0}, refused)
}
