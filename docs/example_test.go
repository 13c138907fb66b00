package docs_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/99designs/gqlgen/graphql/handler"
	"github.com/redis/go-redis/v9"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/bucket/doctor"
	"github.com/gqlgen-ratelimit/ratelimit/bucket/redisclient"
	"github.com/gqlgen-ratelimit/ratelimit/cost"
	"github.com/gqlgen-ratelimit/ratelimit/edge"
	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// Background work, and an orderly end: docs/guide/outages.md.
func Example_outages() {
	_ = func(cfg ratelimit.Config, srv *handler.Server, server *http.Server, client redis.UniversalClient) {
		ctx := context.Background()

		limiter := ratelimit.New(cfg)
		srv.Use(limiter)
		go limiter.Run(ctx)

		_ = server.Shutdown(ctx)  // no more requests: nothing more is admitted
		_ = limiter.Shutdown(ctx) // ends Run, and settles what waits and what was admitted while the store was away
		_ = client.Close()        // the connections to Redis, last
	}
	// Output:
}

// The front door before the server of docs/guide/start.md.
func Example_start() {
	_ = func(srv *handler.Server, limiter *ratelimit.Extension) error {
		server := &http.Server{MaxHeaderBytes: 16 << 10, ReadHeaderTimeout: 5 * time.Second}
		documents := edge.NewDocuments(64 << 20) // bytes
		door, err := edge.New(edge.Config{
			Key:       edge.KeyConfig{Header: "X-API-Key"},
			Documents: edge.DocumentConfig{Cache: documents, Limiter: limiter},
			Server:    server,
		})
		if err != nil {
			return err // every mistake in the configuration
		}
		srv.SetQueryCache(documents)
		srv.Use(door) // first
		srv.Use(limiter)
		http.Handle("/query", door.Handler(ratelimit.Handler(srv)))
		return nil
	}
	// Output:
}

// Sentinels, the log of go-redis, and the doctor: docs/guide/redis.md.
func Example_redis() {
	_ = func() ([]doctor.Finding, error) {
		client, err := redisclient.Open("", redisclient.Config{
			Addresses: []string{"sentinel-1:26379", "sentinel-2:26379", "sentinel-3:26379"},
			Master:    "mymaster",
			Username:  "limiter", Password: os.Getenv("REDIS_PASSWORD"),
		})
		if err != nil {
			return nil, err
		}
		ctx := context.Background()

		findings, err := doctor.Examine(ctx, doctor.Config{Client: client, Namespace: "main"})
		return findings, err
	}
	redis.SetLogger(redisLog{}) // in main, before the first client
	// Output:
}

type redisLog struct{}

func (redisLog) Printf(ctx context.Context, format string, args ...any) {
	slog.WarnContext(ctx, fmt.Sprintf(format, args...)) // or nothing at all
}

// A share of admissions is told: docs/guide/events.md.
func Example_events() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var cfg ratelimit.Config

	events := event.NewChannel(1000)
	cfg.Observe = ratelimit.ObserveConfig{Observer: events, Admissions: 0.01}
	go events.Forward(ctx, event.NewLogger(nil)) // until ctx ends
	// Output:
}

// Stores of one's own: docs/guide/fleet.md.
func Example_hotTenants() {
	_ = func(shared, eu, vault bucket.Store) ratelimit.Config {
		var cfg ratelimit.Config
		cfg.Store = shared
		cfg.Stores = map[string]bucket.Store{"eu": eu, "vault": vault}
		return cfg
	}
	// Output:
}

// One number, as Apollo Router has it: docs/guide/migration.md.
func Example_migration() {
	_ = ratelimit.Config{
		Pricing: ratelimit.PricingConfig{
			Cost: cost.Config{
				DefaultListSize: 100, // what the other system was configured with
				Base:            map[ast.Operation]float64{ast.Mutation: 10, ast.Subscription: 0},
			},
			Points: func(c cost.Cost) int64 {
				c.Field = 0
				return c.Points()
			},
		},
	}
	// Output:
}

// A verified token says who pays, otherwise the address: docs/guide/policy.md.
func Example_token() {
	type claims struct{ Organisation, Team, Person, Plan string }
	type claimsKey struct{}
	// verify stands for a JWT library: signature, issuer, audience and expiry.
	verify := func(_ context.Context, token string) (claims, error) {
		if token != "good" {
			return claims{}, errors.New("not signed by us")
		}
		return claims{"acme", "web", "mira", "pro"}, nil
	}

	authenticated := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			token, sent := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
			if !sent {
				next.ServeHTTP(w, r) // the address pays
				return
			}
			verified, err := verify(r.Context(), token)
			if err != nil {
				http.Error(w, "the token is not valid", http.StatusUnauthorized)
				return
			}
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), claimsKey{}, verified)))
		})
	}

	subject := ratelimit.FirstOf(
		ratelimit.ByContext(func(ctx context.Context) (ratelimit.Subject, bool) {
			token, ok := ctx.Value(claimsKey{}).(claims)
			return ratelimit.Subject{
				Tenant: token.Organisation, Team: token.Team, User: token.Person, Tier: token.Plan,
				Claims: &ratelimit.Claims{"plan": token.Plan}, // for custom limits
			}, ok && token.Organisation != ""
		}),
		ratelimit.ByPeer(ratelimit.PeerConfig{Tier: "anonymous"}),
	)

	server := authenticated(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		known, err := subject(r.Context(), &ratelimit.Request{Client: netip.MustParseAddr("203.0.113.7")})
		fmt.Println(known.Tenant, known.Team, known.User, known.Tier, err)
	}))
	for _, authorization := range []string{"Bearer good", "", "Bearer forged"} {
		request, recorder := httptest.NewRequest(http.MethodPost, "/query", http.NoBody), httptest.NewRecorder()
		request.Header.Set("Authorization", authorization)
		server.ServeHTTP(recorder, request)
		fmt.Println(recorder.Code)
	}

	_ = func(door *edge.Door, srv http.Handler) {
		http.Handle("/query", door.Handler(authenticated(ratelimit.Handler(srv))))
	}
	// Output:
	// acme web mira pro <nil>
	// 200
	// ip:203.0.113.7  203.0.113.7 anonymous <nil>
	// 200
	// 401
}

// What support does: docs/guide/operating.md.
func Example_operating() {
	_ = func(ctx context.Context, store *bucket.Redis, source tiers.Source) error {
		_, err := store.SetOverride(ctx, "acme", bucket.Override{
			Blocked: true,
			Reason:  "scrapes the catalogue, ticket 18", Actor: "jo@example.com",
		})
		if err != nil {
			return err
		}

		rules := source.Snapshot().Rules(ratelimit.Subject{Tenant: "acme"}, tiers.Selection{})
		limits, err := store.Peek(ctx, "acme", rules.Buckets)
		if err != nil {
			return err
		}
		for _, limit := range limits {
			fmt.Println(limit.Owner, limit.Limit.Name, limit.Remaining, limit.Limit.Capacity)
		}

		records, err := store.ListOverrides(ctx, "acme")
		if err != nil {
			return err
		}
		for _, record := range records {
			fmt.Println(record.Owner, record.Limit, record.Reason, record.Actor, record.Expires)
		}
		_, err = store.ClearOverrides(ctx, "acme")
		return err
	}
	// Output:
}
