package main

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	// soon is how often something is looked at that comes by itself, and patient how long it is waited for.
	soon    = 20 * time.Millisecond
	patient = 60 * time.Second
)

var quiet = slog.New(slog.DiscardHandler)

// startWith starts a daemon with options that have no flags.
func startWith(t testing.TB, o *options, log io.Writer) *running {
	t.Helper()
	require.NoError(t, o.complete())
	ctx, cancel := context.WithCancel(t.Context())
	said := make(greeting, 1)
	d, err := open(ctx, o, console{strings.NewReader(""), said, log})
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- d.serve(ctx) }()
	r := &running{TB: t, url: "http://" + d.listener.Addr().String(), token: d.token}
	r.stop = sync.OnceValue(func() int {
		cancel()
		require.NoError(t, <-ended)
		return 0
	})
	t.Cleanup(func() { r.stop() })
	r.out = <-said
	return r
}
