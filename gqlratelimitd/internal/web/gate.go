package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
)

// Bounds of memory, and of how an IPv6 address counts.
const (
	// budgetBytes bound what is remembered of addresses and actors: some 30 000 of them.
	budgetBytes = 8 << 20
	// ipv6Client is how many bits of an IPv6 address make one client.
	ipv6Client = 64
)

// LimitConfig bounds what clients ask for. The zero value has the defaults. All tokens that one person has issued are one actor.
type LimitConfig struct {
	// Address is how many requests one address may make in a minute, whoever it is. Zero is 1200. IPv6 addresses count by their /64.
	Address int64
	// Actor is how many requests one actor may make in a minute, and Changes how many of them may change something. Zero is 600, and 120.
	Actor, Changes int64
	// UnderWay is how many requests are under way at once, those that wait for a change included, and ActorUnderWay how many of one
	// actor. Zero is 1024, and 64. Half of each may wait for a change: who waits leaves room for who does not.
	UnderWay, ActorUnderWay int
}

// gate is the limiter of this API: budgets in the memory of this process.
type gate struct {
	store                   *bucket.Memory
	address, actor, changes *bucket.Limits
	underWay, waits         *room
}

func newGate(cfg LimitConfig, now func() time.Time) (*gate, error) {
	cfg.Address, cfg.Actor, cfg.Changes = cmp.Or(cfg.Address, 1200), cmp.Or(cfg.Actor, 600), cmp.Or(cfg.Changes, 120)
	cfg.UnderWay, cfg.ActorUnderWay = cmp.Or(cfg.UnderWay, 1024), cmp.Or(cfg.ActorUnderWay, 64)
	g := &gate{store: bucket.NewMemory(bucket.MemoryConfig{Clock: now, MaxBytes: budgetBytes})}
	var mistakes []error
	for _, limit := range [...]struct {
		name string
		n    int64
		into **bucket.Limits
	}{{"Address", cfg.Address, &g.address}, {"Actor", cfg.Actor, &g.actor}, {"Changes", cfg.Changes, &g.changes}} {
		compiled, err := bucket.Compile(bucket.Limit{Name: "minute", Unit: bucket.Requests, Capacity: limit.n, Period: time.Minute})
		if err != nil {
			err = fmt.Errorf("web: Config.Limits.%s is %d, want requests in a minute: %w", limit.name, limit.n, err)
		}
		*limit.into = compiled
		mistakes = append(mistakes, err)
	}
	if cfg.UnderWay < 0 || cfg.ActorUnderWay < 0 {
		mistakes = append(mistakes, errors.New("web: Config.Limits.UnderWay and ActorUnderWay are how many, or 0 for the default"))
	}
	g.underWay = newRoom(cfg.UnderWay, cfg.ActorUnderWay)
	g.waits = newRoom(max(cfg.UnderWay/2, 1), max(cfg.ActorUnderWay/2, 1))
	return g, errors.Join(mistakes...)
}

// arrive takes a request from the limit of its address. An address that is not known has none.
func (g *gate) arrive(ctx context.Context, from netip.Addr) error {
	if !from.IsValid() {
		return nil
	}
	return g.take(ctx, "address "+client(from).String(), g.address)
}

// known takes a request from the limits of its actor.
func (g *gate) known(ctx context.Context, actor *access.Actor, changes bool) error {
	name := actorKey(actor)
	if err := g.take(ctx, "actor "+name, g.actor); err != nil || !changes {
		return err
	}
	return g.take(ctx, "changes "+name, g.changes)
}

// actorKey is under what an actor is counted: nobody has more by issuing tokens.
func actorKey(actor *access.Actor) string { return actor.Person() }

func (g *gate) take(ctx context.Context, name string, limits *bucket.Limits) error {
	result, err := g.store.Take(context.WithoutCancel(ctx), bucket.Take{
		Tenant: name, Buckets: []bucket.Bucket{{Limits: limits}}, Amounts: bucket.Amounts{{Unit: bucket.Requests, N: 1}},
	})
	if err != nil {
		// The store has no way to fail but a mistake of this package.
		return fmt.Errorf("web: %w", err)
	}
	if result.Verdict == bucket.Admitted {
		return nil
	}
	return &problem{
		Status: http.StatusTooManyRequests, Title: "Too many requests", retryAfter: max(result.RetryAfter, time.Second),
		Detail: "Wait as long as Retry-After says. To hear of changes, wait for them with the parameter wait instead of asking often.",
	}
}
