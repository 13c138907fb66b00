package redisstream_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket/redisclient"
	"github.com/gqlgen-ratelimit/ratelimit/event/redisstream"
	"github.com/gqlgen-ratelimit/ratelimit/event/stream"
	"github.com/gqlgen-ratelimit/ratelimit/event/streamtest"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
)

// elsewhere is another broker, in memory. It stores nothing of a key after one that it has not stored.
type elsewhere struct {
	mu     sync.Mutex
	stored []stream.Envelope
	calls  int
	// judge says what becomes of an envelope, with the number of the call. Nil stores all.
	judge func(call int, e *stream.Envelope) error
}

func (b *elsewhere) Send(_ context.Context, batch []stream.Envelope) []error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls++
	errs := make([]error, len(batch))
	held := map[string]error{}
	for i, e := range batch {
		if errs[i] = held[e.Key()]; errs[i] != nil {
			continue
		}
		if b.judge != nil {
			errs[i] = b.judge(b.calls, &e)
		}
		switch {
		case errs[i] == nil:
			b.stored = append(b.stored, e)
		case !errors.Is(errs[i], stream.ErrRefused):
			held[e.Key()] = errs[i]
		}
	}
	return errs
}

// ids are those that are stored, the first of each.
func (b *elsewhere) ids() (ids []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	seen := map[string]bool{}
	for i := range b.stored {
		if id := b.stored[i].ID; !seen[id] {
			seen[id] = true
			ids = append(ids, id)
		}
	}
	return ids
}

// forward brings events on until the test ends, or stop is called.
func forward(t *testing.T, client redis.UniversalClient, sink stream.Sink) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- redisstream.Forward(ctx, redisstream.ForwardConfig{
			Client: client, Topic: "ratelimit.denials", Sink: sink, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
		})
	}()
	stop = sync.OnceFunc(func() { cancel(); require.NoError(t, <-ended) })
	t.Cleanup(stop)
	return stop
}

func TestWhatIsBroughtOnArrivesInOrderWhateverFails(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	sink := open(t, redisstream.Config{Client: redistest.Connect(t, server.Addr)})
	client := redistest.Plain(t, server.Addr)
	var want []string
	put := func(n int) {
		batch := make([]stream.Envelope, n)
		for i := range batch {
			batch[i] = streamtest.Envelope("acme", len(want))
			want = append(want, batch[i].ID)
		}
		require.Nil(t, sink.Send(t.Context(), batch))
	}
	b := &elsewhere{judge: func(call int, e *stream.Envelope) error {
		if call%3 == 1 && e.Sequence%50 == 7 {
			return errors.New("away")
		}
		return nil
	}}
	put(250)
	stop := forward(t, client, b)
	require.Eventually(t, func() bool { return len(b.ids()) > 100 }, redistest.Patience, time.Millisecond)
	stop()
	put(100)
	// A group that nobody has acknowledged to is asked for what it was given.
	forward(t, client, b)
	require.Eventually(t, func() bool { return len(b.ids()) == len(want) }, redistest.Patience, time.Millisecond)
	require.Equal(t, want, b.ids())
	require.Eventually(t, func() bool {
		pending, err := client.XPending(t.Context(), key, "forward").Result()
		return err == nil && pending.Count == 0
	}, redistest.Patience, time.Millisecond, "all of it is acknowledged")
}

func TestWhatIsNoEventOrNeverTakenHoldsUpNothing(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	sink := open(t, redisstream.Config{Client: redistest.Connect(t, server.Addr)})
	client := redistest.Plain(t, server.Addr)
	require.NoError(t, client.XAdd(t.Context(), &redis.XAddArgs{Stream: key, Values: []string{"of", "others"}}).Err())
	require.Nil(t, sink.Send(t.Context(), []stream.Envelope{streamtest.Envelope("acme", 0), streamtest.Envelope("acme", 1), streamtest.Envelope("acme", 2)}))
	b := &elsewhere{judge: func(_ int, e *stream.Envelope) error {
		if e.ID == "id-1" {
			return fmt.Errorf("no: %w", stream.ErrRefused)
		}
		return nil
	}}
	forward(t, client, b)
	require.Eventually(t, func() bool { return len(b.ids()) == 2 }, redistest.Patience, time.Millisecond)
	require.Equal(t, []string{"id-0", "id-2"}, b.ids())
}

func TestAStreamThatWasGoneIsBroughtOnFromItsBeginningByWhoMayOnlyConsume(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	sink := open(t, redisstream.Config{Client: redistest.Connect(t, server.Addr)})
	client := redistest.Plain(t, server.Addr)
	rules, err := redisstream.ConsumerACLRules("")
	require.NoError(t, err)
	user := []any{"ACL", "SETUSER", "bridge", "on", ">secret"}
	for _, rule := range rules {
		user = append(user, rule)
	}
	require.NoError(t, client.Do(t.Context(), user...).Err())
	modest := redistest.ConnectWith(t, server.Addr, redisclient.Config{Username: "bridge", Password: "secret"})
	b := &elsewhere{}
	forward(t, modest, b)
	for n := range 3 {
		require.Nil(t, sink.Send(t.Context(), []stream.Envelope{streamtest.Envelope("acme", n)}))
		require.Eventually(t, func() bool { return len(b.ids()) == n+1 }, redistest.Patience, time.Millisecond)
		require.NoError(t, client.Del(t.Context(), key).Err())
	}
}

func TestMistakesOfABridgeAreReportedAllAtOnce(t *testing.T) {
	t.Parallel()
	err := redisstream.Forward(t.Context(), redisstream.ForwardConfig{Namespace: "a b", Topic: "a/b"})
	for _, part := range []string{"Client is nil", "Sink is nil", "ForwardConfig.Topic", "Namespace"} {
		require.ErrorContains(t, err, part)
	}
}
