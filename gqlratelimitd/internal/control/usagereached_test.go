package control_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/control"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
	"github.com/gqlgen-ratelimit/ratelimit/usage"
)

// filledUp has tenants near their limits: one on as many days as its number says, of which the last one is today.
func (s *scene) filledUp() (today time.Time) {
	s.Helper()
	today = s.now.Truncate(24 * time.Hour)
	s.collect(today.AddDate(0, 0, -20), today.AddDate(0, 0, -20), s.now, func(tx *store.UsageTx) {
		var counts []store.ReachedCount
		for tenant := range 9 {
			for day := range tenant {
				at := minuteOf(today.AddDate(0, 0, -day)) + 30
				for i, threshold := range []int{50, 80, 100} {
					for boot := range 2 {
						counts = append(counts, store.ReachedCount{
							Tenant: fmt.Sprint("t", tenant), Minute: at, Level: "tenant", Limit: "minute", Threshold: threshold, Instance: "api", Boot: fmt.Sprint(boot), Times: int64(i + 1),
						})
					}
				}
				counts = append(counts,
					store.ReachedCount{Tenant: fmt.Sprint("t", tenant), Minute: at, Level: "user", Owner: "\x1b[2J", Limit: "hour", Threshold: 100, Instance: "api", Boot: "0", Times: 5},
					store.ReachedCount{Tenant: fmt.Sprint("t", tenant), Minute: at, Level: "planet", Limit: "hour", Threshold: 100, Instance: "api", Boot: "0", Times: 5})
			}
		}
		_, err := tx.PutReached(counts)
		require.NoError(s, err)
	})
	return today
}

func TestWhatWasReachedIsToldByOwnerLimitAndThresholdInTheOrderOfTime(t *testing.T) {
	t.Parallel()
	s := newScene(t, control.Config{})
	today := s.filledUp()
	ask := func(in control.ReachedInput, n int) (told []string) {
		for in.N = n; ; {
			page, err := s.Reached(s.ctx(), admin(in.Tenant), in)
			require.NoError(t, err)
			for _, r := range page.Rows {
				require.Equal(t, usage.Sampled, r.Grade)
				told = append(told, fmt.Sprintf("%v %v %s %s %s %d %d", r.Begin.Sub(today), r.End.Sub(r.Begin), r.Level, r.Owner, r.Limit, r.Threshold, r.Times))
			}
			if in.After = page.Next; in.After == "" {
				return told
			}
			require.Len(t, page.Rows, n)
		}
	}
	want := []string{
		"-24h0m0s 24h0m0s tenant  minute 80 4", "-24h0m0s 24h0m0s tenant  minute 100 6", `-24h0m0s 24h0m0s user \x1b[2J hour 100 5`,
		"0s 24h0m0s tenant  minute 80 4", "0s 24h0m0s tenant  minute 100 6", `0s 24h0m0s user \x1b[2J hour 100 5`,
	}
	for n := range 8 {
		require.Equal(t, want, ask(control.ReachedInput{Tenant: "t2", Threshold: 80}, n+1))
	}
	require.Equal(t, []string{"30m0s 1m0s tenant  minute 50 2", "30m0s 1m0s tenant  minute 80 4", "30m0s 1m0s tenant  minute 100 6", `30m0s 1m0s user \x1b[2J hour 100 5`},
		ask(control.ReachedInput{Tenant: "t1", Window: control.UsageMinute, From: today}, 3))
	require.Empty(t, ask(control.ReachedInput{Tenant: "t0"}, 3))
	for field, in := range map[string]control.ReachedInput{
		"window": {Tenant: "a", Window: control.UsageHour, N: 1}, "threshold": {Tenant: "a", Threshold: 101, N: 1}, "first": {Tenant: "a"}, "after": {Tenant: "a", After: "x", N: 1},
		"from": {Tenant: "a", From: today.AddDate(-20, 0, 0), N: 1}, "tenant": {Tenant: "a\x00", N: 1},
	} {
		_, err := s.Reached(s.ctx(), auditor, in)
		requireInvalid(t, err, field, "")
	}
}

func TestWhoWasNearALimitOnMostOfSevenDaysIsFoundAmongAll(t *testing.T) {
	t.Parallel()
	s := newScene(t, control.Config{})
	today := s.filledUp()
	ask := func(in control.NearInput, n int) (told []string) {
		for in.N = n; ; {
			page, err := s.NearLimits(s.ctx(), operator, in)
			require.NoError(t, err)
			for _, r := range page.Rows {
				told = append(told, fmt.Sprintf("%s %s %d %v %d %d", r.Tenant, r.Limit, r.Days, r.Last.Equal(today), r.Times, r.Most))
			}
			if in.After = page.Next; in.After == "" {
				return told
			}
			require.Len(t, page.Rows, n)
		}
	}
	want := []string{"t7 minute 7 true 70 100", "t8 minute 7 true 70 100", "t6 minute 6 true 60 100", "t5 minute 5 true 50 100", "t4 minute 4 true 40 100"}
	for n := range 6 {
		require.Equal(t, want, ask(control.NearInput{}, n+1), "on three days is not on most")
	}
	require.Equal(t, []string{"t8 minute 8 true 48 100"}, ask(control.NearInput{Days: 10, AtLeast: 8, Threshold: 90}, 5))
	require.Equal(t, []string{"t8 hour 8 true 40 100"}, ask(control.NearInput{Days: 31, AtLeast: 8, Level: "user"}, 5))
	require.Empty(t, ask(control.NearInput{Level: "team"}, 5))
	for field, in := range map[string]control.NearInput{
		"days": {Days: 32, N: 1}, "atLeast": {AtLeast: 8, N: 1}, "threshold": {Threshold: 101, N: 1}, "level": {Level: "planet", N: 1}, "first": {}, "after": {After: "x", N: 1},
	} {
		_, err := s.NearLimits(s.ctx(), operator, in)
		requireInvalid(t, err, field, "")
	}
}
