package ratelimit

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/bucket/redisclient"
	"github.com/gqlgen-ratelimit/ratelimit/cost"
	"github.com/gqlgen-ratelimit/ratelimit/internal/backend"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// None is the value of a number for none at all, where a field says so. Zero is always the default, and any other
// negative number is a mistake.
const None = backend.None

// Config says how an [Extension] works. Store, Policy and Subject are required; everything else has
// a default in its zero value. Every mistake in it is reported, all at once, when srv.Use calls
// [Extension.Validate].
type Config struct {
	// Store keeps the buckets: bucket.NewRedis for budgets that hold across replicas,
	// bucket.NewMemory for one process.
	Store bucket.Store
	// Stores are further stores by name, for tiers and tenants that the policy gives a store of their own: in
	// another Redis, or in the same one over other connections. Store keeps all others. A policy that names a
	// store which is not here is a mistake, and a source that can be checked (tiers.Checker, such as
	// tiers.File) does not load one later. Nil means that there are none.
	Stores map[string]bucket.Store
	// Policy gives the tiers and their limits: a compiled tiers.Policy, or a file that is reloaded.
	Policy tiers.Source
	// Subject decides who pays.
	Subject SubjectFunc

	// Pricing says what operations cost.
	Pricing PricingConfig
	// Idempotency configures keys. The zero value honours the Idempotency-Key header.
	Idempotency IdempotencyConfig
	// Settlement says how charges are corrected after operations have run. The zero value keeps them at
	// their estimates.
	Settlement SettlementConfig
	// Response configures what clients are told: headers, statuses, and what stands in answers. The zero
	// value sends the headers of the current draft.
	Response ResponseConfig
	// Outage configures what this process decides by itself, because a store is away or need not be asked.
	Outage OutageConfig
	// Observe configures what operators are told, and by what means. The zero value uses slog.Default() and the
	// global providers of OpenTelemetry.
	Observe ObserveConfig
}

// PricingConfig says what operations cost. The zero value takes weights and list sizes from the directives in the
// schema.
type PricingConfig struct {
	// Cost configures the estimator: weights for schemas one does not own, the default list size.
	Cost cost.Config
	// UseComplexity prices fields by the functions that the server has in its ComplexityRoot, as
	// [cost.Config.Complexity] says; functions that stand there beat those of the server. A panic in one is
	// logged. Which fields have a function is found out in srv.Use, by calling each once, with the zero values of
	// its arguments. A function is given a context of its own and not that of the request. That the server has
	// none is a mistake.
	UseComplexity bool
	// Points turns a cost into points. Nil means [cost.Cost.Points]. A negative price counts as 0; a
	// function that panics prices the operation at [cost.MaxPoints].
	Points func(cost.Cost) int64
	// InvalidDocument is how many points are charged for a document that failed to parse or validate, besides one
	// request: it never runs, but it costs the server time. Zero means 1, [None] charges nothing.
	InvalidDocument int64
	// EstimateOnly turns off pricing responses as they leave. By default extensions.rateLimit says what an
	// operation really came to, and metrics compare it with what was estimated; a subscription, which pays one
	// event, is compared for as many events as it had.
	EstimateOnly bool
}

// withDefaults fills what is zero.
func (c Config) withDefaults() Config {
	if c.Pricing.Points == nil {
		c.Pricing.Points = cost.Cost.Points
	}
	c.Pricing.InvalidDocument = orDefault(c.Pricing.InvalidDocument, 1)
	c.Stores = maps.Clone(c.Stores)
	c.Idempotency = c.Idempotency.withDefaults()
	c.Settlement.MaxWaiting = orDefault(c.Settlement.MaxWaiting, defaultMaxWaiting)
	c.Response.Headers = orDefault(c.Response.Headers, HeadersDraft10)
	c.Observe = c.Observe.withDefaults()
	return c
}

func orDefault[T comparable](value, fallback T) T {
	var zero T
	if value == zero {
		return fallback
	}
	return value
}

// validate returns every mistake at once. Defaults have been filled in.
func (c *Config) validate() error {
	var errs []error
	fail := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("ratelimit: Config."+format, args...))
	}
	if c.Store == nil {
		fail("Store is nil: set bucket.NewMemory or bucket.NewRedis")
	}
	c.validateStores(fail)
	if c.Policy == nil {
		fail("Policy is nil: set the result of tiers.Compile or tiers.OpenFile")
	} else if c.Policy.Snapshot() == nil {
		fail("Policy has no snapshot: compile or load it before srv.Use")
	}
	if c.Subject == nil {
		fail("Subject is nil: say who pays, for example with ratelimit.ByHeader or ratelimit.ByPeer")
	}
	if c.Policy != nil && c.Policy.Snapshot() != nil {
		if err := c.checkStores(c.Policy.Snapshot()); err != nil {
			errs = append(errs, err)
		}
	}
	if c.Pricing.InvalidDocument < None {
		fail("Pricing.InvalidDocument is %d, want a number of points, or None", c.Pricing.InvalidDocument)
	}
	c.Response.validate(fail)
	c.Idempotency.validate(fail)
	for _, mistake := range c.Outage.mistakes() {
		fail("Outage.%s", mistake)
	}
	c.Observe.validate(fail)
	c.Settlement.validate(c.Pricing.EstimateOnly, fail)
	return errors.Join(errs...)
}

// validateStores reports stores that are nil or have no name.
func (c *Config) validateStores(fail func(format string, args ...any)) {
	for _, name := range slices.Sorted(maps.Keys(c.Stores)) {
		switch {
		case name == "":
			fail("Stores has a store without a name: the default store is Config.Store")
		case c.Stores[name] == nil:
			fail("Stores[%q] is nil: set bucket.NewMemory or bucket.NewRedis", name)
		}
	}
}

// checkStores says which stores a policy names that the configuration does not have.
func (c *Config) checkStores(s *tiers.Snapshot) error {
	var missing []string
	for _, name := range s.Stores() {
		if c.Stores[name] == nil {
			missing = append(missing, name)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("ratelimit: the policy names stores that Config.Stores does not have: %s", strings.Join(missing, ", "))
}

// requireStores lets no later policy hold whose stores are not there, if the source can be told.
func (c *Config) requireStores() error {
	if source, ok := c.Policy.(tiers.Checker); ok {
		return source.Check(c.checkStores)
	}
	return nil
}

// warnOfClients logs what is dangerous in the clients of the stores. Nothing is connected for that.
func (c *Config) warnOfClients() {
	stores := maps.Clone(c.Stores)
	if stores == nil {
		stores = map[string]bucket.Store{}
	}
	stores[""] = c.Store
	for _, name := range slices.Sorted(maps.Keys(stores)) {
		for _, hazard := range redisclient.HazardsOf(stores[name]) {
			logOf(c.Observe.Logger, name).Warn("ratelimit: the client of the store is dangerous for a limiter",
				slog.String("code", hazard.Code), slog.String("seen", hazard.Seen),
				slog.String("why", hazard.Why), slog.String("remedy", hazard.Remedy))
		}
	}
}

// logOf adds the name of the store to what is logged, if it has one.
func logOf(log *slog.Logger, store string) *slog.Logger {
	if store == "" {
		return log
	}
	return log.With(slog.String("store", store))
}
