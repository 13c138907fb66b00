package usage_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/digest"
	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/usage"
)

var noon = time.Date(2026, time.November, 23, 12, 0, 0, 0, time.UTC)

func recorder(t testing.TB, cfg usage.RecorderConfig) *usage.Recorder {
	t.Helper()
	r, err := usage.NewRecorder(cfg)
	require.NoError(t, err)
	return r
}

func admitted(at time.Time, tenant, user, field string, cost int64) event.Verdict {
	return event.Verdict{At: at, Tenant: tenant, User: user, Outcome: "admitted", RootFields: []string{field}, Cost: cost}
}

func refused(at time.Time, tenant, limit string) event.Verdict {
	return event.Verdict{At: at, Tenant: tenant, Outcome: "limited", Refused: true, Because: "limited", Level: "tenant", Limit: limit, Cost: 7}
}

func TestMinutesThatAreOverAreToldUntilTheyStand(t *testing.T) {
	t.Parallel()
	r := recorder(t, usage.RecorderConfig{})
	r.Count(admitted(noon, "acme", "", "Query.search", 1))
	for after := range 30 {
		now := noon.Add(time.Duration(after) * time.Minute)
		batch := r.Collect(now, now)
		require.Len(t, batch.Decisions, 2, after)
		require.Equal(t, noon, batch.Decisions[0].Minute)
	}
	r.Stored()
	now := noon.Add(31 * time.Minute)
	require.Empty(t, r.Collect(now, now).Decisions)

	// A clock that is set back makes no number of a minute that was told smaller.
	r.Count(admitted(noon, "acme", "", "Query.search", 1))
	batch := r.Collect(now, now)
	require.Len(t, batch.Decisions, 2)
	require.Equal(t, noon.Add(time.Minute), batch.Decisions[0].Minute)
}

func TestCountingAKnownTenantAllocatesNothing(t *testing.T) {
	r := recorder(t, usage.RecorderConfig{})
	one := admitted(noon, "acme", "mira", "Query.search", 3)
	one.Team = "blue"
	several := one
	several.RootFields = []string{"Query.a", "Query.b", "Query.c"}
	no := refused(noon, "acme", "minute")
	counted := event.UsageCounted{Tenant: "acme", At: noon}
	count := func() {
		r.Count(one)
		r.Count(several)
		r.Count(no)
		r.CountUsage(counted)
	}
	for range 4 {
		count()
		r.Collect(noon, noon)
		r.Stored()
	}
	// A collection keeps the room of those that come often.
	require.Zero(t, testing.AllocsPerRun(1000, count))
}

func TestManyCountAtOnceWhileOneCollects(t *testing.T) {
	t.Parallel()
	const callers, each = 8, 2000
	r := recorder(t, usage.RecorderConfig{})
	var counting sync.WaitGroup
	for caller := range callers {
		counting.Go(func() {
			for i := range each {
				r.Count(admitted(noon, fmt.Sprint("tenant-", (caller+i)%10), "mira", "Query.search", 1))
				r.CountUsage(event.UsageCounted{Tenant: "acme", At: noon})
			}
		})
	}
	done := make(chan struct{})
	go func() { counting.Wait(); close(done) }()
	kept := table{}
	for over := false; !over; {
		select {
		case <-done:
			over = true
		default:
		}
		batch := r.Collect(noon, noon)
		kept.keep(&batch)
		r.Stored()
	}
	require.EqualValues(t, callers*each, kept.sum(usage.ByTenant).Admitted)
}

func TestATenantIsToldOnceAMinuteAndAgainAfterALaterCount(t *testing.T) {
	t.Parallel()
	r := recorder(t, usage.RecorderConfig{})
	count := func(tenant string, at time.Time, local bool) {
		r.CountUsage(event.UsageCounted{Tenant: tenant, At: at, Local: local})
	}
	told := func(now time.Time, stored bool) []usage.Counted {
		batch := r.Collect(now, now)
		if stored {
			r.Stored()
		}
		return batch.Counted
	}
	at := noon.Add(59 * time.Minute)
	acme := usage.Counted{Tenant: "acme", Hour: noon}
	count("acme", at, false)
	require.Equal(t, []usage.Counted{acme}, told(at, false))
	require.Equal(t, []usage.Counted{acme}, told(at.Add(time.Second), true), "it was not stored")
	count("acme", at, false)
	require.Empty(t, told(at.Add(2*time.Second), true), "it was told in this minute")
	count("acme", at, false)
	require.Equal(t, []usage.Counted{acme}, told(at.Add(time.Minute), true), "it was counted since")
	require.Empty(t, told(at.Add(2*time.Minute), true), "nothing was counted since")
	count("acme", at, false)
	require.Equal(t, []usage.Counted{acme}, told(at.Add(3*time.Minute), true), "a late settlement is told in its own minute")
	count("acme", at.Add(3*time.Minute), true)
	require.Equal(t, []usage.Counted{{Tenant: "acme", Hour: noon.Add(time.Hour), Grade: bucket.UsageLocal}}, told(at.Add(3*time.Minute), true))
	count("acme", at.Add(3*time.Minute), true)
	require.Empty(t, told(at.Add(3*time.Minute+30*time.Second), true))
	require.Empty(t, told(at.Add(4*time.Minute), true))

	count(strings.Repeat("x", 1025), at, false)
	require.Empty(t, told(at.Add(5*time.Minute), true))
	require.EqualValues(t, 1, r.Losses().Untold)
	r.CountUsage(event.UsageCounted{Store: "eu", Tenant: "acme", At: at})
	require.Empty(t, told(at.Add(6*time.Minute), true), "it is of another store")
}

func TestNamesOfUsersAreWrittenAsConfiguredAndHashesUnlessTheyAre(t *testing.T) {
	t.Parallel()
	key := []byte("0123456789abcdef")
	names := func(cfg usage.RecorderConfig, hidden bool) []string {
		r := recorder(t, cfg)
		v := refused(noon, "acme", "minute")
		v.User, v.Team, v.HideOwners = "mira\x00", "blue", hidden
		r.Count(v)
		r.Observe(t.Context(), event.ThresholdCrossed{
			Budget: event.Budget{Tenant: "acme", Level: "user", Owner: "mira\x00", Limit: "minute", Part: "secret"}, At: noon, Threshold: .8,
		})
		r.Observe(t.Context(), event.LimitReached{Budget: event.Budget{Tenant: "acme", Level: "team", Owner: "blue", Limit: "minute"}, At: noon})
		batch := r.Collect(noon, noon)
		found := map[string]bool{}
		for _, d := range batch.Decisions {
			found[d.By.String()+" "+d.Name] = true
		}
		for _, c := range batch.Reached {
			found[fmt.Sprint(c.Level, " ", c.Owner, " ", c.Limit, " ", c.Threshold)] = true
			require.EqualValues(t, 1, c.Times)
		}
		return slices.Sorted(maps.Keys(found))
	}
	user := digest.HashUser(key, "acme", "mira\x00")
	require.Equal(t, []string{
		"limit tenant:minute", "operation ", "team blue", "team blue minute 100", "tenant ", "user " + user, "user " + user + " minute 80",
	}, names(usage.RecorderConfig{Key: key}, false))
	require.Contains(t, names(usage.RecorderConfig{Key: key, Users: digest.Plain}, false), `user mira\x00`)
	hidden := names(usage.RecorderConfig{Key: key, Users: digest.Plain}, true)
	require.Contains(t, hidden, "user "+user)
	require.NotContains(t, hidden, "team blue")
	for _, name := range names(usage.RecorderConfig{Key: key, Users: digest.Omitted}, false) {
		require.NotContains(t, name, "mira")
		require.NotContains(t, name, user)
	}
}

func TestWhatDoesNotRunAndWhatIsNotPaidHasNoPoints(t *testing.T) {
	t.Parallel()
	r := recorder(t, usage.RecorderConfig{})
	for _, outcome := range []string{"admitted", "shadowed", "unjudged", "replayed", "repeated", "exempt", "validated"} {
		v := admitted(noon, "acme", "", "Query.search", 5)
		v.Outcome = outcome
		r.Count(v)
	}
	r.Count(refused(noon, "acme", "minute"))
	batch := r.Collect(noon, noon)
	kept := table{}
	kept.keep(&batch)
	require.Equal(t, usage.Numbers{Admitted: 6, Refused: 1, Points: 15}, kept.sum(usage.ByTenant))
	require.Equal(t, kept.sum(usage.ByTenant), kept.sum(usage.ByOperation))
}

func TestARecorderOfAnotherStoreTellsWhoWasCountedAndCountsNoDecisions(t *testing.T) {
	t.Parallel()
	r := recorder(t, usage.RecorderConfig{Store: "eu", Tenants: usage.None})
	r.Count(admitted(noon, "acme", "", "Query.search", 1))
	r.Observe(t.Context(), event.LimitReached{Budget: event.Budget{Tenant: "acme"}, At: noon})
	r.CountUsage(event.UsageCounted{Tenant: "acme", At: noon, Store: "eu"})
	require.Equal(t, usage.Batch{Counted: []usage.Counted{{Tenant: "acme", Hour: noon}}}, r.Collect(noon, noon))
	require.False(t, r.Keep(t.Context(), event.Decided{RefusalID: "id"}), "nobody finds a refusal in counts")
}

func TestEveryMistakeInAConfigurationIsReported(t *testing.T) {
	t.Parallel()
	_, err := usage.NewRecorder(usage.RecorderConfig{Users: 7, Key: []byte("short"), Tenants: -2, Names: 5000, Rows: 1, Counted: -1})
	for _, field := range []string{"Users", "Key", "Tenants", "Names", "Rows", "Counted"} {
		require.ErrorContains(t, err, "RecorderConfig."+field)
	}
}

// BenchmarkCount says what counting one decision of a known tenant takes in a request.
func BenchmarkCount(b *testing.B) {
	r := recorder(b, usage.RecorderConfig{})
	v := admitted(noon, "acme", "mira", "Query.search", 3)
	b.ReportAllocs()
	for b.Loop() {
		r.Count(v)
		r.CountUsage(event.UsageCounted{Tenant: "acme", At: noon})
	}
}
