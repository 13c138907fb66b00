package ratelimit

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

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

var _ interface {
	graphql.HandlerExtension
	graphql.OperationContextMutator
	graphql.OperationInterceptor
	graphql.ResponseInterceptor
	graphql.RootFieldInterceptor
} = (*Extension)(nil)

// New returns an extension. Mistakes in the configuration are reported when srv.Use calls
// [Extension.Validate].
func New(cfg Config) *Extension {
	e := &Extension{cfg: cfg.withDefaults(), life: newLifecycle()}
	e.preparer, _ = cfg.Policy.(tiers.Preparer)
	return e
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

// Validate checks the configuration and reads the weights out of the schema. The error holds every
// mistake of both, each with its field or coordinate; gqlgen panics with it in srv.Use. Called again, it does nothing
// for the same schema, and for another one it is an error.
func (e *Extension) Validate(schema graphql.ExecutableSchema) error {
	e.life.starting.Lock()
	defer e.life.starting.Unlock()
	if used, err := e.life.serves(schema.Schema()); used || err != nil {
		return err
	}
	configErr := e.cfg.validate()
	costs := e.cfg.Pricing.Cost
	var complexityErr error
	if e.cfg.Pricing.UseComplexity {
		costs.Complexity, complexityErr = withComplexity(costs.Complexity, schema, e.cfg.Observe.Logger)
	}
	estimator, costErr := cost.New(schema.Schema(), costs)
	reporter, reporterErr := observe.New(observe.Config(e.cfg.Observe), e.cfg.stores())
	if err := errors.Join(configErr, complexityErr, costErr, reporterErr); err != nil {
		return err
	}
	stores, err := backend.New(backend.Config{
		Stores: e.cfg.stores(), Local: e.cfg.Outage.local(), Gate: e.cfg.Outage.gate(),
		MaxWaiting: e.cfg.Settlement.MaxWaiting,
		Logger:     e.cfg.Observe.Logger, Watcher: reporter,
	})
	if err != nil {
		return err
	}
	// Last, because from now on the source refuses what these stores do not fit.
	if err := e.cfg.followPolicy(); err != nil {
		return err
	}
	e.estimator, e.reporter = estimator, reporter
	e.claims = claims.New(e.cfg.Idempotency.claims(e.cfg.Observe.Logger))
	e.replays, e.answers = recent.NewCounter[string](replaySlots), recent.NewCounter[storedAnswers](answerSlots)
	e.explained, e.warned = recent.NewCounter[string](explainSlots), recent.NewCounter[oddity](oddities)
	e.stores = stores
	if e.life.begin(schema.Schema()) {
		stores.End()
	}
	e.warn()
	return nil
}

// warn logs what is odd about the configuration, and works.
func (e *Extension) warn() {
	e.cfg.warnOfClients()
	if units := e.cfg.Policy.Snapshot().Units(); len(units) > 0 {
		e.cfg.Observe.Logger.Info("ratelimit: limits in these units are charged by ratelimit.Charge alone", slog.Any("units", units))
	}
	if e.cfg.Settlement.Refund && mayTry(e.cfg.Policy) {
		e.cfg.Observe.Logger.Warn("ratelimit: Settlement.Refund gives nothing back to the budgets of a candidate policy, " +
			"which will look stricter than it is")
	}
	if unsized := e.estimator.UnsizedLists(); len(unsized) > 0 {
		const shown = 20
		e.cfg.Observe.Logger.Warn("ratelimit: lists without @listSize are priced at the default size",
			slog.Int("count", len(unsized)), slog.Any("fields", unsized[:min(shown, len(unsized))]))
	}
}

// InterceptOperation decides. An operation that is refused does not reach its resolvers; a replay
// is answered at once.
func (e *Extension) InterceptOperation(ctx context.Context, next graphql.OperationHandler) graphql.ResponseHandler {
	opCtx := graphql.GetOperationContext(ctx)
	x := sink.From(ctx)
	if x == nil && opCtx.Headers != nil {
		e.warnOnce(ctx, oddity{what: "handler"}, "the server is not behind ratelimit.Handler: refusals have no HTTP status, "+
			"and answers no rate limit headers; serve ratelimit.Handler(srv) instead of srv")
	}
	op, answer := e.decide(ctx, x, opCtx)
	ctx = op.within(ctx)
	d := op.snapshot()
	e.signal(x, &d)

	switch {
	case answer != nil:
		return graphql.OneShot(withExtension(answer, &d))
	case d.Refusal != nil && opCtx.Operation.Operation == ast.Subscription:
		// The resolver of a subscription runs inside next, so this is the last moment.
		return graphql.OneShot(withExtension(
			&graphql.Response{Errors: gqlerror.List{graphQLError(&d)}}, &d))
	case d.Refusal != nil:
		return next(ctx)
	}
	if e.cfg.Answer.MaxBytes > 0 {
		op.size.limit(e.cfg.Answer.MaxBytes, opCtx)
	}
	e.follow(ctx, opCtx, op)
	if op.claim == nil {
		return next(ctx)
	}
	return op.hold(ctx, next)
}

// InterceptResponse reports the decision with the first payload, and answers a refused operation in
// the place of its resolvers, so that the error presenter sees the refusal.
func (e *Extension) InterceptResponse(ctx context.Context, next graphql.ResponseHandler) *graphql.Response {
	op := operationFrom(ctx)
	if op == nil {
		return e.interceptUndecided(ctx, next)
	}
	first, refusal := op.answering()
	if refusal != nil {
		if !first {
			return nil
		}
		return e.refuse(ctx, op)
	}
	response := e.nextAnswer(ctx, op, next)
	switch {
	case response == nil:
		return nil
	case !first:
		return op.tellRefused(response)
	}
	var actual *int64
	if points, known := op.spent(ctx); known {
		actual = &points
	}
	d, recharged := op.report(actual)
	if recharged {
		e.signal(op.exchange, &d)
	}
	return withExtension(response, &d)
}

// nextAnswer returns the next answer of an operation that runs, as far as it may leave, nil if there is none.
func (e *Extension) nextAnswer(ctx context.Context, op *operation, next graphql.ResponseHandler) *graphql.Response {
	if op.stream != nil {
		return e.nextEvent(ctx, op, next)
	}
	response := next(ctx)
	e.leave(ctx, op, response)
	return response
}

// leave bounds, counts and prices an answer; nil says that there are no more.
func (e *Extension) leave(ctx context.Context, op *operation, response *graphql.Response) {
	if response != nil && !op.size.leaves(response, op.decision.Kind == ast.Subscription) {
		op.responses.cut.Store(true)
		e.tooLarge(ctx, op, response)
	}
	e.add(ctx, op, response)
}

// refuse returns the answer to a refused operation, with the error as the server presents it.
func (e *Extension) refuse(ctx context.Context, op *operation) *graphql.Response {
	d := op.snapshot()
	graphql.AddError(ctx, graphQLError(&d))
	response := &graphql.Response{Errors: graphql.GetErrors(ctx), Extensions: graphql.GetExtensions(ctx)}
	return withExtension(response, &d)
}

// interceptUndecided handles what never became an operation. A document that failed to parse or
// validate is charged a flat amount; what another extension refused, and a body that is not JSON,
// is not.
func (e *Extension) interceptUndecided(ctx context.Context, next graphql.ResponseHandler) *graphql.Response {
	if !graphql.HasOperationContext(ctx) {
		return next(ctx)
	}
	opCtx := graphql.GetOperationContext(ctx)
	if op := e.decideUnread(ctx, opCtx); op != nil {
		d := op.snapshot()
		e.signal(sink.From(ctx), &d)
		return e.refuse(graphql.WithFreshResponseContext(ctx), op)
	}
	// Without a text an extension has refused the parameters. With an operation and its variables the
	// document was valid, and an extension has refused it.
	invalid := opCtx.RawQuery != "" && (opCtx.Operation == nil || opCtx.Variables == nil)
	if !invalid || e.cfg.Pricing.InvalidDocument < 0 {
		return next(ctx)
	}
	op := e.decideInvalid(ctx, opCtx)
	if op == nil {
		return next(ctx)
	}
	d := op.snapshot()
	e.signal(sink.From(ctx), &d)
	if d.Refusal != nil {
		// The context holds what is wrong with the document, which is not the answer.
		return e.refuse(graphql.WithFreshResponseContext(ctx), op)
	}
	response := next(ctx)
	if response == nil {
		return nil
	}
	return withExtension(response, &d)
}

// InterceptRootField notes that a resolver may have run, after which a claim is not released, and bounds what the field
// writes.
func (e *Extension) InterceptRootField(ctx context.Context, next graphql.RootResolver) graphql.Marshaler {
	op := operationFrom(ctx)
	if op == nil {
		return next(ctx)
	}
	if op.claim != nil {
		op.started.Store(true)
	}
	return op.size.bounded(next(ctx))
}

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

// warnOfUnit logs a charge in a unit that no limit of the policy counts.
func (e *Extension) warnOfUnit(ctx context.Context, rules *tiers.Rules, unit bucket.Unit) {
	if policy := e.cfg.Policy.Snapshot(); !counts(judged(rules), unit) && !policy.Counts(unit) {
		e.warnOnce(ctx, oddity{what: "unit", name: string(unit)}, "ratelimit.Charge is given a unit that no limit of the policy counts",
			slog.String("unit", shortened(string(unit))), slog.Any("units", policy.Units()))
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
