package edge_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/edge"
)

const ticking = "subscription { ticks(count: 100) }"

func TestAnAddressHasItsOperationsOnAllWebSocketsAtOnce(t *testing.T) {
	t.Parallel()
	s := serve(t, edge.Config{Address: edge.AddressConfig{Operations: 2}}, nil)
	s.resolver.Tick = make(chan int)
	first, _ := s.dial(t, "websocket")
	second, _ := s.dial(t, "websocket")
	first.start("1", ticking)
	second.start("1", ticking)
	require.Eventually(t, func() bool { return s.resolver.Asked.Load() == 2 }, time.Minute, time.Millisecond)
	refused := second.run("2")
	require.Contains(t, refused, `"layer":"address"`)
	require.Contains(t, refused, `"code":"RATE_LIMITED"`)
	require.Equal(t, http.StatusOK, s.post(t, strings.NewReader(document)).status, "they are no requests under way")
	require.NoError(t, first.conn.CloseNow())
	require.Eventually(t, func() bool { return strings.Contains(second.run("3"), `"me"`) }, time.Minute, time.Millisecond,
		"what has ended makes room")
}

func TestNobodyTakesTheLastPlaceForAnOperationOnAWebSocket(t *testing.T) {
	t.Parallel()
	s := serve(t, edge.Config{Connection: edge.ConnectionConfig{AllOperations: 2}}, nil)
	s.resolver.Tick = make(chan int)
	c, _ := s.dial(t, "websocket")
	c.start("1", ticking)
	require.Eventually(t, func() bool { return s.resolver.Asked.Load() == 1 }, time.Minute, time.Millisecond)
	require.Contains(t, c.run("2"), `"code":"OVERLOADED"`)
}

func TestWhatAWebSocketBeginsWithIsBounded(t *testing.T) {
	t.Parallel()
	s := serve(t, edge.Config{}, nil)
	begin := func(payload int) error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		conn, _, err := websocket.Dial(ctx, "ws"+strings.TrimPrefix(s.URL, "http"), //nolint:bodyclose // the library closes it
			&websocket.DialOptions{HTTPClient: s.Client(), Subprotocols: []string{"graphql-transport-ws"}})
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.CloseNow() })
		c := &socket{t, conn}
		_ = conn.Write(ctx, websocket.MessageText, []byte(`{"type":"connection_init","payload":{"x":"`+strings.Repeat("x", payload)+`"}}`))
		_, answer, err := conn.Read(ctx)
		if err != nil {
			require.NotErrorIs(t, err, context.DeadlineExceeded)
			return err
		}
		require.Contains(t, string(answer), "connection_ack")
		for range 2 {
			require.NoError(t, conn.Write(ctx, websocket.MessageText, []byte(`{"type":"pong","payload":{"x":"`+strings.Repeat("x", 20_000)+`"}}`)))
		}
		require.Contains(t, c.run("1"), `"me"`, "what comes after the answer counts no more")
		return nil
	}
	require.NoError(t, begin(15<<10))
	require.Error(t, begin(17<<10))
}

// TestMessagesThatAreNoOperationsEndAWebSocket sends long ones, and short ones: 30 kB of which 200 kB would be allowed.
func TestMessagesThatAreNoOperationsEndAWebSocket(t *testing.T) {
	t.Parallel()
	for message, sent := range map[string]int{
		`{"type":"pong","payload":{"x":"` + strings.Repeat("x", 50_000) + `"}}`: 100,
		`{"type":"pong"}`: 2000,
	} {
		s := serve(t, edge.Config{
			Request: edge.RequestConfig{MaxBody: 1000, MaxHeader: 20_000},
			Address: edge.AddressConfig{Limits: []bucket.Limit{{Name: "bytes", Unit: edge.Bytes, Capacity: 200_000, Period: time.Hour}}},
		}, nil)
		c, _ := s.dial(t, "websocket")
		for range sent {
			if c.conn.Write(t.Context(), websocket.MessageText, []byte(message)) != nil {
				break
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		_, _, err := c.conn.Read(ctx)
		cancel()
		require.Error(t, err)
		require.NotErrorIs(t, err, context.DeadlineExceeded)
	}
}
