package stream_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/event/stream"
)

var (
	quiet   = slog.New(slog.NewTextHandler(io.Discard, nil))
	errAway = errors.New("the broker is away")
	// began is when a bubble of synctest does.
	began = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
)

// broker is a sink in memory.
type broker struct {
	mu      sync.Mutex
	stored  []stream.Envelope
	batches []int
	// judge says what becomes of an envelope, or of the whole batch. Nil stores all.
	judge func(ctx context.Context, e *stream.Envelope) error
}

func (b *broker) Send(ctx context.Context, batch []stream.Envelope) []error {
	b.mu.Lock()
	judge := b.judge
	b.batches = append(b.batches, len(batch))
	b.mu.Unlock()
	errs := make([]error, len(batch))
	held := map[string]error{}
	for i := range batch {
		e := &batch[i]
		if err := held[e.Key()]; err != nil {
			errs[i] = err
			continue
		}
		if judge != nil {
			errs[i] = judge(ctx, e)
		}
		switch {
		case errs[i] == nil:
			b.mu.Lock()
			b.stored = append(b.stored, *e)
			b.mu.Unlock()
		case !errors.Is(errs[i], stream.ErrTooLarge) && !errors.Is(errs[i], stream.ErrRefused):
			held[e.Key()] = errs[i]
		}
	}
	return errs
}

// recover makes it store everything from now on.
func (b *broker) recover() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.judge = nil
}

func (b *broker) all() []stream.Envelope {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]stream.Envelope(nil), b.stored...)
}

func (b *broker) calls() []int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]int(nil), b.batches...)
}

// ids are those of what was stored, in order.
func (b *broker) ids() []string {
	var ids []string
	for _, e := range b.all() {
		ids = append(ids, e.ID)
	}
	return ids
}

// away says for each that the broker is.
func away(context.Context, *stream.Envelope) error { return errAway }

// frozen answers nothing.
func frozen(ctx context.Context, _ *stream.Envelope) error {
	<-ctx.Done()
	return ctx.Err()
}

// start starts a queue, whose test closes it.
func start(t testing.TB, cfg stream.Config) *stream.Queue {
	t.Helper()
	if cfg.Logger == nil {
		cfg.Logger = quiet
	}
	q, err := stream.Start(cfg)
	require.NoError(t, err)
	return q
}

// refusal is one of a tenant, with its number.
func refusal(tenant string, n int) event.Decided {
	return event.Decided{
		At: time.Now(), RefusalID: fmt.Sprintf("%s-%d", tenant, n), Outcome: "limited", Code: "RATE_LIMITED", Tenant: tenant, Cost: int64(n),
	}
}

// pass lets time pass in a bubble, and what is due then happen.
func pass(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // In a bubble of synctest.
	synctest.Wait()
}

func expired(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}
