package graph

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/handler"
	"github.com/99designs/gqlgen/graphql/handler/extension"
	"github.com/99designs/gqlgen/graphql/handler/transport"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/cost"
	"github.com/gqlgen-ratelimit/ratelimit/edge"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/control"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/graph/internal/generated"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
	"github.com/gqlgen-ratelimit/ratelimit/validation"
)

const (
	// maxTokens is how many tokens a document has: every field of the schema once takes a fifth of them.
	maxTokens = 2000
	// MaxBody is how many bytes a request has. A policy document is a variable in it, whose characters may each take six.
	MaxBody = 6*tiers.DefaultMaxDocument + 64<<10
	// maxSmallBody is the same of who may not read or write documents.
	maxSmallBody = 128 << 10
	// bodyTime is in what time it has to arrive.
	bodyTime = 30 * time.Second
	// addressUnderWay is how many requests of one address are under way at once, and underWay how many of all: each may have a body in
	// memory.
	addressUnderWay, underWay = 32, 256
	// cachedBytes is what parsed and validated documents may take.
	cachedBytes = 16 << 20
)

// Authenticator says who asks: an *access.Authenticator.
type Authenticator interface {
	Authenticate(r *http.Request) (access.Actor, error)
}

// Config says what the API stands on. Control and Authenticator are required.
type Config struct {
	Control *control.Control
	// Authenticator is asked about each request.
	Authenticator Authenticator
	// Proxies are what stands between clients and the server. The zero value trusts nobody's word on addresses.
	Proxies edge.ProxyConfig
	// Server is the server in which the API stands: [edge.Config].
	Server *http.Server
	// Logger is told what fails. Nil is slog.Default.
	Logger *slog.Logger
	// Clock tells the time of the limits of the API itself, for tests. Nil means the system's clock.
	Clock func() time.Time
}

// API is the handler of the GraphQL API. It is made by [New], and safe for concurrent use.
type API struct {
	handler http.Handler
	limiter *ratelimit.Extension
}

//go:embed policy.yaml
var policyDocument []byte

// New returns the API. The error has everything that is wrong with the configuration. It starts nothing.
func New(cfg Config) (*API, error) {
	var mistakes []error
	if cfg.Control == nil {
		mistakes = append(mistakes, errors.New("graph: Config.Control is nil"))
	}
	if cfg.Authenticator == nil {
		mistakes = append(mistakes, errors.New("graph: Config.Authenticator is nil"))
	}
	if err := errors.Join(mistakes...); err != nil {
		return nil, err
	}
	cfg.Logger = cmp.Or(cfg.Logger, slog.Default())
	policy, err := tiers.Load(policyDocument, 1)
	if err != nil {
		return nil, fmt.Errorf("graph: the policy that is built in is wrong: %w", err)
	}
	limiter := ratelimit.New(ratelimit.Config{
		Store:   bucket.NewMemory(bucket.MemoryConfig{Clock: cfg.Clock}),
		Policy:  policy,
		Subject: ratelimit.ByContext(subject),
		Proxies: ratelimit.ProxyConfig(cfg.Proxies),
		Pricing: ratelimit.PricingConfig{Cost: cost.Config{RequireListSizes: true}},
		// Control has keys of its own, which hold over all daemons. And it keeps no secret in an answer.
		Idempotency: ratelimit.IdempotencyConfig{Keys: ratelimit.KeysIgnored},
		Observe:     ratelimit.ObserveConfig{Logger: cfg.Logger},
	})
	documents := edge.NewDocuments(cachedBytes)
	door, err := edge.New(edge.Config{
		Proxies:   cfg.Proxies,
		Address:   edge.AddressConfig{UnderWay: addressUnderWay},
		Request:   edge.RequestConfig{MaxBody: MaxBody, BodyTime: bodyTime, UnderWay: underWay},
		Documents: edge.DocumentConfig{MaxTokens: maxTokens, Cache: documents, Limiter: limiter},
		Observe:   edge.ObserveConfig{Logger: cfg.Logger},
		Server:    cfg.Server,
		Clock:     cfg.Clock,
	})
	if err != nil {
		return nil, fmt.Errorf("graph: %w", err)
	}
	srv := newServer(&cfg, door, documents, limiter)
	// Nothing of a stranger is read, who would have it kept in memory.
	return &API{handler: authenticated(&cfg, door.Handler(ratelimit.Handler(srv))), limiter: limiter}, nil
}

// newServer returns the server behind the door. It has POST alone, with a body of the type application/json, which a page of another
// site cannot make a browser send: a client certificate would go with it.
func newServer(cfg *Config, door *edge.Door, documents *edge.Documents, limiter *ratelimit.Extension) *handler.Server {
	srv := handler.New(generated.NewExecutableSchema(generated.Config{Resolvers: &resolver{cfg.Control}}))
	srv.AddTransport(transport.POST{})
	srv.SetParserTokenLimit(maxTokens)
	srv.SetValidationRulesFn(validation.Rules)
	srv.SetDisableSuggestion(true)
	srv.SetQueryCache(documents)
	srv.SetErrorPresenter(present)
	srv.SetRecoverFunc(func(ctx context.Context, panicked any) error { return recovered(ctx, cfg.Logger, panicked) })
	srv.Use(door)
	srv.Use(limiter)
	srv.Use(extension.Introspection{})
	srv.AroundFields(func(ctx context.Context, next graphql.Resolver) (any, error) {
		answer, err := next(ctx)
		if err != nil {
			return nil, told(ctx, cfg.Logger, err)
		}
		return answer, nil
	})
	return srv
}

// ServeHTTP implements http.Handler.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.handler.ServeHTTP(w, r) }

// Close ends what is under way, once no more requests come, or returns the error of the context.
func (a *API) Close(ctx context.Context) error { return a.limiter.Shutdown(ctx) }
