package main

import (
	"context"
	"math"

	"github.com/sethvargo/go-limiter/memorystore"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/memstore"
	"github.com/ulule/limiter/v3"
	ulule "github.com/ulule/limiter/v3/drivers/store/memory"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// memoryStores compares decisions inside the process, by one caller.
func memoryStores(ctx context.Context, e effort) (*findings, error) {
	decisions, err := memoryDecisions(ctx)
	if err != nil {
		return nil, err
	}
	var contenders []contender
	for _, d := range decisions {
		for _, tenant := range tenantNames {
			// What a new tenant costs is paid before.
			if err := d.decide(ctx, tenant); err != nil {
				return nil, err
			}
		}
		contenders = append(contenders,
			alone(e, d.name, func() error { return d.decide(ctx, "tenant") }),
			alone(e, d.name, among(ctx, d.decide)))
	}
	outcomes, err := contest(ctx, e, contenders)
	if err != nil {
		return nil, err
	}
	t := &table{
		title:  "Decisions in memory",
		note:   "Processor time. One caller asks for one tenant over and over, or for 10,000 tenants in turn.",
		header: []string{"", "one tenant", "allocations", "10,000 tenants", "allocations"},
	}
	for i := 0; i < len(outcomes); i += 2 {
		one, many := &outcomes[i], &outcomes[i+1]
		t.add(one.name, duration(one.median(processor)), digits(one.median(allocations)),
			duration(many.median(processor)), digits(many.median(allocations)))
	}
	// Each row has two outcomes, and that of one limit comes first.
	four := &outcomes[2]
	return &findings{tables: []*table{t}, aims: []aim{
		atMost("memory store, 4 limits, one caller and one tenant", 150, four.median(processor), duration),
		atMost("the same: allocations", 0, math.Round(four.median(allocations)), digits),
	}}, nil
}

// among returns a function that decides about all tenants in turn.
func among(ctx context.Context, decide decision) func() error {
	k := 0
	return func() error {
		k++
		return decide(ctx, tenantNames[k%tenants])
	}
}

func memoryDecisions(ctx context.Context) ([]named, error) {
	ours, err := ourMemoryDecisions()
	if err != nil {
		return nil, err
	}
	gcraStore, err := memstore.NewCtx(0)
	if err != nil {
		return nil, err
	}
	gcra, err := throttled.NewGCRARateLimiterCtx(gcraStore, roomyQuota)
	if err != nil {
		return nil, err
	}
	tokens, err := memorystore.New(&memorystore.Config{Tokens: roomy, Interval: period})
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() { _ = tokens.Close(context.WithoutCancel(ctx)) })
	windows := ulule.NewStore()
	window := limiter.Rate{Period: period, Limit: roomy}
	return append(ours,
		named{"go-limiter, 1 limit of requests", func(ctx context.Context, tenant string) error {
			_, _, _, ok, err := tokens.Take(ctx, tenant)
			return admitted(ok, err)
		}},
		named{"throttled, 1 limit", func(ctx context.Context, tenant string) error {
			limited, _, err := gcra.RateLimitCtx(ctx, tenant, amount)
			return admitted(!limited, err)
		}},
		named{"ulule/limiter, 1 limit", func(ctx context.Context, tenant string) error {
			state, err := windows.Increment(ctx, tenant, amount, window)
			return admitted(!state.Reached, err)
		}},
	), nil
}

// ourMemoryDecisions are the features of the table of Redis, each with a store of its own, and with
// room for the answer, as a caller keeps it who wants no garbage.
func ourMemoryDecisions() ([]named, error) {
	all, err := features()
	if err != nil {
		return nil, err
	}
	decisions := make([]named, len(all))
	for i := range all {
		decisions[i] = all[i].on(bucket.NewMemory(bucket.MemoryConfig{}), make([]bucket.LimitState, bucket.MaxLimits))
	}
	return decisions, nil
}
