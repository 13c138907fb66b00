package backend

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
)

// None as the value of a number of a [GateConfig] leaves out what the number is about.
const None = -1

// Defaults of a [GateConfig], used where its field is zero.
const (
	// DefaultRefusalAge is for how long a refusal is answered without the store.
	DefaultRefusalAge = time.Second
	// DefaultMaxRefusals is how many refusals are remembered: some 10 MB, or some 40 MB where the names of owners are long.
	DefaultMaxRefusals = 10_000
	// DefaultCappedCalls is how many calls a second a tenant has that is known to be refused.
	DefaultCappedCalls = 5
	// DefaultMaxConcurrent is how many calls of one tenant the store has at once: 25 000 decisions a second where each
	// takes its whole deadline of ten milliseconds, so that only a flood meets it.
	DefaultMaxConcurrent = 256
)

// ErrTenantBusy says that the tenant has as many calls under way as a [Gate] lets it have: the store was
// not asked. It is the tenant's own doing, so that no fail mode applies: whoever admits on it gives
// budget to those who ask most.
var ErrTenantBusy = errors.New("too many calls of the tenant are under way")

// GateConfig configures a [Gate]: ratelimit.OutageConfig says what MaxConcurrent and Clock mean. Nobody but tests sets the others.
type GateConfig struct {
	RefusalAge    time.Duration
	MaxConcurrent int
	Clock         func() time.Time
	// MaxRefusals bounds what is remembered: one entry for each tenant, and for each set of owners of it, that is refused. Zero is
	// DefaultMaxRefusals.
	MaxRefusals int
	// CappedCalls is how many takes a second of one tenant still reach the store although they are known to be refused: to look up an
	// idempotency key, to judge a candidate, or to learn about owners that were not asked about before. Zero is DefaultCappedCalls.
	CappedCalls int
}

// Origin is what decided about a take, in the word that metrics carry for what was not the store.
type Origin string

const (
	// FromStore is a verdict of the store, or its failure.
	FromStore Origin = ""
	// FromMemory is a refusal that a [Gate] knew to be the answer of the store.
	FromMemory Origin = "cache"
	// FromCap is a refusal that a [Gate] could not complete alone, while the tenant had used up its
	// calls to the store: the budget does not suffice, but claim and candidate were not looked at, and
	// owners that the gate does not know are not shown.
	FromCap Origin = "cap"
	// FromBulkhead is [ErrTenantBusy].
	FromBulkhead Origin = "busy"
)

// Gate stands before a store and keeps away from it what it need not be asked: a memory of refusals answers takes
// that the store is certain to refuse, and a bulkhead bounds how many calls of one tenant are under way.
// It has the calls that an operation needs. It starts no goroutine and is safe for concurrent use.
type Gate struct {
	store bucket.Store
	// refusals and bulkhead are nil where the configuration leaves them out.
	refusals *refusals
	bulkhead *bulkhead
}

// NewGate returns a gate before the store. The configuration must have no mistakes. A [bucket.Memory] is spared
// nothing: asking it costs no more than remembering what it has said.
func NewGate(store bucket.Store, cfg GateConfig) *Gate {
	g := &Gate{store: store}
	if _, near := store.(*bucket.Memory); near {
		return g
	}
	if cfg.RefusalAge != None {
		g.refusals = newRefusals(&cfg)
	}
	if cfg.MaxConcurrent != None {
		g.bulkhead = newBulkhead(cfg.MaxConcurrent)
	}
	return g
}

// Caller says for whom a gate asks. The zero value is an operation of the tenant of its take that has not begun.
type Caller struct {
	// Payer is as whose call it counts if the budgets are shared by tenants: those who share them do not share the bound.
	// Empty is the tenant of the take.
	Payer string
	// Runs says that the operation runs already: no bound holds it up. Its resolvers charge at once, and refusing one of
	// them would spoil what has begun.
	Runs bool
}

type asking = func(context.Context, bucket.Take) (bucket.Result, error)

// Take is that of the store, unless the tenant is known to be refused, and says where the verdict was reached.
// Beyond the bound of a tenant it fails at once with [ErrTenantBusy].
func (g *Gate) Take(ctx context.Context, take bucket.Take, by Caller) (result bucket.Result, origin Origin, err error) {
	ask := func(ctx context.Context, take bucket.Take) (bucket.Result, error) {
		place, ok := g.bulkhead.enter(cmp.Or(by.Payer, take.Tenant), by.Runs)
		if !ok {
			return bucket.Result{}, fmt.Errorf("%w: %d at once", ErrTenantBusy, g.bulkhead.most)
		}
		defer g.bulkhead.leave(place)
		return g.store.Take(ctx, take)
	}
	if g.refusals == nil {
		result, err = ask(ctx, take)
	} else {
		result, origin, err = g.refusals.take(ctx, take, ask)
	}
	if errors.Is(err, ErrTenantBusy) {
		origin = FromBulkhead
	}
	return result, origin, err
}

// Known answers a take that the store cannot answer, if the store has refused such a one before and it is certain that
// nothing of what was missing has come back with time since. However old the refusal is, it is the last that is known.
func (g *Gate) Known(take *bucket.Take) (bucket.Result, bool) {
	if g.refusals == nil {
		return bucket.Result{}, false
	}
	result, _, known := g.refusals.recall(take, true)
	return result, known
}

// Foresee answers a take that is certain to be refused, without a call to a store that is outside of this process: as far
// as this instance remembers what such a one has refused to any operation of the tenant. It changes nothing. It returns
// false if the take may pass, or be a replay that can be looked up.
func (g *Gate) Foresee(ctx context.Context, take *bucket.Take) (bucket.Result, Origin, bool) {
	if memory, near := g.store.(*bucket.Memory); near {
		result, refused := foreseeNear(ctx, memory, take)
		return result, FromMemory, refused
	}
	if g.refusals == nil {
		return bucket.Result{}, FromStore, false
	}
	return g.refusals.recall(take, false)
}

// Settle is that of the store. It makes the gate forget the tenant if it corrects a charge: what is given back may be
// taken, and what is charged on may come back faster than what was owed before. It is of an operation that runs
// already: it counts as a call of the tenant and is let through always, because refusing it would lose what was
// admitted.
func (g *Gate) Settle(ctx context.Context, settlement bucket.Settlement) (bucket.Settled, error) {
	tenant := settlement.Tenant()
	if !settlement.Receipt.IsZero() {
		defer g.Forget(tenant)
	}
	place, _ := g.bulkhead.enter(tenant, true)
	defer g.bulkhead.leave(place)
	return g.store.Settle(ctx, settlement)
}

// Renew is that of the store, and let through as [Gate.Settle] is.
func (g *Gate) Renew(ctx context.Context, tenant string, claim *idempotency.Claim) (bool, error) {
	place, _ := g.bulkhead.enter(tenant, true)
	defer g.bulkhead.leave(place)
	return g.store.Renew(ctx, tenant, claim)
}

// Doubt has the store asked again about what it has refused to a tenant, who was charged for what it was admitted without
// the store: what is owed may come back faster since. While the store cannot answer that is no reason to admit more.
func (g *Gate) Doubt(tenant string) {
	if g.refusals != nil {
		g.refusals.drop(tenant, true)
	}
}

// Forget drops what is known of the refusals of a tenant: it may have been given budget.
func (g *Gate) Forget(tenant string) {
	if g.refusals != nil {
		g.refusals.drop(tenant, false)
	}
}
