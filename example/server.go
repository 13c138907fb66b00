package main

import (
	"context"
	"net"
	"net/http"
	"time"

	"github.com/99designs/gqlgen/graphql/handler"
	"github.com/99designs/gqlgen/graphql/handler/extension"
	"github.com/99designs/gqlgen/graphql/handler/transport"
	"github.com/99designs/gqlgen/graphql/playground"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/example/internal/codehost"
	"github.com/gqlgen-ratelimit/ratelimit/example/internal/generated"
	"github.com/gqlgen-ratelimit/ratelimit/example/internal/resolver"
	"github.com/gqlgen-ratelimit/ratelimit/validation"
)

const (
	// maxTokens bounds the work that a document makes before it has a price: parsing and validation run before
	// any hook. validation.Rules checks merged fields in linear time; what is left of gqlparser still walks a fragment
	// again from each fragment that spreads it.
	maxTokens = 2000
	// maxBody bounds what is read into memory before anyone knows who sent it. A document of maxTokens
	// tokens and its variables fit well.
	maxBody = 64 << 10
	// maxHeader is the same for a GET, whose document stands in the URL: net/http counts the URL with the headers, and
	// lets in 1 MB unless told otherwise.
	maxHeader = 16 << 10
	// cachedBytes is how much memory parsed and validated documents may take. A repeated query skips both.
	cachedBytes = 64 << 20
)

// Times after which a client is too slow.
const (
	headerTimeout   = 5 * time.Second
	readTimeout     = 10 * time.Second
	writeTimeout    = 30 * time.Second
	idleTimeout     = 2 * time.Minute
	streamTimeout   = 10 * time.Minute
	shutdownTimeout = 10 * time.Second
	// pingInterval keeps proxies from closing a stream on which nothing happens.
	pingInterval = 15 * time.Second
)

// newAPI returns the GraphQL server of the store, behind the front door and the limiter.
func newAPI(store *codehost.Store, limits *limiter) *handler.Server {
	srv := handler.New(generated.NewExecutableSchema(generated.Config{
		Resolvers: &resolver.Resolver{Store: store},
	}))
	// The first transport that supports a request takes it. SSE and multipart requests are POSTs with
	// an Accept header of their own, so they stand before POST.
	messageLimit := int64(maxBody)
	srv.AddTransport(transport.Websocket{
		InitFunc:              limits.keys.Init,
		InitTimeout:           headerTimeout,
		KeepAlivePingInterval: pingInterval,
		PingPongInterval:      pingInterval,
		// The body limit of HTTP does not see the messages of a WebSocket.
		PayloadReadLimit: &messageLimit,
	})
	srv.AddTransport(transport.Options{})
	srv.AddTransport(transport.SSE{KeepAlivePingInterval: pingInterval})
	srv.AddTransport(transport.MultipartMixed{})
	srv.AddTransport(transport.GET{})
	srv.AddTransport(transport.POST{})

	srv.SetParserTokenLimit(maxTokens)
	srv.SetValidationRulesFn(validation.Rules)
	// What a misspelt name may have meant is looked for by comparing it with all names, once in each place: 16 operations with
	// long names keep a processor busy for half a second.
	srv.SetDisableSuggestion(true)
	srv.SetQueryCache(limits.documents)
	srv.SetErrorPresenter(resolver.PresentError)
	// The door comes first, because it is asked before a document is parsed, and then the limiter: what the others do does
	// not happen for an operation that is refused.
	srv.Use(limits.door)
	srv.Use(limits.extension)
	srv.Use(extension.Introspection{})
	return srv
}

// newMux returns the handler of all paths: GraphiQL at /, the API at /query.
func newMux(api http.Handler, limits *limiter) *http.ServeMux {
	mux := http.NewServeMux()
	mux.Handle("/{$}", playground.Handler("Code host", "/query"))
	mux.Handle("/query", limitTime(limits.door.Handler(limits.keys.Handler(ratelimit.Handler(api)))))
	return mux
}

// newServer returns an HTTP server whose requests end with ctx.
func newServer(ctx context.Context, handler http.Handler) *http.Server {
	return &http.Server{
		Handler:           handler,
		MaxHeaderBytes:    maxHeader,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		BaseContext:       func(net.Listener) context.Context { return ctx },
	}
}
