package backend_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/internal/backend"
	"github.com/gqlgen-ratelimit/ratelimit/internal/decision"
)

// failing is a store whose takes fail with its error, if it has one.
type failing struct {
	bucket.Store

	err error
}

func (s *failing) Take(ctx context.Context, take bucket.Take) (bucket.Result, error) {
	if s.err != nil {
		return bucket.Result{}, s.err
	}
	return s.Store.Take(ctx, take)
}

// watch notes what a watcher is told of one store.
type watch struct {
	told []string
	away time.Duration
	back event.StoreBack
}

func (w *watch) StoreCalled(_ context.Context, _, _ string, _, away time.Duration, _ error) {
	w.away += away
}
func (w *watch) StoreSpared(_ context.Context, _, by string) { w.told = append(w.told, by) }
func (w *watch) StoreAway(_ context.Context, store string, _ time.Time, _ error) {
	w.told = append(w.told, fmt.Sprintf("%q away", store))
}

func (w *watch) StoreBack(_ context.Context, back event.StoreBack) {
	w.told, w.back = append(w.told, fmt.Sprintf("%q back", back.Store)), back
}
func (*watch) Settled(context.Context, *decision.Settlement)                             {}
func (*watch) LocallySettled(context.Context, string, string, []bucket.LimitState, bool) {}

func watched(t *testing.T) (*backend.Store, *watch, func(error)) {
	t.Helper()
	store, w := &failing{Store: bucket.NewMemory(bucket.MemoryConfig{})}, &watch{}
	stores, err := backend.New(backend.Config{
		Stores:     map[string]bucket.Store{"": bucket.NewMemory(bucket.MemoryConfig{}), "vault": store},
		MaxWaiting: 1, Logger: slog.New(slog.DiscardHandler), Watcher: w,
	})
	require.NoError(t, err)
	vault := stores.Named("vault")
	take := bucket.Take{Tenant: "acme", Buckets: []bucket.Bucket{{Limits: compile(t, bucket.Limit{Name: "minute", Capacity: 10, Refill: 10, Period: time.Minute})}}, Amounts: points(0)}
	return vault, w, func(err error) {
		t.Helper()
		store.err = err
		_, got := vault.Take(t.Context(), &take, &bucket.Result{}, backend.Caller{})
		require.ErrorIs(t, got, err)
	}
}

func TestTheTimeBetweenTheFirstFailureAndTheNextAnswerIsCountedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, w, take := watched(t)
		take(nil)
		time.Sleep(time.Second) //nolint:forbidigo // the clock of a synctest bubble
		take(bucket.ErrUnavailable)
		require.Zero(t, w.away)
		time.Sleep(3 * time.Second) //nolint:forbidigo // the clock of a synctest bubble
		take(bucket.ErrAmbiguous)
		require.Equal(t, 3*time.Second, w.away)
		time.Sleep(4 * time.Second) //nolint:forbidigo // the clock of a synctest bubble
		take(nil)
		take(nil)
		require.Equal(t, 7*time.Second, w.away)
		require.Equal(t, []string{`"vault" away`, `"vault" back`}, w.told)
		require.Equal(t, 7*time.Second, w.back.Away)
	})
}

func TestAStoreThatFailsNowAndThenIsSaidToBeAwayOnceASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, w, take := watched(t)
		for range 25 {
			take(bucket.ErrUnavailable)
			take(nil)
			time.Sleep(100 * time.Millisecond) //nolint:forbidigo // the clock of a synctest bubble
		}
		require.Len(t, w.told, 2*3)
	})
}

func TestWhatWasDecidedWithoutAStoreIsToldWhenItIsBackAndForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		vault, w, take := watched(t)
		take(bucket.ErrUnavailable)
		vault.Decided(decision.Unjudged, 5)
		vault.Decided(decision.Unjudged, 7)
		vault.Decided(decision.Unavailable, 1)
		vault.Decided(decision.AdmittedLocally, 2)
		vault.Decided(decision.LimitedLocally, 3)
		take(nil)
		require.Equal(t, event.Sum{Operations: 2, Points: 12}, w.back.Unjudged)
		require.Equal(t, event.Sum{Operations: 1, Points: 1}, w.back.Refused)
		require.Equal(t, event.Sum{Operations: 1, Points: 2}, w.back.AdmittedLocally)
		require.Equal(t, event.Sum{Operations: 1, Points: 3}, w.back.LimitedLocally)

		time.Sleep(time.Second) //nolint:forbidigo // the clock of a synctest bubble
		take(bucket.ErrUnavailable)
		take(nil)
		require.Zero(t, w.back.Unjudged)
	})
}

func TestACallThatWasBusyOrLateIsNoAbsence(t *testing.T) {
	t.Parallel()
	late := fmt.Errorf("%w: %w", bucket.ErrAmbiguous, bucket.ErrLate)
	for _, err := range []error{bucket.ErrBusy, late} {
		synctest.Test(t, func(t *testing.T) {
			_, w, take := watched(t)
			take(err)
			time.Sleep(time.Second) //nolint:forbidigo // the clock of a synctest bubble
			take(nil)
			require.Empty(t, w.told)
			require.Zero(t, w.away)
		})
	}
}

func TestACallThatWasWrongInItselfSaysNothingOfTheStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, w, take := watched(t)
		take(bucket.ErrInvalid)
		time.Sleep(time.Second) //nolint:forbidigo // the clock of a synctest bubble
		take(nil)
		require.Empty(t, w.told)
		require.Zero(t, w.away)
	})
}

func TestAStoreThatNobodyHasConfiguredIsAway(t *testing.T) {
	t.Parallel()
	stores, err := backend.New(backend.Config{
		Stores:     map[string]bucket.Store{"": bucket.NewMemory(bucket.MemoryConfig{})},
		MaxWaiting: 1, Logger: slog.New(slog.DiscardHandler), Watcher: &watch{},
	})
	require.NoError(t, err)
	_, err = stores.Named("nowhere").Take(t.Context(), &bucket.Take{Tenant: "acme"}, &bucket.Result{}, backend.Caller{})
	require.ErrorIs(t, err, bucket.ErrUnavailable)
}
