package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/cost"
	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// Config says how an [Extension] works. Store, Policy and Subject are required; everything else has
// a default in its zero value. Every mistake in it is reported, all at once, when srv.Use calls
// [Extension.Validate].
type Config struct {
	// Store keeps the buckets: bucket.NewRedis for budgets that hold across replicas,
	// bucket.NewMemory for one process.
	Store bucket.Store
	// Policy gives the tiers and their limits: a compiled tiers.Policy, or a file that is reloaded.
	Policy tiers.Source
	// Subject decides who pays.
	Subject SubjectFunc

	// Cost configures the estimator: weights for schemas one does not own, the default list size.
	Cost cost.Config
	// UseComplexity prices fields by the functions that the server has in its ComplexityRoot, as
	// [cost.Config.Complexity] says; functions that stand there beat those of the server. A panic in one is
	// logged. Which fields
	// have a function is found out in srv.Use, by calling each once, with the zero values of its
	// arguments. A function is given a context of its own and not that of the request. That the server
	// has none is a mistake.
	UseComplexity bool
	// Price turns a cost into points. Nil means [cost.Cost.Points]. A negative price counts as 0; a
	// function that panics prices the operation at [cost.MaxPoints].
	Price func(cost.Cost) int64
	// InvalidDocumentPoints is charged for a document that failed to parse or validate, besides one
	// request: it never runs, but it costs the server time. Zero means 1, negative charges nothing.
	InvalidDocumentPoints int64

	// Idempotency configures keys. The zero value honours the Idempotency-Key header.
	Idempotency IdempotencyConfig

	// Signals configures what clients are told: headers, statuses, and what stands in answers. The zero
	// value sends the headers of the current draft.
	Signals SignalsConfig

	// NoActualCost turns off pricing responses as they leave. By default extensions.rateLimit says what an
	// operation really came to, and metrics compare it with what was estimated; a subscription, which pays one
	// event, is compared for as many events as it had.
	NoActualCost bool

	// OnDecision is told each decision, before the operation runs, for records and logs. It runs in
	// the request, so it must be quick, and must be safe for concurrent use. Nil tells nobody.
	OnDecision func(context.Context, Decision)
	// Logger is told what operators must know: unsized lists at start-up, a store that is away and
	// that is back. Nil means slog.Default().
	Logger *slog.Logger

	// Telemetry configures spans and metrics. The zero value uses the global providers.
	Telemetry TelemetryConfig
	// Events configures who is told about limits that are nearly used up and that refuse. The zero value
	// tells nobody.
	Events EventsConfig
}

// IdempotencyConfig configures idempotency keys. The zero value is the default in each field.
type IdempotencyConfig struct {
	// Disabled ignores all keys.
	Disabled bool
	// Header is the header that carries the key. Empty means Idempotency-Key. On a WebSocket the key
	// is read only from the operation's extensions.idempotencyKey, because the header of the upgrade
	// is the same for all its operations.
	Header string
	// MutationTTL is how long a mutation's key is remembered from its first charge: from the lease to 30
	// days. Zero means [idempotency.DefaultMutationTTL].
	MutationTTL time.Duration
	// QueryTTL is the same for queries. Zero means [idempotency.DefaultQueryTTL].
	QueryTTL time.Duration
	// Lease is how long an attempt is believed to be running without a sign of life, at least a second;
	// it renews its lease three times as often. Zero means [idempotency.DefaultLease].
	Lease time.Duration
	// MaxAnswer is the size in bytes of the largest answer that is stored. A repeat of a mutation
	// with a larger one is refused with [CodeAnswerUnavailable]. Zero means
	// [idempotency.DefaultMaxAnswer], negative stores none.
	MaxAnswer int
	// FreeRepeats is how often a query runs again uncharged under its key, at most 255. Zero means
	// [idempotency.DefaultFreeRepeats], negative means never.
	FreeRepeats int
	// AdmitUnclaimed lets a keyed mutation run while the store is away and its limits fail open. By
	// default it is refused, because nobody can tell whether it is a repeat.
	AdmitUnclaimed bool
}

// TelemetryConfig configures OpenTelemetry. The zero value uses the global providers, which cost
// next to nothing until one is set.
type TelemetryConfig struct {
	// TracerProvider makes a span for each decision. Nil means the global provider.
	TracerProvider trace.TracerProvider
	// MeterProvider takes the metrics. Nil means the global provider.
	MeterProvider metric.MeterProvider
	// Tenants are the tenants that metrics name, at most 1000; all others are "other". Metrics name no
	// tenant if both Tenants and TopTenants are empty.
	Tenants []string
	// TopTenants is how many of the busiest tenants metrics name besides, at most 1000. At most four times as many
	// names are handed out over the life of the process, so that the number of series is bounded.
	TopTenants int
	// Operations are the names of operations that the metrics of actual cost tell apart, at most 1000; all
	// others are "other". Clients choose these names, so metrics name none without it: they tell
	// operations apart by their root field.
	Operations []string
}

// Defaults of a [Config].
const (
	defaultHeader          = "Idempotency-Key"
	defaultInvalidDocument = 1
	maxTopTenants          = 1000
	maxNamedOperations     = 1000
)

// withDefaults fills what is zero.
func (c Config) withDefaults() Config {
	if c.Price == nil {
		c.Price = cost.Cost.Points
	}
	if c.InvalidDocumentPoints == 0 {
		c.InvalidDocumentPoints = defaultInvalidDocument
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	c.Signals = c.Signals.withDefaults()
	c.Events = c.Events.withDefaults()
	i := &c.Idempotency
	i.Header = http.CanonicalHeaderKey(orDefault(i.Header, defaultHeader))
	i.MutationTTL = orDefault(i.MutationTTL, idempotency.DefaultMutationTTL)
	i.QueryTTL = orDefault(i.QueryTTL, idempotency.DefaultQueryTTL)
	i.Lease = orDefault(i.Lease, idempotency.DefaultLease)
	i.MaxAnswer = max(0, orDefault(i.MaxAnswer, idempotency.DefaultMaxAnswer))
	i.FreeRepeats = max(0, orDefault(i.FreeRepeats, idempotency.DefaultFreeRepeats))
	return c
}

func orDefault[T comparable](value, fallback T) T {
	var zero T
	if value == zero {
		return fallback
	}
	return value
}

// The bounds of what a Config may ask for.
const (
	minLease       = time.Second
	maxKeyTTL      = 30 * 24 * time.Hour
	maxFreeRepeats = 255
)

// validate returns every mistake at once. Defaults have been filled in.
func (c *Config) validate() error {
	var errs []error
	fail := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("ratelimit: Config."+format, args...))
	}
	if c.Store == nil {
		fail("Store is nil: set bucket.NewMemory or bucket.NewRedis")
	}
	if c.Policy == nil {
		fail("Policy is nil: set the result of tiers.Compile or tiers.OpenFile")
	} else if c.Policy.Snapshot() == nil {
		fail("Policy has no snapshot: compile or load it before srv.Use")
	}
	if c.Subject == nil {
		fail("Subject is nil: say who pays, for example with ratelimit.ByHeader or ratelimit.ByPeer")
	}
	c.Signals.validate(fail)
	i := &c.Idempotency
	if i.Lease < minLease {
		fail("Idempotency.Lease is %s, want at least %s", i.Lease, minLease)
	}
	if !headerName(i.Header) {
		fail("Idempotency.Header is %.40q, which is not a name that a header can have", i.Header)
	}
	if i.FreeRepeats > maxFreeRepeats {
		fail("Idempotency.FreeRepeats is %d, want at most %d", i.FreeRepeats, maxFreeRepeats)
	}
	// A lease that is wrong itself is no measure for the rest.
	shortest := max(i.Lease, minLease)
	for _, ttl := range []struct {
		name  string
		value time.Duration
	}{{"MutationTTL", i.MutationTTL}, {"QueryTTL", i.QueryTTL}} {
		if ttl.value < shortest || ttl.value > maxKeyTTL {
			fail("Idempotency.%s is %s, want from the lease (%s) to %s", ttl.name, ttl.value, shortest, maxKeyTTL)
		}
	}
	c.Events.validate(fail)
	if n := c.Telemetry.TopTenants; n < 0 || n > maxTopTenants {
		fail("Telemetry.TopTenants is %d, want 0 to %d", n, maxTopTenants)
	}
	if n := len(c.Telemetry.Tenants); n > maxTopTenants {
		fail("Telemetry.Tenants names %d tenants, want at most %d", n, maxTopTenants)
	}
	if n := len(c.Telemetry.Operations); n > maxNamedOperations {
		fail("Telemetry.Operations names %d operations, want at most %d", n, maxNamedOperations)
	}
	return errors.Join(errs...)
}

// headerName says whether the text is a token, as the name of a header has to be (RFC 9110, section
// 5.6.2).
func headerName(text string) bool {
	for i := range len(text) {
		c := text[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return text != ""
}
