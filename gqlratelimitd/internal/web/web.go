package web

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"path"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/control"
	"github.com/gqlgen-ratelimit/ratelimit/internal/inbound"
)

// Config says what is served, and how. Control and Authenticator are required.
type Config struct {
	// Control does what is asked for.
	Control *control.Control
	// Authenticator finds out who asks.
	Authenticator *access.Authenticator
	// Metrics serves the metrics of the daemon. Nil serves none.
	Metrics http.Handler
	// Relay returns an error while changes do not reach Redis. Nil is no relay.
	Relay func() error
	// Address returns where a request comes from, as that of the authenticator. Nil is the peer of the connection.
	Address func(*http.Request) netip.Addr
	// Limits bound what clients ask for.
	Limits LimitConfig
	// Now is the clock. Nil is time.Now.
	Now func() time.Time
	// Logger is told what fails. Nil is slog.Default.
	Logger *slog.Logger
	// MeterProvider takes the metrics. Nil means the global provider.
	MeterProvider metric.MeterProvider
}

// Server serves the control plane over HTTP. It is safe for concurrent use.
type Server struct {
	cfg    Config
	mux    *http.ServeMux
	gate   *gate
	watch  *watch
	ready  *readiness
	told   *instruments
	routes []route
}

// New returns a server. The error names every mistake in the configuration. It starts nothing: see [Server.Run].
func New(cfg Config) (*Server, error) {
	var mistakes []error
	if cfg.Control == nil {
		mistakes = append(mistakes, errors.New("web: Config.Control is nil"))
	}
	if cfg.Authenticator == nil {
		mistakes = append(mistakes, errors.New("web: Config.Authenticator is nil"))
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	if cfg.Address == nil {
		cfg.Address = func(r *http.Request) netip.Addr { return inbound.Peer(r).Unmap() }
	}
	gate, err := newGate(cfg.Limits, cfg.Now)
	mistakes = append(mistakes, err)
	told, err := newInstruments(cfg.MeterProvider)
	mistakes = append(mistakes, err)
	if err := errors.Join(mistakes...); err != nil {
		return nil, err
	}
	s := &Server{cfg: cfg, gate: gate, told: told, mux: http.NewServeMux()}
	s.watch = newWatch(s.newest)
	s.ready = &readiness{check: s.check, now: cfg.Now, log: cfg.Logger}
	s.routes = s.table()
	for i := range s.routes {
		r := &s.routes[i]
		s.mux.Handle(r.method+" "+r.pattern, s.serve(r))
	}
	return s, nil
}

// Run tells those who wait for another policy of changes that other daemons have made, until the context ends. Then nobody waits any more.
func (s *Server) Run(ctx context.Context) { s.watch.run(ctx) }

// Wake says that something has changed. It does not block, and is meant for control.Config.Changed.
func (s *Server) Wake() { s.watch.wake() }

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// The router would send whoever asks for a path that is not clean to another one, which nobody has meant.
	at := r.URL.EscapedPath()
	if handler, pattern := s.mux.Handler(r); pattern == "" || path.Clean(at) != at {
		s.unrouted(w, r, handler)
		return
	}
	s.mux.ServeHTTP(w, r)
}

// unrouted answers a request for which there is no route, with what the router found out about it.
func (s *Server) unrouted(w http.ResponseWriter, r *http.Request, handler http.Handler) {
	c := &call{Request: r, w: w, s: s, id: requestID()}
	if err := s.gate.stranger(r.Context(), s.cfg.Address(r)); err != nil {
		c.fail(r.Context(), err)
		return
	}
	answer := &answerHead{header: http.Header{}}
	handler.ServeHTTP(answer, r)
	p := &problem{Status: http.StatusNotFound, Title: "There is no such path", Detail: "GET /openapi.yaml lists what there is."}
	if allow := answer.header.Get("Allow"); allow != "" {
		w.Header().Set("Allow", allow)
		p = &problem{Status: http.StatusMethodNotAllowed, Title: "The path has no such method", Detail: fmt.Sprintf("Use one of %s.", allow)}
	}
	c.fail(r.Context(), p)
}

// answerHead takes an answer and keeps its header alone.
type answerHead struct{ header http.Header }

// Header implements http.ResponseWriter.
func (a *answerHead) Header() http.Header { return a.header }

// Write implements http.ResponseWriter.
func (a *answerHead) Write(p []byte) (int, error) { return len(p), nil }

// WriteHeader implements http.ResponseWriter.
func (a *answerHead) WriteHeader(int) {}
