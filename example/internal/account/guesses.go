package account

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// How many unknown keys a minute may come from one client, and from all clients of one site.
const (
	GuessesOfClient = 10
	GuessesOfSite   = 40
)

// guessPause is after how long a client that has used up its guesses has the next one.
const guessPause = time.Minute / GuessesOfClient

// guesses count the unknown keys that come from an address. After too many of them no key from there is looked up for a
// while, not even a good one: otherwise the answer would tell which guess was right. Whoever shares the address
// with one who guesses waits as well.
type guesses struct {
	store        *bucket.Memory
	client, site *bucket.Limits
	caller       func(*http.Request) (ratelimit.Subject, error)
}

func newGuesses(caller func(*http.Request) (ratelimit.Subject, error)) (*guesses, error) {
	g := &guesses{store: bucket.NewMemory(bucket.MemoryConfig{MaxEntries: 50_000}), caller: caller}
	for limits, capacity := range map[**bucket.Limits]int64{&g.client: GuessesOfClient, &g.site: GuessesOfSite} {
		compiled, err := bucket.Compile(bucket.Limit{
			Name: "guesses", Unit: bucket.Requests, Capacity: capacity, Period: time.Minute,
		})
		if err != nil {
			return nil, fmt.Errorf("the limits of unknown keys: %w", err)
		}
		*limits = compiled
	}
	return g, nil
}

// buckets are those of the site, which is the tenant, and of the client in it.
func (g *guesses) buckets(caller *ratelimit.Subject) []bucket.Bucket {
	return []bucket.Bucket{
		{Limits: g.site},
		{Owner: bucket.Owner{Level: bucket.User, Name: caller.User}, Limits: g.client},
	}
}

// left reports whether the caller has a guess left.
func (g *guesses) left(ctx context.Context, caller *ratelimit.Subject) (bool, error) {
	states, err := g.store.Peek(ctx, caller.Tenant, g.buckets(caller))
	if err != nil {
		return false, fmt.Errorf("cannot count unknown keys: %w", err)
	}
	for i := range states {
		if states[i].Remaining < 1 {
			return false, nil
		}
	}
	return true, nil
}

// wrong counts a key that nobody has.
func (g *guesses) wrong(ctx context.Context, caller *ratelimit.Subject) error {
	// A client that leaves has guessed all the same.
	_, err := g.store.Take(context.WithoutCancel(ctx), bucket.Take{
		Tenant: caller.Tenant, Buckets: g.buckets(caller), Amounts: bucket.Amounts{{Unit: bucket.Requests, N: 1}},
	})
	if err != nil {
		return fmt.Errorf("cannot count unknown keys: %w", err)
	}
	return nil
}
