package e2e_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimittest"
)

// perAccount is a log-in that bounds each account, whoever tries it: at a log-in each address is a tenant of its own.
const perAccount = `
    operations:
      Mutation.createUser:
        limits:
          mine: {capacity: 3, per: minute, unit: requests}
          account: {capacity: 5, per: hour, unit: requests, by: input.name, across: true%s}
`

func newLogIn(t *testing.T, more string) *fixture {
	t.Helper()
	return newFixtureUnder(t, fmt.Sprintf(perAccount, more))
}

// shared returns the takes from budgets that all tenants share.
func (f *fixture) shared() (takes []ratelimittest.Take) {
	for _, take := range f.store.Takes() {
		if take.Tenant == "" {
			takes = append(takes, take)
		}
	}
	return takes
}

// attempts returns how often an account can still be tried, by the last take that was about it.
func (f *fixture) attempts() int64 {
	f.t.Helper()
	takes := f.shared()
	require.NotEmpty(f.t, takes)
	return f.left("", takes[len(takes)-1].Buckets[0])[0]
}

func TestAnAccountThatIsAttackedFromManyAddressesIsBounded(t *testing.T) {
	t.Parallel()
	f := newLogIn(t, "")
	tried := 0
	for i, spelling := range []string{"victim", "Victim", " victim ", "VICTIM"} {
		for j := range 50 {
			r := f.post(request{Query: logIn(spelling), Tenant: fmt.Sprintf("192.0.2.%d", 50*i+j)})
			if r.Status == http.StatusOK {
				tried++
				continue
			}
			require.Equal(t, http.StatusTooManyRequests, r.Status, r.Body)
			require.Contains(t, r.Body, `"account\" of this operation exceeded`)
			require.NotContains(t, strings.ToLower(r.Body+fmt.Sprint(r.Header)), "victim")
		}
	}
	require.Equal(t, 5, tried)
	require.EqualValues(t, 5, f.resolver.Created.Load())
	require.Equal(t, http.StatusOK, f.post(request{Query: logIn("somebody else"), Tenant: "192.0.2.1"}).Status, "other accounts are free")
	f.clock.Advance(12 * time.Minute)
	require.Equal(t, http.StatusOK, f.post(request{Query: logIn("victim"), Tenant: "192.0.2.1"}).Status)

	for _, take := range f.shared() {
		for _, b := range take.Buckets {
			require.NotContains(t, strings.ToLower(b.Owner.Part), "victim", "no secret reaches a key")
		}
	}
}

func TestWhatIsLeftOfASharedBudgetIsShownToNobodyWhoIsAdmitted(t *testing.T) {
	t.Parallel()
	f := newLogIn(t, "")
	r := f.post(request{Query: logIn("victim"), Tenant: "a"})
	require.Equal(t, http.StatusOK, r.Status)
	require.NotContains(t, r.Body+fmt.Sprint(r.Header), "account")
}

func TestWhatTheTenantIsRefusedItGetsBackOfASharedBudget(t *testing.T) {
	t.Parallel()
	f := newLogIn(t, "")
	require.Equal(t, http.StatusOK, f.post(request{Query: logIn("x", "y", "z"), Tenant: "a"}).Status)
	refused := f.post(request{Query: logIn("victim", "victim"), Tenant: "a"})
	require.Equal(t, http.StatusTooManyRequests, refused.Status)
	require.Contains(t, refused.Body, `"mine\" of this operation`)
	require.NoError(t, f.limiter.AwaitSettled(t.Context()))
	require.EqualValues(t, 5, f.attempts(), "nobody has tried the account")
}

func TestWhoIsKnownToBeRefusedCostsSharedBudgetsNothing(t *testing.T) {
	t.Parallel()
	var store *judgingStore
	f := newFixture(t, func(cfg *ratelimit.Config) {
		store = remember(cfg)
		cfg.Policy = policyOf(t, "version: 1\ndefault: free\ntiers:\n  free:\n    limits: {minute: {capacity: 100000, per: minute}}\n"+
			fmt.Sprintf(perAccount, ""))
	})
	require.Equal(t, http.StatusOK, f.post(request{Query: logIn("x", "y", "z"), Tenant: "a"}).Status)
	require.Equal(t, http.StatusTooManyRequests, f.post(request{Query: logIn("victim"), Tenant: "a"}).Status)
	before := store.takes.Load()
	for range 100 {
		r := f.post(request{Query: logIn("victim"), Tenant: "a"})
		require.Equal(t, http.StatusTooManyRequests, r.Status)
		require.Contains(t, r.Body, `"mine\" of this operation`)
	}
	require.Equal(t, before, store.takes.Load())
	require.EqualValues(t, 3, f.resolver.Created.Load())
}

func TestAReplayIsNoAttempt(t *testing.T) {
	t.Parallel()
	f := newLogIn(t, "")
	for i := range 3 {
		r := f.post(request{Query: logIn("victim"), Tenant: "a", Key: "key-of-a-log-in"})
		require.Equal(t, http.StatusOK, r.Status, r.Body)
		require.Equal(t, i > 0, r.rateLimit(t)["replayed"] == true, r.Body)
		require.NoError(t, f.limiter.AwaitSettled(t.Context()))
		require.EqualValues(t, 4, f.attempts())
	}
	require.EqualValues(t, 1, f.resolver.Created.Load())
	reused := f.post(request{Query: logIn("victim", "victim"), Tenant: "a", Key: "key-of-a-log-in"})
	require.Equal(t, ratelimitclient.CodeKeyReused, reused.errorCode(t))
	require.NoError(t, f.limiter.AwaitSettled(t.Context()))
	require.EqualValues(t, 4, f.attempts())
}

func TestAQueryWhoseStoredAnswerIsLostIsOneAttempt(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(cfg *ratelimit.Config) {
		cfg.Policy = policyOf(t, `
version: 1
default: free
tiers:
  free:
    limits: {minute: {capacity: 100000, per: minute}}
    operations:
      Query.users:
        limits: {page: {capacity: 10, per: hour, unit: requests, by: first, across: true}}
`)
		cfg.Idempotency.Answers = &answerMap{getErr: idempotency.ErrNoAnswer}
	})
	for run := range 3 {
		require.Equal(t, http.StatusOK, f.post(request{Query: `{ users(first: 1) { name } }`, Key: testKey}).Status)
		require.EqualValues(t, 10-(run+1), f.attempts(), "each run is asked for once")
	}
}

func TestAnOverrideRecordOfNobodyIsAboutSharedBudgets(t *testing.T) {
	t.Parallel()
	f := newLogIn(t, "")
	require.Equal(t, http.StatusOK, f.post(request{Query: logIn("victim"), Tenant: "a"}).Status)
	account := f.shared()[0].Buckets[0].Owner
	set := func(o bucket.Override) {
		o.Reason, o.Actor = "ticket 17", "support"
		_, err := f.store.SetOverride(t.Context(), "", o)
		require.NoError(t, err)
	}
	set(bucket.Override{Owner: bucket.Owner{Level: bucket.Operation, Name: "Mutation.createUser"}, Limit: "account", Capacity: 50})
	require.Equal(t, http.StatusOK, f.post(request{Query: logIn("victim"), Tenant: "a"}).Status)
	require.EqualValues(t, 48, f.attempts())
	set(bucket.Override{Owner: account, Blocked: true})
	require.Equal(t, ratelimitclient.CodeTenantBlocked, f.post(request{Query: logIn("victim"), Tenant: "b"}).errorCode(t))
	require.Equal(t, http.StatusOK, f.post(request{Query: logIn("somebody else"), Tenant: "b"}).Status)
}

func TestSharedBudgetsFailAsTheirLimitsSay(t *testing.T) {
	t.Parallel()
	for mode, status := range map[string]int{"closed": http.StatusServiceUnavailable, "bounded": http.StatusOK} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			own := ratelimittest.NewStore(nil)
			f := newFixture(t, func(cfg *ratelimit.Config) {
				cfg.Stores = map[string]bucket.Store{"own": own}
				cfg.Policy = policyOf(t, "version: 1\ndefault: free\ntiers:\n  free:\n    store: own\n    limits: {minute: {capacity: 100000, per: minute}}\n"+
					fmt.Sprintf(perAccount, ", failMode: "+mode))
			})
			require.Equal(t, http.StatusOK, f.post(request{Query: logIn("victim"), Tenant: "a"}).Status)
			require.Len(t, f.store.Takes(), 1, "what tenants share is in the default store")
			require.Len(t, own.Takes(), 1)
			f.store.Fail(bucket.ErrUnavailable)
			require.Equal(t, status, f.post(request{Query: logIn("victim"), Tenant: "a"}).Status)
			want := 1
			if status == http.StatusOK {
				want = 2
			}
			require.Len(t, own.Takes(), want, "what is refused costs the tenant nothing")
		})
	}
}

func TestWhatWouldRefuseInASharedBudgetIsNoted(t *testing.T) {
	t.Parallel()
	f := newLogIn(t, ", mode: warn")
	for i := range 6 {
		r := f.post(request{Query: logIn("victim"), Tenant: fmt.Sprint("t", i)})
		require.Equal(t, http.StatusOK, r.Status)
		require.Equal(t, i == 5, strings.Contains(r.Body, "wouldRefuse"), r.Body)
	}
}

func TestAnOperationWithTooManyValuesIsRefusedInTheModeOfTheLimit(t *testing.T) {
	t.Parallel()
	for mode, refused := range map[string]bool{"enforce": true, "warn": false} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			f := newFixtureUnder(t, `
    operations:
      Mutation.createUser: {limits: {account: {capacity: 500, per: hour, unit: requests, by: input.name, across: true, mode: `+mode+`}}}
`)
			require.Equal(t, http.StatusOK, f.post(request{Query: logIn(guesses(16)...)}).Status)
			taken := len(f.store.Takes())
			r := f.post(request{Query: logIn(guesses(17)...)})
			require.Contains(t, r.Body, ratelimitclient.CodeQueryLimitExceeded)
			if !refused {
				require.Equal(t, http.StatusOK, r.Status)
				require.EqualValues(t, 33, f.resolver.Created.Load())
				return
			}
			require.Equal(t, http.StatusBadRequest, r.Status)
			require.Contains(t, r.Body, "more than 16 different values to the argument input.name of Mutation.createUser")
			r = f.post(request{Query: logIn("Ada" + strings.Repeat("\u00ad", 150_000))})
			require.Equal(t, http.StatusBadRequest, r.Status)
			require.Contains(t, r.Body, "more than 256 KiB of values, as far as they are read and folded, to the argument input.name")
			require.EqualValues(t, 16, f.resolver.Created.Load())
			require.Len(t, f.store.Takes(), taken, "nothing is charged")
		})
	}
}

func TestSharedBudgetsAreChargedInOneCall(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(cfg *ratelimit.Config) {
		cfg.Policy = policyOf(t, "version: 1\ndefault: free\nbackstop: {limits: {wallofall: {capacity: 7, per: hour, unit: requests}}}\n"+
			"tiers:\n  free:\n    limits: {minute: {capacity: 100000, per: minute}}\n"+fmt.Sprintf(perAccount, ""))
	})
	try := func(account, tenant string) reply { return f.post(request{Query: logIn(account), Tenant: tenant}) }
	for i := range 5 {
		require.Equal(t, http.StatusOK, try("victim", fmt.Sprint("t", i)).Status)
		require.Len(t, f.shared(), i+1)
	}
	for i := range 20 {
		refused := try("victim", fmt.Sprint("u", i))
		require.Equal(t, http.StatusTooManyRequests, refused.Status)
		require.Contains(t, refused.Body, `"account\" of this operation exceeded`)
		require.NotContains(t, refused.Body+fmt.Sprint(refused.Header), "wallofall")
	}
	for i := range 2 {
		require.Equal(t, http.StatusOK, try("other", fmt.Sprint("v", i)).Status, "a refused account is no load")
	}
	for _, account := range []string{"victim", "third"} {
		refused := try(account, "w")
		require.Equal(t, http.StatusServiceUnavailable, refused.Status, refused.Body)
		require.Equal(t, ratelimitclient.CodeOverloaded, refused.errorCode(t))
		require.NotContains(t, refused.Body+fmt.Sprint(refused.Header), "account", "too much to do is all that is told")
	}
}
