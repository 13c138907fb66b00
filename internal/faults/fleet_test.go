package faults_test

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/99designs/gqlgen/graphql/handler"
	"github.com/99designs/gqlgen/graphql/handler/lru"
	"github.com/99designs/gqlgen/graphql/handler/transport"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/internal/testserver"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

const (
	// replicas share the store. Each has connections of its own.
	replicas = 3

	// capacity and refill are those of the limit that decides: far below what the clients ask for.
	capacity = 100
	refill   = 20 // a second
	// ledgerCapacity is that of a limit which refuses nothing and gains nothing in the time of a test: what
	// is spent of it is what the store knows to have admitted.
	ledgerCapacity = 80_000
)

// modes are the fail modes.
var modes = []string{"bounded", "closed", "local", "open"}

// compile returns a policy with a tier for each fail mode. The limit by the hour is there for clocks that are
// wrong.
func compile(t *testing.T) *tiers.Snapshot {
	t.Helper()
	var text strings.Builder
	fmt.Fprintf(&text, "version: 1\ndefault: %s\ntiers:\n", modes[0])
	for _, mode := range modes {
		fmt.Fprintf(&text, "  %s: {failMode: %s, limits: {", mode, mode)
		fmt.Fprintf(&text, "second: {capacity: %d, refill: %d, per: second}, ", capacity, refill)
		fmt.Fprintf(&text, "ledger: {capacity: %d, refill: 1, per: hour}, ", ledgerCapacity)
		fmt.Fprintf(&text, "hour: {capacity: 10000000, per: hour, window: calendar}}}\n")
	}
	parsed, err := tiers.Parse([]byte(text.String()))
	require.NoError(t, err)
	snapshot, err := tiers.Compile(parsed)
	require.NoError(t, err)
	return snapshot
}

// told is what the fleet has reported of the decisions for one tier.
type told struct {
	outcomes map[ratelimit.Outcome]int64
	// price is what an operation costs in points.
	price int64
	// ambiguous is how many decisions the store may have charged without an answer.
	ambiguous int64
}

// fleet are servers that share a store.
type fleet struct {
	policy     *tiers.Snapshot
	handlers   []http.Handler
	extensions []*ratelimit.Extension
	// running waits for what they run in the background.
	running sync.WaitGroup

	mu   sync.Mutex
	told map[string]*told
}

// deadline is how long a call of the store may take: as long as users let it for the figures of the table, and
// otherwise long enough for a machine that runs other tests beside.
func deadline() time.Duration {
	if *all {
		return bucket.DefaultTimeout
	}
	return unhurried
}

// unhurried is longer than a healthy store takes on a machine that runs other tests beside.
const unhurried = 200 * time.Millisecond

// startFleet starts servers on the store of a site.
func startFleet(t *testing.T, s *site) *fleet {
	t.Helper()
	f := &fleet{policy: compile(t), told: map[string]*told{}}
	for _, mode := range modes {
		f.told[mode] = &told{outcomes: map[ratelimit.Outcome]int64{}}
	}
	for replica := range replicas {
		client := s.connect(t, replica)
		t.Cleanup(func() { _ = client.Close() })
		config := bucket.RedisConfig{Client: client, Timeout: s.deadline()}
		if s.clock != nil {
			config.Clock = s.clock(replica)
		}
		store, err := bucket.NewRedis(config)
		require.NoError(t, err)
		server := handler.New(testserver.NewExecutableSchema(testserver.Config{Resolvers: &testserver.Resolver{}}))
		server.AddTransport(transport.POST{})
		server.SetQueryCache(lru.New[*ast.QueryDocument](1))
		extension := ratelimit.New(ratelimit.Config{
			Store: store, Policy: f.policy, Subject: tierOfTenant,
			// Every decision is told, and not a sample of them: the table compares them with what clients saw.
			Observe: ratelimit.ObserveConfig{
				Observer: f, Admissions: 1, Refusals: math.MaxInt32, TenantRefusals: ratelimit.None, Logger: slog.New(slog.DiscardHandler),
			},
			Outage: ratelimit.OutageConfig{Instances: replicas},
			// Answers name the tier, by which their client knows the fail mode.
			Response: ratelimit.ResponseConfig{Full: true},
		})
		server.Use(extension)
		f.running.Go(func() { extension.Run(t.Context()) })
		f.extensions = append(f.extensions, extension)
		f.handlers = append(f.handlers, ratelimit.Handler(server))
	}
	return f
}

// settle waits until what was admitted without the store is settled with it.
func (f *fleet) settle() {
	for _, extension := range f.extensions {
		// What is left shows in the table.
		_ = extension.Shutdown(context.Background())
	}
	f.running.Wait()
}

// tierOfTenant makes a subject of a tenant that is named after its tier, such as bounded-3.
func tierOfTenant(_ context.Context, r *ratelimit.Request) (ratelimit.Subject, error) {
	tenant := r.Header.Get("X-Tenant")
	tier, _, _ := strings.Cut(tenant, "-")
	return ratelimit.Subject{Tenant: tenant, Tier: tier}, nil
}

// Observe counts decisions.
func (f *fleet) Observe(_ context.Context, e event.Event) {
	d, ok := e.(event.Decided)
	if !ok {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	of := f.told[d.Tier]
	of.outcomes[ratelimit.Outcome(d.Outcome)]++
	of.price = d.Cost
	if d.StoreResult == "ambiguous" {
		of.ambiguous++
	}
}

// known is what a store knows of a tenant, in points.
type known struct {
	// spent is what it has admitted, and what it was told of afterwards.
	spent int64
	// overdraft is by how much more than the capacity of the limit that decides is spent: that has to come
	// back before anything is admitted.
	overdraft int64
}

// knows asks the store of a tenant.
func (f *fleet) knows(t *testing.T, admin redis.UniversalClient, tenant string) known {
	t.Helper()
	store, err := bucket.NewRedis(bucket.RedisConfig{Client: admin, Timeout: patience})
	require.NoError(t, err)
	tier, _, _ := strings.Cut(tenant, "-")
	rules := f.policy.Rules(ratelimit.Subject{Tenant: tenant, Tier: tier}, tiers.Selection{})
	states, err := store.Peek(context.Background(), tenant, rules.Buckets)
	require.NoError(t, err)
	var k known
	for i := range states {
		switch states[i].Limit.Name {
		case "ledger":
			k.spent = ledgerCapacity - states[i].Remaining
		case "second":
			k.overdraft = states[i].Overdraft
		}
	}
	return k
}
