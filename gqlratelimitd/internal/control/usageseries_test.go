package control_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/control"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
	"github.com/gqlgen-ratelimit/ratelimit/usage"
)

// Each range has a change of clocks in Europe, America and Lord Howe, which changes by half an hour.
var changesOfClocks = [][2]time.Time{
	{time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC), time.Date(2026, 11, 4, 0, 0, 0, 0, time.UTC)},
	{time.Date(2026, 3, 5, 0, 0, 0, 0, time.UTC), time.Date(2026, 4, 8, 0, 0, 0, 0, time.UTC)},
}

func TestUsageComesToTheSameByMinuteHourDayAndMonthAndInAnyZone(t *testing.T) {
	t.Parallel()
	for i, span := range changesOfClocks {
		t.Run(span[0].Format(time.DateOnly), func(t *testing.T) {
			t.Parallel()
			s := newScene(t, control.Config{})
			from, to := span[0], span[1]
			s.now = to.Add(time.Hour)
			truth := drawUsage(uint64(i), from, to, 1500)
			s.collect(from.AddDate(0, 0, -2), from.AddDate(0, 0, -32), s.now, truth.put(s))
			for _, by := range []control.UsageBy{control.UsageByUnit, control.UsageByUser} {
				for window, form := range map[control.UsageWindow]string{
					control.UsageMinute: time.RFC3339, control.UsageHour: "2006-01-02T15", control.UsageDay: time.DateOnly, control.UsageMonth: "2006-01",
				} {
					period := func(t time.Time) string { return t.UTC().Format(form) }
					in := control.UsageSeriesInput{Tenant: "acme", From: from, To: to, Window: window, By: by}
					if window != control.UsageMinute {
						require.Equal(t, truth.by(by.Charged(), period), s.told(in, period), "%s by %s", by, window)
						continue
					}
					// Of minutes a week is told at once.
					told := map[string]control.UsageRow{}
					for in.From = from; in.From.Before(to); in.From = in.To {
						in.To = in.From.AddDate(0, 0, 7)
						for key, row := range s.told(in, period) {
							told[key] = row
						}
					}
					require.Equal(t, truth.by(by.Charged(), period), told, "%s by minute", by)
				}
				for _, name := range []string{"Europe/Berlin", "America/New_York", "America/Havana", "Australia/Lord_Howe", "Asia/Kolkata", "Europe/London"} {
					zone, err := time.LoadLocation(name)
					require.NoError(t, err)
					for window, form := range map[control.UsageWindow]string{control.UsageDay: time.DateOnly, control.UsageMonth: "2006-01"} {
						period := func(t time.Time) string { return t.In(zone).Format(form) }
						in := control.UsageSeriesInput{Tenant: "acme", From: from, To: to, Window: window, Zone: name, By: by}
						if name == "Asia/Kolkata" || name == "Australia/Lord_Howe" {
							if in.From = from.AddDate(0, 0, 1); window == control.UsageMonth {
								// Its minutes were forgotten before they began.
								continue
							}
							all, some := truth.by(by.Charged(), period), s.told(in, period)
							for key := range all {
								if _, ok := some[key]; !ok {
									require.Less(t, key, in.From.In(zone).Format(form), key)
									delete(all, key)
								}
							}
							require.Equal(t, all, some, name)
							continue
						}
						require.Equal(t, truth.by(by.Charged(), period), s.told(in, period), "%s by %s in %s", by, window, name)
					}
				}
			}
		})
	}
}

// spent is a time in which acme was counted in two hours, of which collection missed what was before the first.
func (s *scene) spent() (hour time.Time) {
	s.Helper()
	hour = s.now.Truncate(time.Hour)
	s.collect(s.now.AddDate(0, 0, -3), hour.Add(-3*time.Hour).Add(30*time.Minute), hour.Add(20*time.Minute), func(tx *store.UsageTx) {
		for _, at := range []time.Time{hour.Add(-5 * time.Hour), hour.Add(-2 * time.Hour), hour} {
			_, err := tx.PutUsage([]store.UsageCount{
				{Tenant: "acme", Minute: minuteOf(at), Unit: "points", Charged: 40, GivenBack: 10},
				{Tenant: "acme", Minute: minuteOf(at), Unit: "points", Grade: bucket.UsageLocal, Charged: 5},
				{Tenant: "globex", Minute: minuteOf(at), Unit: "points", Charged: 7},
				{Tenant: "acme", Minute: minuteOf(at), Unit: "points", Field: "Query.search", Charged: 30, Calls: 3},
			})
			require.NoError(s, err)
			var decided []store.DecisionCount
			for i, name := range []string{"ann", "h:" + "acme" + ":jo", "=cmd\x1b[2J", "zoe"} {
				decided = append(decided, store.DecisionCount{
					Tenant: "acme", Minute: minuteOf(at), Dimension: "user", Name: name, Instance: "api", Boot: "1", Admitted: int64(i), Refused: 1, WouldRefuse: 2, Points: int64(i * 10),
				})
			}
			_, err = tx.PutDecisions(decided)
			require.NoError(s, err)
		}
	})
	return hour
}

func TestPeriodsSayWhetherZeroWasCountedOrNobodyKnowsAndWhetherTheyAreOpen(t *testing.T) {
	t.Parallel()
	s := newScene(t, control.Config{})
	in := control.UsageSeriesInput{Tenant: "acme", By: control.UsageByUnit}
	never, err := s.UsageSeries(s.ctx(), auditor, control.UsageSeriesInput{Tenant: "acme", N: 50})
	require.NoError(t, err)
	require.True(t, never.Since.IsZero() && never.Collected.IsZero())
	require.Len(t, never.Rows, 24)
	for _, r := range never.Rows {
		require.Equal(t, control.KnownNone, r.Known)
		require.True(t, r.Open)
	}
	hour := s.spent()
	s.now = hour.Add(25 * time.Minute)
	in.From = hour.Add(-6 * time.Hour)
	var told []string
	for _, r := range s.rows(in) {
		require.Equal(t, time.Hour, r.End.Sub(r.Begin))
		told = append(told, fmt.Sprintf("%v %s %v %q %s %d", r.Begin.Sub(hour), r.Known, r.Open, r.Name, r.Grade, r.Net()))
	}
	require.Equal(t, []string{
		`-6h0m0s none false "" exact 0`,
		`-5h0m0s part false "points" exact 30`,
		`-5h0m0s part false "points" local 5`,
		`-4h0m0s none false "" exact 0`,
		`-3h0m0s part false "" exact 0`,
		`-2h0m0s all false "points" exact 30`,
		`-2h0m0s all false "points" local 5`,
		`-1h0m0s all false "" exact 0`,
		`0s all true "points" exact 30`,
		`0s all true "points" local 5`,
	}, told)
	page, err := s.UsageSeries(s.ctx(), auditor, control.UsageSeriesInput{Tenant: "acme", Window: control.UsageMinute, From: hour, N: 50})
	require.NoError(t, err)
	require.Equal(t, []time.Time{hour, hour.Add(25 * time.Minute), hour.Add(20 * time.Minute)}, []time.Time{page.From, page.To, page.Collected})
	for i, r := range page.Rows {
		require.Equal(t, i >= 20, r.Open, "%v", r.Begin)
	}
	// What is forgotten is not told as zero, and what is not computed yet as open.
	require.NoError(t, s.db.Count(s.ctx(), func(tx *store.UsageTx) error {
		_, err := tx.KeepUsage(store.UsageState{MinutesFrom: dayOf(s.now), MinutesUntil: dayOf(s.now) + 2})
		return err
	}))
	old, err := s.UsageSeries(s.ctx(), auditor, control.UsageSeriesInput{Tenant: "acme", Window: control.UsageMinute, From: hour.AddDate(0, 0, -1), To: hour.AddDate(0, 0, -1).Add(time.Minute), N: 5})
	require.NoError(t, err)
	require.Equal(t, control.KnownNone, old.Rows[0].Known)
	require.False(t, old.Kept.Before(hour.AddDate(0, 0, -1)))
	s.now = hour.Add(time.Hour)
	require.NoError(t, s.db.Count(s.ctx(), func(tx *store.UsageTx) error {
		_, err := tx.PutUsage([]store.UsageCount{{Tenant: "acme", Minute: minuteOf(s.now) - 1, Unit: "points", Charged: 1}})
		require.NoError(t, err)
		return tx.PutUsagePass("told", minuteOf(s.now)+5)
	}))
	in.From = hour
	require.True(t, s.rows(in)[0].Open, "what was read is not computed yet")
}

func TestPagesOfUsageHaveWhatAnExportHas(t *testing.T) {
	t.Parallel()
	s := newScene(t, control.Config{})
	hour := s.spent()
	for name, in := range map[string]control.UsageSeriesInput{
		"by unit":        {Tenant: "acme", By: control.UsageByUnit},
		"by user":        {Tenant: "acme", By: control.UsageByUser},
		"by user of day": {Tenant: "acme", By: control.UsageByUser, Window: control.UsageDay, Zone: "Europe/Berlin"},
		"by tenant":      {Tenant: "acme"},
		"of all":         {Window: control.UsageDay, By: control.UsageByUnit},
		"of months":      {Window: control.UsageMonth, By: control.UsageByUnit},
	} {
		in.From, in.To = hour.AddDate(0, 0, -1), hour.AddDate(0, 0, 1)
		want := s.rows(in)
		require.NotEmpty(t, want)
		for _, n := range []int{1, 2, 3, 7} {
			var got []control.UsageRow
			for in.N, in.After = n, ""; ; {
				page, err := s.UsageSeries(s.ctx(), auditor, in)
				require.NoError(t, err)
				got = append(got, page.Rows...)
				if in.After = page.Next; in.After == "" {
					break
				}
				require.Len(t, page.Rows, n)
			}
			require.Equal(t, want, got, "%s, %d a page", name, n)
		}
		in.After = ""
	}
}

func TestAUserIsFoundByTheNameWhateverInstancesWriteForIt(t *testing.T) {
	t.Parallel()
	s := newScene(t, control.Config{HashUser: func(tenant, user string) string { return "h:" + tenant + ":" + user }})
	hour := s.spent()
	in := control.UsageSeriesInput{Tenant: "acme", By: control.UsageByUser, From: hour.Add(-2 * time.Hour), Names: []string{"jo"}}
	rows := s.rows(in)
	require.Len(t, rows, 3)
	for i, admitted := range []int64{1, 0, 1} {
		require.Equal(t, "jo", rows[i].Name, "who asks knows it")
		require.Equal(t, admitted, rows[i].Admitted)
		require.Equal(t, usage.Instance, rows[i].Grade)
	}
	in.Names = []string{"ann", "nobody"}
	rows = s.rows(in)
	require.Equal(t, []string{"ann", "", "ann"}, []string{rows[0].Name, rows[1].Name, rows[2].Name})
}

func TestTheLargestNamesHaveRowsOfTheirOwnAndTheOthersOneTogether(t *testing.T) {
	t.Parallel()
	s := newScene(t, control.Config{})
	hour := s.spent()
	in := control.UsageSeriesInput{Tenant: "acme", By: control.UsageByUser, From: hour, Top: 2}
	var told []string
	for _, r := range s.rows(in) {
		told = append(told, fmt.Sprintf("%s %d %d", r.Name, r.Points, r.Refused))
	}
	require.Equal(t, []string{"* 10 2", `=cmd\x1b[2J 20 1`, "zoe 30 1"}, told)
}

func TestATenantAdminReadsTheUsageOfNobodyElse(t *testing.T) {
	t.Parallel()
	s := newScene(t, control.Config{})
	s.spent()
	ask := func(a access.Actor, tenant string) error {
		in := control.UsageSeriesInput{Tenant: tenant, Window: control.UsageDay, By: control.UsageByUnit, N: 5}
		_, err := s.UsageSeries(s.ctx(), a, in)
		exported := s.ExportUsage(s.ctx(), a, in, func(page *control.UsageSeries) error {
			for _, r := range page.Rows {
				require.True(t, tenant == "" || r.Tenant == tenant, r.Tenant)
			}
			return nil
		})
		require.Equal(t, errors.Is(err, access.ErrDenied), errors.Is(exported, access.ErrDenied))
		return err
	}
	require.NoError(t, ask(admin("acme"), "acme"))
	for _, tenant := range []string{"globex", ""} {
		require.ErrorIs(t, ask(admin("acme"), tenant), access.ErrDenied)
		require.ErrorIs(t, ask(actor("nobody"), tenant), access.ErrDenied)
		for _, role := range []access.Role{access.Viewer, access.Operator, access.Publisher, access.Auditor} {
			require.NoError(t, ask(actor("somebody", role), tenant), role)
			confined := actor("somebody", role)
			confined.Tenants = []string{"acme"}
			require.ErrorIs(t, ask(confined, tenant), access.ErrDenied, role)
		}
	}
}

func TestAQuestionOfUsageThatCannotBeAnsweredSaysWhatWouldDo(t *testing.T) {
	t.Parallel()
	s := newScene(t, control.Config{})
	hour := s.spent()
	for _, c := range []struct {
		field, problem string
		in             control.UsageSeriesInput
	}{
		{"window", "none of minute", control.UsageSeriesInput{Tenant: "a", Window: "week"}},
		{"by", "none of tenant", control.UsageSeriesInput{Tenant: "a", By: "colour"}},
		{"zone", "ask for days or months", control.UsageSeriesInput{Tenant: "a", Zone: "Europe/Berlin"}},
		{"zone", "Europe/Berlin", control.UsageSeriesInput{Tenant: "a", Zone: "Mars/North", Window: control.UsageDay}},
		{"zone", "ask for hours", control.UsageSeriesInput{Tenant: "a", Zone: "Asia/Kolkata", Window: control.UsageMonth}},
		{"window", "name a tenant, or ask for the window day", control.UsageSeriesInput{}},
		{"by", "name a tenant", control.UsageSeriesInput{Window: control.UsageDay, By: control.UsageByUser}},
		{"zone", "name a tenant", control.UsageSeriesInput{Window: control.UsageDay, Zone: "Europe/Berlin"}},
		{"to", "not after from", control.UsageSeriesInput{Tenant: "a", From: hour, To: hour}},
		{"from", "more than 10080 minutes: ask for a shorter range, or for the window hour", control.UsageSeriesInput{Tenant: "a", Window: control.UsageMinute, From: hour.AddDate(-1, 0, 0)}},
		{"from", "years", control.UsageSeriesInput{Tenant: "a", From: time.Date(1, 1, 1, 0, 0, 0, 1, time.UTC)}},
		{"from", "years", control.UsageSeriesInput{Tenant: "a", To: time.Date(100_000, 1, 1, 0, 0, 0, 0, time.UTC), From: hour}},
		{"top", "1 to 100", control.UsageSeriesInput{Tenant: "a", Top: 101}},
		{"top", "beside names", control.UsageSeriesInput{Tenant: "a", Top: 1, Names: []string{"x"}}},
		{"name", "at most 20", control.UsageSeriesInput{Tenant: "a", Names: make([]string, 21)}},
		{"name", "control characters", control.UsageSeriesInput{Tenant: "a", Names: []string{"\x00"}}},
		{"tenant", "control characters", control.UsageSeriesInput{Tenant: "a\n"}},
		{"after", "no pages", control.UsageSeriesInput{Tenant: "a", After: "x"}},
	} {
		err := s.ExportUsage(s.ctx(), auditor, c.in, func(*control.UsageSeries) error {
			t.Error("it was answered")
			return nil
		})
		requireInvalid(t, err, c.field, c.problem)
	}
	for _, after := range []string{"x", "bnVsbA==", "eyJnIjoibm9uZSJ9"} {
		_, err := s.UsageSeries(s.ctx(), auditor, control.UsageSeriesInput{Tenant: "a", After: after, N: 1})
		requireInvalid(t, err, "after", "")
	}
	for _, n := range []int{-1, 0, 1001} {
		_, err := s.UsageSeries(s.ctx(), auditor, control.UsageSeriesInput{Tenant: "a", N: n})
		requireInvalid(t, err, "first", "")
	}
}

func TestAnExportOfTooManyRowsIsRefusedBeforeItBegins(t *testing.T) {
	t.Parallel()
	s := newScene(t, control.Config{})
	hour := s.now.Truncate(time.Hour)
	const minutes, users = 9, 130
	s.collect(hour, hour, hour, func(tx *store.UsageTx) {
		var counts []store.DecisionCount
		for i := range minutes * users {
			counts = append(counts, store.DecisionCount{
				Tenant: "acme", Minute: minuteOf(hour) + int64(i/users), Dimension: "user", Name: fmt.Sprint(i % users), Instance: "api", Boot: "1", Admitted: 1,
			})
		}
		_, err := tx.PutDecisions(counts)
		require.NoError(t, err)
	})
	in := control.UsageSeriesInput{Tenant: "acme", By: control.UsageByUser, Window: control.UsageMinute, From: hour, To: hour.Add(minutes * time.Minute)}
	require.Len(t, s.rows(in), minutes*users, "more than a page")
	s.BoundExports(minutes * users)
	for _, zone := range []string{"", "Europe/Berlin"} {
		in := in
		if in.Zone = zone; zone != "" {
			s.BoundExports(users)
			in.Window = control.UsageDay
		}
		err := s.ExportUsage(s.ctx(), auditor, in, func(*control.UsageSeries) error {
			t.Error("it has begun")
			return nil
		})
		requireInvalid(t, err, "from", "rows: ask for the window")
		requireInvalid(t, err, "from", "a shorter range, the names that you need, or the largest of them (top)")
	}
	in.Window = control.UsageHour
	s.BoundExports(users + 1)
	require.Len(t, s.rows(in), users)
	stop := errors.New("stop")
	s.BoundExports(10_000)
	in.Window = control.UsageMinute
	pages := 0
	require.ErrorIs(t, s.ExportUsage(s.ctx(), auditor, in, func(*control.UsageSeries) error { pages++; return stop }), stop)
	require.Equal(t, 1, pages, "who does not read any more is asked for no more")
	in.Top = 5
	names := s.rows(in)[:6]
	require.Equal(t, []string{"*", "0", "1", "10", "100", "101"}, []string{names[0].Name, names[1].Name, names[2].Name, names[3].Name, names[4].Name, names[5].Name})
}

func TestUsageSaysWhatThePolicyHasCounted(t *testing.T) {
	t.Parallel()
	s := newScene(t, control.Config{})
	ask := func(tenant string, by control.UsageBy) string {
		page, err := s.UsageSeries(s.ctx(), auditor, control.UsageSeriesInput{Tenant: tenant, By: by, N: 1})
		require.NoError(t, err)
		return page.Counts
	}
	require.Empty(t, ask("acme", control.UsageByUnit), "there is no policy")
	s.publish("version: 1\ndefault: free\ntiers:\n  free: {limits: {minute: {capacity: 5, per: minute}}}\n  pro: {usage: fields, limits: {minute: {capacity: 5, per: minute}}}\ntenants: {acme: {tier: pro}, some: {usage: totals}}\n", 0)
	require.Equal(t, []string{"fields", "totals", "none", ""}, []string{
		ask("acme", control.UsageByUnit), ask("some", control.UsageByField), ask("globex", control.UsageByUnit), ask("acme", control.UsageByTenant),
	})
	effective, err := s.Effective(s.ctx(), auditor, control.EffectiveInput{Tenant: "acme"})
	require.NoError(t, err)
	require.Equal(t, "fields", effective.Counts)
}
