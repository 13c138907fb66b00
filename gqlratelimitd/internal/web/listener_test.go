package web_test

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/web"
)

// bounded is a listener whose connections are accepted and kept.
func bounded(t *testing.T, cfg web.ListenConfig) (dial func() net.Conn) {
	t.Helper()
	inner, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	listener := web.Bound(inner, cfg)
	accepted := make(chan struct{})
	go func() {
		defer close(accepted)
		for {
			if _, err := listener.Accept(); err != nil {
				return
			}
			accepted <- struct{}{}
		}
	}()
	t.Cleanup(func() {
		require.NoError(t, listener.Close())
		<-accepted
	})
	return func() net.Conn {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", inner.Addr().String())
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		<-accepted
		return conn
	}
}

// cut says whether a connection was closed by the other end.
func cut(t *testing.T, conn net.Conn, want bool) {
	t.Helper()
	// A connection that is open has nothing to say, which is found out without waiting.
	within := 5 * time.Second
	if !want {
		within = time.Millisecond
	}
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(within)))
	_, err := conn.Read(make([]byte, 1))
	require.Equal(t, want, errors.Is(err, io.EOF), "%v", err)
}

func TestTheOldestConnectionGivesWay(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]web.ListenConfig{
		"of an address": {Address: 2}, "of all": {All: 2}, "of a proxy": {All: 2, Address: 1, Proxy: func(netip.Addr) bool { return true }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dial := bounded(t, cfg)
			first, second, third := dial(), dial(), dial()
			cut(t, first, true)
			cut(t, second, false)
			cut(t, third, false)
		})
	}
}
