package ratelimit

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/cost"
	"github.com/gqlgen-ratelimit/ratelimit/internal/backend"
	"github.com/gqlgen-ratelimit/ratelimit/internal/claims"
	"github.com/gqlgen-ratelimit/ratelimit/internal/decision"
	"github.com/gqlgen-ratelimit/ratelimit/internal/inbound"
	"github.com/gqlgen-ratelimit/ratelimit/internal/observe"
	"github.com/gqlgen-ratelimit/ratelimit/internal/recent"
	"github.com/gqlgen-ratelimit/ratelimit/internal/show"
	"github.com/gqlgen-ratelimit/ratelimit/internal/sink"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// Extension is a gqlgen handler extension that prices, charges and reports each operation. Make it
// with [New] and give it to srv.Use before any other extension, except tracers that should see
// refusals. It is safe for concurrent use and belongs to one schema.
type Extension struct {
	cfg       Config
	life      lifecycle
	estimator *cost.Estimator
	// preparer is the policy, nil if it knows no tenants beside what it says.
	preparer tiers.Preparer
	reporter *observe.Reporter
	claims   *claims.Keeper
	// replays counts the stored answers of tenants.
	replays *recent.Counter[string]
	// explained counts the refusals of tenants whose most expensive call was looked for.
	explained *recent.Counter[string]
	// answers counts the bytes of those that this instance has stored.
	answers *recent.Counter[storedAnswers]
	// misshapen are operations that break a rule of shape.
	misshapen misshapen
	// policies are those that clients are told of by headers.
	policies show.Policies
	// warned are the oddities that were logged.
	warned *recent.Counter[oddity]
	// stores are nil until srv.Use.
	stores *backend.Stores
}

// New returns an extension. Mistakes in the configuration are reported when srv.Use calls
// [Extension.Validate].
func New(cfg Config) *Extension {
	e := &Extension{cfg: cfg.withDefaults(), life: newLifecycle()}
	e.preparer, _ = cfg.Policy.(tiers.Preparer)
	return e
}

// storedAnswers are those of a tenant that are counted together: they live equally long.
type storedAnswers struct {
	tenant   string
	mutation bool
}

// How many tenants are remembered whose replays or explained refusals are counted, and how many for the bytes of their
// answers, which are counted for longer.
const (
	replaySlots  = 1024
	explainSlots = 1024
	answerSlots  = 4096
)

// extensionName is the name that gqlgen and the operation's statistics know.
const extensionName = inbound.Limiter

// ExtensionName returns RateLimit.
func (e *Extension) ExtensionName() string { return extensionName }

// Handler wraps the HTTP handler of a gqlgen server and gives the extension what gqlgen does not:
// the status and the headers of the answer, and the address of the peer.
//
//	http.Handle("/query", ratelimit.Handler(srv))
//
// It holds the answer back until the decision is known, at most 64 KiB of it, which gives a refusal
// its status and Retry-After on every HTTP transport, server-sent events included. A WebSocket is
// passed through: there the same facts are in the messages. Without the Handler everything works
// except status, headers and [ByPeer], which fails with [ErrNoPeer].
func Handler(next http.Handler) http.Handler { return sink.Handler(next) }

// oddity is a mistake that only traffic shows. Each is logged once.
type oddity struct{ what, tenant, name, limit string }

// How many oddities are remembered, for how long, and how many of one kind are logged within an hour: what callers
// choose must not fill the log.
const (
	oddities       = 1024
	forever        = 100 * 365 * 24 * time.Hour
	oddOfKindAHour = 20
)

// warnOnce logs an oddity that was not logged before.
func (e *Extension) warnOnce(ctx context.Context, o oddity, message string, attributes ...slog.Attr) {
	now := time.Now()
	if n, _ := e.warned.Count(o, now, forever); n > 1 {
		return
	}
	n, left := e.warned.Count(oddity{what: "all of " + o.what}, now, time.Hour)
	if n == oddOfKindAHour {
		attributes = append(attributes, slog.Duration("silentFor", left))
	}
	if n <= oddOfKindAHour {
		e.cfg.Observe.Logger.LogAttrs(ctx, slog.LevelWarn, "ratelimit: "+message, attributes...)
	}
}

// warnOfTier logs a tier that the policy does not know.
func (e *Extension) warnOfTier(ctx context.Context, d *decision.Decision) {
	if carried := d.Subject.Tier; carried != "" && carried != d.Rules.Tier {
		e.warnOnce(ctx, oddity{what: "tier", name: carried}, "a subject carries a tier that the policy does not have: it is judged by another",
			slog.String("carried", shortened(carried)), slog.String("tier", d.Rules.Tier))
	}
}

// warnOfRecord logs that the record of a tenant does not fit the policy. The directory says which ones.
func (e *Extension) warnOfRecord(ctx context.Context, rules *tiers.Rules) {
	if rules.Misfit != nil {
		text := rules.Misfit.Error()
		e.warnOnce(ctx, oddity{what: "record", name: rules.Tier}, "records of tenants do not fit the policy: they are judged by their tier alone",
			slog.String("tier", rules.Tier), slog.String("error", text[:min(len(text), 512)]))
	}
}

// warnOfOverrides logs override records that change nothing.
func (e *Extension) warnOfOverrides(ctx context.Context, tenant string, result *bucket.Result) {
	for _, o := range result.UnusedOverrides() {
		e.warnOnce(ctx, oddity{"override", tenant, o.Owner.Level.String() + ":" + o.Owner.Name + ":" + o.Owner.Part, o.Limit},
			"an override record changes nothing: the policy has no such limit, or its numbers make none with those of the policy",
			slog.String("tenant", shortened(tenant)), slog.String("level", o.Owner.Level.String()),
			slog.String("owner", shortened(o.Owner.Name)), slog.String("limit", o.Limit), slog.String("actor", o.Actor))
	}
}

// shortened cuts a name from outside to what a line of a log can bear.
func shortened(name string) string { return name[:min(len(name), 64)] }
