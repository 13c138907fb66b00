package tiers_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

func TestTheMostSpecificModeHolds(t *testing.T) {
	t.Parallel()
	limit := `{minute: {capacity: 1, per: minute}}`
	own := `{minute: {capacity: 1, per: minute, mode: shadow}}`
	for _, test := range []struct {
		name, top, tier, teams, operation, tenant, named string
		wantTenant, wantTeam, wantOperation              bucket.Mode
	}{
		{name: "none enforces"},
		{name: "the document", top: "shadow", wantTenant: bucket.Shadow, wantTeam: bucket.Shadow, wantOperation: bucket.Shadow},
		{
			name: "the tier before the document", top: "shadow", tier: "warn",
			wantTenant: bucket.Warn, wantTeam: bucket.Warn, wantOperation: bucket.Warn,
		},
		{
			name: "the tenant before the tier", tier: "warn", tenant: "shadow",
			wantTenant: bucket.Shadow, wantTeam: bucket.Shadow, wantOperation: bucket.Shadow,
		},
		{
			name: "teams and operation rules before the tenant", tenant: "shadow", teams: "warn", operation: "off",
			wantTenant: bucket.Shadow, wantTeam: bucket.Warn, wantOperation: bucket.Off,
		},
		{name: "the named team before all teams", teams: "shadow", named: "enforce"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			policy := tiers.Policy{
				Default: "pro", Mode: test.top,
				Tiers: map[string]tiers.Tier{"pro": {
					Mode: test.tier, Limits: limits(t, limit),
					Teams:      &tiers.OwnerRule{Mode: test.teams, Limits: limits(t, limit)},
					Operations: map[string]tiers.OperationRule{"Query.a": {Mode: test.operation, Limits: limits(t, limit)}},
				}},
				Tenants: map[string]tiers.Exception{"acme": {Mode: test.tenant, MaxCost: 1, Teams: &tiers.OwnerException{
					ByName: map[string]tiers.OwnerRule{"search": {Mode: test.named, FailMode: "bounded"}},
				}}},
			}
			modes := func() [3]bucket.Mode {
				s, err := tiers.Compile(policy)
				require.NoError(t, err)
				rules := s.Rules(tiers.Subject{Tenant: "acme", Team: "search"}, tiers.Selection{Fields: []string{"Query.a"}})
				operation := bucket.Owner{Level: bucket.Operation, Name: "Query.a"}
				return [3]bucket.Mode{
					limitsOf(t, rules, nobody)["minute"].Mode, limitsOf(t, rules, search)["minute"].Mode,
					limitsOf(t, rules, operation)["minute"].Mode,
				}
			}
			require.Equal(t, [3]bucket.Mode{test.wantTenant, test.wantTeam, test.wantOperation}, modes())

			for _, replaced := range []map[string]*tiers.Limit{
				policy.Tiers["pro"].Limits, policy.Tiers["pro"].Teams.Limits, policy.Tiers["pro"].Operations["Query.a"].Limits,
			} {
				replaced["minute"] = limits(t, own)["minute"]
			}
			require.Equal(t, [3]bucket.Mode{bucket.Shadow, bucket.Shadow, bucket.Shadow}, modes(), "that of the limit before all")
		})
	}
}

// limits reads limits as they stand in a document.
func limits(t testing.TB, document string) map[string]*tiers.Limit {
	t.Helper()
	policy, err := tiers.Parse([]byte(fmt.Sprintf("{version: 1, default: x, tiers: {x: {limits: %s}}}", document)))
	require.NoError(t, err)
	return policy.Tiers["x"].Limits
}

func TestAMaximumCostHasTheModeOfItsRule(t *testing.T) {
	t.Parallel()
	s := compiled(t, `
version: 1
default: pro
tiers:
  pro:
    maxCost: 500
    operations:
      Query.a: {maxCost: 50, mode: shadow}
      Query.b: {maxCost: 200, mode: warn, enforceFrom: 2126-12-01}
      Query.c: {maxCost: 300, mode: warn}
      Query.d: {maxCost: 1, mode: "off"}
`)
	rules := s.Rules(tiers.Subject{Tenant: "x"}, tiers.Selection{Fields: []string{"Query.a", "Query.b", "Query.c", "Query.d"}})
	day := time.Date(2126, time.December, 1, 0, 0, 0, 0, time.UTC)
	require.Equal(t, tiers.MaxCost{Enforce: 500, Warn: 200, Shadow: 50, EnforceFrom: day}, rules.MaxCost)
	for _, test := range []struct {
		points, most int64
		mode         bucket.Mode
	}{{501, 500, bucket.Enforce}, {500, 200, bucket.Warn}, {200, 50, bucket.Shadow}, {50, 0, bucket.Off}} {
		most, mode := rules.MaxCost.Exceeded(test.points)
		require.Equal(t, test.most, most, "%d points", test.points)
		require.Equal(t, test.mode, mode, "%d points", test.points)
	}
}

const announced = `
version: 1
default: free
mode: warn
enforceFrom: 2026-12-01
tiers:
  free:
    maxCost: 10
    limits:
      minute: {capacity: 1, per: minute}
      hour: {capacity: 1, per: hour, mode: warn}
      day: {capacity: 1, per: day, mode: warn, enforceFrom: 2026-12-24}
`

func TestWarnBecomesEnforceOnItsDay(t *testing.T) {
	t.Parallel()
	first := time.Date(2026, time.December, 1, 0, 0, 0, 0, time.UTC)
	second := time.Date(2026, time.December, 24, 0, 0, 0, 0, time.UTC)
	s := compiled(t, announced)
	const enforce, warn = bucket.Enforce, bucket.Warn
	for _, test := range []struct {
		name                    string
		now                     time.Time
		tier, minute, hour, day bucket.Mode
		minuteFrom, dayFrom     time.Time
	}{
		{"before", first.Add(-1), warn, warn, warn, warn, first, second},
		{"from the first moment of the day on", first, enforce, enforce, warn, warn, time.Time{}, second},
		{"until the second", second.Add(-1), enforce, enforce, warn, warn, time.Time{}, second},
		{"both", second, enforce, enforce, warn, enforce, time.Time{}, time.Time{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			rules := s.At(test.now).Rules(tiers.Subject{Tenant: "x"}, tiers.Selection{})
			limits := limitsOf(t, rules, nobody)
			require.Equal(t, test.tier, rules.Mode)
			require.Equal(t, [3]bucket.Mode{test.minute, test.hour, test.day},
				[3]bucket.Mode{limits["minute"].Mode, limits["hour"].Mode, limits["day"].Mode})
			require.Equal(t, test.minuteFrom, rules.LimitEnforcedFrom(nobody, "minute"))
			require.Equal(t, test.minuteFrom, rules.MaxCost.EnforceFrom)
			require.Zero(t, rules.LimitEnforcedFrom(nobody, "hour"))
			require.Equal(t, test.dayFrom, rules.LimitEnforcedFrom(nobody, "day"))
			require.Zero(t, rules.LimitEnforcedFrom(alice, "day"))
		})
	}
}

func TestASourceEnforcesFromTheDayOnWithoutAReload(t *testing.T) {
	t.Parallel()
	loaded, err := tiers.Load([]byte(`{version: 1, default: a, tiers: {a: {mode: warn, enforceFrom: 2000-01-01, maxCost: 5}}}`), 1)
	require.NoError(t, err)
	before := loaded.Snapshot().At(time.Date(1999, 12, 31, 23, 59, 59, 0, time.UTC))
	require.Equal(t, bucket.Warn, before.Rules(tiers.Subject{Tenant: "x"}, tiers.Selection{}).Mode)
	for _, source := range []tiers.Source{loaded, before} {
		require.Equal(t, bucket.Enforce, source.Snapshot().Rules(tiers.Subject{Tenant: "x"}, tiers.Selection{}).Mode)
	}
}

func TestAnOperatorEasesAllModesAtOnce(t *testing.T) {
	t.Parallel()
	s := compiled(t, `
version: 1
default: free
tiers:
  free:
    maxCost: 10
    limits:
      second: {capacity: 1, per: second}
      minute: {capacity: 1, per: minute, mode: warn, enforceFrom: 2126-01-01}
      hour: {capacity: 1, per: hour, mode: shadow}
      day: {capacity: 1, per: day, mode: "off"}
  banned: {blocked: true}
`)
	const enforce, warn, shadow, off = bucket.Enforce, bucket.Warn, bucket.Shadow, bucket.Off
	emergency := tiers.NewModeSwitch(s)
	require.Equal(t, enforce, emergency.Mode())
	require.Same(t, s, emergency.Snapshot())
	for _, test := range []struct {
		most    bucket.Mode
		want    [4]bucket.Mode
		maxCost tiers.MaxCost
	}{
		{warn, [4]bucket.Mode{warn, warn, shadow, off}, tiers.MaxCost{Warn: 10}},
		{shadow, [4]bucket.Mode{shadow, shadow, shadow, off}, tiers.MaxCost{Shadow: 10}},
		{off, [4]bucket.Mode{off, off, off, off}, tiers.MaxCost{}},
		{bucket.Mode(200), [4]bucket.Mode{off, off, off, off}, tiers.MaxCost{}},
		{enforce, [4]bucket.Mode{enforce, warn, shadow, off}, tiers.MaxCost{Enforce: 10}},
	} {
		emergency.AtMost(test.most)
		rules := emergency.Snapshot().Rules(tiers.Subject{Tenant: "x"}, tiers.Selection{})
		limits := limitsOf(t, rules, nobody)
		require.Equal(t, test.want, [4]bucket.Mode{
			limits["second"].Mode, limits["minute"].Mode, limits["hour"].Mode, limits["day"].Mode,
		})
		require.Equal(t, test.maxCost, rules.MaxCost)
		require.Equal(t, test.most <= warn, !rules.LimitEnforcedFrom(nobody, "minute").IsZero())
		require.True(t, emergency.Snapshot().Rules(tiers.Subject{Tenant: "x", Tier: "banned"}, tiers.Selection{}).Blocked)
	}
}

func TestSnapshotsOfAllDaysAndModesAreMadeOnce(t *testing.T) {
	t.Parallel()
	s := compiled(t, announced)
	later := time.Date(2100, time.January, 1, 0, 0, 0, 0, time.UTC)
	var group sync.WaitGroup
	made := make([]*tiers.Snapshot, 16)
	for i := range made {
		group.Go(func() { made[i] = s.At(later).AtMost(bucket.Shadow) })
	}
	group.Wait()
	for _, snapshot := range made {
		require.Same(t, made[0], snapshot)
		require.Same(t, snapshot, snapshot.At(later))
		require.Equal(t, s.Generation(), snapshot.Generation())
	}
}

func TestOfMaximaInModeWarnTheOneWithTheFirstDayIsNamed(t *testing.T) {
	t.Parallel()
	days := map[string]string{"a": "2126-12-01", "b": "2127-12-01", "c": "", "d": "2125-12-01", "e": "2128-12-01"}
	costs := map[string]int64{"a": 30, "b": 20, "c": 10, "d": 40, "e": 40}
	operations := make(map[string]tiers.OperationRule)
	var fields []string
	for name, points := range costs {
		operations["Query."+name] = tiers.OperationRule{Mode: "warn", EnforceFrom: days[name], MaxCost: points}
		fields = append(fields, "Query."+name)
	}
	s, err := tiers.Compile(tiers.Policy{Default: "pro", Tiers: map[string]tiers.Tier{"pro": {Operations: operations}}})
	require.NoError(t, err)
	for range 20 {
		rand.Shuffle(len(fields), func(i, j int) { fields[i], fields[j] = fields[j], fields[i] })
		rules := s.At(time.Date(2120, time.January, 1, 0, 0, 0, 0, time.UTC)).Rules(tiers.Subject{Tenant: "x"}, tiers.Selection{Fields: fields})
		for points, want := range map[int64]string{10: "", 11: "c", 20: "c", 21: "b", 30: "b", 31: "a", 40: "a", 41: "d", 1000: "d"} {
			most, _ := rules.MaxCost.Exceeded(points)
			require.Equal(t, costs[want], most, "%d points", points)
			from := ""
			if day := rules.MaxCost.EnforcedFrom(points); !day.IsZero() {
				from = day.Format(time.DateOnly)
			}
			require.Equal(t, days[want], from, "%d points", points)
		}
	}
}
