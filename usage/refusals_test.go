package usage_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/usage"
)

var hour = time.Date(2026, 11, 23, 10, 0, 0, 0, time.UTC)

// sorted are refusals in one order.
func sorted(all []usage.Refused) []usage.Refused {
	slices.SortFunc(all, func(a, b usage.Refused) int {
		return strings.Compare(fmt.Sprint(a.Hour.Unix(), a.Tenant, a.Limit), fmt.Sprint(b.Hour.Unix(), b.Tenant, b.Limit))
	})
	return all
}

func TestRefusalsAreCountedByTenantAndLimit(t *testing.T) {
	t.Parallel()
	var r usage.Refusals
	refused := func(at time.Time, tenant string, v event.Verdict) {
		v.At, v.Tenant, v.Refused = at, tenant, true
		r.Count(v)
	}
	r.Count(event.Verdict{At: hour, Tenant: "acme", Outcome: "admitted", WouldRefuse: true})
	require.Empty(t, r.Snapshot())
	refused(hour.Add(time.Minute), "acme", event.Verdict{Outcome: "limited", Level: "tenant", Limit: "minute"})
	refused(hour.Add(59*time.Minute), "acme", event.Verdict{Outcome: "limited", Level: "tenant", Limit: "minute"})
	refused(hour, "acme", event.Verdict{Outcome: "validated", Level: "tenant", Limit: "minute"})
	refused(hour, "acme", event.Verdict{Outcome: "too_expensive"})
	refused(hour.Add(time.Hour), "globex", event.Verdict{Outcome: "limited", Because: "blocked"})
	r.Add(hour, "acme", "again")
	want := []usage.Refused{
		{Tenant: "acme", Limit: "again", Hour: hour, N: 1},
		{Tenant: "acme", Limit: "tenant:minute", Hour: hour, N: 2},
		{Tenant: "acme", Limit: "too_expensive", Hour: hour, N: 1},
		{Tenant: "globex", Limit: "blocked", Hour: hour.Add(time.Hour), N: 1},
	}
	require.Equal(t, want, sorted(r.Snapshot()))
	require.Equal(t, want, sorted(r.Snapshot()), "what is not stored is there again")
	r.Add(hour, "acme", "again")
	r.Stored()
	require.Equal(t, []usage.Refused{{Tenant: "acme", Limit: "again", Hour: hour, N: 2}}, r.Snapshot(), "what has grown meanwhile is not stored")
	r.Stored()
	require.Empty(t, r.Snapshot())
}

func TestRefusalsKeepTwoHours(t *testing.T) {
	t.Parallel()
	var r usage.Refusals
	for n := range 4 {
		r.Add(hour.Add(time.Duration(n)*time.Hour), "acme", "blocked")
	}
	found := sorted(r.Snapshot())
	require.Len(t, found, 2)
	require.Equal(t, hour.Add(2*time.Hour), found[0].Hour)
}

func TestRefusalsHaveRoomForSoManyNames(t *testing.T) {
	t.Parallel()
	var r usage.Refusals
	const many = 5000
	long := strings.Repeat("x", 4096)
	for n := range many {
		r.Add(hour, fmt.Sprint(n, long), "blocked")
		r.Add(hour, "acme", fmt.Sprint(n, long))
	}
	sum, limits, others := int64(0), 0, int64(0)
	found := r.Snapshot()
	for _, one := range found {
		require.LessOrEqual(t, max(len(one.Tenant), len(one.Limit)), usage.MaxName)
		if sum += one.N; one.Tenant == "acme" {
			limits++
		}
		if one.Tenant == usage.Other || one.Limit == usage.Other {
			others += one.N
		}
	}
	require.EqualValues(t, 2*many, sum, "nothing is lost")
	require.Less(t, len(found), 3000)
	require.Less(t, limits, 40)
	require.Greater(t, others, int64(many))
}

func TestRefusalsAllocateNothingForWhatIsKnown(t *testing.T) {
	var r usage.Refusals
	v := event.Verdict{At: hour, Tenant: "acme", Outcome: "limited", Level: "tenant", Limit: "minute", Refused: true}
	r.Count(v)
	require.Zero(t, testing.AllocsPerRun(100, func() { r.Count(v) }))
}
