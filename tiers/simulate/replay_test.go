package simulate_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
	"github.com/gqlgen-ratelimit/ratelimit/tiers/simulate"
)

func TestAReplayJudgesInTheModesOfThePolicy(t *testing.T) {
	t.Parallel()
	policy := compiled(t, `
version: 1
default: free
tiers:
  free:
    maxCost: 50
    limits:
      minute: {capacity: 10, per: minute, mode: warn}
      rows: {unit: rows, capacity: 5, per: minute}
`)
	for _, enforced := range []bool{false, true} {
		replay, err := simulate.NewReplay(policy, simulate.ReplayConfig{Enforced: enforced})
		require.NoError(t, err)
		judge := func(points, rows int64) simulate.Judgment {
			judgment, err := replay.Judge(t.Context(), &simulate.Record{
				At: noon, Tenant: "acme", Points: points, Units: map[bucket.Unit]int64{"rows": rows},
			})
			require.NoError(t, err)
			return judgment
		}
		require.True(t, judge(51, 0).TooExpensive)
		require.False(t, judge(10, 3).Refused)
		require.True(t, judge(0, 3).Refused, "the rows are enforced")
		require.Equal(t, enforced, judge(1, 0).Refused, "the minute is in mode warn")
	}
}

func TestAReplayHasTheRecordsAndOverridesOfTenants(t *testing.T) {
	t.Parallel()
	policy := compiled(t, "version: 1\ndefault: free\ntiers: {free: {limits: {minute: {capacity: 1, per: minute}}}, barred: {blocked: true}}\n")
	replay, err := simulate.NewReplay(policy, simulate.ReplayConfig{Record: func(tenant string) *tiers.Record {
		if tenant == "barred" {
			return tiers.AssignedTo("barred")
		}
		return nil
	}})
	require.NoError(t, err)
	require.NoError(t, replay.SetOverride(t.Context(), "acme", bucket.Override{
		Limit: "minute", Capacity: 7, Reason: "a trial", Actor: "ops", Expires: noon.Add(-time.Hour),
	}))
	judge := func(tenant string, points int64) simulate.Judgment {
		judgment, err := replay.Judge(t.Context(), &simulate.Record{At: noon, Tenant: tenant, Points: points})
		require.NoError(t, err)
		return judgment
	}
	require.True(t, judge("barred", 1).Blocked)
	require.False(t, judge("acme", 7).Refused, "the override holds whatever it says of its end")
	require.True(t, judge("globex", 7).Refused)

	_, err = simulate.NewReplay(nil, simulate.ReplayConfig{})
	require.Error(t, err)
	_, err = replay.Judge(t.Context(), &simulate.Record{Tenant: "acme"})
	require.Error(t, err)
}
