package control_test

import (
	"errors"
	"fmt"
	"maps"
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
			for _, by := range []usage.By{usage.ByUnit, usage.ByLimit} {
				for window, form := range map[usage.Window]string{usage.Hour: "2006-01-02T15", usage.Day: time.DateOnly, usage.Month: "2006-01"} {
					period := func(t time.Time) string { return t.UTC().Format(form) }
					in := control.UsageSeriesInput{Tenant: "acme", From: from, To: to, Window: window, By: by}
					require.Equal(t, truth.by(by, period), s.told(in, period), "%s by %s", by, window)
				}
				for _, name := range []string{"Europe/Berlin", "America/New_York", "America/Havana", "Europe/London"} {
					zone, err := time.LoadLocation(name)
					require.NoError(t, err)
					for window, form := range map[usage.Window]string{usage.Day: time.DateOnly, usage.Month: "2006-01"} {
						period := func(t time.Time) string { return t.In(zone).Format(form) }
						in := control.UsageSeriesInput{Tenant: "acme", From: from, To: to, Window: window, Zone: name, By: by}
						require.Equal(t, truth.by(by, period), s.told(in, period), "%s by %s in %s", by, window, name)
					}
				}
			}
			// Of minutes two days are told at once.
			period := func(t time.Time) string { return t.UTC().Format(time.RFC3339) }
			in, told := control.UsageSeriesInput{Tenant: "acme", Window: usage.Minute}, map[string]usageSum{}
			for in.From = from; in.From.Before(to); in.From = in.To {
				in.To = in.From.AddDate(0, 0, 2)
				maps.Copy(told, s.told(in, period))
			}
			require.Equal(t, truth.by(usage.ByUnit, period), told, "by minute")
		})
	}
}

// spent is a time in which acme was counted in two hours, of which collection missed what was before the first.
func (s *scene) spent() (hour time.Time) {
	s.Helper()
	hour = s.now.Truncate(time.Hour)
	s.collect(s.now.AddDate(0, 0, -3), hour.Add(-3*time.Hour).Add(30*time.Minute), hour.Add(20*time.Minute), func(tx *store.UsageTx) {
		for _, at := range []time.Time{hour.Add(-5 * time.Hour), hour.Add(-2 * time.Hour), hour} {
			counts := []store.UsageCount{
				{Tenant: "acme", At: hourOf(at), Unit: "points", Charged: 40, GivenBack: 10},
				{Tenant: "acme", At: hourOf(at), Unit: "points", Grade: bucket.UsageLocal, Charged: 5},
				{Tenant: "globex", At: hourOf(at), Unit: "points", Charged: 7},
				{Tenant: "acme", At: hourOf(at), Unit: "points", Field: "Query.search", Charged: 30, Calls: 3},
			}
			_, err := tx.PutUsage(store.UsageHours, counts)
			require.NoError(s, err)
			var refused []store.RefusedCount
			for i, name := range []string{"tenant:minute", "=cmd\x1b[2J", "blocked"} {
				refused = append(refused, store.RefusedCount{Tenant: "acme", Hour: hourOf(at), Name: name, Refused: int64(i + 1)})
			}
			_, err = tx.PutRefused(refused)
			require.NoError(s, err)
		}
	})
	return hour
}

func TestPeriodsSayWhetherZeroWasCountedOrNobodyKnowsAndWhetherTheyAreOpen(t *testing.T) {
	t.Parallel()
	s := newScene(t, control.Config{})
	in := control.UsageSeriesInput{Tenant: "acme", By: usage.ByUnit}
	never, err := s.UsageSeries(s.ctx(), viewer, control.UsageSeriesInput{Tenant: "acme", N: 50})
	require.NoError(t, err)
	require.True(t, never.Since.IsZero() && never.Collected.IsZero())
	require.Len(t, never.Rows, 24)
	for _, r := range never.Rows {
		require.Equal(t, usage.KnownNone, r.Known)
		require.True(t, r.Open)
	}
	hour := s.spent()
	s.now = hour.Add(25 * time.Minute)
	in.From = hour.Add(-6 * time.Hour)
	var told []string
	for _, r := range s.rows(in) {
		require.Equal(t, time.Hour, r.End.Sub(r.Begin))
		net := "?"
		if r.Net != nil {
			net = fmt.Sprint(*r.Net)
		}
		told = append(told, fmt.Sprintf("%v %s %v %q %s %s", r.Begin.Sub(hour), r.Known, r.Open, r.Name, r.Grade, net))
	}
	require.Equal(t, []string{
		`-6h0m0s none false "" exact ?`,
		`-5h0m0s part false "points" exact 30`,
		`-5h0m0s part false "points" local 5`,
		`-4h0m0s none false "" exact ?`,
		`-3h0m0s part false "" exact 0`,
		`-2h0m0s all false "points" exact 30`,
		`-2h0m0s all false "points" local 5`,
		`-1h0m0s all false "" exact 0`,
		`0s all true "points" exact 30`,
		`0s all true "points" local 5`,
	}, told)
	page, err := s.UsageSeries(s.ctx(), viewer, control.UsageSeriesInput{Tenant: "acme", Window: usage.Minute, From: hour, N: 50})
	require.NoError(t, err)
	require.Equal(t, []time.Time{hour, hour.Add(25 * time.Minute), hour.Add(20 * time.Minute)}, []time.Time{page.From, page.To, page.Collected})
	for i, r := range page.Rows {
		require.Equal(t, i >= 20, r.Open, "%v", r.Begin)
	}
	// What is forgotten is not told as zero, and neither is what nobody has collected in time.
	require.NoError(t, s.db.Count(s.ctx(), func(tx *store.UsageTx) error {
		_, err := tx.KeepUsage(store.UsageState{MinutesFrom: minuteOf(hour)})
		require.NoError(t, err)
		return tx.PutUsageGap(store.UsageGap{First: minuteOf(hour) - 90, Until: minuteOf(hour) - 61})
	}))
	old, err := s.UsageSeries(s.ctx(), viewer, control.UsageSeriesInput{Tenant: "acme", Window: usage.Minute, From: hour.Add(-time.Hour), To: hour.Add(time.Minute - time.Hour), N: 5})
	require.NoError(t, err)
	require.Equal(t, usage.KnownNone, old.Rows[0].Known)
	require.Equal(t, hour, old.Kept)
	in.From = hour.Add(-2 * time.Hour)
	rows := s.rows(in)
	require.Equal(t, []usage.Known{usage.KnownPart, usage.KnownPart, usage.KnownAll}, []usage.Known{rows[0].Known, rows[1].Known, rows[2].Known})
}

func TestPagesOfUsageHaveWhatAnExportHas(t *testing.T) {
	t.Parallel()
	s := newScene(t, control.Config{})
	hour := s.spent()
	for name, in := range map[string]control.UsageSeriesInput{
		"by unit":         {Tenant: "acme", By: usage.ByUnit},
		"by limit":        {Tenant: "acme", By: usage.ByLimit},
		"by field of day": {Tenant: "acme", By: usage.ByField, Window: usage.Day, Zone: "Europe/Berlin"},
		"by default":      {Tenant: "acme"},
		"of all":          {Window: usage.Day, By: usage.ByUnit},
		"of months":       {Window: usage.Month, By: usage.ByUnit},
	} {
		in.From, in.To = hour.AddDate(0, 0, -1), hour.AddDate(0, 0, 1)
		want := s.rows(in)
		require.NotEmpty(t, want)
		for _, n := range []int{1, 2, 3, 7} {
			var got []usage.Row
			for in.N, in.After = n, ""; ; {
				page, err := s.UsageSeries(s.ctx(), viewer, in)
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

func TestNamesThatAreAskedForAreFound(t *testing.T) {
	t.Parallel()
	s := newScene(t, control.Config{})
	hour := s.spent()
	in := control.UsageSeriesInput{Tenant: "acme", By: usage.ByLimit, From: hour.Add(-2 * time.Hour), Names: []string{"blocked"}}
	rows := s.rows(in)
	require.Len(t, rows, 3)
	for i, refused := range []int64{3, 0, 3} {
		require.Equal(t, "blocked", rows[i].Name)
		require.Equal(t, refused, *rows[i].Refused)
		require.Equal(t, usage.Instance, rows[i].Grade)
	}
	in.Names = []string{"blocked", "nobody"}
	rows = s.rows(in)
	require.Equal(t, []string{"blocked", "", "blocked"}, []string{rows[0].Name, rows[1].Name, rows[2].Name})
}

func TestATenantAdminReadsTheUsageOfNobodyElse(t *testing.T) {
	t.Parallel()
	s := newScene(t, control.Config{})
	s.spent()
	ask := func(a access.Actor, tenant string) error {
		in := control.UsageSeriesInput{Tenant: tenant, Window: usage.Day, By: usage.ByUnit, N: 5}
		_, err := s.UsageSeries(s.ctx(), a, in)
		exported := s.ExportUsage(s.ctx(), a, in, func(page *usage.Series) error {
			for _, r := range page.Rows {
				require.True(t, tenant == "" || r.Tenant == "", "who asks knows the tenant")
			}
			return nil
		})
		require.Equal(t, errors.Is(err, access.ErrDenied), errors.Is(exported, access.ErrDenied))
		return err
	}
	require.NoError(t, ask(customer("acme"), "acme"))
	for _, tenant := range []string{"globex", ""} {
		require.ErrorIs(t, ask(customer("acme"), tenant), access.ErrDenied)
		require.ErrorIs(t, ask(actor("nobody"), tenant), access.ErrDenied)
		for _, role := range access.Roles() {
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
		{"by", "none of unit", control.UsageSeriesInput{Tenant: "a", By: "colour"}},
		{"zone", "ask for days or months", control.UsageSeriesInput{Tenant: "a", Zone: "Europe/Berlin"}},
		{"zone", "Europe/Berlin", control.UsageSeriesInput{Tenant: "a", Zone: "Mars/North", Window: usage.Day}},
		{"zone", "ask for hours", control.UsageSeriesInput{Tenant: "a", Zone: "Asia/Kolkata", Window: usage.Month}},
		{"window", "name a tenant, or ask for the window day", control.UsageSeriesInput{}},
		{"by", "name a tenant", control.UsageSeriesInput{Window: usage.Day, By: usage.ByField}},
		{"zone", "name a tenant", control.UsageSeriesInput{Window: usage.Day, Zone: "Europe/Berlin"}},
		{"to", "not after from", control.UsageSeriesInput{Tenant: "a", From: hour, To: hour}},
		{"from", "more than 2881 minutes: ask for a shorter range, or for the window hour", control.UsageSeriesInput{Tenant: "a", Window: usage.Minute, From: hour.AddDate(-1, 0, 0)}},
		{"from", "years", control.UsageSeriesInput{Tenant: "a", From: time.Date(1, 1, 1, 0, 0, 0, 1, time.UTC)}},
		{"from", "years", control.UsageSeriesInput{Tenant: "a", To: time.Date(100_000, 1, 1, 0, 0, 0, 0, time.UTC), From: hour}},
		{"window", "ask for the window hour", control.UsageSeriesInput{Tenant: "a", By: usage.ByLimit, Window: usage.Minute}},
		{"name", "at most 20", control.UsageSeriesInput{Tenant: "a", Names: make([]string, 21)}},
		{"name", "control characters", control.UsageSeriesInput{Tenant: "a", Names: []string{"\x00"}}},
		{"tenant", "control characters", control.UsageSeriesInput{Tenant: "a\n"}},
		{"after", "no pages", control.UsageSeriesInput{Tenant: "a", After: "x"}},
	} {
		err := s.ExportUsage(s.ctx(), viewer, c.in, func(*usage.Series) error {
			t.Error("it was answered")
			return nil
		})
		requireInvalid(t, err, c.field, c.problem)
	}
	for _, after := range []string{"x", "bnVsbA==", "eyJnIjoibm9uZSJ9"} {
		_, err := s.UsageSeries(s.ctx(), viewer, control.UsageSeriesInput{Tenant: "a", After: after, N: 1})
		requireInvalid(t, err, "after", "")
	}
	for _, n := range []int{-1, 0, 1001} {
		_, err := s.UsageSeries(s.ctx(), viewer, control.UsageSeriesInput{Tenant: "a", N: n})
		requireInvalid(t, err, "first", "")
	}
}

func TestAnExportOfTooManyRowsIsRefusedBeforeItBegins(t *testing.T) {
	t.Parallel()
	s := newScene(t, control.Config{})
	hour := s.now.Truncate(time.Hour)
	const hours, names = 9, 130
	begin := hour.Add(-(hours - 1) * time.Hour)
	s.collect(begin, begin, hour, func(tx *store.UsageTx) {
		var counts []store.RefusedCount
		for i := range hours * names {
			counts = append(counts, store.RefusedCount{Tenant: "acme", Hour: hourOf(begin) + int64(i/names), Name: fmt.Sprint(i % names), Refused: 1})
		}
		_, err := tx.PutRefused(counts)
		require.NoError(t, err)
	})
	in := control.UsageSeriesInput{Tenant: "acme", By: usage.ByLimit, Window: usage.Hour, From: begin, To: hour.Add(time.Hour)}
	require.Len(t, s.rows(in), hours*names, "more than a page")
	s.BoundExports(hours * names)
	for _, zone := range []string{"", "Europe/Berlin"} {
		in := in
		if in.Zone = zone; zone != "" {
			s.BoundExports(names)
			in.Window = usage.Day
		}
		err := s.ExportUsage(s.ctx(), viewer, in, func(*usage.Series) error {
			t.Error("it has begun")
			return nil
		})
		requireInvalid(t, err, "from", "rows: ask for the window")
		requireInvalid(t, err, "from", "a shorter range, or the names that you need")
	}
	in.Window = usage.Day
	s.BoundExports(2*names + 2)
	require.Len(t, s.rows(in), 2*names, "it has parts of two days")
	stop := errors.New("stop")
	s.BoundExports(10_000)
	in.Window = usage.Hour
	pages := 0
	require.ErrorIs(t, s.ExportUsage(s.ctx(), viewer, in, func(*usage.Series) error { pages++; return stop }), stop)
	require.Equal(t, 1, pages, "who does not read any more is asked for no more")
}

func TestUsageSaysWhatThePolicyHasCounted(t *testing.T) {
	t.Parallel()
	s := newScene(t, control.Config{})
	ask := func(tenant string, by usage.By) string {
		page, err := s.UsageSeries(s.ctx(), viewer, control.UsageSeriesInput{Tenant: tenant, By: by, N: 1})
		require.NoError(t, err)
		return page.Counts
	}
	require.Empty(t, ask("acme", usage.ByUnit), "there is no policy")
	s.publish("version: 1\ndefault: free\ntiers:\n  free: {limits: {minute: {capacity: 5, per: minute}}}\n  pro: {usage: fields, limits: {minute: {capacity: 5, per: minute}}}\ntenants: {acme: {tier: pro}, some: {usage: totals}}\n", 0)
	require.Equal(t, []string{"fields", "totals", "none", ""}, []string{
		ask("acme", usage.ByUnit), ask("some", usage.ByField), ask("globex", usage.ByUnit), ask("acme", usage.ByLimit),
	})
	effective, err := s.Effective(s.ctx(), viewer, control.EffectiveInput{Tenant: "acme"})
	require.NoError(t, err)
	require.Equal(t, "fields", effective.Counts)
}
