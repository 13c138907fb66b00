package web_test

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
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

// holding serves on a bounded listener requests that are under way until the test ends.
func holding(t *testing.T, cfg web.ListenConfig, encrypted bool) (dial func(body string) net.Conn) {
	t.Helper()
	inner, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	began, states, end := make(chan struct{}), make(chan http.ConnState, 100), make(chan struct{})
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/held" {
			began <- struct{}{}
			<-end
		}
	}))
	require.NoError(t, server.Listener.Close())
	server.Listener = web.Bound(inner, cfg)
	server.Config.ConnState = func(conn net.Conn, state http.ConnState) {
		web.Track(conn, state)
		states <- state
	}
	if encrypted {
		server.StartTLS()
	} else {
		server.Start()
	}
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(end) })
	return func(path string) net.Conn {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", inner.Addr().String())
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		client := conn
		if encrypted {
			client = tls.Client(conn, &tls.Config{InsecureSkipVerify: true})
		}
		if path == "" {
			return client
		}
		_, err = fmt.Fprintf(client, "GET %s HTTP/1.1\r\nHost: a\r\n\r\n", path)
		require.NoError(t, err)
		if path == "/held" {
			<-began
			return client
		}
		for <-states != http.StateIdle {
		}
		return client
	}
}

// ends requires that a connection is closed by the other end.
func ends(t *testing.T, conn net.Conn) {
	t.Helper()
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(patient)))
	_, err := io.Copy(io.Discard, conn)
	require.NotErrorIs(t, err, os.ErrDeadlineExceeded)
}

func TestAConnectionWithARequestUnderWayStays(t *testing.T) {
	t.Parallel()
	for name, encrypted := range map[string]bool{"in the clear": false, "encrypted": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dial := holding(t, web.ListenConfig{Address: 2}, encrypted)
			busy, idle := dial("/held"), dial("/")
			third := dial("/held")
			ends(t, idle)
			ends(t, dial(""))
			for _, conn := range []net.Conn{busy, third} {
				require.NoError(t, conn.SetReadDeadline(time.Now().Add(time.Millisecond)))
				_, err := conn.Read(make([]byte, 1))
				require.ErrorIs(t, err, os.ErrDeadlineExceeded)
			}
		})
	}
}
