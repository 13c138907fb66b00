package main

import (
	"fmt"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket/redisclient"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/session"
	"github.com/gqlgen-ratelimit/ratelimit/digest"
	"github.com/gqlgen-ratelimit/ratelimit/digest/redisdigest"
	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/policy/redisswitch"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// refusalID is the id that transcripts ask for.
const refusalID = "ZCMHLSTBYCQSOKZPHXPM2OIHQK"

// refuse starts three instances that follow mode switches and write digests until the transcript is over: all have admitted and refused operations of a tenant,
// and the first has kept a refusal.
func (th *stage) refuse(tenant string) {
	t := th.t
	client, err := redisclient.Open(th.redis(), redisclient.Config{DialTimeout: patience, SocketTimeout: patience})
	require.NoError(t, err)
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	var writers []*redisdigest.Writer
	held, err := session.LoadPolicy(livePolicy)
	require.NoError(t, err)
	var followers []*redisswitch.Follower
	t.Cleanup(func() {
		for _, follower := range followers {
			_ = follower.Close()
		}
		for _, writer := range writers {
			_ = writer.Close()
		}
		_ = client.Close()
	})
	now := time.Now()
	for i := range 3 {
		collector, err := digest.New(digest.Config{Users: digest.Plain})
		require.NoError(t, err)
		collector.Observe(t.Context(), event.PolicyApplied{
			At: now, Revision: 12, Author: "ada@example.com", Reason: "smaller budgets, ticket 16", Origin: "feed",
		})
		for n := range 40 {
			collector.Count(event.Verdict{At: now, Tenant: tenant, Tier: "pro", Outcome: "limited", Refused: n%4 == 0, Cost: 25})
			collector.Count(event.Verdict{At: now, Tenant: "globex", Tier: "pro", Outcome: "admitted", Cost: 5, Charged: 5})
		}
		if i == 0 {
			collector.Observe(t.Context(), refused(tenant, now))
		}
		writer, err := redisdigest.Start(redisdigest.WriterConfig{
			Config: redisdigest.Config{Client: client}, Collector: collector, Instance: fmt.Sprintf("web-%d", i+1), Logger: quiet,
		})
		require.NoError(t, err)
		writers = append(writers, writer)
		follower, err := redisswitch.Follow(redisswitch.FollowerConfig{
			Config: redisswitch.Config{Client: client}, Switch: tiers.NewModeSwitch(held.Snapshot), Observer: collector, Logger: quiet,
		})
		require.NoError(t, err)
		followers = append(followers, follower)
	}
	reader, err := redisdigest.NewReader(redisdigest.Config{Client: client})
	require.NoError(t, err)
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for {
		digests, _ := reader.Digests(t.Context())
		_, err := reader.Refusal(t.Context(), refusalID)
		if len(digests) == len(writers) && err == nil {
			return
		}
		select {
		case <-ticker.C:
		case <-t.Context().Done():
			t.Fatal("the instances have written nothing")
		}
	}
}

// refused is the event of a refusal.
func refused(tenant string, at time.Time) event.Decided {
	return event.Decided{
		At: at, RefusalID: refusalID, Outcome: "limited", Code: "RATE_LIMITED", Tenant: tenant, User: "ada", Tier: "pro", Mode: "enforce",
		Origin: event.Origin{Tier: "tenants." + tenant + ".tier"}, Revision: 12, Kind: "query", Operation: "Orders", RootFields: []string{"Query.orders"},
		Cost: 120, RetryAfter: 18 * time.Second, ClearsAt: at.Add(18 * time.Second),
		Limits: []event.LimitState{
			{
				Level: "tenant", Limit: "minute", Unit: "points", Capacity: 1000, Asked: 120, Remaining: 50, Mode: "enforce", Exceeded: true, Refuses: true,
				Origin: &event.Origin{Rule: []string{"tiers.pro.limits.minute"}, Line: 12},
			},
			{Level: "tenant", Limit: "requests", Unit: "requests", Capacity: 600, Asked: 1, Remaining: 590, Mode: "enforce"},
			{Level: "user", Owner: "ada", Limit: "minute", Unit: "points", Capacity: 400, Asked: 120, Remaining: 140, Mode: "enforce"},
		},
	}
}

func TestAnInstanceThatWasToldOfNoRevisionHasAPolicyOfItsOwn(t *testing.T) {
	t.Parallel()
	o, server := newOperator(t)
	client, err := redisclient.Open(server.Addr, redisclient.Config{DialTimeout: patience, SocketTimeout: patience})
	require.NoError(t, err)
	collector, err := digest.New(digest.Config{})
	require.NoError(t, err)
	collector.Count(event.Verdict{At: time.Now(), Tenant: "acme", Tier: "pro", Outcome: "admitted"})
	writer, err := redisdigest.Start(redisdigest.WriterConfig{
		Config: redisdigest.Config{Client: client}, Collector: collector, Instance: "web-1", Logger: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	defer func() { _, _ = writer.Close(), client.Close() }()
	var stdout string
	require.Eventually(t, func() bool {
		code, out, _ := o.run("top -timeout 1m")
		stdout = out
		return code == exitOK
	}, patience, 10*time.Millisecond)
	require.Regexp(t, `web-1 +\(built in\) `, stdout)
}
