package graph_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
)

func TestUsageIsToldByPeriodAndNameAPageAtATime(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	hour := time.Now().UTC().Truncate(time.Hour).Add(-2 * time.Hour)
	minute := hour.Unix() / 60
	require.NoError(t, s.db.Count(t.Context(), func(tx *store.UsageTx) error {
		_, err := tx.KeepUsage(store.UsageState{MinutesFrom: store.DayOf(hour), MinutesUntil: store.DayOf(hour) + 2})
		require.NoError(t, err)
		require.NoError(t, tx.PutUsagePass("told", minute-600))
		require.NoError(t, tx.PutUsagePass("told", minute+59))
		_, err = tx.PutUsage([]store.UsageCount{
			{Tenant: "acme", Minute: minute, Unit: "points", Charged: 40, GivenBack: 10}, {Tenant: "acme", Minute: minute, Unit: "requests", Charged: 4},
		})
		require.NoError(t, err)
		_, err = tx.PutDecisions([]store.DecisionCount{{Tenant: "acme", Minute: minute, Dimension: "tenant", Instance: "api", Admitted: 3, Refused: 1, Points: 9}})
		return err
	}))
	for found := 1; found > 0; {
		require.NoError(t, s.db.Count(t.Context(), func(tx *store.UsageTx) (err error) {
			found, err = tx.RollUp(time.Now(), 100)
			return err
		}))
	}
	const query = `query($after: String, $from: Time, $to: Time) {
		usageSeries(tenant: "acme", by: UNIT, from: $from, to: $to, first: 1, after: $after) { counts nodes { begin open known name grade charged net admitted } pageInfo { hasNextPage } next } }`
	variables := map[string]any{"from": hour.Add(-time.Hour), "to": hour.Add(time.Hour)}
	var rows []any
	for {
		a := s.ask("tenant-admin", query, variables)
		require.Empty(t, a.Errors, a.Body)
		page := a.Data["usageSeries"].(map[string]any)
		require.Equal(t, "none", page["counts"])
		rows = append(rows, page["nodes"].([]any)...)
		if variables["after"] = page["next"]; page["next"] == nil {
			break
		}
	}
	before, at := hour.Add(-time.Hour).Format(time.RFC3339), hour.Format(time.RFC3339)
	require.Equal(t, []any{
		map[string]any{"begin": before, "open": false, "known": "ALL", "name": "", "grade": "exact", "charged": 0.0, "net": 0.0, "admitted": nil},
		map[string]any{"begin": at, "open": false, "known": "ALL", "name": "points", "grade": "exact", "charged": 40.0, "net": 30.0, "admitted": nil},
		map[string]any{"begin": at, "open": false, "known": "ALL", "name": "requests", "grade": "exact", "charged": 4.0, "net": 4.0, "admitted": nil},
	}, rows)
	a := s.ask("viewer", `{ usageSeries(window: DAY, first: 1000) { nodes { tenant admitted refused points charged } } }`, nil)
	require.Empty(t, a.Errors, a.Body)
	require.Contains(t, a.Data["usageSeries"].(map[string]any)["nodes"], map[string]any{"tenant": "acme", "admitted": 3.0, "refused": 1.0, "points": 9.0, "charged": nil})
	require.Equal(t, "FORBIDDEN", s.ask("another-admin", query, map[string]any{}).code())
}
