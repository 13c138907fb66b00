package e2e_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimittest"
)

// The limit of the tier token gets 1000 points in 60 000 ms: one in 60.
const (
	historyCapacity = 1000
	historyRefill   = 60
)

// recordingStore notes what a history of operations one after the other has taken and got back.
type recordingStore struct {
	*ratelimittest.Store

	clock *ratelimittest.Clock

	mu sync.Mutex
	// late is how long the next settlement is on its way.
	late    time.Duration
	history []recorded
	broken  string
}

// recorded is an admitted operation: when it was charged and what it has really paid, in sixtieths of a point.
type recorded struct {
	at, charged, net int64
}

func (s *recordingStore) now() int64 { return s.clock.Now().UnixMilli() }

func (s *recordingStore) Take(ctx context.Context, take bucket.Take) (bucket.Result, error) {
	result, err := s.Store.Take(ctx, take)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil && result.Verdict == bucket.Admitted {
		charged := take.Amounts.Of(bucket.Points) * historyRefill
		s.history = append(s.history, recorded{at: s.now(), charged: charged, net: charged})
	}
	return result, err
}

func (s *recordingStore) Settle(ctx context.Context, settlement bucket.Settlement) (bucket.Settled, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clock.Advance(s.late)
	settled, err := s.Store.Settle(ctx, settlement)
	last := &s.history[len(s.history)-1]
	owed := max(0, last.charged-(s.now()-last.at))
	back := min(last.charged-settlement.Actual.Of(bucket.Points)*historyRefill, owed)
	switch {
	case !settled.Applied:
	case settled.Limits[0].Charged != -(back / historyRefill):
		s.broken = fmt.Sprintf("%d given back of %d/60", -settled.Limits[0].Charged, back)
	default:
		last.net -= back
	}
	return settled, err
}

// mostInAnyWindow is by how much the net charges of any interval exceed what comes back in its length.
func (s *recordingStore) mostInAnyWindow() int64 {
	most, running := int64(0), int64(0)
	for i, r := range s.history {
		if i > 0 {
			running = max(0, running-(r.at-s.history[i-1].at))
		}
		running += r.net
		most = max(most, running)
	}
	return most
}

func TestAServerThatGivesBackAdmitsNoMoreThanItsLimitsInAnyWindow(t *testing.T) {
	t.Parallel()
	clock := &ratelimittest.Clock{}
	store := &recordingStore{Store: ratelimittest.NewStore(clock), clock: clock}
	run := newSettledInProcess(t, store, func(cfg *ratelimit.Config) { cfg.Settlement.FailedShare = 0.5 })
	tenants, refunded, refused := 0, 0.0, 0
	var fails bool
	run.resolver.OnExport = func(_ context.Context, rows int) error {
		clock.Advance(time.Duration(rows) * time.Millisecond)
		if fails {
			return context.DeadlineExceeded
		}
		return nil
	}
	rapid.Check(t, func(t *rapid.T) {
		tenants++
		store.history = nil
		for range rapid.IntRange(10, 30).Draw(t, "operations") {
			clock.Advance(time.Duration(rapid.IntRange(0, 300).Draw(t, "pause")) * time.Millisecond)
			store.late = time.Duration(rapid.SampledFrom([]int{0, 0, 0, 0, 0, 0, 1, 1, 10, 100, 500, 500, 5000, 61_000}).Draw(t, "late")) * time.Millisecond
			fails = rapid.IntRange(0, 4).Draw(t, "fails") == 0
			first, takes := rapid.OneOf(rapid.IntRange(0, 400), rapid.IntRange(80, 100)).Draw(t, "first"), rapid.SampledFrom([]int{0, 0, 10, 2000}).Draw(t, "takes")
			before := len(store.history)
			signal := run.post(request{
				Query: fmt.Sprintf(`{ users(first: %d) { name } export(rows: %d) }`, first, takes), Tenant: fmt.Sprint("tenant-", tenants),
			}).rateLimit(run.t)
			require.NoError(t, run.extension.AwaitSettled(context.Background()))
			if len(store.history) == before {
				refused++
				continue
			}
			actual, _ := signal["actual"].(float64)
			if !fails {
				require.GreaterOrEqual(t, store.history[before].net, int64(actual)*historyRefill, "what was done is paid")
			}
			back, _ := signal["refunded"].(float64)
			refunded += back
		}
		require.Empty(t, store.broken)
		require.LessOrEqual(t, store.mostInAnyWindow(), int64(historyCapacity*historyRefill))
	})
	require.NotZero(t, refunded)
	require.NotZero(t, refused)
	t.Logf("%d refused, %.0f points given back", refused, refunded)
}
