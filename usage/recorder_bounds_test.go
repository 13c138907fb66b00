package usage_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/digest"
	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/usage"
)

func TestAFloodOfNamesTakesBoundedMemoryAndTheSumsAreRight(t *testing.T) {
	const flood = 1_000_000
	r := recorder(t, usage.RecorderConfig{Tenants: 256, Names: 16, Rows: 5000, Counted: 1000, Users: digest.Plain})
	heap := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before, kept, now := heap(), table{}, noon
	told := map[string]bool{}
	for i := range flood {
		tenant := fmt.Sprint("tenant-", i)
		if i%2 == 0 {
			tenant = "acme"
		}
		v := admitted(now, tenant, fmt.Sprint("user-", i), fmt.Sprint("Query.f", i), 2)
		v.Team = fmt.Sprint("team-", i)
		r.Count(v)
		r.CountUsage(event.UsageCounted{Tenant: tenant, At: now})
		r.Observe(t.Context(), event.LimitReached{Budget: event.Budget{Tenant: tenant, Level: "user", Owner: v.User, Limit: "minute"}, At: now})
		if i%1000 == 999 {
			now = now.Add(time.Second)
			batch := r.Collect(now, now)
			kept.keep(&batch)
			for _, c := range batch.Counted {
				told[c.Tenant] = true
			}
			r.Stored()
		}
	}
	require.Less(t, heap()-before, int64(64<<20))
	require.Equal(t, usage.Numbers{Admitted: flood, Points: 2 * flood}, kept.sum(usage.ByTenant))
	own, by := usage.Numbers{}, map[usage.Dimension]table{}
	rows := map[int64]int{}
	for of, n := range kept {
		rows[of.minute]++
		if of.tenant != "acme" {
			continue
		}
		if of.by == usage.ByTenant {
			own.Admitted += n.Admitted
		}
		if by[of.by] == nil {
			by[of.by] = table{}
		}
		by[of.by].add(row{}, n)
	}
	require.EqualValues(t, flood/2, own.Admitted, "who asks often has room of its own")
	for _, dimension := range []usage.Dimension{usage.ByOperation, usage.ByTeam, usage.ByUser} {
		require.EqualValues(t, flood/2, by[dimension][row{}].Admitted, dimension)
	}
	for minute, n := range rows {
		require.LessOrEqual(t, n, 5000+100, minute)
	}
	losses := r.Losses()
	require.GreaterOrEqual(t, losses.Other, uint64(flood/2))
	require.Zero(t, losses.Lost)
	require.True(t, told["acme"])
	require.Positive(t, losses.Untold)
	runtime.KeepAlive(r)
}

func TestWhatIsNotStoredForLongIsBoundedAndWhatIsLostIsSaid(t *testing.T) {
	t.Parallel()
	const rows = 1000
	r := recorder(t, usage.RecorderConfig{Rows: rows})
	now, truth := noon, int64(0)
	var batch usage.Batch
	for range 500 {
		for tenant := range 20 {
			r.Count(admitted(now, fmt.Sprint("tenant-", tenant), "", "Query.search", 1))
			truth++
		}
		batch = r.Collect(now, now)
		require.LessOrEqual(t, len(batch.Decisions), rows)
		now = now.Add(time.Minute)
	}
	kept := table{}
	kept.keep(&batch)
	require.Greater(t, len(batch.Decisions), rows/2)
	require.Equal(t, truth, kept.sum(usage.ByTenant).Admitted+int64(r.Losses().Lost))
	require.Contains(t, kept, row{"tenant-1", now.Add(-time.Minute).Unix() / 60, usage.ByTenant, ""}, "the newest minutes are kept")
}

func TestAClientOfManyOperationsTakesTheNamesOfNoOtherUserAndOfNoLimit(t *testing.T) {
	r := recorder(t, usage.RecorderConfig{Names: 16, Users: digest.Plain})
	for i := range 1000 {
		r.Count(admitted(noon, "acme", "loud", fmt.Sprint("Query.f", i), 1))
	}
	r.Count(admitted(noon, "acme", "quiet", "Query.f0", 1))
	refused := admitted(noon, "acme", "quiet", "Query.f0", 0)
	refused.Refused, refused.Level, refused.Limit = true, "tenant", "minute"
	r.Count(refused)
	kept := table{}
	batch := r.Collect(noon, noon)
	kept.keep(&batch)
	users, limits, operations := map[string]bool{}, 0, 0
	for of := range kept {
		switch of.by {
		case usage.ByUser:
			users[of.name] = true
		case usage.ByLimit:
			limits++
		case usage.ByOperation:
			operations++
		default:
		}
	}
	require.Equal(t, map[string]bool{"loud": true, "quiet": true}, users)
	require.Equal(t, 1, limits)
	// The names of the others have an eighth each.
	require.Equal(t, 16-3*2+1, operations)
}
