package delivery

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/event/webhook"
	"github.com/gqlgen-ratelimit/ratelimit/internal/guard"
)

// Sender makes an attempt, within a minute. *webhook.Sender is one.
type Sender interface {
	Send(ctx context.Context, to webhook.Endpoint, m webhook.Message) webhook.Result
}

// Config says what a [Worker] brings where. All fields but Logger are required.
type Config struct {
	Deliveries Deliveries
	Sender     Sender
	// Endpoint returns the endpoint of an id as it is now. An error is a failed attempt.
	Endpoint func(ctx context.Context, id string) (webhook.Endpoint, error)
	// Gone is told that an endpoint wants no messages any more. It is called by several goroutines.
	Gone func(ctx context.Context, id string)
	// Logger is told what cannot be read or stored. Nil means slog.Default().
	Logger *slog.Logger
}

const (
	// atOnce is how many attempts a worker makes at once, and perEndpoint how many of them to one endpoint.
	atOnce      = 256
	perEndpoint = 2
	poll        = time.Second
	lease       = 2 * time.Minute
)

// Worker brings what is due: 256 messages at once, two of them to one endpoint. It is made by [Start], and several may have the same deliveries.
type Worker struct {
	cfg   Config
	stop  context.CancelFunc
	ended chan struct{}
}

// Start starts a worker, which ends with [Worker.Close].
func Start(cfg Config) (*Worker, error) {
	if cfg.Deliveries == nil || cfg.Sender == nil || cfg.Endpoint == nil || cfg.Gone == nil {
		return nil, errors.New("delivery: set Config.Deliveries, Sender, Endpoint and Gone")
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	ctx, stop := context.WithCancel(context.Background())
	w := &Worker{cfg, stop, make(chan struct{})}
	go w.run(ctx)
	return w, nil
}

// Close ends attempts that are under way, of which none counts, and returns when all have ended or the context has. What was not delivered stays in its place.
func (w *Worker) Close(ctx context.Context) error {
	w.stop()
	select {
	case <-w.ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (w *Worker) run(ctx context.Context) {
	defer close(w.ended)
	var under sync.WaitGroup
	defer under.Wait()
	places := make(chan struct{}, atOnce)
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	for {
		// Only this goroutine fills places, so that as many are free afterwards.
		if free := cap(places) - len(places); free > 0 {
			due, err := w.cfg.Deliveries.Due(ctx, time.Now(), lease, free, perEndpoint)
			if err != nil && ctx.Err() == nil {
				w.cfg.Logger.ErrorContext(ctx, "delivery: what is due cannot be read", slog.Any("error", err))
			}
			for _, r := range due {
				places <- struct{}{}
				under.Go(func() {
					defer func() { <-places }()
					guard.Run(ctx, w.cfg.Logger, "an attempt", func() { w.attempt(ctx, r) })
				})
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// attempt makes one attempt and stores what it came to.
func (w *Worker) attempt(ctx context.Context, r Record) {
	result := webhook.Result{Outcome: webhook.Failed, Reason: webhook.ReasonURL}
	to, err := w.cfg.Endpoint(ctx, r.Endpoint)
	if err == nil {
		result = w.cfg.Sender.Send(ctx, to, r.Delivery.Message)
	}
	if ctx.Err() != nil && result.Outcome == webhook.Failed {
		// The worker ends: it was not the endpoint that failed. The record is due again when its lease ends.
		return
	}
	r.Delivery = r.Delivery.After(result, time.Now(), rand.Float64()) //nolint:gosec // Jitter is no secret.
	// What was delivered is stored also while the worker ends.
	if err := w.cfg.Deliveries.Done(context.WithoutCancel(ctx), r); err != nil {
		w.cfg.Logger.ErrorContext(ctx, "delivery: an attempt cannot be stored, and is made again", slog.Any("error", err))
	}
	if result.Outcome == webhook.Gone {
		w.cfg.Gone(ctx, r.Endpoint)
	}
}
