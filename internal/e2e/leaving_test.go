package e2e_test

import (
	"bytes"
	"context"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimittest"
)

// postAs is post with a context of the caller's own, as that of a client that leaves.
func (p *inProcess) postAs(ctx context.Context, r request) {
	body := `{"query": "` + strings.ReplaceAll(r.Query, `"`, `\"`) + `"}`
	httpRequest := httptest.NewRequestWithContext(ctx, http.MethodPost, "/query", strings.NewReader(body))
	httpRequest.Header.Set("Content-Type", "application/json")
	r.setHeaders(httpRequest.Header)
	p.handler.ServeHTTP(httptest.NewRecorder(), httpRequest)
}

func TestAClientThatHasLeftIsChargedAndIsNoFaultOfTheStore(t *testing.T) {
	t.Parallel()
	var outcomes []ratelimit.Outcome
	store := ratelimittest.NewStore(nil)
	run := newInProcess(t, store, nil)
	see(run.server, func(d ratelimit.Decision) { outcomes = append(outcomes, d.Outcome) })
	left, leave := context.WithCancel(t.Context())
	leave()
	run.postAs(left, request{Query: listQuery})
	require.Equal(t, []ratelimit.Outcome{ratelimit.OutcomeAdmitted}, outcomes)
	require.Len(t, store.Takes(), 1)
}

func TestAChargeIsTakenAlsoFromAClientThatHasLeft(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	var errs []error
	f.resolver.OnExport = func(ctx context.Context, rows int) error {
		left, leave := context.WithCancel(ctx)
		leave()
		errs = append(errs, ratelimit.Charge(left, "exports", int64(rows)))
		return nil
	}
	f.post(request{Query: `{ export(rows: 7) }`})
	f.post(request{Query: `{ export(rows: 7) }`})
	require.NoError(t, errs[0])
	require.ErrorIs(t, errs[1], ratelimit.ErrRefused)
}

func TestTheAnswerOfAClientThatLeftIsStored(t *testing.T) {
	t.Parallel()
	run := newInProcess(t, ratelimittest.NewStore(nil), nil)
	ctx, leave := context.WithCancel(t.Context())
	run.resolver.BeforeCreate = func(context.Context) { leave() }
	run.postAs(ctx, request{Query: createUser, Key: testKey})
	require.Equal(t, true, run.post(request{Query: createUser, Key: testKey}).rateLimit(t)["replayed"])
	require.EqualValues(t, 1, run.resolver.Created.Load())
}

func TestSettlingIsTriedAgainWhenTheStoreFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &faultyStore{Store: ratelimittest.NewStore(nil)}
		store.settleFailures.Store(3)
		run := newInProcess(t, store, nil)
		run.post(request{Query: createUser, Key: testKey})
		require.Equal(t, true, run.post(request{Query: createUser, Key: testKey}).rateLimit(t)["replayed"])
	})
}

func TestALeaseIsRenewedAlsoAfterTheStoreWasAwayForAMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const lease = 3 * time.Second
		store := &faultyStore{Store: ratelimittest.NewStore(nil)}
		store.renewFailures.Store(1)
		// The records read the clock of the bubble, as the leases do.
		run := newInProcess(t, store, func(cfg *ratelimit.Config) {
			cfg.Idempotency.Lease = lease
		})
		run.resolver.BeforeCreate = func(ctx context.Context) {
			time.Sleep(3 * lease) //nolint:forbidigo // the clock of a synctest bubble
		}
		done := make(chan struct{})
		ctx, leave := context.WithCancel(t.Context())
		go func() {
			defer close(done)
			run.postAs(ctx, request{Query: createUser, Key: testKey})
		}()
		time.Sleep(time.Second / 2) //nolint:forbidigo // the clock of a synctest bubble
		leave()
		time.Sleep(2 * lease) //nolint:forbidigo // the clock of a synctest bubble
		require.Equal(t, ratelimitclient.CodeInFlight, run.post(request{Query: createUser, Key: testKey}).errorCode(t))
		<-done
		require.EqualValues(t, 1, run.resolver.Created.Load())
	})
}

// panicsAfterwards is an extension that breaks when the resolvers have run.
type panicsAfterwards struct{}

func (panicsAfterwards) ExtensionName() string                   { return "PanicsAfterwards" }
func (panicsAfterwards) Validate(graphql.ExecutableSchema) error { return nil }
func (panicsAfterwards) InterceptResponse(ctx context.Context, next graphql.ResponseHandler) *graphql.Response {
	next(ctx)
	panic("broken")
}

func TestAMutationThatRanBeforeAPanicDoesNotRunAgain(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	f.server.Use(panicsAfterwards{})
	f.server.SetRecoverFunc(func(_ context.Context, cause any) error { return fmt.Errorf("recovered: %v", cause) })
	f.post(request{Query: createUser, Key: testKey})
	f.clock.Advance(time.Hour)
	again := f.post(request{Query: createUser, Key: testKey})
	require.Contains(t, again.Body, `"recovered: broken"`, "the answer of the key is what has come of it")
	require.Equal(t, true, again.rateLimit(t)["replayed"])
	require.EqualValues(t, 1, f.resolver.Created.Load())
}

// moreToCome says of every response that another part follows it, as @defer does. gqlgen itself defers
// nothing in mutations.
type moreToCome struct{}

func (moreToCome) ExtensionName() string                   { return "MoreToCome" }
func (moreToCome) Validate(graphql.ExecutableSchema) error { return nil }
func (moreToCome) InterceptResponse(ctx context.Context, next graphql.ResponseHandler) *graphql.Response {
	response := next(ctx)
	more := true
	response.HasNext = &more
	return response
}

func TestAnAnswerInPartsIsNotStored(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	f.server.Use(moreToCome{})
	f.post(request{Query: createUser, Key: testKey})
	require.Equal(t, ratelimitclient.CodeAnswerUnavailable, f.post(request{Query: createUser, Key: testKey}).errorCode(t))
	require.EqualValues(t, 1, f.resolver.Created.Load())
}

func TestAStoredAnswerThatCannotBeReadIsNotAnswered(t *testing.T) {
	t.Parallel()
	store := &faultyStore{Store: ratelimittest.NewStore(nil)}
	garbage := "not what this version writes"
	store.answer.Store(&garbage)
	run := newInProcess(t, store, nil)
	run.post(request{Query: createUser, Key: testKey})
	require.Equal(t, ratelimitclient.CodeAnswerUnavailable, run.post(request{Query: createUser, Key: testKey}).errorCode(t))
	require.EqualValues(t, 1, run.resolver.Created.Load())
}

func TestAKeyOnASubscriptionIsIgnored(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	for range 2 {
		reply := f.sse(request{Query: `subscription { ticks(count: 1) }`, Key: testKey})
		require.Contains(t, reply.Body, `"charged":13`)
	}
}

func TestAnExemptTenantHasKeys(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(cfg *ratelimit.Config) {
		cfg.Subject = func(context.Context, *ratelimit.Request) (ratelimit.Subject, error) {
			return ratelimit.Subject{Tenant: "internal", Exempt: true}, nil
		}
	})
	f.post(request{Query: createUser, Key: testKey})
	again := f.post(request{Query: createUser, Key: testKey})
	require.Equal(t, "true", again.Header.Get("Idempotent-Replayed"))
	require.EqualValues(t, 1, f.resolver.Created.Load())
	require.Equal(t, http.StatusOK, f.post(request{Query: listQuery}).Status)
}

// TestUploadsCannotBeKeyed sends one file where a list is asked for, which coercion turns into a slice.
func TestUploadsCannotBeKeyed(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	for _, field := range [][2]string{
		{"operations", `{"query": "mutation($f: [Upload!]!) { attach(files: $f) }", "variables": {"f": null}}`},
		{"map", `{"0": ["variables.f"]}`},
	} {
		require.NoError(t, form.WriteField(field[0], field[1]))
	}
	file, err := form.CreateFormFile("0", "a.txt")
	require.NoError(t, err)
	_, err = file.Write([]byte("content"))
	require.NoError(t, err)
	require.NoError(t, form.Close())
	refused := f.exchange(http.MethodPost, f.url, request{Key: testKey}, "application/json", form.FormDataContentType(), &body)
	require.Equal(t, http.StatusBadRequest, refused.Status)
	require.Equal(t, ratelimitclient.CodeKeyInvalid, refused.errorCode(t))
	require.Contains(t, refused.Body, "it cannot be used with file uploads")
	require.Zero(t, f.resolver.Created.Load())
	require.Empty(t, f.store.Takes())
}

func TestACallThatWasWrongInItselfOpensNoGate(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	f.store.Fail(bucket.ErrInvalid)
	require.Equal(t, http.StatusServiceUnavailable, f.post(request{Query: cheapQuery}).Status)
}
