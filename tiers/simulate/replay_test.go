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

func TestAReplayJudgesByPartsAndByWhatWasCarried(t *testing.T) {
	t.Parallel()
	policy := compiled(t, `
version: 1
default: free
parameters: {lang: {header: X-Lang}, plan: {claim: plan}}
tiers:
  free:
    limits: {minute: {capacity: 10, per: minute}}
    operations:
      Query.search: {instead: true, limits: {minute: {capacity: 100, per: minute}, calls: {unit: requests, capacity: 3, per: minute}}}
custom:
  lang:en: {instead: true, limits: {minute: {capacity: 1000, per: minute}}}
  plan:gold: {limits: {minute: {capacity: 7, per: minute}}}
`)
	hash := func(parameter, value string) string { return "hash of " + parameter + "=" + value }
	for _, value := range []func(parameter, value string) string{nil, hash} {
		carrying := func(pairs ...string) map[string]string {
			all := map[string]string{}
			for i := 0; i < len(pairs); i += 2 {
				all[pairs[i]] = pairs[i+1]
				if value != nil {
					all[pairs[i]] = value(pairs[i], pairs[i+1])
				}
			}
			return all
		}
		replay, err := simulate.NewReplay(policy, simulate.ReplayConfig{Value: value, Record: func(tenant string) *tiers.Record {
			if tenant != "recorded" {
				return nil
			}
			record, err := tiers.ParseRecord([]byte(`{"custom": {"lang:fr": {"limits": {"minute": {"capacity": 2, "per": "minute"}}}}}`))
			require.NoError(t, err)
			return record
		}})
		require.NoError(t, err)
		judge := func(tenant string, record simulate.Record) simulate.Judgment {
			record.At, record.Tenant = noon, tenant
			judgment, err := replay.Judge(t.Context(), &record)
			require.NoError(t, err)
			return judgment
		}
		mixed := simulate.Record{
			Operations: []string{"Query.me", "Query.search"}, Points: 5, Parts: []simulate.Part{{Calls: 1}, {Calls: 2}},
		}
		require.False(t, judge("a", mixed).Refused, "both pay 5")
		left := judge("a", simulate.Record{Points: 6})
		require.True(t, left.Refused)
		require.EqualValues(t, 5, left.Limits[0].Remaining)
		require.True(t, judge("a", mixed).Refused, "the third and fourth call")
		mixed.Parts[1].Calls = 0
		require.False(t, judge("a", mixed).Refused, "the search is left out")

		require.True(t, judge("b", simulate.Record{Points: 90}).Refused)
		require.False(t, judge("b", simulate.Record{Points: 90, Parameters: carrying("header:X-Lang", "en")}).Refused)
		require.True(t, judge("b", simulate.Record{Points: 90, Parameters: carrying("header:X-Lang", "EN")}).Refused)
		require.True(t, judge("c", simulate.Record{Points: 8, Parameters: carrying("claim:plan", "gold")}).Refused)
		require.False(t, judge("c", simulate.Record{Points: 8, Parameters: carrying("claim:plan", "tin", "header:Other", "en")}).Refused)
		require.True(t, judge("recorded", simulate.Record{Points: 3, Parameters: carrying("header:X-Lang", "fr")}).Refused)
		require.False(t, judge("d", simulate.Record{Points: 3, Parameters: carrying("header:X-Lang", "fr")}).Refused)
	}
}

func TestARecordThatMixesCallsIsChargedToBothBudgets(t *testing.T) {
	t.Parallel()
	policy := compiled(t, `
version: 1
default: free
tiers:
  free:
    limits: {minute: {capacity: 10, per: minute}}
    operations: {Query.search: {instead: true, limits: {minute: {capacity: 100, per: minute}}}}
`)
	replay, err := simulate.NewReplay(policy, simulate.ReplayConfig{})
	require.NoError(t, err)
	asked := func(judgment simulate.Judgment, err error) []int64 {
		require.NoError(t, err)
		var all []int64
		for _, l := range judgment.Limits {
			all = append(all, l.Asked)
		}
		return all
	}
	record := simulate.Record{At: noon, Tenant: "a", Operations: []string{"Query.rateLimit", "Query.search"}, Points: 9}
	require.Equal(t, []int64{9, 9}, asked(replay.Judge(t.Context(), &record)))
	record.Parts = []simulate.Part{{Calls: 0}, {Calls: 1}}
	require.Equal(t, []int64{9}, asked(replay.Judge(t.Context(), &record)))

	for _, parts := range [][]simulate.Part{{}, {{Calls: 1}}, {{Calls: -1}, {}}, {{Calls: simulate.MaxCalls}, {Calls: 1}}, {{Calls: 1 << 62}, {Calls: 1 << 62}}} {
		record.Parts = parts
		_, err := replay.Judge(t.Context(), &record)
		require.ErrorContains(t, err, "parts")
	}
}
