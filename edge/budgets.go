package edge

import (
	"context"
	"math"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// budgets are those of all that the door limits, in the memory of this process. What has one is a tenant there.
type budgets struct {
	store    *bucket.Memory
	reporter *reporter
	// limits are those of clients, sites, keys and connections.
	client, site, key, connection *bucket.Limits
}

// budgetShare is what [bucket.MemoryConfig.MaxEntries] has for owners, three of four, and budgetBytes what bounds the bytes so that
// they bind no sooner: a name, and up to four limits.
const (
	budgetShare = 4.0 / 3
	budgetBytes = 512
)

// newBudgets returns full budgets. It was checked that the limits compile.
func newBudgets(cfg *Config, reporter *reporter) *budgets {
	entries := int(float64(cfg.MaxBudgets)*budgetShare) + 1
	b := &budgets{reporter: reporter, store: bucket.NewMemory(bucket.MemoryConfig{
		Clock: cfg.Clock, MaxEntries: entries, MaxBytes: max(1<<20, min(entries, math.MaxInt/budgetBytes)*budgetBytes),
	})}
	b.client, _ = bucket.Compile(cfg.Address.Limits...)
	b.site, _ = bucket.Compile(cfg.Address.SiteLimits...)
	b.key, _ = bucket.Compile(cfg.Key.Limits...)
	b.connection, _ = bucket.Compile(cfg.Connection.Limits...)
	return b
}

// evicted is how many budgets gave way.
func (b *budgets) evicted() int { return int(min(b.store.Evicted(), math.MaxInt)) }

// take takes an amount from the limits of the client, the site and the key. Where one refuses, those before it have
// been charged: what arrives again and again is paid by who sends it.
func (b *budgets) take(ctx context.Context, a *arrival, unit bucket.Unit, n int64) *refusal {
	for _, of := range [...]struct {
		prefix, name, layer string
		limits              *bucket.Limits
	}{
		{"client ", a.client, LayerAddress, b.client},
		{"site ", a.site, LayerAddress, b.site},
		{"key ", a.key, LayerKey, b.key},
	} {
		if of.name == "" {
			continue
		}
		if refusal := b.takeFrom(ctx, a, of.prefix+of.name, of.layer, of.limits, unit, n); refusal != nil {
			return refusal
		}
	}
	return nil
}

// takeOperation takes an operation from the limits of a WebSocket.
func (b *budgets) takeOperation(ctx context.Context, a *arrival) *refusal {
	return b.takeFrom(ctx, a, a.socket.name, LayerConnection, b.connection, bucket.Requests, 1)
}

// takeFrom takes an amount from the limits of a name, and returns the refusal if there is not as much left.
func (b *budgets) takeFrom(
	ctx context.Context, a *arrival, name, layer string, limits *bucket.Limits, unit bucket.Unit, n int64,
) *refusal {
	if limits.Len() == 0 || n <= 0 {
		return nil
	}
	var states [4]bucket.LimitState
	result, err := b.store.Take(context.WithoutCancel(ctx), bucket.Take{
		Tenant: name, Buckets: []bucket.Bucket{{Limits: limits}}, Amounts: bucket.Amounts{{Unit: unit, N: n}}, States: states[:0],
	})
	if err != nil {
		// The store has no way to fail but a mistake of this package.
		b.reporter.failed(ctx, err)
		return overloaded("the server cannot judge the request now")
	}
	if b.store.Evicted() > 0 {
		b.reporter.evicts(ctx)
	}
	refused := result.Verdict != bucket.Admitted
	for i := range result.Limits {
		l := &result.Limits[i]
		if !l.Exceeded || refused && l.Limit.Mode != bucket.Enforce {
			continue
		}
		r := limited(layer, l)
		if refused {
			return r
		}
		b.reporter.told(ctx, a, r, l.Limit.Mode)
	}
	if refused {
		return overloaded("the server cannot judge the request now")
	}
	return nil
}
