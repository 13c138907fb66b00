package redisdirectory_test

import (
	"fmt"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
	"github.com/gqlgen-ratelimit/ratelimit/policy/directory"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// patience is for how long something that has to happen may take on a busy machine.
const patience = 30 * time.Second

func TestAChangeReachesEveryInstanceAlsoThroughBrokenConnectionsAndARestartOfRedis(t *testing.T) {
	t.Parallel()
	const instances, changes = 10, 30
	server := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	policy, err := tiers.Load([]byte("{version: 1, default: free, tiers: {free: {maxCost: 1}}}"), 1)
	require.NoError(t, err)
	proxy := redistest.StartProxy(t, server.Addr)
	var fleet [instances]*directory.Directory
	for i := range fleet {
		client := redistest.Connect(t, proxy.Addr)
		fleet[i], err = directory.Open(t.Context(), policy, open(t, client), directory.Config{
			Interval: 100 * time.Millisecond, MissDeadline: time.Second,
			Observe: directory.ObserveConfig{Logger: slog.New(slog.NewTextHandler(io.Discard, nil))},
		})
		require.NoError(t, err)
		t.Cleanup(func() { _ = fleet[i].Close() })
	}
	writer := open(t, redistest.Plain(t, server.Addr))
	acme := tiers.Subject{Tenant: "acme"}
	maxCost := func(d *directory.Directory) int {
		return int(d.Snapshot().Rules(acme, tiers.Selection{Record: d.Prepare(t.Context(), acme)}).MaxCost.Enforce)
	}
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	var revision uint64
	var longest time.Duration
	for n := 2; n < changes+2; n++ {
		switch {
		case n%10 == 0:
			server.Kill()
			require.NoError(t, server.Restart())
		case n%3 == 0:
			proxy.Sever()
		}
		document := fmt.Appendf(nil, `{"maxCost":%d}`, n)
		next, err := writer.Put(t.Context(), "acme", document, revision)
		for again := 0; err != nil && again < 100; again++ {
			// The answer may have been lost: a repeat is told that it is there.
			next, err = writer.Put(t.Context(), "acme", document, revision)
		}
		require.NoError(t, err)
		revision = next
		began := time.Now()
		for i, d := range fleet {
			seen := 0
			for seen != n {
				now := maxCost(d)
				require.GreaterOrEqual(t, now, seen, "instance %d goes back", i)
				require.Less(t, time.Since(began), patience, "instance %d is stuck at %d", i, now)
				seen = now
				<-ticker.C
			}
		}
		longest = max(longest, time.Since(began))
	}
	t.Logf("%d changes in %d instances that ask ten times a second: %v at the longest", changes, instances, longest)
}

// The script that an instance runs twice a second.
func BenchmarkAsking(b *testing.B) {
	server := redistest.Start(b)
	client := redistest.Plain(b, server.Addr)
	source := open(b, client)
	_, err := source.Put(b.Context(), "acme", []byte(`{"tier":"pro"}`), 0)
	require.NoError(b, err)
	page, err := source.Changes(b.Context(), directory.Mark{})
	require.NoError(b, err)
	for b.Loop() {
		if _, err := source.Changes(b.Context(), page.Through); err != nil {
			b.Fatal(err)
		}
	}
}
