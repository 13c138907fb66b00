package e2e_test

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
)

// matrixPolicy has a tenant for each outcome that the policy brings about. The smallest price of an operation
// in the matrix is 3 points and the largest below 20.
const matrixPolicy = `
version: 1
default: free
tiers:
  free: {limits: {minute: {capacity: 100, per: minute}}}
  limited: {limits: {minute: {capacity: 20, per: minute}}}
  shadowed: {mode: shadow, limits: {minute: {capacity: 20, per: minute}}}
  warned: {mode: warn, enforceFrom: 2126-12-01, limits: {minute: {capacity: 20, per: minute}}}
  narrow: {limits: {minute: {capacity: 2, per: minute}}}
  capped: {maxCost: 2, limits: {minute: {capacity: 100, per: minute}}}
  blocked: {blocked: true}
  closed: {failMode: closed, limits: {minute: {capacity: 100, per: minute}}}
  open: {failMode: open, limits: {minute: {capacity: 100, per: minute}}}
  local: {failMode: local, limits: {minute: {capacity: 30, per: minute}}}
tenants:
  limited: {tier: limited}
  shadowed: {tier: shadowed}
  warned: {tier: warned}
  narrow: {tier: narrow}
  capped: {tier: capped}
  blocked: {tier: blocked}
  closed: {tier: closed}
  open: {tier: open}
  local: {tier: local}
`

// outcomeCase is what a decision comes to, and what goes for it on every transport.
type outcomeCase struct {
	name   string
	tenant string
	// query is sent in the place of the transport's own, if it is not empty.
	query string
	// key is sent with the operation: the plain one of the transport where plain is set, and otherwise one that may
	// be a mutation.
	key       string
	plain     bool
	configure func(*ratelimit.Config)
	// before brings the outcome about for the next operation, and returns what ends it, or nil.
	before func(*fixture, request, *transportCase) (end func())
	// status is that of the answer, zero where gqlgen chooses it by the media type.
	status int
	// code is that of the refusal, empty if there is none.
	code string
	// runs says that resolvers run.
	runs bool
}

func (o *outcomeCase) request(via *transportCase) request {
	r := request{Query: via.plain, Tenant: o.tenant, Key: o.key}
	switch {
	case o.query != "":
		r.Query = o.query
	case o.key != "" && !o.plain && via.keyed != "":
		r.Query = via.keyed
	}
	return r
}

const (
	spend18 = `{ users(first: 16) { name } }`
	spend19 = `{ users(first: 17) { name } }`
	unknown = `{ nothingLikeThis }`
)

var outcomeCases = []outcomeCase{
	{name: "admitted", status: http.StatusOK, runs: true},
	{name: "shadowed", tenant: "shadowed", before: spent, status: http.StatusOK, runs: true},
	{name: "warned", tenant: "warned", before: spent, status: http.StatusOK, runs: true},
	{
		name: "limited", tenant: "limited", before: spent,
		status: http.StatusTooManyRequests, code: ratelimitclient.CodeRateLimited,
	},
	{name: "never", tenant: "narrow", status: http.StatusBadRequest, code: ratelimitclient.CodeCostLimitExceeded},
	{name: "too-expensive", tenant: "capped", status: http.StatusBadRequest, code: ratelimitclient.CodeCostLimitExceeded},
	{name: "blocked", tenant: "blocked", status: http.StatusForbidden, code: ratelimitclient.CodeTenantBlocked},
	{
		name: "subject-unknown", configure: nobody,
		status: http.StatusUnauthorized, code: ratelimitclient.CodeSubjectUnknown,
	},
	{name: "key-invalid", key: "short", status: http.StatusBadRequest, code: ratelimitclient.CodeKeyInvalid},
	{name: "replayed", key: testKey, before: sentBefore, status: http.StatusOK},
	{name: "replayed-query", key: testKey, plain: true, before: sentBefore, status: http.StatusOK},
	{
		name: "runs-again", key: testKey, plain: true, before: sentBefore,
		configure: func(cfg *ratelimit.Config) { cfg.Idempotency.MaxAnswer = -1 },
		status:    http.StatusOK, runs: true,
	},
	{name: "repeated", key: testKey, query: exportQuery, before: abandoned, status: http.StatusOK, runs: true},
	{name: "in-flight", key: testKey, before: running, status: http.StatusConflict, code: ratelimitclient.CodeInFlight},
	{
		name: "reused", key: testKey, before: usedOtherwise,
		status: http.StatusUnprocessableEntity, code: ratelimitclient.CodeKeyReused,
	},
	{
		name: "answer-unavailable", key: testKey, before: sentBefore,
		configure: func(cfg *ratelimit.Config) { cfg.Idempotency.MaxAnswer = -1 },
		status:    http.StatusConflict, code: ratelimitclient.CodeAnswerUnavailable,
	},
	{
		name: "outcome-unknown", key: testKey, before: abandoned,
		configure: func(cfg *ratelimit.Config) { cfg.Idempotency.RefuseAbandoned = true },
		status:    http.StatusConflict, code: ratelimitclient.CodeOutcomeUnknown,
	},
	{name: "store-away-bounded", before: storeAway, status: http.StatusOK, runs: true},
	{name: "store-away-open", tenant: "open", before: storeAway, status: http.StatusOK, runs: true},
	{
		name: "store-away-closed", tenant: "closed", before: storeAway,
		status: http.StatusServiceUnavailable, code: ratelimitclient.CodeUnavailable,
	},
	{name: "store-away-local", tenant: "local", before: storeAway, status: http.StatusOK, runs: true},
	{
		name: "store-away-local-limited", tenant: "local", before: spentLocally,
		status: http.StatusTooManyRequests, code: ratelimitclient.CodeRateLimited,
	},
	{
		name: "invalid-document", query: unknown,
		configure: func(cfg *ratelimit.Config) { cfg.Pricing.InvalidDocument = 5 },
	},
	{
		name: "invalid-document-limited", tenant: "limited", query: unknown, before: spent,
		configure: func(cfg *ratelimit.Config) { cfg.Pricing.InvalidDocument = 5 },
		status:    http.StatusTooManyRequests, code: ratelimitclient.CodeRateLimited,
	},
}

func nobody(cfg *ratelimit.Config) {
	cfg.Subject = func(context.Context, *ratelimit.Request) (ratelimit.Subject, error) {
		return ratelimit.Subject{}, ratelimit.ErrNoSubject
	}
}

func spent(f *fixture, r request, _ *transportCase) func() {
	f.post(request{Query: spend18, Tenant: r.Tenant})
	return nil
}

// storeAway ends with a store that is away after the instance has learnt from it what is left.
func storeAway(f *fixture, r request, _ *transportCase) func() {
	f.post(request{Query: `{ __typename }`, Tenant: r.Tenant})
	f.store.Fail(bucket.ErrUnavailable)
	return nil
}

func spentLocally(f *fixture, r request, via *transportCase) func() {
	storeAway(f, r, via)
	f.post(request{Query: spend19, Tenant: r.Tenant})
	return nil
}

func sentBefore(f *fixture, r request, via *transportCase) func() {
	via.send(f, r)
	return nil
}

func usedOtherwise(f *fixture, r request, _ *transportCase) func() {
	f.post(request{Query: `mutation { createUser(input: {name: "Ada"}) { id } }`, Key: r.Key})
	return nil
}

// running leaves an attempt under the key that runs until it is ended.
func running(f *fixture, r request, _ *transportCase) func() {
	entered, release := make(chan struct{}), make(chan struct{})
	hold := func() {
		close(entered)
		<-release
	}
	f.resolver.BeforeCreate = func(context.Context) { hold() }
	f.resolver.OnExport = func(context.Context, int) error { hold(); return nil }
	var attempt sync.WaitGroup
	attempt.Go(func() { f.post(r) })
	<-entered
	return func() {
		close(release)
		attempt.Wait()
	}
}

// abandoned leaves a claim whose attempt could not be settled and whose lease is over.
func abandoned(f *fixture, r request, _ *transportCase) func() {
	var left atomic.Bool
	leave := func() {
		if !left.Swap(true) {
			f.store.Fail(bucket.ErrUnavailable)
		}
	}
	f.resolver.BeforeCreate = func(context.Context) { leave() }
	f.resolver.OnExport = func(context.Context, int) error { leave(); return nil }
	f.post(r)
	f.store.Fail(nil)
	f.clock.Advance(time.Minute)
	return nil
}

// gap is why a transport does not have an outcome, and what its clients get instead.
type gap struct {
	reason string
	show   func(*testing.T, *transportCase) string
}

// lacks returns why the transport cannot have the outcome, nil if it can.
func (o *outcomeCase) lacks(via *transportCase) *gap {
	switch {
	case via.name == "multipart-mixed" && o.name == "replayed-query":
		return &gap{"An answer in several parts is not stored: the query runs again at its price.", partsRunAgain}
	case via.name == "get" && (o.name == "answer-unavailable" || o.name == "outcome-unknown"):
		return &gap{"Of mutations alone, and gqlgen accepts none by GET: it is neither run nor charged.", mutationByGET}
	case via.keyed == "" && o.key == testKey:
		return &gap{"An operation with files has no key, because their content is not compared.", filesWithKey}
	}
	return nil
}

func mutationByGET(t *testing.T, via *transportCase) string {
	t.Helper()
	f := newFixture(t, nil)
	transcript := via.send(f, request{Query: createUser, Key: testKey})
	require.Contains(t, transcript, "406 ")
	require.Empty(t, f.store.Takes())
	require.Zero(t, f.resolver.Created.Load())
	return transcript
}

func partsRunAgain(t *testing.T, via *transportCase) string {
	t.Helper()
	f := newFixture(t, nil)
	via.send(f, request{Query: via.plain, Key: testKey})
	transcript := via.send(f, request{Query: via.plain, Key: testKey})
	require.EqualValues(t, 2, f.resolver.Asked.Load())
	require.NotContains(t, transcript, `"charged": 0`)
	return transcript
}

func filesWithKey(t *testing.T, via *transportCase) string {
	t.Helper()
	f := newFixture(t, nil)
	transcript := via.send(f, request{Query: via.plain, Key: testKey})
	require.Contains(t, transcript, "400 ")
	require.Equal(t, ratelimitclient.CodeKeyInvalid, refusalIn(t, answersIn(transcript)[0]).Code)
	require.Empty(t, f.store.Takes())
	require.Zero(t, f.resolver.Created.Load())
	return transcript
}
