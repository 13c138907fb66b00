package tiers_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

func TestACandidateStandsBesideTheLivePolicyUntilItIsDropped(t *testing.T) {
	t.Parallel()
	live, next := minutes(t, 10), minutes(t, 20)
	rollout := tiers.NewRollout(live)
	for _, source := range []tiers.CandidateSource{rollout, tiers.NewModeSwitch(rollout)} {
		none := func() {
			t.Helper()
			id, candidate := source.Candidate()
			require.Empty(t, id)
			require.Nil(t, candidate)
		}
		none()
		require.NoError(t, rollout.Propose("next", next))
		id, candidate := source.Candidate()
		require.Equal(t, "next", id)
		require.Same(t, next, candidate)
		require.Same(t, live, source.Snapshot())

		rollout.Drop()
		none()
		require.Same(t, live, source.Snapshot())
	}
	_, candidate := tiers.NewModeSwitch(live).Candidate()
	require.Nil(t, candidate)
}

func TestWhatCannotNameBudgetsIsNoCandidate(t *testing.T) {
	t.Parallel()
	rollout := tiers.NewRollout(minutes(t, 10))
	require.ErrorIs(t, rollout.Propose("a:b", minutes(t, 20)), bucket.ErrInvalid)
	require.ErrorContains(t, rollout.Propose("next", nil), "the candidate is nil")
	_, candidate := rollout.Candidate()
	require.Nil(t, candidate)
}

// minutes is a policy with one limit.
func minutes(t *testing.T, capacity int64) *tiers.Snapshot {
	t.Helper()
	snapshot, err := tiers.Compile(tiers.Policy{Default: "free", Tiers: map[string]tiers.Tier{
		"free": {Limits: map[string]*tiers.Limit{"minute": {Capacity: capacity, Per: tiers.Minute}}},
	}})
	require.NoError(t, err)
	return snapshot
}
