package event_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/event"
)

var minute = event.Budget{
	Tenant: "acme", Tier: "pro", Level: "user", Owner: "alice", Limit: "minute", Unit: "points", Capacity: 100, Mode: "enforce",
}

// lines returns what a logger writes, without the time.
func lines(t testing.TB, events ...event.Event) []string {
	t.Helper()
	var b bytes.Buffer
	log := slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{
		ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
			if len(groups) == 0 && a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	}))
	observer := event.NewLogger(log)
	for _, e := range events {
		observer.Observe(t.Context(), e)
	}
	return strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
}

func TestALineSaysEverythingThatIsKnown(t *testing.T) {
	t.Parallel()
	shape := event.Budget{Tenant: "acme", Tier: "pro", Mode: "warn"}
	require.Equal(t, []string{
		`level=INFO msg="ratelimit: threshold_crossed" tenant=acme tier=pro level=user owner=alice limit=minute unit=points capacity=100 mode=enforce threshold=0.8 share=0.85 remaining=15`,
		`level=INFO msg="ratelimit: limit_reached" tenant=acme tier=pro level=user owner=alice limit=minute unit=points capacity=100 mode=enforce retryAfter=7.2s`,
		`level=INFO msg="ratelimit: limit_reached" tenant=acme tier=pro level=user owner=alice limit=minute unit=points capacity=100 mode=enforce`,
		`level=INFO msg="ratelimit: would_refuse" tenant=acme tier=pro mode=warn code=QUERY_LIMIT_EXCEEDED`,
		`level=INFO msg="ratelimit: would_refuse" tenant=acme tier=pro mode=warn code=COST_LIMIT_EXCEEDED enforceFrom=2026-12-01T00:00:00.000Z`,
		`level=WARN msg="ratelimit: refused_repeatedly" tenant=acme tier=pro refusals=100 within=1m0s`,
		`level=INFO msg="ratelimit: candidate_differs" tenant=acme tier=pro candidate=next live=limited would=admitted`,
		`level=WARN msg="ratelimit: breaker_changed" node=10.0.0.7:6379 from=half_open to=open`,
		`level=INFO msg="ratelimit: breaker_changed" node=10.0.0.7:6379 from=half_open to=closed`,
		`level=INFO msg="ratelimit: policy_applied" policy=main revision=7 hash=sha256:ab author=ada reason="why not" published=2026-12-01T00:00:00.000Z origin=feed again=true`,
		`level=INFO msg="ratelimit: policy_applied" revision=0 origin=first`,
		`level=WARN msg="ratelimit: policy_refused" policy=main revision=8 hash=sha256:cd cause=older error="it is older" holds=7`,
		`level=WARN msg="ratelimit: policy_state" policy=main from=current to=stale age=6s revision=7 error="the feed is away"`,
		`level=WARN msg="ratelimit: policy_state" from=current to=current revision=7 unsaved="the disk is full"`,
		`level=INFO msg="ratelimit: policy_state" from=stale to=current revision=7`,
	}, lines(t,
		event.ThresholdCrossed{Budget: minute, Threshold: 0.8, Share: 0.85, Remaining: 15},
		event.LimitReached{Budget: minute, RetryAfter: 7200 * time.Millisecond},
		event.LimitReached{Budget: minute},
		event.WouldRefuse{Budget: shape, Code: "QUERY_LIMIT_EXCEEDED"},
		event.WouldRefuse{Budget: shape, Code: "COST_LIMIT_EXCEEDED", EnforceFrom: time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)},
		event.RefusedRepeatedly{Tenant: "acme", Tier: "pro", Refusals: 100, Within: time.Minute},
		event.CandidateDiffers{Tenant: "acme", Tier: "pro", Candidate: "next", Live: "limited", Would: "admitted"},
		event.BreakerChanged{Node: "10.0.0.7:6379", From: event.BreakerHalfOpen, To: event.BreakerOpen},
		event.BreakerChanged{Node: "10.0.0.7:6379", From: event.BreakerHalfOpen, To: event.BreakerClosed},
		event.PolicyApplied{
			Policy: "main", Revision: 7, Hash: "sha256:ab", Author: "ada", Reason: "why not",
			Published: time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC), Origin: "feed", Again: true,
		},
		event.PolicyApplied{Origin: "first"},
		event.PolicyRefused{Policy: "main", Revision: 8, Hash: "sha256:cd", Cause: "older", Error: "it is older", Holds: 7},
		event.PolicyState{Policy: "main", From: event.PolicyCurrent, To: "stale", Age: 6 * time.Second, Revision: 7, Error: "the feed is away"},
		event.PolicyState{From: event.PolicyCurrent, To: event.PolicyCurrent, Revision: 7, Unsaved: "the disk is full"},
		event.PolicyState{From: "stale", To: event.PolicyCurrent, Revision: 7},
	))
}

func TestALineSaysWhatLedToARefusal(t *testing.T) {
	t.Parallel()
	origin := event.Origin{
		Tier: "default", Rule: []string{"tiers.pro.users.limits.minute", "tenants.acme.users.limits.minute"},
		Mode: "(default)", FailMode: "tiers.pro.failMode",
		Overrides: []event.Override{{
			Level: "user", Owner: "alice", Limit: "minute", Reason: "ticket 17", Actor: "ops",
			SetAt: time.Date(2026, 11, 22, 1, 0, 0, 0, time.UTC), Expires: time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC),
		}},
	}
	require.Equal(t, []string{
		`level=INFO msg="ratelimit: decided" refusalId=A1 outcome=limited code=RATE_LIMITED charge=true tenant=acme team=web user=alice tier=pro mode=enforce ` +
			`kind=query operation=Report rootFields=Query.a,Query.b keyed=true cost=62 charged=0 maxCost=500 rule=depth retryAfter=7.2s clearsAt=2026-11-22T01:02:03.000Z ` +
			`amounts.points=62 amounts.requests=1 store=eu storeDuration=1ms storeResult=ambiguous failMode=closed tierFrom=default modeFrom=(default) ` +
			`limits.0.level=user limits.0.owner=alice limits.0.limit=minute limits.0.unit=points limits.0.capacity=100 limits.0.refill=100 limits.0.period=1m0s ` +
			`limits.0.mode=enforce limits.0.soft=true limits.0.remaining=38 limits.0.overdraft=1 limits.0.approximate=true limits.0.held=30 limits.0.resetAfter=37s limits.0.exceeded=true limits.0.refuses=true ` +
			`limits.0.never=true limits.0.retryAfter=7.2s limits.0.from="tiers.pro.users.limits.minute < tenants.acme.users.limits.minute" limits.0.modeFrom=(default) ` +
			`limits.0.failModeFrom=tiers.pro.failMode limits.0.overrides.0.level=user limits.0.overrides.0.owner=alice limits.0.overrides.0.limit=minute ` +
			`limits.0.overrides.0.reason="ticket 17" limits.0.overrides.0.actor=ops limits.0.overrides.0.setAt=2026-11-22T01:00:00.000Z limits.0.overrides.0.expires=2026-11-23T00:00:00.000Z`,
		`level=INFO msg="ratelimit: decided" outcome=admitted tenant=acme tier=pro cost=1 charged=1`,
	}, lines(t,
		event.Decided{
			RefusalID: "A1", Outcome: "limited", Code: "RATE_LIMITED", Charge: true, Tenant: "acme", Team: "web", User: "alice", Tier: "pro",
			Mode: "enforce", Kind: "query", Operation: "Report", RootFields: []string{"Query.a", "Query.b"}, Keyed: true, Cost: 62, MaxCost: 500, Rule: "depth",
			RetryAfter: 7200 * time.Millisecond, ClearsAt: time.Date(2026, 11, 22, 1, 2, 3, 0, time.UTC),
			Amounts: []event.Amount{{Unit: "points", N: 62}, {Unit: "requests", N: 1}},
			Store:   "eu", StoreDuration: time.Millisecond, StoreResult: "ambiguous", FailMode: "closed",
			Origin: event.Origin{Tier: "default", Mode: "(default)"},
			Limits: []event.LimitState{{
				Level: "user", Owner: "alice", Limit: "minute", Unit: "points", Capacity: 100, Refill: 100, Period: time.Minute, Mode: "enforce", Soft: true,
				Remaining: 38, Overdraft: 1, Approximate: true, Held: 30, ResetAfter: 37 * time.Second, Exceeded: true, Refuses: true, Never: true, RetryAfter: 7200 * time.Millisecond,
				Origin: &origin,
			}},
		},
		event.Decided{Outcome: "admitted", Tenant: "acme", Tier: "pro", Cost: 1, Charged: 1},
	))
}

func TestAFullChannelDropsAndCountsAndNeverBlocks(t *testing.T) {
	t.Parallel()
	channel := event.NewChannel(0)
	var group sync.WaitGroup
	for range 100 {
		group.Go(func() { channel.Observe(t.Context(), event.LimitReached{Budget: minute}) })
	}
	group.Wait()
	require.EqualValues(t, 99, channel.Dropped())
	require.Equal(t, event.LimitReached{Budget: minute}, <-channel.Events())
}

func TestForwardTellsUntilItsContextEnds(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	channel := event.NewChannel(10)
	for range 3 {
		channel.Observe(ctx, event.RefusedRepeatedly{Tenant: "acme"})
	}
	told := 0
	channel.Forward(ctx, event.Func(func(_ context.Context, e event.Event) {
		require.Equal(t, "refused_repeatedly", e.Name())
		if told++; told == 3 {
			cancel()
		}
	}))
	require.Equal(t, 3, told)
}

func TestAllAreToldInTurn(t *testing.T) {
	t.Parallel()
	var told []int
	note := func(i int) event.Observer {
		return event.Func(func(context.Context, event.Event) { told = append(told, i) })
	}
	full := event.NewChannel(1)
	all := event.All(note(1), full, note(2))
	for range 3 {
		all.Observe(t.Context(), event.LimitReached{})
	}
	require.Equal(t, []int{1, 2, 1, 2, 1, 2}, told)
	counter, ok := all.(event.DropCounter)
	require.True(t, ok)
	require.EqualValues(t, 2, counter.Dropped())
}

func TestAnObserverSaysWhetherItKeptAnEvent(t *testing.T) {
	t.Parallel()
	full := event.NewChannel(1)
	e := event.RefusedRepeatedly{Tenant: "acme"}
	require.True(t, full.Keep(t.Context(), e))
	require.False(t, full.Keep(t.Context(), e), "there is no room")
	require.EqualValues(t, 1, full.Dropped())
	silent := event.NewLogger(slog.New(slog.DiscardHandler))
	require.False(t, silent.Keep(t.Context(), e), "its handler wants no line")
	told := 0
	unknown := event.Func(func(context.Context, event.Event) { told++ })
	require.True(t, event.All(full, unknown, silent).Keep(t.Context(), e), "who does not say keeps it")
	require.False(t, event.All(full, event.All(silent)).Keep(t.Context(), e))
	require.False(t, event.All().Keep(t.Context(), e))
	require.Equal(t, 1, told)
	var lines bytes.Buffer
	require.True(t, event.NewLogger(slog.New(slog.NewTextHandler(&lines, nil))).Keep(t.Context(), e))
	require.Contains(t, lines.String(), "refused_repeatedly")
}
