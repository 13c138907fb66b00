package e2e_test

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// oneLimit is a policy whose tiers have one limit of so many points a minute.
func oneLimit(t *testing.T, capacity int64, tier tiers.Tier) *tiers.Snapshot {
	t.Helper()
	if capacity > 0 {
		tier.Limits = map[string]*tiers.Limit{"minute": {Capacity: capacity, Per: tiers.Minute}}
	}
	snapshot, err := tiers.Compile(tiers.Policy{Default: "free", Tiers: map[string]tiers.Tier{"free": tier}})
	require.NoError(t, err)
	return snapshot
}

func TestWhatACandidateWouldDecideIsCountedAndTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		i := &instruments{t: t}
		rollout := tiers.NewRollout(oneLimit(t, 50, tiers.Tier{}))
		var last *ratelimit.CandidateDecision
		server, told := observed(t, func(cfg *ratelimit.Config) {
			i.configure(cfg)
			cfg.Policy, cfg.Observe.Thresholds = rollout, []float64{}
		})
		see(server.server, func(d ratelimit.Decision) { last = d.Candidate })
		post := func(live int, would ratelimit.Outcome) {
			t.Helper()
			reply := server.post(request{Query: half})
			require.Equal(t, live, reply.Status)
			require.NotContains(t, reply.Body, "next")
			require.NotNil(t, last)
			require.Equal(t, would, last.Outcome)
		}
		server.post(request{Query: half})
		require.Nil(t, last, "no candidate")

		require.NoError(t, rollout.Propose("next", oneLimit(t, 70, tiers.Tier{})))
		post(http.StatusOK, ratelimit.OutcomeAdmitted)
		post(http.StatusTooManyRequests, ratelimit.OutcomeAdmitted)
		post(http.StatusTooManyRequests, ratelimit.OutcomeAdmitted)
		post(http.StatusTooManyRequests, ratelimit.OutcomeLimited)
		require.EqualValues(t, 4, last.Limits[0].Remaining)
		require.Contains(t, told(), "candidate_differs [tenant=free tier=free candidate=next live=limited would=admitted]")

		require.NoError(t, rollout.Propose("small", oneLimit(t, 0, tiers.Tier{MaxCost: 10})))
		post(http.StatusTooManyRequests, ratelimit.OutcomeTooExpensive)
		require.NoError(t, rollout.Propose("blocked", oneLimit(t, 0, tiers.Tier{Blocked: true})))
		post(http.StatusTooManyRequests, ratelimit.OutcomeBlocked)
		require.NoError(t, rollout.Propose("free", oneLimit(t, 0, tiers.Tier{Unlimited: true})))
		post(http.StatusTooManyRequests, ratelimit.OutcomeAdmitted)
		require.Equal(t, map[string]float64{"admitted": 4, "limited": 1, "too_expensive": 1, "blocked": 1},
			i.sums("ratelimit.candidate.decisions", "ratelimit.candidate.outcome"))
		require.Equal(t, map[string]float64{"admitted": 1, "limited": 6}, i.sums("ratelimit.candidate.decisions", "ratelimit.outcome"))
	})
}

func TestAnInvalidDocumentIsTriedUnderTheCandidateToo(t *testing.T) {
	t.Parallel()
	i := &instruments{t: t}
	rollout := tiers.NewRollout(oneLimit(t, 50, tiers.Tier{}))
	require.NoError(t, rollout.Propose("next", oneLimit(t, 1, tiers.Tier{})))
	f := newFixture(t, func(cfg *ratelimit.Config) {
		i.configure(cfg)
		cfg.Policy, cfg.Pricing.InvalidDocument = rollout, 1
	})
	for range 2 {
		f.post(request{Query: `{ nothingLikeThis }`})
	}
	require.Equal(t, map[string]float64{"admitted": 1, "limited": 1},
		i.sums("ratelimit.candidate.decisions", "ratelimit.candidate.outcome"))
}

func TestAStoreThatIsAwayRefusesNothingForACandidateAlone(t *testing.T) {
	t.Parallel()
	rollout := tiers.NewRollout(oneLimit(t, 0, tiers.Tier{Unlimited: true, FailMode: "closed"}))
	require.NoError(t, rollout.Propose("next", oneLimit(t, 10, tiers.Tier{FailMode: "closed"})))
	var last ratelimit.Decision
	f := newFixture(t, func(cfg *ratelimit.Config) { cfg.Policy = rollout })
	see(f.server, func(d ratelimit.Decision) { last = d })
	require.Equal(t, http.StatusOK, f.post(request{Query: half}).Status)
	require.Equal(t, ratelimit.OutcomeTooExpensive, last.Candidate.Outcome)
	f.store.Fail(bucket.ErrUnavailable)
	require.Equal(t, http.StatusOK, f.post(request{Query: half}).Status)
	require.Nil(t, last.Candidate)
}

func TestAChargeIsTriedUnderACandidateThatAdmitted(t *testing.T) {
	t.Parallel()
	rollout := tiers.NewRollout(oneLimit(t, 100, tiers.Tier{}))
	require.NoError(t, rollout.Propose("next", oneLimit(t, 50, tiers.Tier{})))
	f := newFixture(t, func(cfg *ratelimit.Config) { cfg.Policy = rollout })
	f.resolver.OnExport = func(ctx context.Context, rows int) error {
		return ratelimit.Charge(ctx, bucket.Points, int64(rows))
	}
	f.post(request{Query: `{ export(rows: 30) }`})
	takes := f.store.Takes()
	require.Len(t, takes, 2)
	require.Equal(t, takes[0].Result.Candidate.Limits[0].Remaining-30, takes[1].Result.Candidate.Limits[0].Remaining)
}

// TestACandidateThatIsPublishedKeepsWhatWasSpent counts what is admitted while one policy follows another.
func TestACandidateThatIsPublishedKeepsWhatWasSpent(t *testing.T) {
	t.Parallel()
	const price = 22
	// Nothing comes back while the test runs: a point takes longer.
	yearly := func(operations int64) *tiers.Snapshot {
		snapshot, err := tiers.Compile(tiers.Policy{Default: "free", Tiers: map[string]tiers.Tier{
			"free": {Limits: map[string]*tiers.Limit{"year": {Capacity: operations * price, Refill: 1, Per: tiers.Day}}},
		}})
		require.NoError(t, err)
		return snapshot
	}
	store := patientStore(t)
	var replicas []*inProcess
	var rollouts []*tiers.Rollout
	var live changing
	live.Store(yearly(20))
	for range 2 {
		rollout := tiers.NewRollout(&live)
		rollouts = append(rollouts, rollout)
		replicas = append(replicas, newInProcess(t, store, func(cfg *ratelimit.Config) { cfg.Policy = rollout }))
	}
	var admitted atomic.Int64
	spend := func(posts int) {
		var group sync.WaitGroup
		for _, replica := range replicas {
			for range 3 {
				group.Go(func() {
					for range posts {
						if replica.post(request{Query: half}).Status == http.StatusOK {
							admitted.Add(1)
						}
					}
				})
			}
		}
		group.Wait()
	}
	spend(2)
	require.EqualValues(t, 12, admitted.Load())
	for _, rollout := range rollouts {
		require.NoError(t, rollout.Propose("more", yearly(35)))
	}
	spend(8)
	require.EqualValues(t, 20, admitted.Load(), "the candidate admits nothing")
	var group sync.WaitGroup
	group.Go(func() { live.Store(yearly(35)) })
	spend(8)
	group.Wait()
	spend(4)
	require.EqualValues(t, 35, admitted.Load(), "what was spent before counts")
}

// changing is a source whose policy its owner replaces.
type changing struct{ atomic.Pointer[tiers.Snapshot] }

func (c *changing) Snapshot() *tiers.Snapshot { return c.Load() }

func TestACandidateIsTriedWithItsRulesForDocuments(t *testing.T) {
	t.Parallel()
	budgets := map[string]tiers.OperationRule{
		tiers.DocumentID(half): {Limits: map[string]*tiers.Limit{"document": {Capacity: 20, Per: tiers.Minute}}},
	}
	// Nothing in the live policy names a document.
	rollout := tiers.NewRollout(oneLimit(t, 1000, tiers.Tier{}))
	require.NoError(t, rollout.Propose("next", oneLimit(t, 1000, tiers.Tier{Operations: budgets})))
	var last *ratelimit.CandidateDecision
	f := newFixture(t, func(cfg *ratelimit.Config) { cfg.Policy = rollout })
	see(f.server, func(d ratelimit.Decision) { last = d.Candidate })
	require.Equal(t, http.StatusOK, f.post(request{Query: half}).Status)
	require.Equal(t, ratelimit.OutcomeTooExpensive, last.Outcome)
	require.Len(t, last.Limits, 2)
}

func TestItIsSaidAtStartThatACandidateIsGivenNothingBack(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ rollout, refund, warned bool }{
		"both": {true, true, true}, "no candidate": {false, true, false}, "no refund": {true, false, false},
	} {
		var log sharedLog
		newFixture(t, func(cfg *ratelimit.Config) {
			if c.rollout {
				cfg.Policy = tiers.NewRollout(compiledPolicy(t))
			}
			cfg.Settlement.Refund = c.refund
			cfg.Observe.Logger = slog.New(slog.NewTextHandler(&log, nil))
		})
		require.Equal(t, c.warned, strings.Contains(log.String(), "will look stricter than it is"), name)
	}
}
