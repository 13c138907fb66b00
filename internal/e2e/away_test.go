package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimittest"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// absent is a server whose limits fail as the tier says, on a store that a test sends away, in a bubble in
// which time is the test's.
type absent struct {
	*inProcess
	*instruments
	store     *ratelimittest.Store
	extension *ratelimit.Extension
	mu        sync.Mutex
	told      []string
}

func newAbsent(t *testing.T, tier tiers.Tier, configure func(*ratelimit.Config)) *absent {
	t.Helper()
	a := &absent{store: ratelimittest.NewStore(nil), instruments: &instruments{t: t}}
	if tier.Limits == nil {
		tier.Limits = map[string]*tiers.Limit{"minute": {Capacity: 100, Per: tiers.Minute}}
	}
	policy, err := tiers.Compile(tiers.Policy{Default: "free", Tiers: map[string]tiers.Tier{"free": tier}})
	require.NoError(t, err)
	a.inProcess = newInProcess(t, a.store, func(cfg *ratelimit.Config) {
		a.configure(cfg)
		cfg.Policy = policy
		cfg.Outage = ratelimit.OutageConfig{Instances: 1}
		cfg.Observe.Thresholds = []float64{}
		cfg.Observe.Observer = event.Func(func(_ context.Context, e event.Event) {
			if _, decision := e.(event.Decided); decision {
				return
			}
			a.mu.Lock()
			defer a.mu.Unlock()
			a.told = append(a.told, e.Name()+" "+e.LogValue().String())
		})
		if configure != nil {
			configure(cfg)
		}
	})
	a.extension = a.inProcess.extension
	return a
}

func (a *absent) events() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	told := a.told
	a.told = nil
	return told
}

func TestALimitThatFailsLocalIsJudgedByTheShareOfTheInstance(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAbsent(t, tiers.Tier{FailMode: "local"}, nil)
		post := func(query string) reply { return a.post(request{Query: query}) }
		require.Equal(t, http.StatusOK, post(half).Status)
		a.store.Fail(bucket.ErrUnavailable)

		// 78 are left, of which 0.7 are the share of the only instance.
		for _, left := range []int{54 - 22, 54 - 44} {
			admitted := post(half)
			require.Equal(t, http.StatusOK, admitted.Status)
			facts := admitted.rateLimit(t)
			require.Equal(t, true, facts["storeUnavailable"])
			require.EqualValues(t, 22, facts["charged"])
			require.EqualValues(t, 100, facts["capacity"])
			require.EqualValues(t, left, facts["remaining"])
		}
		refused := post(half)
		require.Equal(t, http.StatusTooManyRequests, refused.Status)
		require.Equal(t, ratelimitclient.CodeRateLimited, refused.errorCode(t))
		require.Equal(t, "11", refused.Header.Get("Retry-After"), "12 points are missing, of which 70 come back a minute")
		tooDear := post(`{ users(first: 80) { name } }`)
		require.Equal(t, http.StatusServiceUnavailable, tooDear.Status, "82 exceed the share, and not the limit")
		require.Equal(t, ratelimitclient.CodeUnavailable, tooDear.errorCode(t))
		require.Equal(t, []string{"store_away [result=unavailable]"}, a.events())

		time.Sleep(3 * time.Second) //nolint:forbidigo // the clock of a synctest bubble
		a.store.Fail(nil)
		require.Equal(t, http.StatusOK, post(half).Status)
		require.EqualValues(t, 100-66-22+5, post(`{ __typename }`).rateLimit(t)["remaining"], "5 came back, and the share was settled")
		require.Equal(t, []string{
			"store_back [away=3s unjudged=[operations=0 points=0] refused=[operations=1 points=82] " +
				"admittedLocally=[operations=2 points=44] limitedLocally=[operations=1 points=22]]",
		}, a.events())
		require.Equal(t, map[string]float64{"admitted": 3, "admitted_locally": 2, "limited_locally": 1, "unavailable": 1},
			a.sums("ratelimit.decisions", "ratelimit.outcome"))
		require.Equal(t, map[string]float64{"admitted_locally": 44, "limited_locally": 22, "unavailable": 82},
			a.sums("ratelimit.store.away.points", "ratelimit.outcome"))
		require.Equal(t, map[string]float64{"minute": 44}, a.sums("ratelimit.local.settled", "ratelimit.limit"))
	})
}

func TestStrictestFailModeDecides(t *testing.T) {
	t.Parallel()
	limit := func(failMode string) *tiers.Limit {
		return &tiers.Limit{Capacity: 100, Per: tiers.Minute, FailMode: failMode}
	}
	for name, test := range map[string]struct {
		limits map[string]*tiers.Limit
		want   ratelimit.Outcome
	}{
		"open":              {map[string]*tiers.Limit{"a": limit("open")}, ratelimit.OutcomeUnjudged},
		"bounded":           {map[string]*tiers.Limit{"a": limit("bounded")}, ratelimit.OutcomeAdmittedLocally},
		"bounded and open":  {map[string]*tiers.Limit{"a": limit("bounded"), "b": limit("open")}, ratelimit.OutcomeAdmittedLocally},
		"local and bounded": {map[string]*tiers.Limit{"a": limit("bounded"), "b": limit("local")}, ratelimit.OutcomeAdmittedLocally},
		"all":               {map[string]*tiers.Limit{"a": limit("bounded"), "b": limit("local"), "c": limit("closed")}, ratelimit.OutcomeUnavailable},
		"open in shadow": {map[string]*tiers.Limit{
			"a": limit("open"), "b": {Capacity: 100, Per: tiers.Minute, FailMode: "bounded", Mode: "shadow"},
		}, ratelimit.OutcomeUnjudged},
		"closed in shadow": {map[string]*tiers.Limit{
			"a": limit("local"), "b": {Capacity: 100, Per: tiers.Minute, FailMode: "closed", Mode: "shadow"},
		}, ratelimit.OutcomeAdmittedLocally},
	} {
		var last ratelimit.Outcome
		a := newAbsent(t, tiers.Tier{Limits: test.limits}, nil)
		see(a.server, func(d ratelimit.Decision) { last = d.Outcome })
		a.post(request{Query: half})
		a.store.Fail(bucket.ErrAmbiguous)
		a.post(request{Query: half})
		require.Equal(t, test.want, last, name)
	}
}

func TestAChargeIsJudgedByTheShareOfTheInstance(t *testing.T) {
	t.Parallel()
	a := newAbsent(t, tiers.Tier{FailMode: "local", Limits: map[string]*tiers.Limit{
		"exports": {Unit: "exports", Capacity: 10, Per: tiers.Hour},
	}}, nil)
	var errs []error
	a.resolver.OnExport = func(ctx context.Context, rows int) error {
		errs = append(errs, ratelimit.Charge(ctx, "exports", int64(rows)))
		return nil
	}
	export := func(rows int) reply { return a.post(request{Query: fmt.Sprintf(`{ export(rows: %d) }`, rows)}) }
	export(1)
	a.store.Fail(bucket.ErrUnavailable)
	require.EqualValues(t, 1, export(5).rateLimit(t)["remaining"], "0.7 of the 9 that were left, less 5")
	export(2)
	export(8)
	require.NoError(t, errs[0])
	require.NoError(t, errs[1])
	require.ErrorContains(t, errs[2], "exceeded")
	require.ErrorContains(t, errs[3], "temporarily unavailable")
	a.store.Fail(nil)
	export(1)
	require.EqualValues(t, 10-1-5-1, export(0).rateLimit(t)["remaining"])
	require.Equal(t, map[string]float64{"admitted": 2, "admitted_locally": 1, "limited_locally": 1, "unavailable": 1},
		a.sums("ratelimit.charges", "ratelimit.outcome"))
}

func TestAKeyedMutationIsRefusedAlsoWhereALimitFailsLocal(t *testing.T) {
	t.Parallel()
	a := newAbsent(t, tiers.Tier{FailMode: "local"}, nil)
	a.post(request{Query: createUser})
	a.store.Fail(bucket.ErrUnavailable)
	require.Equal(t, ratelimitclient.CodeUnavailable, a.post(request{Query: createUser, Key: testKey}).errorCode(t))
	require.Empty(t, a.post(request{Query: createUser}).errorCode(t))
}

func TestRunCountsAndSettlesWithoutRequestsUntilItsContextEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAbsent(t, tiers.Tier{FailMode: "local"}, func(cfg *ratelimit.Config) { cfg.Outage.Instances = 0 })
		other := [8]byte{1}
		_, _, err := a.store.Beat(t.Context(), other)
		require.NoError(t, err)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			a.extension.Run(ctx)
		}()
		time.Sleep(8 * time.Second) //nolint:forbidigo // the clock of a synctest bubble
		require.Equal(t, http.StatusOK, a.post(request{Query: `{ __typename }`}).Status)
		a.store.Fail(bucket.ErrUnavailable)
		require.EqualValues(t, 35-22, a.post(request{Query: half}).rateLimit(t)["remaining"], "0.7 of the limit for two instances")
		time.Sleep(10 * time.Second) //nolint:forbidigo // the clock of a synctest bubble
		require.Empty(t, applied(a.store))
		a.store.Fail(nil)
		time.Sleep(2 * time.Second) //nolint:forbidigo // the clock of a synctest bubble
		require.Equal(t, []int64{22}, applied(a.store))

		require.Equal(t, http.StatusOK, a.post(request{Query: `{ __typename }`}).Status)
		a.store.Fail(bucket.ErrUnavailable)
		a.post(request{Query: `{ users(first: 1) { name } }`})
		a.store.Fail(nil)
		stop()
		<-done
		require.Equal(t, []int64{22}, applied(a.store))
		require.NoError(t, a.extension.Shutdown(t.Context()))
		require.Equal(t, []int64{22, 3}, applied(a.store), "what is left is settled at last")
	})
}

// applied is what the store was charged with by settlements.
func applied(store *ratelimittest.Store) []int64 {
	var charged []int64
	for _, s := range store.Settlements() {
		if s.Settled.Applied {
			charged = append(charged, s.Settled.Limits[0].Charged)
		}
	}
	return charged
}

func TestWhomTheStoreHasBlockedIsRefusedWhileItIsAway(t *testing.T) {
	t.Parallel()
	var last ratelimit.Decision
	a := newAbsent(t, tiers.Tier{FailMode: "local"}, nil)
	see(a.server, func(d ratelimit.Decision) { last = d })
	_, err := a.store.SetOverride(t.Context(), "free", bucket.Override{Blocked: true, Reason: "abuse", Actor: "ops"})
	require.NoError(t, err)
	a.post(request{Query: half})
	require.Equal(t, ratelimit.OutcomeBlocked, last.Outcome)
	a.store.Fail(bucket.ErrUnavailable)
	a.post(request{Query: half})
	require.Equal(t, ratelimit.OutcomeBlocked, last.Outcome)
	require.ErrorIs(t, last.StoreErr, bucket.ErrUnavailable)
}

func TestTheStoreAdmitsNothingBeforeItKnowsWhatTheTenantWasAdmittedHere(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAbsent(t, tiers.Tier{FailMode: "local"}, nil)
		a.post(request{Query: half})
		a.store.Fail(bucket.ErrUnavailable)
		a.post(request{Query: half})
		require.EqualValues(t, 10, a.post(request{Query: half}).rateLimit(t)["remaining"])
		a.store.Fail(nil)
		require.Equal(t, http.StatusTooManyRequests, a.post(request{Query: `{ users(first: 50) { name } }`}).Status,
			"78 were left when the store went, and 44 were admitted since")
		require.Equal(t, []int64{44}, applied(a.store))
	})
}

// failsSome is a store of which every third settlement fails while it is set.
type failsSome struct {
	*ratelimittest.Store
	failing atomic.Bool
	calls   atomic.Int64
}

func (s *failsSome) Settle(ctx context.Context, settlement bucket.Settlement) (bucket.Settled, error) {
	if s.failing.Load() && s.calls.Add(1)%3 == 0 {
		return bucket.Settled{}, bucket.ErrUnavailable
	}
	return s.Store.Settle(ctx, settlement)
}

func TestShutdownSettlesAllThatItCanThoughSomeOfItFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const tenants = 250
		var store *failsSome
		number := 0
		a := newAbsent(t, tiers.Tier{FailMode: "local"}, func(cfg *ratelimit.Config) {
			store = &failsSome{Store: cfg.Store.(*ratelimittest.Store)}
			cfg.Store = store
			cfg.Subject = func(context.Context, *ratelimit.Request) (ratelimit.Subject, error) {
				number++
				return ratelimit.Subject{Tenant: fmt.Sprint("tenant", number)}, nil
			}
		})
		for range tenants {
			a.post(request{Query: `{ __typename }`})
		}
		a.store.Fail(bucket.ErrUnavailable)
		number = 0
		for range tenants {
			a.post(request{Query: half})
		}
		a.store.Fail(nil)
		store.failing.Store(true)
		require.NoError(t, a.extension.Shutdown(t.Context()))
		require.Len(t, applied(a.store), tenants)
	})
}

// contradicting refuses each take of a tenant and names no limit that does. Of what all share the tenant is empty.
type contradicting struct {
	bucket.Store
	tenant  string
	verdict bucket.Verdict
}

func (s contradicting) Take(ctx context.Context, take bucket.Take) (bucket.Result, error) {
	result, err := s.Store.Take(ctx, take)
	if take.Tenant == s.tenant {
		result.Verdict = s.verdict
	}
	return result, err
}

func TestARefusalWithoutALimitRunsNothing(t *testing.T) {
	t.Parallel()
	for _, verdict := range []bucket.Verdict{bucket.Limited, bucket.Never} {
		for what, tenant := range map[string]string{"of the tenant": "free", "of what all share": ""} {
			t.Run(fmt.Sprint(verdict, " ", what), func(t *testing.T) {
				t.Parallel()
				f := newFixtureUnder(t, fmt.Sprintf(perAccount, ""), func(cfg *ratelimit.Config) {
					cfg.Store = contradicting{cfg.Store, tenant, verdict}
				})
				require.Equal(t, ratelimitclient.CodeUnavailable, f.post(request{Query: logIn("victim"), Tenant: "free"}).errorCode(t))
				require.Zero(t, f.resolver.Created.Load())
			})
		}
		t.Run(fmt.Sprint(verdict, " of a charge"), func(t *testing.T) {
			t.Parallel()
			store := &contradicting{tenant: "free", verdict: bucket.Admitted}
			f := newFixture(t, func(cfg *ratelimit.Config) {
				store.Store = cfg.Store
				cfg.Store = store
			})
			f.resolver.OnExport = func(ctx context.Context, _ int) error {
				store.verdict = verdict
				return ratelimit.Charge(ctx, bucket.Points, 1)
			}
			require.Equal(t, ratelimitclient.CodeUnavailable, f.post(request{Query: `{ export(rows: 1) }`}).errorCode(t))
		})
	}
}
