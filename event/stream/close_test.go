package stream_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/event/stream"
)

func TestCloseDropsWhatABrokerDoesNotTakeInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for name, judge := range map[string]func(context.Context, *stream.Envelope) error{"away": away, "frozen": frozen} {
			b := &broker{judge: judge}
			q := start(t, stream.Config{Sink: b, Timeout: time.Minute, BatchEvents: 10})
			for i := range 100 {
				q.Observe(t.Context(), refusal("acme", i))
			}
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			before := time.Now()
			err := q.Close(ctx)
			cancel()
			require.ErrorIs(t, err, context.DeadlineExceeded, name)
			require.ErrorContains(t, err, "100 events were not sent")
			require.Equal(t, 3*time.Second, time.Since(before))
			require.EqualValues(t, 100, q.Dropped())
			require.NoError(t, q.Close(t.Context()), "it is closed")
			require.False(t, q.Keep(t.Context(), refusal("acme", 1)))
			require.EqualValues(t, 101, q.Dropped())
		}
	})
}

func TestCloseDoesNotHangWithASinkThatDoes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		free := make(chan struct{})
		q := start(t, stream.Config{Sink: sinkFunc(func(_ context.Context, batch []stream.Envelope) []error {
			<-free
			return nil
		})})
		q.Observe(t.Context(), refusal("acme", 1))
		synctest.Wait()
		require.ErrorContains(t, q.Close(expired(t)), "the sink does not end")
		close(free)
		require.NoError(t, q.Close(t.Context()))
		require.EqualValues(t, 1, q.Sent())
	})
}

type sinkFunc func(ctx context.Context, batch []stream.Envelope) []error

func (f sinkFunc) Send(ctx context.Context, batch []stream.Envelope) []error { return f(ctx, batch) }

func TestASinkThatPanicsOrMiscountsIsOneThatFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		q := start(t, stream.Config{Sink: sinkFunc(func(_ context.Context, batch []stream.Envelope) []error {
			switch calls++; calls {
			case 1:
				panic("broken")
			case 2:
				return make([]error, len(batch)+1)
			case 3:
				return []error{}
			default:
				return nil
			}
		})})
		for i := range 10 {
			q.Observe(t.Context(), refusal("acme", i))
		}
		require.NoError(t, q.Close(t.Context()))
		require.EqualValues(t, 10, q.Sent())
		require.Equal(t, 4, calls)
	})
}

func TestTheLogIsToldOnceThatTheBrokerIsAwayAndOnceThatItIsBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		b := &broker{judge: away}
		q := start(t, stream.Config{Sink: b, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		q.Observe(t.Context(), refusal("acme", 1))
		pass(time.Minute)
		require.Equal(t, 1, strings.Count(log.String(), "\n"))
		require.Contains(t, log.String(), `level=WARN msg="ratelimit: the broker of events takes none`)
		require.Contains(t, log.String(), errAway.Error())
		b.recover()
		require.NoError(t, q.Close(t.Context()))
		require.Equal(t, 2, strings.Count(log.String(), "\n"))
		require.Contains(t, log.String(), `level=INFO msg="ratelimit: the broker of events takes them again" dropped=0`)
	})
}
