package delivery

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/webhook"
	"github.com/gqlgen-ratelimit/ratelimit/internal/guard"
)

// Sender makes an attempt, within a minute. *webhook.Sender is one.
type Sender interface {
	Send(ctx context.Context, to webhook.Endpoint, m webhook.Message) webhook.Result
}

// Config says what a [Worker] brings where. All fields but Told and Logger are required.
type Config struct {
	Deliveries Deliveries
	Sender     Sender
	// Endpoint returns the endpoint of an id as it is now. An error is a failed attempt, unless it is [ErrLater].
	Endpoint func(ctx context.Context, id string) (webhook.Endpoint, error)
	// Gone is told that an endpoint wants no messages any more. It is called by several goroutines, also while the worker ends: its context does not end with
	// the worker.
	Gone func(ctx context.Context, id string)
	// Told is told what an attempt came to, once that is stored. The delivery of the record is as it is then. It is called by several goroutines, and does not block. Nil
	// tells nobody.
	Told func(ctx context.Context, r Record, result webhook.Result)
	// Logger is told what cannot be read or stored. Nil means slog.Default().
	Logger *slog.Logger
}

const (
	// atOnce is how many attempts a worker makes at once, and perEndpoint how many of them to one endpoint.
	atOnce      = 256
	perEndpoint = 2
	// poll is how often is looked at what is due, and pause how often at most, because something was put or an attempt has ended.
	poll  = time.Second
	pause = 50 * time.Millisecond
	lease = 2 * time.Minute
	// looking is for how long a worker that ends waits for what it has just leased, to give it back.
	looking = 10 * time.Second
)

// Worker brings what is due: 256 messages at once, two of them to one endpoint. It is made by [Start], and several may have the same deliveries.
type Worker struct {
	cfg   Config
	stop  context.CancelFunc
	ended chan struct{}
	// wake has something where it is worth looking before the next poll.
	wake chan struct{}
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
	w := &Worker{cfg: cfg, stop: stop, ended: make(chan struct{}), wake: make(chan struct{}, 1)}
	go w.run(ctx)
	return w, nil
}

// Close ends attempts that are under way, of which none counts, and returns when all have ended or the context has. What was not delivered stays in its place, due at once.
func (w *Worker) Close(ctx context.Context) error {
	w.stop()
	select {
	case <-w.ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Wake says that something was put, so that it does not wait for the next second. It does not block.
func (w *Worker) Wake() {
	select {
	case w.wake <- struct{}{}:
	default:
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
			due, err := w.due(ctx, free)
			if err != nil && ctx.Err() == nil {
				w.cfg.Logger.ErrorContext(ctx, "delivery: what is due cannot be read", slog.Any("error", err))
			}
			for _, r := range due {
				places <- struct{}{}
				under.Go(func() {
					defer func() {
						<-places
						w.Wake()
					}()
					guard.Run(ctx, w.cfg.Logger, "what follows an attempt", func() { w.attempt(ctx, r) })
				})
			}
		}
		if !w.wait(ctx, ticker) {
			return
		}
	}
}

// due leases what is due. A call that ended with the worker might have leased messages of which nobody knows.
func (w *Worker) due(ctx context.Context, limit int) ([]Record, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	call, cancel := context.WithTimeout(context.WithoutCancel(ctx), lease/2)
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		select {
		case <-time.After(looking):
			cancel()
		case <-call.Done():
		}
	})()
	return w.cfg.Deliveries.Due(call, time.Now(), lease, limit, perEndpoint)
}

// wait waits until it is worth looking again, and reports whether the worker goes on.
func (w *Worker) wait(ctx context.Context, ticker *time.Ticker) bool {
	select {
	case <-ctx.Done():
		return false
	case <-ticker.C:
		return true
	case <-w.wake:
	}
	select {
	case <-ctx.Done():
		return false
	case <-time.After(pause):
		return true
	}
}

// attempt makes one attempt and stores what it came to.
func (w *Worker) attempt(ctx context.Context, r Record) {
	result := w.send(ctx, &r)
	ends := ctx.Err() != nil && result.Outcome == webhook.Failed
	if errors.Is(result.Err, ErrLater) && !ends {
		w.cfg.Logger.ErrorContext(ctx, "delivery: no attempt is made now", slog.String("endpoint", r.Endpoint), slog.Any("error", result.Err))
		return
	}
	// What was delivered is stored also while the worker ends.
	ctx = context.WithoutCancel(ctx)
	if ends {
		// It was not the endpoint that failed. Another worker has it at once, or where that cannot be stored when the lease ends.
		r.Delivery.Due = time.Now()
		_ = w.cfg.Deliveries.Done(ctx, r)
		return
	}
	r.Delivery = r.Delivery.After(result, time.Now(), rand.Float64()) //nolint:gosec // Jitter is no secret.
	if err := w.cfg.Deliveries.Done(ctx, r); err != nil {
		w.cfg.Logger.ErrorContext(ctx, "delivery: an attempt cannot be stored, and is made again", slog.Any("error", err))
	} else if w.cfg.Told != nil {
		w.cfg.Told(ctx, r, result)
	}
	if result.Outcome == webhook.Gone {
		w.cfg.Gone(ctx, r.Endpoint)
	}
}

// send makes one attempt. One that panics has failed: otherwise it would be made again with each end of its lease.
func (w *Worker) send(ctx context.Context, r *Record) (result webhook.Result) {
	finished := guard.Run(ctx, w.cfg.Logger, "an attempt", func() {
		to, err := w.cfg.Endpoint(ctx, r.Endpoint)
		if err != nil {
			result = webhook.Result{Outcome: webhook.Failed, Reason: webhook.ReasonURL, Err: err}
			return
		}
		result = w.cfg.Sender.Send(ctx, to, r.Delivery.Message)
	})
	if !finished {
		return webhook.Result{Outcome: webhook.Failed, Reason: webhook.ReasonMessage, Err: errPanicked}
	}
	return result
}

// errPanicked says that an attempt ended in a panic, which is in the log.
var errPanicked = errors.New("delivery: the attempt panicked")
