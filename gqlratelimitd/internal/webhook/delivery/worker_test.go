package delivery_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/webhook"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/webhook/delivery"
)

// endpoints answer by their id, and remember when.
type endpoints struct {
	mu   sync.Mutex
	sent map[string][]time.Time
}

func (e *endpoints) Send(ctx context.Context, to webhook.Endpoint, _ webhook.Message) webhook.Result {
	e.mu.Lock()
	e.sent[to.URL] = append(e.sent[to.URL], time.Now())
	n := len(e.sent[to.URL])
	e.mu.Unlock()
	switch {
	case to.URL == "slow":
		select {
		case <-time.After(20 * time.Second):
		case <-ctx.Done():
		}
		return webhook.Result{Outcome: webhook.Failed, Reason: webhook.ReasonTimeout}
	case to.URL == "gone":
		return webhook.Result{Outcome: webhook.Gone}
	case to.URL == "panics":
		panic("on purpose")
	case to.URL == "recovers" && n < 3:
		return webhook.Result{Outcome: webhook.Failed}
	}
	return webhook.Result{Outcome: webhook.Delivered}
}

func (e *endpoints) times(id string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.sent[id])
}

func TestASlowEndpointHoldsUpNobodyAndNothingIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept, all := &memory{}, &endpoints{sent: map[string][]time.Time{}}
		var gone []string
		put := func(endpoint string, n int) {
			for i := range n {
				message := webhook.Message{ID: fmt.Sprint(endpoint, i)}
				require.NoError(t, kept.Put(t.Context(), delivery.Record{Endpoint: endpoint, Delivery: webhook.Begin(message, time.Now())}))
			}
		}
		put("slow", 20)
		put("fine", 20)
		put("gone", 1)
		put("panics", 1)
		put("recovers", 1)
		put("unknown", 1)
		put("later", 1)
		began := time.Now()
		w, err := delivery.Start(delivery.Config{
			Deliveries: kept, Sender: all, Gone: func(_ context.Context, id string) { gone = append(gone, id) },
			Endpoint: func(_ context.Context, id string) (webhook.Endpoint, error) {
				switch {
				case id == "unknown":
					return webhook.Endpoint{}, errors.New("no such endpoint")
				case id == "later" && time.Since(began) < 90*time.Hour:
					return webhook.Endpoint{}, fmt.Errorf("the database is away: %w", delivery.ErrLater)
				}
				return webhook.Endpoint{URL: id}, nil
			},
		})
		require.NoError(t, err)
		time.Sleep(12 * time.Second) //nolint:forbidigo // In a synctest bubble.
		synctest.Wait()
		require.Equal(t, 20, all.times("fine"), "beside an endpoint that is slow")
		require.Equal(t, 2, all.times("slow"))
		require.Equal(t, []string{"gone"}, gone)
		time.Sleep(95 * time.Hour) //nolint:forbidigo // In a synctest bubble: the schedule has 75 hours, and a fifth of jitter.
		synctest.Wait()
		require.Equal(t, 3, all.times("recovers"))
		require.Equal(t, webhook.MaxAttempts, all.times("panics"), "an attempt that panics has failed")
		require.Equal(t, 1, all.times("later"), "an attempt that could not be made counts for nothing")
		for endpoint, reason := range map[string]webhook.Reason{"unknown": webhook.ReasonURL, "panics": webhook.ReasonMessage} {
			dead, err := kept.Dead(t.Context(), endpoint, 10)
			require.NoError(t, err)
			require.Len(t, dead, 1)
			require.Equal(t, reason, dead[0].Delivery.Reason)
		}
		require.NoError(t, w.Close(t.Context()))
	})
}

func TestAWorkerThatEndsCountsNoAttemptAndLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept, all := &memory{}, &endpoints{sent: map[string][]time.Time{}}
		require.NoError(t, kept.Put(t.Context(), delivery.Record{Endpoint: "slow", Delivery: webhook.Begin(webhook.Message{ID: "1"}, time.Now())}))
		w, err := delivery.Start(delivery.Config{
			Deliveries: kept, Sender: all, Gone: func(context.Context, string) {},
			Endpoint: func(_ context.Context, id string) (webhook.Endpoint, error) { return webhook.Endpoint{URL: id}, nil },
		})
		require.NoError(t, err)
		synctest.Wait()
		require.NoError(t, w.Close(t.Context()))
		again, err := kept.Due(t.Context(), time.Now(), time.Minute, 1, 1)
		require.NoError(t, err)
		require.Len(t, again, 1)
		require.Zero(t, again[0].Delivery.Attempts)
	})
}

// tardy deliveries have leased what is due long before they say so.
type tardy struct{ delivery.Deliveries }

func (d tardy) Due(ctx context.Context, now time.Time, lease time.Duration, limit, perEndpoint int) ([]delivery.Record, error) {
	due, err := d.Deliveries.Due(ctx, now, lease, limit, perEndpoint)
	select {
	case <-time.After(5 * time.Second):
		return due, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func TestAWorkerThatEndsGivesBackWhatItHasLeasedAndNotTried(t *testing.T) {
	known := func(_ context.Context, id string) (webhook.Endpoint, error) { return webhook.Endpoint{URL: id}, nil }
	unknown := func(ctx context.Context, _ string) (webhook.Endpoint, error) {
		<-ctx.Done()
		return webhook.Endpoint{}, errors.Join(ctx.Err(), delivery.ErrLater)
	}
	for name, start := range map[string]func(m *memory) delivery.Config{
		"while it leases": func(m *memory) delivery.Config {
			return delivery.Config{Deliveries: tardy{m}, Endpoint: known}
		},
		"while it asks for the endpoint": func(m *memory) delivery.Config { return delivery.Config{Deliveries: m, Endpoint: unknown} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				kept := &memory{}
				require.NoError(t, kept.Put(t.Context(), delivery.Record{Endpoint: "slow", Delivery: webhook.Begin(webhook.Message{ID: "1"}, time.Now())}))
				cfg := start(kept)
				cfg.Sender, cfg.Gone = &endpoints{sent: map[string][]time.Time{}}, func(context.Context, string) {}
				w, err := delivery.Start(cfg)
				require.NoError(t, err)
				synctest.Wait()
				require.NoError(t, w.Close(t.Context()))
				again, err := kept.Due(t.Context(), time.Now(), time.Minute, 1, 1)
				require.NoError(t, err)
				require.Len(t, again, 1)
				require.Zero(t, again[0].Delivery.Attempts)
			})
		})
	}
}

func TestWhatIsPutIsBroughtAtOnceAndItsAttemptIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept, all := &memory{}, &endpoints{sent: map[string][]time.Time{}}
		told := make(chan delivery.Record, 10)
		w, err := delivery.Start(delivery.Config{
			Deliveries: kept, Sender: all, Gone: func(context.Context, string) {},
			Endpoint: func(_ context.Context, id string) (webhook.Endpoint, error) { return webhook.Endpoint{URL: id}, nil },
			Told:     func(_ context.Context, r delivery.Record, _ webhook.Result) { told <- r },
		})
		require.NoError(t, err)
		synctest.Wait()
		for i := range 4 {
			message := webhook.Message{ID: fmt.Sprint(i)}
			require.NoError(t, kept.Put(t.Context(), delivery.Record{Endpoint: "fine", Delivery: webhook.Begin(message, time.Now())}))
		}
		w.Wake()
		time.Sleep(200 * time.Millisecond) //nolint:forbidigo // In a synctest bubble.
		synctest.Wait()
		require.Len(t, told, 4, "two at once, and the next two when these have ended")
		require.Equal(t, webhook.Done, (<-told).Delivery.State)
		require.NoError(t, w.Close(t.Context()))
	})
}

func TestAWorkerSaysWhatIsMissing(t *testing.T) {
	_, err := delivery.Start(delivery.Config{})
	require.ErrorContains(t, err, "Config.Deliveries, Sender, Endpoint and Gone")
}
