package claims_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
	"github.com/gqlgen-ratelimit/ratelimit/internal/claims"
)

const lease = 30 * time.Second

// answering is a store that answers what it is told to.
type answering struct {
	mu       sync.Mutex
	renewals int
	// held is what renewals are answered.
	held     bool
	renewErr error
	// settles are the answers to settlements, of which the last is repeated.
	settles []error
	applied bool
	settled []bucket.Settlement
}

func (s *answering) Renew(context.Context, string, *idempotency.Claim) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.renewals++
	return s.held, s.renewErr
}

func (s *answering) Settle(_ context.Context, settlement bucket.Settlement) (bucket.Settled, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.settles[min(len(s.settled), len(s.settles)-1)]
	s.settled = append(s.settled, settlement)
	return bucket.Settled{Applied: s.applied && err == nil}, err
}

// operation is one that holds a claim.
type operation struct {
	ran   bool
	room  bool
	tries int
	err   error
}

func (o *operation) Ran(*graphql.Response) bool { return o.ran }
func (o *operation) Account(ran bool) bucket.Settlement {
	if ran {
		return bucket.Settlement{}
	}
	return bucket.Settlement{Actual: bucket.Amounts{{Unit: bucket.Points}}}
}
func (o *operation) KeepAnswer(context.Context, int64) bool { return o.room }
func (o *operation) Settled(_ context.Context, _ *bucket.Settled, tries int, err error) {
	o.tries, o.err = tries, err
}

// hold runs a mutation that holds a claim for so long, and returns what was logged.
func hold(t *testing.T, store *answering, op *operation, runs time.Duration) string {
	t.Helper()
	return holdKind(t, store, op, runs, true, graphql.Response{Data: json.RawMessage(`{"a":1}`)})
}

func holdKind(t *testing.T, store *answering, op *operation, runs time.Duration, mutation bool, response graphql.Response) string {
	t.Helper()
	log := &bytes.Buffer{}
	keeper := claims.New(claims.Config{MaxAnswer: 1000, Logger: slog.New(slog.NewTextHandler(log, nil))})
	held := &claims.Held{
		Claim: &idempotency.Claim{Subject: "a", Key: "0f8fad5b", Lease: lease}, Tenant: "acme", Mutation: mutation, Store: store, Operation: op,
	}
	handler := keeper.Hold(t.Context(), held, func(context.Context) graphql.ResponseHandler {
		return func(context.Context) *graphql.Response {
			time.Sleep(runs) //nolint:forbidigo // the clock of a synctest bubble
			return &response
		}
	})
	require.NotNil(t, handler(t.Context()))
	synctest.Wait()
	return log.String()
}

func TestALostReplyToASettlementIsAskedForAgainAndIsNoSecondEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &answering{settles: []error{bucket.ErrAmbiguous, nil}}
		op := &operation{ran: true, room: true}
		require.Empty(t, hold(t, store, op, 0), "the first may have settled it")
		require.Equal(t, 2, op.tries)
		require.NoError(t, op.err)
		require.Equal(t, store.settled[0], store.settled[1])
		require.Equal(t, idempotency.Done, store.settled[0].Claim.Outcome)
		require.NotEmpty(t, store.settled[0].Claim.Answer)
	})
}

func TestAClaimThatCannotBeSettledIsLeftToItsLeaseAfterFourTries(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, op := &answering{settles: []error{bucket.ErrUnavailable}}, &operation{ran: true, room: true}
		require.Contains(t, hold(t, store, op, 0), "a claim could not be settled: until its lease ends")
		require.Equal(t, 4, op.tries)
		require.ErrorIs(t, op.err, bucket.ErrUnavailable)
	})
}

func TestAnOperationThatEndsWithoutItsClaimIsLogged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, op := &answering{settles: []error{nil}}, &operation{ran: true, room: true}
		require.Contains(t, hold(t, store, op, 0), "an operation ended without its claim")
	})
}

func TestAClaimUnderWhichNothingRanIsReleased(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, op := &answering{settles: []error{nil}, applied: true}, &operation{}
		require.Empty(t, hold(t, store, op, 0))
		require.Equal(t, idempotency.Released, store.settled[0].Claim.Outcome)
		require.Empty(t, store.settled[0].Claim.Answer)
		require.Equal(t, bucket.Amounts{{Unit: bucket.Points}}, store.settled[0].Actual)
	})
}

func TestAnAnswerForWhichThereIsNoRoomIsNotKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, op := &answering{settles: []error{nil}, applied: true}, &operation{ran: true}
		require.Empty(t, hold(t, store, op, 0))
		require.Equal(t, idempotency.Done, store.settled[0].Claim.Outcome)
		require.Empty(t, store.settled[0].Claim.Answer)
	})
}

func TestTheAnswerOfAQueryIsKeptUnlessItHasErrorsOrComesInParts(t *testing.T) {
	t.Parallel()
	data, more := json.RawMessage(`{"a":1}`), true
	for name, c := range map[string]struct {
		response        graphql.Response
		query, mutation bool
	}{
		"data":        {graphql.Response{Data: data}, true, true},
		"with errors": {graphql.Response{Data: data, Errors: gqlerror.List{{Message: "b"}}}, false, true},
		"in parts":    {graphql.Response{Data: data, HasNext: &more}, false, false},
	} {
		for mutation, kept := range map[bool]bool{false: c.query, true: c.mutation} {
			t.Run(fmt.Sprint(name, ", mutation ", mutation), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					store := &answering{settles: []error{nil}, applied: true}
					holdKind(t, store, &operation{ran: true, room: true}, 0, mutation, c.response)
					require.Equal(t, idempotency.Done, store.settled[0].Claim.Outcome)
					require.Equal(t, kept, store.settled[0].Claim.Answer != nil)
				})
			})
		}
	}
}

// lostAnswers is a store of answers that is away, and knows for how long each was to be kept.
type lostAnswers struct{ puts []time.Duration }

func (l *lostAnswers) Put(_ context.Context, _ string, _ []byte, ttl time.Duration) error {
	l.puts = append(l.puts, ttl)
	return bucket.ErrUnavailable
}

func (*lostAnswers) Get(context.Context, string) ([]byte, error) { return nil, bucket.ErrUnavailable }

func TestAQueryWaitsForOneTryToStoreItsAnswerAndAMutationForFour(t *testing.T) {
	t.Parallel()
	for mutation, tries := range map[bool]int{false: 1, true: 4} {
		synctest.Test(t, func(t *testing.T) {
			answers, store := &lostAnswers{}, &answering{settles: []error{nil}, applied: true}
			keeper := claims.New(claims.Config{MaxAnswer: 1000, Answers: answers, Logger: slog.New(slog.DiscardHandler)})
			handler := keeper.Hold(t.Context(), &claims.Held{
				Claim: &idempotency.Claim{Lease: lease, TTL: time.Hour}, Mutation: mutation, Store: store, Operation: &operation{ran: true, room: true},
			}, func(context.Context) graphql.ResponseHandler {
				return graphql.OneShot(&graphql.Response{Data: json.RawMessage(`{"a":1}`)})
			})
			require.NotNil(t, handler(t.Context()))
			require.Equal(t, slices.Repeat([]time.Duration{time.Hour}, tries), answers.puts, "for as long as its record")
			require.Nil(t, store.settled[0].Claim.Answer)
		})
	}
}

func TestALeaseIsRenewedThreeTimesInItsTimeWhileTheOperationRunsAndNoLonger(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		held bool
		err  error
		want int
	}{
		"the claim is held":          {held: true, want: 6},
		"the reply is lost":          {err: bucket.ErrAmbiguous, want: 6},
		"another attempt has it now": {want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store := &answering{held: c.held, renewErr: c.err, settles: []error{nil}, applied: true}
				hold(t, store, &operation{ran: true}, 2*lease+time.Second)
				time.Sleep(10 * lease) //nolint:forbidigo // the clock of a synctest bubble
				store.mu.Lock()
				defer store.mu.Unlock()
				require.Equal(t, c.want, store.renewals)
			})
		})
	}
}

func TestAPanicBeforeTheOperationIsSettledAsWhatItLeft(t *testing.T) {
	t.Parallel()
	store, op := &answering{settles: []error{nil}, applied: true}, &operation{}
	keeper := claims.New(claims.Config{Logger: slog.New(slog.DiscardHandler)})
	require.Panics(t, func() {
		keeper.Hold(t.Context(), &claims.Held{Claim: &idempotency.Claim{Lease: lease}, Store: store, Operation: op},
			func(context.Context) graphql.ResponseHandler { panic("broken") })
	})
	require.Equal(t, idempotency.Released, store.settled[0].Claim.Outcome)
}

func TestWaitReturnsWhenNoOperationRunsUnderAClaimOrItsContextEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		keeper := claims.New(claims.Config{Logger: slog.New(slog.DiscardHandler)})
		require.NoError(t, keeper.Wait(t.Context()))
		store := &answering{held: true, settles: []error{nil}, applied: true}
		handler := keeper.Hold(t.Context(), &claims.Held{Claim: &idempotency.Claim{Lease: lease}, Store: store, Operation: &operation{ran: true}},
			func(context.Context) graphql.ResponseHandler {
				return func(context.Context) *graphql.Response {
					time.Sleep(time.Minute) //nolint:forbidigo // the clock of a synctest bubble
					return nil
				}
			})
		go handler(t.Context())
		synctest.Wait()
		soon, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, keeper.Wait(soon), context.DeadlineExceeded)
		require.NoError(t, keeper.Wait(t.Context()))
		require.Len(t, store.settled, 1)
	})
}
