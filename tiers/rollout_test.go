package tiers_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

func TestACandidateTakesThePlaceOfTheLivePolicyWhenItIsPromoted(t *testing.T) {
	t.Parallel()
	live, next := minutes(t, 10), minutes(t, 20)
	rollout := tiers.NewRollout(live)
	none := func() {
		t.Helper()
		id, candidate := rollout.Candidate()
		require.Empty(t, id)
		require.Nil(t, candidate)
	}
	none()
	require.ErrorIs(t, rollout.Promote(), tiers.ErrNoCandidate)

	require.NoError(t, rollout.Propose("next", next))
	id, candidate := rollout.Candidate()
	require.Equal(t, "next", id)
	require.Same(t, next, candidate)
	require.Same(t, live, rollout.Snapshot())

	rollout.Drop()
	none()
	require.Same(t, live, rollout.Snapshot())

	require.NoError(t, rollout.Propose("next", next))
	require.NoError(t, rollout.Promote())
	none()
	require.Same(t, next, rollout.Snapshot())
	rollout.Drop()
	require.Same(t, next, rollout.Snapshot(), "what was promoted stays")
}

// held is a source that its owner sets, as one that reads a database may be. Each snapshot that is compiled
// has the generation 1.
type held struct{ snapshot *tiers.Snapshot }

func (h *held) Snapshot() *tiers.Snapshot { return h.snapshot }

func TestAPromotedPolicyHoldsUntilItsSourceHasAnotherAlsoOfTheSameGeneration(t *testing.T) {
	t.Parallel()
	source := &held{minutes(t, 10)}
	rollout := tiers.NewRollout(source)
	require.NoError(t, rollout.Propose("next", minutes(t, 20)))
	require.NoError(t, rollout.Promote())
	require.NotSame(t, source.snapshot, rollout.Snapshot())
	source.snapshot = minutes(t, 30)
	require.Same(t, source.snapshot, rollout.Snapshot())
}

func TestWhatCannotNameBudgetsIsNoCandidate(t *testing.T) {
	t.Parallel()
	rollout := tiers.NewRollout(minutes(t, 10))
	require.ErrorIs(t, rollout.Propose("a:b", minutes(t, 20)), bucket.ErrInvalid)
	require.ErrorIs(t, rollout.Propose("next", nil), tiers.ErrNoCandidate)
	_, candidate := rollout.Candidate()
	require.Nil(t, candidate)
}

func TestASwitchOfModesPassesTheCandidateAndEasesWhatIsPromoted(t *testing.T) {
	t.Parallel()
	rollout := tiers.NewRollout(minutes(t, 10))
	emergency := tiers.NewModeSwitch(rollout)
	require.NoError(t, rollout.Propose("next", minutes(t, 20)))
	id, candidate := emergency.Candidate()
	require.Equal(t, "next", id)
	require.NotNil(t, candidate)
	require.NoError(t, rollout.Promote())
	emergency.AtMost(bucket.Shadow)
	rules := emergency.Snapshot().Rules(tiers.Subject{Tenant: "acme"}, tiers.Selection{})
	require.EqualValues(t, 20, rules.Buckets[0].Limits.All()[0].Capacity)
	require.Equal(t, bucket.Shadow, rules.Buckets[0].Limits.All()[0].Mode)

	_, candidate = tiers.NewModeSwitch(minutes(t, 10)).Candidate()
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
