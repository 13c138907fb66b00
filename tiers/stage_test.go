package tiers_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

const (
	stagedNow  = "version: 1\ndefault: free\ntiers: {free: {limits: {minute: {capacity: 100, per: minute}}}, old: {unlimited: true}}\n"
	stagedNext = `{"version": 1, "default": "free", "tiers": {"free": {"limits": {"minute": {"capacity": 50, "per": "minute"}}}}, "tenants": {"listed": {"times": 2}}}`
)

func stagedAt(t *testing.T, stage tiers.Stage) *tiers.Snapshot {
	t.Helper()
	document, err := tiers.StageDocument([]byte(stagedNow), []byte(stagedNext), stage)
	require.NoError(t, err)
	s, err := tiers.Load(document, 7)
	require.NoError(t, err)
	return s
}

func stagedCapacity(s *tiers.Snapshot, tenant string) int64 {
	rules := s.Rules(tiers.Subject{Tenant: tenant}, tiers.Selection{})
	return rules.Buckets[0].Limits.All()[0].Capacity
}

func TestAShareOfTenantsHasTheNextPolicyAndAGrowingShareOnlyAddsTenants(t *testing.T) {
	t.Parallel()
	had := map[string]bool{}
	for _, percent := range []int{0, 1, 10, 50, 100} {
		stage := tiers.Stage{ID: "r1", Seed: "seed", Percent: percent}
		s := stagedAt(t, stage)
		has := 0
		for i := range 4000 {
			tenant := fmt.Sprint("tenant-", i)
			next := stagedCapacity(s, tenant) == 50
			require.Equal(t, stage.Has(tenant), next)
			require.False(t, had[tenant] && !next, "nobody goes back")
			if next {
				had[tenant], has = true, has+1
			}
			require.Equal(t, next, s.SharedRules(tiers.Subject{Tenant: tenant}).Buckets[0].Limits.All()[0].Capacity == 50)
		}
		require.InDelta(t, 40*percent, has, 120)
		require.Equal(t, uint64(7), s.Generation())
		require.Equal(t, percent == 100, s.Lists("listed"))
		require.False(t, s.HasTier("old"), "both have to have it")
		id, candidate := s.Next()
		if percent == 100 {
			require.Nil(t, candidate)
			continue
		}
		require.Equal(t, "r1", id)
		require.Equal(t, int64(50), stagedCapacity(candidate, "anybody"))
	}
	require.NotEqual(t, tiers.Stage{Seed: "a", Percent: 50}.Has("acme"), tiers.Stage{Seed: "d", Percent: 50}.Has("acme"), "another seed, other tenants")
}

func TestAStageWarnsAndRefusesNobody(t *testing.T) {
	t.Parallel()
	s := stagedAt(t, tiers.Stage{ID: "r1", Seed: "s", Percent: 100, Warn: true})
	rules := s.Rules(tiers.Subject{Tenant: "acme"}, tiers.Selection{})
	require.Equal(t, bucket.Warn, rules.Mode)
	rules = s.AtMost(bucket.Shadow).Rules(tiers.Subject{Tenant: "acme"}, tiers.Selection{})
	require.Equal(t, bucket.Shadow, rules.Mode, "a switch eases both policies")
}

func TestASwitchAndARolloutHaveTheNextPolicyAsTheirCandidate(t *testing.T) {
	t.Parallel()
	s := stagedAt(t, tiers.Stage{ID: "r1", Seed: "s"})
	for _, source := range []tiers.CandidateSource{tiers.NewModeSwitch(s), tiers.NewRollout(s), tiers.NewModeSwitch(tiers.NewRollout(s))} {
		id, candidate := source.Candidate()
		require.Equal(t, "r1", id)
		require.NotNil(t, candidate)
	}
}

// bare is a source of one's own, which knows no candidates.
type bare struct{ s *tiers.Snapshot }

func (b bare) Snapshot() *tiers.Snapshot { return b.s }

func TestTheNextPolicyIsTheCandidateOfAnySource(t *testing.T) {
	t.Parallel()
	s := stagedAt(t, tiers.Stage{ID: "r1", Seed: "s"})
	for _, source := range []tiers.Source{s, bare{s}, tiers.NewModeSwitch(bare{s}), tiers.NewRollout(bare{s})} {
		id, candidate := tiers.CandidateOf(source)
		require.Equal(t, "r1", id)
		require.Equal(t, int64(50), stagedCapacity(candidate, "anybody"))
	}
	single, err := tiers.Load([]byte(stagedNow), 1)
	require.NoError(t, err)
	for _, source := range []tiers.Source{single, bare{single}, bare{}, tiers.NewModeSwitch(bare{single})} {
		_, candidate := tiers.CandidateOf(source)
		require.Nil(t, candidate)
	}
	proposed := tiers.NewRollout(bare{s})
	require.NoError(t, proposed.Propose("own", single))
	id, candidate := tiers.CandidateOf(proposed)
	require.Equal(t, "own", id, "what an operator proposes in the process goes first")
	require.Same(t, single, candidate)
}

func TestThePartsOfADocumentOfTwoPoliciesAreWhatWasGiven(t *testing.T) {
	t.Parallel()
	stage := tiers.Stage{ID: "r1", Seed: "s", Percent: 5, Warn: true}
	document, err := tiers.StageDocument([]byte(stagedNow), []byte(stagedNext), stage)
	require.NoError(t, err)
	now, next, found, staged := tiers.StageParts(document)
	require.True(t, staged)
	require.Equal(t, []string{stagedNow, stagedNext}, []string{string(now), string(next)})
	require.Equal(t, stage, found)
	for _, document := range []string{"", stagedNow, stagedNext, "rollout: {id: r}\n", "null", "[]", `{"rollout": null}`, `{"rollout": 5}`} {
		_, _, _, staged := tiers.StageParts([]byte(document))
		require.False(t, staged, document)
	}
}

func TestWarningsAboutADocumentOfTwoPoliciesSayInWhichOne(t *testing.T) {
	t.Parallel()
	const odd = "version: 1\ndefault: free\ntiers: {free: {maxCost: 100, limits: {minute: {capacity: 10, per: minute}}}}\n"
	document, err := tiers.StageDocument([]byte(odd), []byte(odd), tiers.Stage{ID: "r1", Seed: "s"})
	require.NoError(t, err)
	s, err := tiers.Load(document, 1)
	require.NoError(t, err)
	warnings := s.Warnings()
	require.Len(t, warnings, 2)
	require.Regexp(t, `^now\.tiers\.free`, warnings[0].Path)
	require.Regexp(t, `^next\.tiers\.free`, warnings[1].Path)
	require.Equal(t, 3, warnings[1].Line, "of that policy")
}

func TestBothPoliciesOfAStageBeginToEnforceOnTheirDays(t *testing.T) {
	t.Parallel()
	of := func(day string) []byte {
		return []byte("version: 1\ndefault: free\nmode: warn\nenforceFrom: " + day + "\ntiers: {free: {limits: {minute: {capacity: 1, per: minute}}}}\n")
	}
	for _, percent := range []int{0, 100} {
		document, err := tiers.StageDocument(of("2100-01-01"), of("2101-01-01"), tiers.Stage{ID: "r", Seed: "s", Percent: percent})
		require.NoError(t, err)
		s, err := tiers.Load(document, 1)
		require.NoError(t, err)
		mode := func(year int) bucket.Mode {
			return s.At(time.Date(year, 6, 1, 0, 0, 0, 0, time.UTC)).Rules(tiers.Subject{Tenant: "acme"}, tiers.Selection{}).Mode
		}
		require.Equal(t, bucket.Warn, mode(2099))
		require.Equal(t, percent == 100, mode(2100) == bucket.Warn)
		require.Equal(t, bucket.Enforce, mode(2101))
	}
}

func TestWhatIsWrongWithAStageIsSaid(t *testing.T) {
	t.Parallel()
	_, err := tiers.StageDocument([]byte("\xff"), nil, tiers.Stage{ID: "a b", Percent: 101})
	for _, wrong := range []string{"id", "seed", "101 percent", "UTF-8"} {
		require.ErrorContains(t, err, wrong)
	}
	for document, wrong := range map[string]string{
		"rollout: 5\n": "is JSON",
		`{"version": 1, "rollout": {"id": "r", "seed": "s", "percent": 101}, "now": "", "next": ""}`: "101 percent",
		`{"version": 2, "rollout": {"id": "r", "seed": "s"}, "now": "", "next": ""}`:                 "version",
		`{"version": 1, "rollout": {"id": "r", "seed": "s"}, "now": "", "next": "x: 1"}`:             "next",
		`{"version": 1, "rollout": {"id": "r", "seed": "s"}, "now": "rollout: 1", "next": ""}`:       "no roll-out itself",
	} {
		_, err := tiers.Load([]byte(document), 1)
		require.ErrorContains(t, err, wrong, document)
	}
}

func TestAStageAddsNoAllocationToADecision(t *testing.T) {
	s := stagedAt(t, tiers.Stage{ID: "r1", Seed: "seed", Percent: 50})
	subjects := [...]tiers.Subject{{Tenant: "acme"}, {Tenant: "globex"}, {Tenant: "initech"}, {Tenant: "umbrella"}}
	require.Zero(t, testing.AllocsPerRun(200, func() {
		for i := range subjects {
			_ = s.Rules(subjects[i], tiers.Selection{})
		}
	}))
}
