package e2e_test

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2/validator/core"
	"github.com/vektah/gqlparser/v2/validator/rules"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/edge"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

var _ edge.Limiter = (*ratelimit.Extension)(nil)

// doorPolicy has limits in all that matters before a document has a price.
const doorPolicy = `
version: 1
default: requests
tiers:
  requests:
    limits:
      minute: {unit: requests, capacity: 3, per: minute}
  points:
    limits:
      minute: {capacity: 3, per: minute}
  blocked: {blocked: true}
  warned: {mode: warn, limits: {minute: {capacity: 100, per: minute}}}
  asking:
    costValidate: true
    limits:
      minute: {unit: requests, capacity: 2, per: minute}
tenants:
  warned: {tier: warned}
  asking: {tier: asking}
  points: {tier: points}
  blocked: {tier: blocked}
`

// doored is a fixture behind a door, which counts what it validates.
type doored struct {
	*fixture

	documents *edge.Documents
	validated atomic.Int64
}

func newDoored(t *testing.T, configure func(*ratelimit.Config)) *doored {
	t.Helper()
	return newDooredRemembering(t, 0, configure)
}

// newDooredRemembering is newDoored with so many bytes for invalid documents. One document is parsed at once and none
// waits, so that a slot that is not given back is noticed.
func newDooredRemembering(t *testing.T, invalid int, configure func(*ratelimit.Config)) *doored {
	t.Helper()
	var limiter struct{ *ratelimit.Extension }
	d := &doored{documents: edge.NewDocuments(0)}
	door, err := edge.New(edge.Config{Observe: edge.ObserveConfig{Logger: discard}, Documents: edge.DocumentConfig{
		Cache: d.documents, Limiter: &limiter, MaxParsing: 1, MaxWaiting: edge.None, RememberInvalid: invalid,
	}})
	require.NoError(t, err)
	d.fixture = newFixtureWithin(t, func(cfg *ratelimit.Config) {
		policy, err := tiers.Parse([]byte(doorPolicy))
		require.NoError(t, err)
		cfg.Policy, err = tiers.Compile(policy)
		require.NoError(t, err)
		cfg.Store = bucket.NewMemory(bucket.MemoryConfig{Clock: cfg.Outage.Clock})
		if configure != nil {
			configure(cfg)
		}
	}, door)
	limiter.Extension = d.limiter
	d.server.SetQueryCache(d.documents)
	d.server.SetValidationRulesFn(func() *rules.Rules {
		all := rules.NewDefaultRules()
		all.AddRule("Counting", func(*core.Events, core.AddErrFunc) {
			d.validated.Add(1)
		})
		return all
	})
	return d
}

// distinct is a query that no other has been, of n bytes at least.
func distinct(name string, n int) string { return "{me{id}}#" + name + strings.Repeat("x", n) }

func TestABlockedTenantIsRefusedWithoutBeingParsed(t *testing.T) {
	t.Parallel()
	d := newDoored(t, nil)
	for _, name := range []string{"a", "b"} {
		answer := d.post(request{Query: distinct(name, 0), Tenant: "blocked"})
		require.Equal(t, ratelimitclient.CodeTenantBlocked, answer.errorCode(t))
		require.Equal(t, http.StatusForbidden, answer.Status)
	}
	require.Zero(t, d.validated.Load())
}

func TestATenantWithoutRequestsIsRefusedWithoutBeingParsed(t *testing.T) {
	t.Parallel()
	for name, remembering := range map[string]func(*ratelimit.Config){
		"in a store in this process": nil,
		"in one that is elsewhere":   func(cfg *ratelimit.Config) { cfg.Store = &elsewhere{cfg.Store} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDoored(t, remembering)
			for _, query := range []string{"{me{id}}", "{me{name}}", "{users(first:1){id}}"} {
				require.Equal(t, http.StatusOK, d.post(request{Query: query}).Status)
			}
			asked := d.post(request{Query: "{me{id}}"})
			require.Equal(t, http.StatusTooManyRequests, asked.Status)
			before := d.validated.Load()
			for _, name := range []string{"a", "b", "c"} {
				answer := d.post(request{Query: distinct(name, 0)})
				require.Equal(t, ratelimitclient.CodeRateLimited, answer.errorCode(t))
				require.Equal(t, http.StatusTooManyRequests, answer.Status)
				require.Equal(t, asked.Header.Get("Retry-After"), answer.Header.Get("Retry-After"))
				require.NotEmpty(t, answer.rateLimit(t))
			}
			require.Equal(t, before, d.validated.Load())
			require.Equal(t, http.StatusTooManyRequests, d.post(request{Query: distinct("d", 0), Key: "0123456789abcdef"}).Status)
			require.Equal(t, before+1, d.validated.Load(), "what has a key may be a replay")

			d.clock.Advance(time.Minute)
			require.Equal(t, http.StatusOK, d.post(request{Query: distinct("e", 0)}).Status)
		})
	}
}

func TestAnOperationOfTheWrongShapeIsNotParsedAgainWhereShapeIsEnforced(t *testing.T) {
	t.Parallel()
	d := newDoored(t, func(cfg *ratelimit.Config) { cfg.Pricing.Cost.Shape.MaxAliases = 1 })
	query := "query A($first:Int){a:users(first:$first){id} b:users{id}}"
	var first reply
	for i, tenant := range []string{"free", "points", "free", "parsing"} {
		answer := d.post(request{Query: query, Tenant: tenant, Variables: map[string]any{"first": i}})
		require.Equal(t, ratelimitclient.CodeQueryLimitExceeded, answer.errorCode(t))
		require.Equal(t, http.StatusBadRequest, answer.Status)
		if i == 0 {
			first = answer
		}
	}
	require.EqualValues(t, 1, d.validated.Load())
	require.Contains(t, first.Body, "aliases")
	require.Equal(t, http.StatusOK, d.post(request{Query: query, Tenant: "warned"}).Status, "it is not enforced for all")
	require.EqualValues(t, 2, d.validated.Load())
}

func TestAQuestionAboutAPriceIsAnsweredWithoutRequests(t *testing.T) {
	t.Parallel()
	d := newDoored(t, nil)
	for range 2 {
		require.Equal(t, http.StatusOK, d.post(request{Query: distinct("", 0), Tenant: "asking", Cost: "validate"}).Status)
		d.post(request{Query: "{me{id}}", Tenant: "asking"})
	}
	require.Equal(t, http.StatusTooManyRequests, d.post(request{Query: distinct("other", 0), Tenant: "asking"}).Status)
	require.Equal(t, 1, d.documents.Len(), "what is only priced costs nothing and is not kept")
}

func TestOnAWebSocketAKnownRefusalIsToldInItsMessages(t *testing.T) {
	t.Parallel()
	d := newDoored(t, nil)
	for range 3 {
		d.post(request{Query: "{me{id}}"})
	}
	before := d.validated.Load()
	socket := d.dial("free", http.Header{"X-Tenant": {"free"}})
	require.Contains(t, socket.run("1", request{Query: distinct("socket", 0)})[0], ratelimitclient.CodeRateLimited)
	require.Equal(t, before, d.validated.Load())
}

func TestAnAnonymousOperationIsRefusedUnreadWhateverKeyItCarries(t *testing.T) {
	t.Parallel()
	d := newDoored(t, byPayloadOrPeer)
	d.useUpAddress()
	before := d.validated.Load()
	require.Equal(t, http.StatusTooManyRequests, d.post(request{Query: distinct("keyed", 0), Key: testKey}).Status)
	require.Equal(t, before, d.validated.Load(), "nothing is a replay for an anonymous subject")
}

func TestWhoConnectsWithAPayloadIsNotTakenForAnAnonymousNeighbour(t *testing.T) {
	t.Parallel()
	d := newDoored(t, byPayloadOrPeer)
	d.useUpAddress()
	known := d.dial("free", nil)
	for _, id := range []string{"1", "2"} {
		require.Contains(t, known.run(id, request{Query: distinct(id, 0)})[0], `"me"`)
	}

	stranger := d.dial("", nil)
	before := d.validated.Load()
	for i := range 4 {
		id := strconv.Itoa(i)
		require.Contains(t, stranger.run(id, request{Query: distinct("s"+id, 0)})[0], ratelimitclient.CodeRateLimited)
	}
	require.Equal(t, before+1, d.validated.Load(), "the first operation shows that there is nothing to see")

	mute := d.dial("", nil)
	before = d.validated.Load()
	for i := range 20 {
		id := strconv.Itoa(i)
		require.Contains(t, mute.run(id, request{Query: "{nope" + id + "}"})[0], ratelimitclient.CodeRateLimited)
	}
	require.Equal(t, before+8, d.validated.Load(), "who sends nothing valid does not stay unknown")
}

// byPayloadOrPeer has tenants by the payload of their connections, and others by address.
func byPayloadOrPeer(cfg *ratelimit.Config) {
	cfg.Subject = ratelimit.FirstOf(
		ratelimit.ByInitPayload("tenant", func(_ context.Context, tenant string) (ratelimit.Subject, bool) {
			return ratelimit.Subject{Tenant: tenant}, tenant != ""
		}),
		ratelimit.ByPeer(ratelimit.PeerConfig{}),
	)
}

// useUpAddress has somebody else spend what the address has.
func (d *doored) useUpAddress() {
	for range 4 {
		d.post(request{Query: "{me{id}}"})
	}
}

func TestEachTransportGivesTheSlotsOfItsDocumentsBack(t *testing.T) {
	t.Parallel()
	d := newDooredRemembering(t, edge.None, nil)
	for name, send := range map[string]func(request) reply{"POST": d.post, "GET": d.get, "SSE": d.sse, "multipart": d.multipartMixed} {
		for _, query := range []string{"{", "{nope}", "{", "{me{id}}", "query($x:Int!){users(first:$x){id}}"} {
			answer := send(request{Query: query, Tenant: "asking"})
			require.NotContains(t, answer.Body, ratelimitclient.CodeOverloaded, name, query)
			d.clock.Advance(time.Hour)
		}
	}
	socket := d.dial("asking", nil)
	for i, query := range []string{"{", "{nope}", "{", "{me{id}}"} {
		require.NotContains(t, socket.run(strconv.Itoa(i), request{Query: query})[0], ratelimitclient.CodeOverloaded, query)
	}
}

// elsewhere hides that a store is in this process.
type elsewhere struct{ bucket.Store }

func TestATenantWithoutPointsIsParsed(t *testing.T) {
	t.Parallel()
	d := newDoored(t, nil)
	for _, query := range []string{"{me{id}}", "{me{id}} "} {
		d.post(request{Query: query, Tenant: "points"})
	}
	before := d.validated.Load()
	require.Equal(t, http.StatusOK, d.post(request{Query: "{__typename}", Tenant: "points"}).Status, "operations of 0 points pass")
	require.Equal(t, before+1, d.validated.Load())
}

func TestTheDocumentCacheKeepsNothingThatTheLimiterRefuses(t *testing.T) {
	t.Parallel()
	d := newDoored(t, nil)
	require.Equal(t, http.StatusOK, d.post(request{Query: distinct("a", 0), Tenant: "points"}).Status)
	require.Equal(t, 1, d.documents.Len())
	for _, name := range []string{"b", "c", "b", "c"} {
		require.Equal(t, http.StatusTooManyRequests, d.post(request{Query: distinct(name, 10_000), Tenant: "points"}).Status)
	}
	require.Equal(t, 1, d.documents.Len())
}

func TestAnInvalidDocumentThatIsKnownIsChargedAsItWas(t *testing.T) {
	t.Parallel()
	d := newDoored(t, nil)
	for range 3 {
		answer := d.post(request{Query: "{nope}"})
		require.Equal(t, http.StatusUnprocessableEntity, answer.Status)
		require.Contains(t, answer.Body, "nope")
	}
	require.EqualValues(t, 1, d.validated.Load())
	require.Equal(t, http.StatusTooManyRequests, d.post(request{Query: "{nope}"}).Status, "three of three requests are spent")
}
