package ratelimit

import (
	"fmt"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/internal/backend"
	"github.com/gqlgen-ratelimit/ratelimit/internal/fleet"
)

// OutageConfig configures what this process decides by itself: this instance's share of the limits that fail local while
// a store is away, the memory of what a store has refused, and how many calls of one tenant a store has at once.
// Everything is on in the zero value. A bucket.Memory is always asked, because that costs nothing.
//
// [Extension.Run] does in the background what the shares need, and otherwise requests do.
type OutageConfig struct {
	// Instances is how many instances share the stores, at most 1000. Zero counts them by the
	// heartbeats that they send through the store, if it counts them as those of package bucket do; until the first was
	// answered nothing is admitted by limits that fail local.
	Instances int
	// Instance names this instance among those that are counted. Zero means a random name. Several that belong
	// to one process and one store have the same.
	Instance [8]byte
	// Percent is how much of each limit all instances together may admit by themselves, from 1 to 100.
	// Zero means 70. What is missing to 100 covers what others have taken since this
	// instance was last told what is left.
	Percent int
	// KnownFor is for how long it is believed what the store has said is left of a limit. What is older counts
	// as unknown: a budget starts empty then, and gains its share of the refill. Zero means a sixtieth of the
	// time in which the limit comes back, but at least one second and at most five; [None] believes nothing, so that
	// what others took since does not matter, however unevenly the instances are used. A single instance always
	// believes: nobody else takes from its budgets.
	KnownFor time.Duration
	// MaxOwners is how many owners are remembered for when a store goes away. Zero means 50 000: some 20 MB with short
	// names, and 45 MB with names of 100 bytes.
	MaxOwners int

	// RefusalAge is the longest time for which a refusal of the store is the ground of others, at most a
	// minute. Budget that comes back other than by time, and elsewhere than by what this extension settles, is noticed
	// that much later: what other replicas settle, and what anybody grants, resets, and sets or deletes as override
	// records. The store is asked once in each half of it while refusals go on. Zero means a second, [None] that no
	// refusal is remembered.
	RefusalAge time.Duration
	// MaxRefusals bounds what is remembered of each store: one entry for each tenant, and for each set of owners of it,
	// that is refused. Zero means 10 000: some 10 MB, or some 40 MB where the names of owners are long.
	MaxRefusals int
	// CappedCalls is how many takes a second, at most 1000, of one tenant still reach the store although
	// they are known to be refused: to look up an idempotency key, to judge a candidate, or to learn about
	// owners that were not asked about before. Zero means 5.
	CappedCalls int
	// MaxConcurrent is how many calls of one tenant each store has at once. More of them are refused as [OutcomeBusy].
	// Choose it well below the number of connections to the store. Zero means 32, [None] that there is no bound.
	MaxConcurrent int

	// Clock tells the time, for tests whose stores have a clock that they set: both have to be the same. It may be
	// called by several goroutines at once. Nil means the system's clock.
	Clock func() time.Time
}

func (c *OutageConfig) local() fleet.Config {
	return fleet.Config{
		Instances: c.Instances, Instance: c.Instance, Percent: c.Percent,
		KnownFor: c.KnownFor, MaxOwners: c.MaxOwners, Clock: c.Clock,
	}
}

func (c *OutageConfig) gate() backend.GateConfig {
	return backend.GateConfig{
		RefusalAge: c.RefusalAge, MaxRefusals: c.MaxRefusals, CappedCalls: c.CappedCalls,
		MaxConcurrent: c.MaxConcurrent, Clock: c.Clock,
	}
}

// mistakes returns what is wrong, one text for each field.
func (c *OutageConfig) mistakes() []string {
	local, gate := c.local(), c.gate()
	mistakes := append(local.Mistakes(), gate.Mistakes()...)
	if c.KnownFor < None {
		mistakes = append(mistakes, fmt.Sprintf("KnownFor is %s, want a time, or None", c.KnownFor))
	}
	return mistakes
}
