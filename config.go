package ratelimit

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/bucket/redisclient"
	"github.com/gqlgen-ratelimit/ratelimit/cost"
	"github.com/gqlgen-ratelimit/ratelimit/internal/backend"
	"github.com/gqlgen-ratelimit/ratelimit/internal/fleet"
	"github.com/gqlgen-ratelimit/ratelimit/internal/inbound"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

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
	// a policy.Follower) does not load one later. Nil means that there are none.
	Stores map[string]bucket.Store
	// Policy gives the tiers and their limits: a compiled tiers.Policy, or a policy.Follower of a file or another feed.
	Policy tiers.Source
	// Subject decides who pays.
	Subject SubjectFunc
	// Proxies are what stands between clients and the server. The zero value trusts nobody's word on addresses.
	Proxies ProxyConfig

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
	// Answer bounds what leaves the server, in bytes. The zero value bounds each answer to 8 MiB.
	Answer AnswerConfig
	// Outage configures what this process decides by itself, because a store is away or need not be asked.
	Outage OutageConfig
	// Throttle sheds load while the servers are overloaded. The zero value sheds nothing.
	Throttle ThrottleConfig
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
}

// SettlementConfig says how the charge of an operation is corrected after it has run. The zero value keeps
// each charge at its estimate: that bounds the work, where a response tells only what came of it.
//
// Nothing is given back where the operation had errors, whether or not the response shows them, because these hide
// calls that were made, where there is no data, where the actual cost is not known, for a subscription or a deferred
// part that the client has left, and under an idempotency key for an answer in parts. What was taken with [Charge]
// stays taken, and so do requests. No limit ever gets more back than it
// is still owed.
//
// The store is asked after the response, which does not wait for it, under an idempotency key with the end
// of the claim. [Extension.Shutdown] waits for what is under way.
type SettlementConfig struct {
	// Refund gives back what an operation was estimated at and did not come to. It doubles the calls of the
	// store for operations that return less than they may. Set it where the weights of fields say what a
	// call takes whether or not it finds anything: a search that returns nothing costs its weight alone.
	Refund bool
	// ChargeExcess charges on what an operation comes to above its estimate, which happens only where a
	// list is longer than its declared size. It cannot be refused and may overdraw, to twice the capacity.
	ChargeExcess bool
	// FailedShare is the share of the charge, 0 to 1, that is given back when an operation ends in nothing
	// but errors. Zero gives back nothing: errors may come after any amount of work.
	FailedShare float64
}

// maxSettlementsWaiting is how many settlements may wait for each store, some 2 MB. Those that find no room are dropped,
// and their estimates stay charged.
const maxSettlementsWaiting = 4096

// corrects reports whether any charge is corrected without a claim.
func (s *SettlementConfig) corrects() bool {
	return s.Refund || s.ChargeExcess || s.FailedShare > 0
}

func (s *SettlementConfig) validate(fail failFunc) {
	within(fail, "Settlement.FailedShare", s.FailedShare, 0, 1)
}

// OutageConfig configures what this process decides by itself: this instance's share of the limits that fail local or
// bounded while a store cannot answer, and how many calls of one tenant a store has at once.
// Everything is on in the zero value. A bucket.Memory is always asked, because that costs nothing.
//
// What a store has refused is the ground of further refusals for a second. Budget that comes back other than by time, and
// elsewhere than by what this extension settles, is noticed that much later: what other replicas settle, and what anybody
// grants, resets, and sets or deletes as override records. The store is asked once in each half of it while refusals go on.
//
// [Extension.Run] does in the background what the shares need, and otherwise requests do.
type OutageConfig struct {
	// Instances is how many instances share the stores, at most 1000. Zero counts them by the
	// heartbeats that they send through the store, if it counts them as those of package bucket do; until the first was
	// answered nothing is admitted by limits that fail local, and each instance has each limit that fails bounded once.
	Instances int
	// Percent is how much of each limit that fails local all instances together may admit by themselves, from 1 to 100.
	// Zero means 70. What is missing to 100 covers what others have taken since this
	// instance was last told what is left.
	Percent int

	// MaxConcurrent is how many calls of one tenant each store has at once. More of them are refused as [OutcomeBusy], in
	// every mode, but for those of operations that run already. Where one tenant must not take all connections, choose it
	// well below their number. Zero means 256, [None] that there is no bound.
	MaxConcurrent int

	// Clock tells the time, for tests whose stores have a clock that they set: both have to be the same. It may be
	// called by several goroutines at once. Nil means the system's clock.
	Clock func() time.Time
}

func (c *OutageConfig) local() fleet.Config {
	return fleet.Config{Instances: c.Instances, Percent: c.Percent, Clock: c.Clock}
}

func (c *OutageConfig) gate() backend.GateConfig {
	return backend.GateConfig{MaxConcurrent: c.MaxConcurrent, Clock: c.Clock}
}

func (c *OutageConfig) validate(fail failFunc) {
	local := c.local()
	for _, mistake := range local.Mistakes() {
		fail("Outage.%s", mistake)
	}
	countOrNone(fail, "Outage.MaxConcurrent", int64(c.MaxConcurrent))
}

// withDefaults fills what is zero.
func (c Config) withDefaults() Config {
	if c.Pricing.Points == nil {
		c.Pricing.Points = cost.Cost.Points
	}
	c.Pricing.InvalidDocument = cmp.Or(c.Pricing.InvalidDocument, 1)
	c.Stores = maps.Clone(c.Stores)
	c.Idempotency = c.Idempotency.withDefaults()
	c.Response.Headers = cmp.Or(c.Response.Headers, HeadersDraft10)
	c.Answer.MaxBytes = cmp.Or(c.Answer.MaxBytes, defaultMaxAnswer)
	c.Observe = c.Observe.withDefaults()
	return c
}

// validate returns every mistake at once. Defaults have been filled in.
func (c *Config) validate() error {
	var errs []error
	fail := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("ratelimit: Config."+format, args...))
	}
	if absent(c.Store) {
		fail("Store is nil: set bucket.NewMemory or bucket.NewRedis")
	}
	c.validateStores(fail)
	switch {
	case absent(c.Policy):
		fail("Policy is nil: set the result of tiers.Compile or policy.OpenFile, and look at the error that they return")
	case c.Policy.Snapshot() == nil:
		fail("Policy has no snapshot: compile or load it before srv.Use")
	default:
		// A source that checks may have another policy, which fits: it is asked last.
		if _, checks := c.Policy.(tiers.Checker); checks {
			break
		}
		if err := c.checkStores(c.Policy.Snapshot()); err != nil {
			errs = append(errs, err)
		}
	}
	if c.Subject == nil {
		fail("Subject is nil: say who pays, for example with ratelimit.ByHeader or ratelimit.ByPeer")
	}
	countOrNone(fail, "Pricing.InvalidDocument", c.Pricing.InvalidDocument)
	c.Proxies.validate(fail)
	c.Response.validate(fail)
	c.Answer.validate(fail)
	c.Idempotency.validate(fail)
	c.Outage.validate(fail)
	c.Observe.validate(fail)
	c.Settlement.validate(fail)
	return errors.Join(errs...)
}

// stores are all stores by name that there are, with the default one under the empty name.
func (c *Config) stores() map[string]bucket.Store {
	all := map[string]bucket.Store{"": c.Store}
	maps.Copy(all, c.Stores)
	maps.DeleteFunc(all, func(_ string, store bucket.Store) bool { return absent(store) })
	return all
}

// validateStores reports stores that are nil or have no name.
func (c *Config) validateStores(fail failFunc) {
	for _, name := range slices.Sorted(maps.Keys(c.Stores)) {
		switch {
		case name == "":
			fail("Stores has a store without a name: the default store is Config.Store")
		case absent(c.Stores[name]):
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

// followPolicy lets no later policy hold whose stores are not there, and logs what is odd about this one and each later
// one, as far as the source can be told. fields are the root fields of the schema.
func (c *Config) followPolicy(fields []string) error {
	check := func(s *tiers.Snapshot) error {
		if err := c.checkStores(s); err != nil {
			return err
		}
		for _, warning := range s.Warnings() {
			c.Observe.Logger.Warn("ratelimit: the policy is odd", slog.String("warning", warning.String()))
		}
		for _, warning := range unmatched(s, fields) {
			c.Observe.Logger.Warn("ratelimit: the policy is odd", slog.String("warning", warning))
		}
		return nil
	}
	if source, ok := c.Policy.(tiers.Checker); ok {
		return source.Check(check)
	}
	return check(c.Policy.Snapshot())
}

// absent reports whether a value is nil, or a nil pointer, which the result of a function is whose error was not looked at.
func absent(value any) bool {
	v := reflect.ValueOf(value)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()
}

// warnOfClients logs what is dangerous in the clients of the stores. Nothing is connected for that.
func (c *Config) warnOfClients() {
	stores := c.stores()
	for _, name := range slices.Sorted(maps.Keys(stores)) {
		log := c.Observe.Logger
		if name != "" {
			log = log.With(slog.String("store", name))
		}
		for _, hazard := range redisclient.HazardsOf(stores[name]) {
			log.Warn("ratelimit: the client of the store is dangerous for a limiter",
				slog.String("code", hazard.Code), slog.String("seen", hazard.Seen),
				slog.String("why", hazard.Why), slog.String("remedy", hazard.Remedy))
		}
	}
}

// AnswerConfig bounds what leaves the server. A price bounds objects and calls of resolvers, and not how long their texts
// are. The zero value is the default in each field.
type AnswerConfig struct {
	// MaxBytes is how many bytes the answer of one operation may have: its data as JSON with the messages of its errors,
	// before it is compressed, in all of its parts together; each event of a subscription is an answer of its own. Bytes are
	// counted while fields complete and again while the answer is written, so that what goes beyond is not built: no further
	// resolver is called but those of root fields of a mutation, and the client gets an error of code
	// [ratelimitclient.CodeQueryLimitExceeded] in the place of all data. Nothing is given back of what was charged. It holds
	// for everybody, in each mode, exempt or not. Zero means 8 MiB, [None] no bound.
	MaxBytes int64
}

const defaultMaxAnswer = 8 << 20

// RuleResponseBytes is the rule that an answer beyond [AnswerConfig.MaxBytes] breaks, in the Shape of a [RefusedError].
const RuleResponseBytes cost.Rule = "responseBytes"

func (c *AnswerConfig) validate(fail failFunc) {
	countOrNone(fail, "Answer.MaxBytes", c.MaxBytes)
}

// ProxyConfig says which proxies stand in front of the server, so that it knows the addresses of clients. The zero value
// trusts none: the peer of a connection is the client, whatever the headers say.
type ProxyConfig struct {
	// Trusted are the networks whose word on the address of a client is taken. One that no peer can ever be of is a
	// mistake, such as ::ffff:10.0.0.0/104: IPv4 addresses are compared as such, as 10.0.0.0/8.
	Trusted []netip.Prefix
	// Header is the one in which trusted proxies append addresses, with or without a port, separated by commas. Empty means
	// X-Forwarded-For.
	Header string
}

// Client returns the address of the client of a request that came from the peer: IPv4 addresses in IPv6 as IPv4. It is
// invalid if the peer is. Forwarded addresses are read from the right as long as a trusted proxy has written them, so
// that no client can choose its address by sending the header itself.
func (c *ProxyConfig) Client(peer netip.Addr, header http.Header) netip.Addr {
	return (*inbound.Proxies)(c).Client(peer, header)
}

// validate reports every mistake.
func (c *ProxyConfig) validate(fail failFunc) { (*inbound.Proxies)(c).Check(fail) }

// None is the value of a number for none at all, where a field says so. Zero is always the default, and any other
// negative number is a mistake.
const None = backend.None

// failFunc takes what is wrong with a field of a [Config].
type failFunc func(format string, args ...any)

// countOrNone fails for a negative number that is not [None].
func countOrNone(fail failFunc, field string, value int64) {
	if value < None {
		fail("%s is %d, want 0 or more, or None", field, value)
	}
}

// orNone fails for a number that is not from zero to most, nor [None].
func orNone[T int | time.Duration](fail failFunc, field string, value, most T) {
	if value < None || value > most {
		fail("%s is %v, want up to %v, or None", field, value, most)
	}
}

// within fails for a number that is not from least to most, and so for NaN.
func within[T cmp.Ordered](fail failFunc, field string, value, least, most T) {
	if inside := value >= least && value <= most; !inside {
		fail("%s is %v, want %v to %v", field, value, least, most)
	}
}
