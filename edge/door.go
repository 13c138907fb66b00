package edge

import (
	"context"
	"log/slog"
	"net/http"
	"sync"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/edge/internal/occupancy"
	"github.com/gqlgen-ratelimit/ratelimit/edge/internal/websocket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/inbound"
)

// Door bounds what requests take before they have a price. Make it with [New], wrap the handler of the server with
// [Door.Handler], and give it to srv.Use before any other extension: it is where operations on a WebSocket pass. After the
// limiter it answers each operation with an error that says so. It is safe for concurrent use, starts no goroutine and has
// nothing to close.
type Door struct {
	cfg       Config
	arrivals  *arrivals
	answers   *answers
	budgets   *budgets
	bodies    *bodies
	values    *values
	sockets   *sockets
	documents *gate
	underWay  *occupancy.Room

	// lookedAt says that the server was.
	lookedAt sync.Once
	// said are the oddities that were logged.
	noHandler, order sync.Once
}

var _ interface {
	graphql.HandlerExtension
	graphql.OperationParameterMutator
	graphql.OperationContextMutator
	graphql.OperationInterceptor
	graphql.ResponseInterceptor
} = (*Door)(nil)

// New returns a door. The error has every mistake in the configuration.
func New(cfg Config) (*Door, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	reporter, err := newReporter(&cfg.Observe)
	if err != nil {
		return nil, err
	}
	deadlines := &deadlines{logger: cfg.Observe.Logger}
	d := &Door{cfg: cfg, underWay: occupancy.New(cfg.Request.UnderWay, cfg.Address.UnderWay)}
	d.arrivals = newArrivals(&d.cfg)
	d.answers = &answers{reporter: reporter, deadlines: deadlines, statusOK: cfg.StatusOK}
	d.budgets = newBudgets(&d.cfg, reporter)
	d.bodies = &bodies{cfg: &d.cfg.Request, budgets: d.budgets, deadlines: deadlines}
	d.values = newValues(&d.cfg)
	d.sockets = newSockets(&d.cfg, d.budgets, d.values)
	d.documents = newGate(&d.cfg.Documents)
	if err := reporter.observe(state{
		evicted: d.budgets.evicted, underWay: d.underWay.Total, connections: d.sockets.open.Total,
		parsing: d.documents.turns.Runs, waiting: d.documents.turns.Waits,
	}); err != nil {
		return nil, err
	}
	if cfg.Server == nil {
		cfg.Observe.Logger.Info("edge: Config.Server is nil: whether http.Server.MaxHeaderBytes and ReadHeaderTimeout are set is " +
			"seen with the first request, and not at the start")
	}
	return d, nil
}

// ExtensionName returns FrontDoor.
func (d *Door) ExtensionName() string { return "FrontDoor" }

// Validate notes the schema: what the door knows of documents holds for one. [New] reports mistakes.
func (d *Door) Validate(schema graphql.ExecutableSchema) error {
	return d.documents.serve(schema.Schema())
}

// MutateOperationParameters takes an operation on a WebSocket from the limits of its connection, address and key, which a
// request of HTTP has passed in the [Door.Handler]. It refuses documents that need not be parsed, and waits for the turn
// of one that has to be.
func (d *Door) MutateOperationParameters(ctx context.Context, params *graphql.RawParams) *gqlerror.Error {
	a := arrivalFrom(ctx)
	if a == nil {
		d.noHandler.Do(func() {
			d.cfg.Observe.Logger.Warn("edge: the server is not behind Door.Handler, without which nothing is bounded: " +
				"serve door.Handler(ratelimit.Handler(srv)) instead of srv")
		})
		a = &arrival{}
	}
	a.began.Store(true)
	if a.socket != nil {
		if refusal := d.sockets.operation(ctx, a); refusal != nil {
			return d.answers.operation(ctx, a, refusal)
		}
	}
	if refusal := d.values.admit(a, params); refusal != nil {
		return d.answers.operation(ctx, a, refusal)
	}
	refusal, err := d.documents.enter(ctx, a, params)
	if refusal != nil {
		return d.answers.operation(ctx, a, refusal)
	}
	return err
}

// MutateOperationContext ends the turn of a document that is valid. It fails where the limiter was used before the door: what
// that refuses would not be seen here, such as a document that is not valid and whose turn has to end.
func (d *Door) MutateOperationContext(_ context.Context, operation *graphql.OperationContext) *gqlerror.Error {
	d.documents.leave(passageOf(operation))
	if operation.Stats.GetExtension(inbound.Limiter) == nil {
		return nil
	}
	const mistake = "edge: the server uses the limiter before the door: call srv.Use(door) and then srv.Use(limiter)"
	d.order.Do(func() { d.cfg.Observe.Logger.Error(mistake) })
	return gqlerror.Errorf(mistake)
}

// InterceptOperation bounds what runs at once on a WebSocket, and has the documents of operations kept that are admitted.
func (d *Door) InterceptOperation(ctx context.Context, next graphql.OperationHandler) graphql.ResponseHandler {
	a := arrivalFrom(ctx)
	if a != nil && a.socket != nil {
		if refusal := d.sockets.begin(ctx, a); refusal != nil {
			return graphql.OneShot(&graphql.Response{Errors: gqlerror.List{d.answers.operation(ctx, a, refusal)}})
		}
	}
	responses := next(ctx)
	d.documents.decided(ctx)
	return responses
}

// InterceptResponse ends the turn of a document that is not valid, and remembers it. It cuts the answer to what never began,
// which gqlgen makes of what was sent.
func (d *Door) InterceptResponse(ctx context.Context, next graphql.ResponseHandler) *graphql.Response {
	if !graphql.HasOperationContext(ctx) {
		return d.documents.cut(next(ctx))
	}
	return d.documents.answer(ctx, graphql.GetOperationContext(ctx), next)
}

// Handler wraps the handler of the server, which is usually ratelimit.Handler(srv). What it refuses does not reach the
// handler: put what every answer needs, such as the headers of CORS, around it.
func (d *Door) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d.lookAt(r)
		a := d.arrivals.of(r)
		r = r.WithContext(context.WithValue(r.Context(), arrivalKey{}, a))
		if refusal := d.admit(r, a); refusal != nil {
			d.answers.refuse(w, r, a, refusal)
			return
		}
		switch {
		case len(r.Header["Upgrade"]) == 0:
		case inbound.Upgrades(r.Header):
			d.upgrade(w, r, a, next)
			return
		default:
			r = websocket.WithoutUpgrade(r)
		}
		d.serve(w, r, a, next)
	})
}

// admit takes the request from the limits, with as many of its bytes as are known.
func (d *Door) admit(r *http.Request, a *arrival) *refusal {
	if refusal := d.budgets.take(r.Context(), a, bucket.Requests, 1); refusal != nil {
		return refusal
	}
	size := headerBytes(r)
	if refusal := d.bodies.tooLarge(r, size); refusal != nil {
		return refusal
	}
	return d.budgets.take(r.Context(), a, Bytes, size+max(0, r.ContentLength))
}

// serve lets a request that is no WebSocket pass when its body has come.
func (d *Door) serve(w http.ResponseWriter, r *http.Request, a *arrival, next http.Handler) {
	if refusal := unlessEntered(d.underWay.Enter(a.client, a.site, 1),
		"the server has too many requests under way", "too many requests of this address are under way: wait for their answers"); refusal != nil {
		d.answers.refuse(w, r, a, refusal)
		return
	}
	defer d.underWay.Leave(a.client, a.site, 1)
	defer d.values.ends(a)
	defer d.documents.abandon(a)
	release, refusal := d.bodies.read(w, r, a)
	defer release()
	if refusal != nil {
		d.answers.refuse(w, r, a, refusal)
		return
	}
	if isUpload(r) && d.documents.cfg.MaxErrors > 0 {
		w = &uploadWriter{w, a}
	}
	next.ServeHTTP(w, r)
}

// upgrade lets a WebSocket in, for as long as the handler runs.
func (d *Door) upgrade(w http.ResponseWriter, r *http.Request, a *arrival, next http.Handler) {
	if refusal := d.sockets.enter(w, r, a); refusal != nil {
		d.answers.refuse(w, r, a, refusal)
		return
	}
	defer d.sockets.leave(a)
	defer d.documents.abandon(a)
	next.ServeHTTP(websocket.Metered(w, &meter{d.sockets, a}), r)
}

// lookAt says once what the server of the request does not bound.
func (d *Door) lookAt(r *http.Request) {
	if d.cfg.Server != nil {
		return
	}
	d.lookedAt.Do(func() {
		server, known := r.Context().Value(http.ServerContextKey).(*http.Server)
		if !known {
			d.cfg.Observe.Logger.Warn("edge: the server is none of net/http: the door cannot see whether it bounds headers and how long it waits for them")
			return
		}
		for _, mistake := range serverMistakes(server, d.cfg.Request.MaxHeader) {
			d.cfg.Observe.Logger.Warn("edge: http.Server."+mistake, slog.String("addr", server.Addr))
		}
	})
}
