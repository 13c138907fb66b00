package redisfeed_test

import (
	"fmt"
	"io"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/policy"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// revision returns a revision whose maximum cost is its number.
func revision(number uint64) *policy.Revision {
	return other(number, fmt.Appendf(nil, "version: 1\ndefault: free\ntiers: {free: {maxCost: %d}}\n", number))
}

func other(number uint64, document []byte) *policy.Revision {
	return &policy.Revision{Number: number, Document: document, Hash: policy.HashOf(document)}
}

func maxCost(source tiers.Source) uint64 {
	return uint64(source.Snapshot().Rules(tiers.Subject{Tenant: "x"}, tiers.Selection{}).MaxCost.Enforce)
}

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// follow starts a follower that ends with the test.
func follow(t testing.TB, feed policy.Feed, cfg policy.Config) *policy.Follower {
	t.Helper()
	cfg.Observe.Logger = quiet
	if cfg.Observe.Observer == nil {
		cfg.Observe.Observer = event.NewLogger(quiet)
	}
	f, err := policy.Follow(t.Context(), feed, cfg)
	require.NoError(t, err)
	t.Cleanup(func() { _ = f.Close() })
	return f
}
