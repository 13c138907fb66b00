package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimittest"
	"github.com/gqlgen-ratelimit/ratelimit/throttle"
)

// shedPolicy has a tier for each way in which the throttle acts.
const shedPolicy = `
version: 1
default: free
tiers:
  free: {limits: {minute: {capacity: 10000, per: minute}}}
  shadowed: {mode: shadow, limits: {minute: {capacity: 10000, per: minute}}}
  spared: {limits: {minute: {capacity: 10000, per: minute}}, throttle: {acts: none}}
  floor: {limits: {minute: {capacity: 10000, per: minute}}, throttle: {floor: 100}}
  later: {limits: {minute: {capacity: 10000, per: minute}}, throttle: {order: 2}}
tenants:
  shadowed: {tier: shadowed}
  spared: {tier: spared}
  floor: {tier: floor}
  later: {tier: later}
`

// fixedCentre answers every report with the same share. Its methods may be called by several goroutines.
//
// By its clock each report comes one beat after the one before, however late it is on a busy machine. Reports have rates per beat: an operation
// that begins in one beat and ends in a longer one would count less as completed than as admitted, for ever.
type fixedCentre struct {
	clock ratelimittest.Clock
	share throttle.Share
	// told receives each report, if it is set before the throttle runs.
	told func(throttle.Report)

	mu   sync.Mutex
	sums throttle.Report
}

func (d *fixedCentre) Exchange(_ context.Context, r throttle.Report) (throttle.Share, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.clock.Advance(throttle.Beat)
	if d.told != nil {
		d.told(r)
	}
	d.sums.Admitted += r.Admitted
	d.sums.Completed += r.Completed
	d.sums.Offered[0] += r.Offered[0]
	d.sums.Pressure = max(d.sums.Pressure, r.Pressure)
	return d.share, nil
}

func (d *fixedCentre) Leave(context.Context, string) error { return nil }

// seen is what was reported, added up.
func (d *fixedCentre) seen() throttle.Report {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.sums
}

// shedding is a server with a throttle.
type shedding struct {
	*fixture
	instruments

	centre   *fixedCentre
	throttle *throttle.Throttle
	observer *event.Channel
}

// newShedding starts a server of which the first place in the order is shed to its floor.
func newShedding(t *testing.T) *shedding {
	t.Helper()
	return newThrottled(t, 0.9, nil)
}

// newAdmitting starts a server that sheds nothing. configure may change what it wants, and outer extensions are used before the one under test.
func newAdmitting(t *testing.T, configure func(*throttle.Config, *ratelimit.Config), outer ...graphql.HandlerExtension) *shedding {
	t.Helper()
	return newThrottled(t, 0, configure, outer...)
}

// newThrottled starts a server that sheds a share.
func newThrottled(t *testing.T, share float64, configure func(*throttle.Config, *ratelimit.Config), outer ...graphql.HandlerExtension) *shedding {
	t.Helper()
	s := &shedding{instruments: instruments{t: t}, observer: event.NewChannel(1000)}
	s.centre = &fixedCentre{share: throttle.Share{Shed: share, Room: [throttle.Orders]float64{0.9}, Instances: 1, Fresh: 1, Pressure: 2}}
	cfg := throttle.Config{
		Centre: s.centre, Clock: s.centre.clock.Now, Processor: throttle.None, Memory: throttle.None, Logger: slog.New(slog.DiscardHandler),
	}
	s.fixture = newFixtureWithin(t, func(c *ratelimit.Config) {
		s.configure(c)
		c.Policy, c.Observe.Observer = policyOf(t, shedPolicy), s.observer
		if configure != nil {
			configure(&cfg, c)
		}
		var err error
		s.throttle, err = throttle.New(cfg)
		require.NoError(t, err)
		c.Throttle.Throttle = s.throttle
	}, outer...)
	ended := make(chan error, 1)
	go func() { ended <- s.throttle.Run(context.WithoutCancel(t.Context())) }()
	t.Cleanup(func() {
		require.NoError(t, s.throttle.Shutdown(context.Background()))
		require.NoError(t, <-ended)
	})
	return s
}

// until sends a request until it is answered as wanted.
func (s *shedding) until(r request, is func(reply) bool) reply {
	s.fixture.t.Helper()
	var answer reply
	require.Eventually(s.fixture.t, func() bool {
		answer = s.post(r)
		return is(answer)
	}, redistest.Patience, 5*time.Millisecond)
	return answer
}

func refused(r reply) bool { return r.Status == http.StatusServiceUnavailable }

func TestWhatIsShedIsOverloadedAndChargesNothing(t *testing.T) {
	t.Parallel()
	s := newShedding(t)
	answer := s.until(request{Query: half}, refused)
	takes := len(s.store.Takes())
	require.Equal(t, ratelimitclient.CodeOverloaded, answer.errorCode(t))
	require.Contains(t, []string{"1", "2", "3", "4"}, answer.Header.Get("Retry-After"))
	require.Equal(t, "the server has more to do than it can: nothing was run, try again later", answer.message(t))
	facts := answer.rateLimit(t)
	require.EqualValues(t, 0, facts["charged"])
	require.EqualValues(t, 22, facts["cost"])
	require.Positive(t, facts["retryAfter"])
	require.NotContains(t, facts, "storeUnavailable")
	for answer.Status != http.StatusOK {
		require.Len(t, s.store.Takes(), takes, "no store is asked")
		answer = s.post(request{Query: half})
	}
	require.EqualValues(t, 22, answer.rateLimit(t)["charged"])
	require.Positive(t, s.sums("ratelimit.decisions", "ratelimit.outcome")["shed"])
	for {
		if decided, is := (<-s.observer.Events()).(event.Decided); is {
			require.Equal(t, "shed", decided.Outcome)
			require.Equal(t, ratelimitclient.CodeOverloaded, decided.Code)
			require.Positive(t, decided.RetryAfter)
			break
		}
	}
}

func TestTheShareThatIsShedIsInTheRefusal(t *testing.T) {
	t.Parallel()
	s := newShedding(t)
	found := make(chan *ratelimit.RefusedError, 100)
	s.server.SetErrorPresenter(func(ctx context.Context, err error) *gqlerror.Error {
		if refusal := new(ratelimit.RefusedError); errors.As(err, &refusal) {
			found <- refusal
		}
		return graphql.DefaultErrorPresenter(ctx, err)
	})
	s.until(request{Query: half}, refused)
	refusal := <-found
	require.Equal(t, ratelimit.OutcomeShed, refusal.Outcome)
	require.InDelta(t, 0.9, refusal.ShedShare, 0.01)
	require.Equal(t, http.StatusServiceUnavailable, refusal.Status)
	status := s.throttle.Status()
	require.InDelta(t, 0.9, status.Shed, 0.01)
	require.InDelta(t, 1, status.Depth[0], 0.01)
}

func TestOnlyTiersThatEnforceAndTakePartAreShed(t *testing.T) {
	t.Parallel()
	s := newShedding(t)
	// All of them are known for the same time: whoever has not asked before is shed last.
	for shed := 0; shed < 30; {
		for _, tenant := range []string{"shadowed", "spared", "floor", "later"} {
			require.Equal(t, http.StatusOK, s.post(request{Query: `{ __typename }`, Tenant: tenant}).Status, tenant)
		}
		if refused(s.post(request{Query: `{ __typename }`})) {
			shed++
		}
	}
}

func TestAMutationThatIsShedKeepsItsKeyForAnotherTry(t *testing.T) {
	t.Parallel()
	s := newShedding(t)
	s.until(request{Query: half}, refused)
	mutation := request{Query: `mutation { createUser(input: {name: "a"}) { name } }`, Key: "key-of-a-mutation-1"}
	s.until(mutation, func(r reply) bool { return r.Status == http.StatusOK })
	s.until(mutation, func(r reply) bool {
		return r.Status == http.StatusOK && r.rateLimit(t)["replayed"] == true
	})
}

func TestTheThrottleLearnsWhatOperationsTakeAndWhetherTheyFail(t *testing.T) {
	t.Parallel()
	s := newAdmitting(t, func(cfg *throttle.Config, c *ratelimit.Config) {
		cfg.Errors = 0.5
		c.Throttle.Failed = func(r *graphql.Response) bool {
			if len(r.Data) > 1<<20 {
				panic("too large")
			}
			return true
		}
	})
	// Three tenants say something, and a pressure is that of more beats than one.
	asked := 0
	require.Eventually(t, func() bool {
		asked++
		require.Equal(t, http.StatusOK, s.post(request{Query: `{ __typename }`, Tenant: fmt.Sprint("tenant", asked%20)}).Status)
		r := s.centre.seen()
		return r.Admitted > 0 && r.Completed > 0 && r.Offered[0] > 0 && r.Pressure > 1.1
	}, redistest.Patience, 10*time.Millisecond)
}

func TestWhatLimitsRefuseAndWhatIsReplayedIsNoLoadForTheThrottle(t *testing.T) {
	t.Parallel()
	// No beat ends between an offer and its withdrawal: time stands still in the bubble while anything runs.
	synctest.Test(t, func(t *testing.T) {
		centre := &fixedCentre{}
		shedder, err := throttle.New(throttle.Config{Centre: centre, Processor: throttle.None, Memory: throttle.None, Logger: discard})
		require.NoError(t, err)
		run := newInProcess(t, ratelimittest.NewStore(nil), func(c *ratelimit.Config) {
			c.Policy, c.Throttle.Throttle = policyOf(t, shedPolicy), shedder
		})
		go func() { _ = shedder.Run(t.Context()) }()
		const never = `{ users(first: 20000) { name } }`
		for range 20 {
			require.Equal(t, ratelimitclient.CodeCostLimitExceeded, run.post(request{Query: never}).errorCode(t))
		}
		mutation := request{Query: `mutation { createUser(input: {name: "a"}) { name } }`, Key: "key-of-a-mutation-1"}
		paid := run.post(mutation)
		require.Equal(t, http.StatusOK, paid.Status)
		for range 50 {
			require.Equal(t, true, run.post(mutation).rateLimit(t)["replayed"])
		}
		sleep(2 * throttle.Beat)
		require.Positive(t, centre.seen().Admitted)
		require.Positive(t, centre.seen().Offered[0])
		require.LessOrEqual(t, centre.seen().Offered[0], paid.rateLimit(t)["cost"], "one has run")
		require.NoError(t, shedder.Shutdown(context.Background()))
	})
}
