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
)

// Bounds of memory, and of what is read at once.
const (
	// budgetBytes bound what is remembered of strangers, and of everybody else: some 15 000 of each. Who is known is not forgotten for strangers.
	budgetBytes = 4 << 20
	// documents is how many policy documents are read at once, which may have megabytes, and senderDocuments how many of one sender.
	documents, senderDocuments = 32, 4
	// lookups is how many requests wait at once until it is found out who asks with a token, and tokenLookups how many of one token.
	lookups, tokenLookups = 1024, 64
	// reserveRequests is how many urgent requests a sender may make in a minute beside all others.
	reserveRequests = 60
)

// changes is the unit of requests that may change something.
const changes bucket.Unit = "changes"

// LimitConfig bounds what clients ask for. The zero value has the defaults. A sender is a token with those that come from it,
// or a person whom an issuer of OpenID Connect knows. Whoever answers for several senders has four times as much for all of them, and who may block every
// tenant has a reserve beside for blocks, mode switches and reverts.
type LimitConfig struct {
	// Address is how many requests without a token that holds one address may make in a minute. Zero is 1200. IPv6 addresses count by their /64.
	Address int64
	// Actor is how many requests one sender may make in a minute, and Changes how many of them may change something. Zero is 600, and 120.
	Actor, Changes int64
	// UnderWay is how many requests are under way at once, those that wait for a change included, and ActorUnderWay how many of one
	// sender. Zero is 1024, and 64. Half of each may wait for a change: who waits leaves room for who does not. As many bodies are read at once
	// besides: a request is under way once its body was read.
	UnderWay, ActorUnderWay int
}

// gate is the limiter of this API: budgets in the memory of this process.
type gate struct {
	strangers, parties               *bucket.Memory
	address, sender, person, reserve *bucket.Limits
	underWay, waits, bodies, large   *room
	// lookups is for those who wait until it is found out who asks with a token.
	lookups *room
}

func newGate(cfg LimitConfig, now func() time.Time) (*gate, error) {
	cfg.Address, cfg.Actor, cfg.Changes = cmp.Or(cfg.Address, 1200), cmp.Or(cfg.Actor, 600), cmp.Or(cfg.Changes, 120)
	cfg.UnderWay, cfg.ActorUnderWay = cmp.Or(cfg.UnderWay, 1024), cmp.Or(cfg.ActorUnderWay, 64)
	memory := func() *bucket.Memory { return bucket.NewMemory(bucket.MemoryConfig{Clock: now, MaxBytes: budgetBytes}) }
	g := &gate{strangers: memory(), parties: memory()}
	var mistakes []error
	for _, part := range [...]struct {
		into             **bucket.Limits
		fields           string
		requests, change int64
	}{
		{&g.address, "Address", cfg.Address, 0},
		{&g.sender, "Actor and Changes", cfg.Actor, cfg.Changes},
		{&g.person, "Actor and Changes", personShare * cfg.Actor, personShare * cfg.Changes},
		{&g.reserve, "", reserveRequests, 0},
	} {
		limits := []bucket.Limit{{Name: "requests", Unit: bucket.Requests, Capacity: part.requests, Period: time.Minute}}
		if part.change != 0 {
			limits = append(limits, bucket.Limit{Name: "changes", Unit: changes, Capacity: part.change, Period: time.Minute})
		}
		compiled, err := bucket.Compile(limits...)
		if err != nil {
			mistakes = append(mistakes, fmt.Errorf("web: Config.Limits: %s are requests in a minute: %w", part.fields, err))
		}
		*part.into = compiled
	}
	if cfg.UnderWay < 0 || cfg.ActorUnderWay < 0 {
		mistakes = append(mistakes, errors.New("web: Config.Limits.UnderWay and ActorUnderWay are how many, or 0 for the default"))
	}
	g.underWay, g.bodies = newRoom(cfg.UnderWay, cfg.ActorUnderWay), newRoom(cfg.UnderWay, cfg.ActorUnderWay)
	g.waits = newRoom(max(cfg.UnderWay/2, 1), max(cfg.ActorUnderWay/2, 1))
	g.large = newRoom(documents, senderDocuments)
	g.lookups = newRoom(lookups, tokenLookups)
	return g, errors.Join(mistakes...)
}

// stranger takes a request from the limit of its address, where nobody knows who asks. An address that is not known has none.
func (g *gate) stranger(ctx context.Context, from netip.Addr) error {
	if !from.IsValid() {
		return nil
	}
	p := strangerOf(from)
	return take(ctx, g.strangers, p.sender, g.address, amounts(false))
}

// lookup returns whether a request may wait until it is found out who asks with a token that was issued here, and it waits no more when the function is
// called. Nobody knows yet what the bearer may do: what ends an incident has a reserve of its token here.
func (g *gate) lookup(id string, urgent bool) (leave func(), _ error) {
	token := "token " + id
	return g.lookups.enter(&party{sender: token, person: "person of " + token, urgent: urgent})
}

// known takes a request from the limits of its sender, and asks whether the person has any left. See [gate.served].
func (g *gate) known(ctx context.Context, p *party, changing bool) error {
	asked := amounts(changing)
	err := take(ctx, g.parties, p.sender, g.sender, asked)
	if err == nil {
		err = left(ctx, g.parties, p.person, g.person, asked)
	}
	if err != nil && p.urgent {
		return take(ctx, g.parties, "reserve of "+p.sender, g.reserve, amounts(false))
	}
	return err
}

// served takes a request from the limits of its person, once it was served. What was denied counts for its sender alone: nobody has less because
// another token of theirs asks for what it may not.
func (g *gate) served(ctx context.Context, p *party, changing bool) {
	// More may be under way than is left, which is no reason to take it back.
	_ = take(ctx, g.parties, p.person, g.person, amounts(changing))
}

// left returns an error if less is left than what is asked.
func left(ctx context.Context, of *bucket.Memory, name string, limits *bucket.Limits, asked bucket.Amounts) error {
	states, err := of.Peek(context.WithoutCancel(ctx), name, []bucket.Bucket{{Limits: limits}})
	if err != nil {
		return fmt.Errorf("web: %w", err)
	}
	for _, state := range states {
		for _, amount := range asked {
			if state.Limit.Unit == amount.Unit && state.Remaining < amount.N {
				return tooMany(time.Second)
			}
		}
	}
	return nil
}

// amounts are what a request takes.
func amounts(changing bool) bucket.Amounts {
	if changing {
		return bucket.Amounts{{Unit: bucket.Requests, N: 1}, {Unit: changes, N: 1}}
	}
	return bucket.Amounts{{Unit: bucket.Requests, N: 1}}
}

func take(ctx context.Context, of *bucket.Memory, name string, limits *bucket.Limits, asked bucket.Amounts) error {
	result, err := of.Take(context.WithoutCancel(ctx), bucket.Take{Tenant: name, Buckets: []bucket.Bucket{{Limits: limits}}, Amounts: asked})
	if err != nil {
		// The store has no way to fail but a mistake of this package.
		return fmt.Errorf("web: %w", err)
	}
	if result.Verdict == bucket.Admitted {
		return nil
	}
	return tooMany(result.RetryAfter)
}

func tooMany(after time.Duration) error {
	return &problem{
		Status: http.StatusTooManyRequests, Title: "Too many requests", retryAfter: max(after, time.Second),
		Detail: "Wait as long as Retry-After says. To hear of changes, wait for them with the parameter wait instead of asking often.",
	}
}
