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
	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/observe/report"
	"github.com/gqlgen-ratelimit/ratelimit/policy/redisswitch"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// refusalID is the id that transcripts ask for.
const refusalID = "ZCMHLSTBYCQSOKZPHXPM2OIHQK"

// refuse starts three instances that follow mode switches and report until the transcript is over: all have admitted and refused operations of a tenant,
// and the first has kept a refusal.
func (th *stage) refuse(tenant string) {
	t := th.t
	client, err := redisclient.Open(th.redis(), redisclient.Config{DialTimeout: patience, SocketTimeout: patience})
	require.NoError(t, err)
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	var reporters []*report.Reporter
	held, err := session.LoadPolicy(livePolicy)
	require.NoError(t, err)
	var followers []*redisswitch.Follower
	t.Cleanup(func() {
		for _, follower := range followers {
			_ = follower.Close()
		}
		for _, reporter := range reporters {
			_ = reporter.Close()
		}
		_ = client.Close()
	})
	now := time.Now()
	for i := range 3 {
		reporter, err := report.Start(report.Config{
			Place: report.Place{Client: client}, Users: report.Plain, Instance: fmt.Sprintf("web-%d", i+1), Logger: quiet,
		})
		require.NoError(t, err)
		reporters = append(reporters, reporter)
		reporter.Observe(t.Context(), event.PolicyApplied{
			At: now, Revision: 12, Author: "ada@example.com", Reason: "smaller budgets, ticket 16", Origin: "feed",
		})
		for n := range 40 {
			reporter.Count(event.Verdict{At: now, Tenant: tenant, Tier: "pro", Outcome: "limited", Refused: n%4 == 0, Cost: 25})
			reporter.Count(event.Verdict{At: now, Tenant: "globex", Tier: "pro", Outcome: "admitted", Cost: 5, Charged: 5})
		}
		if i == 0 {
			reporter.Observe(t.Context(), refused(tenant, now))
		}
		follower, err := redisswitch.Follow(redisswitch.FollowerConfig{
			Config: redisswitch.Config{Client: client}, Switch: tiers.NewModeSwitch(held.Snapshot), Observer: reporter, Logger: quiet,
		})
		require.NoError(t, err)
		followers = append(followers, follower)
	}
	reader, err := report.NewReader(report.Place{Client: client})
	require.NoError(t, err)
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for {
		all, failed := reader.Summary(t.Context(), time.Minute)
		_, err := reader.Refusal(t.Context(), refusalID)
		if failed == nil && len(all.Instances) == len(reporters) && err == nil {
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
	reporter, err := report.Start(report.Config{
		Place: report.Place{Client: client}, Instance: "web-1", Logger: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	reporter.Count(event.Verdict{At: time.Now(), Tenant: "acme", Tier: "pro", Outcome: "admitted"})
	defer func() { _, _ = reporter.Close(), client.Close() }()
	var stdout string
	require.Eventually(t, func() bool {
		code, out, _ := o.run("top -timeout 1m")
		stdout = out
		return code == exitOK
	}, patience, 10*time.Millisecond)
	require.Regexp(t, `web-1 +\(built in\) `, stdout)
}
