package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

func TestBoundedLimitAdmitsItsMultipleWhileTheStoreIsAway(t *testing.T) {
	t.Parallel()
	a := newAbsent(t, tiers.Tier{}, nil)
	require.Equal(t, http.StatusOK, a.post(request{Query: half}).Status)
	a.store.Fail(bucket.ErrUnavailable)
	admitted := 0
	for range 50 {
		answer := a.post(request{Query: half})
		facts := answer.rateLimit(t)
		require.Equal(t, true, facts["storeUnavailable"], "it says so")
		if answer.Status == http.StatusOK {
			admitted += 22
			require.EqualValues(t, min(100, 200-admitted), facts["remaining"])
			continue
		}
		require.Equal(t, http.StatusTooManyRequests, answer.Status)
		require.Equal(t, ratelimitclient.CodeRateLimited, answer.errorCode(t))
	}
	require.Equal(t, 198, admitted, "twice the limit of 100")
	a.store.Fail(nil)
	require.Equal(t, http.StatusTooManyRequests, a.post(request{Query: half}).Status, "what ran is charged afterwards")
	require.Equal(t, map[string]float64{"admitted": 1, "admitted_locally": 9, "limited_locally": 41, "limited": 1},
		a.sums("ratelimit.decisions", "ratelimit.outcome"))
}

func TestALimitThatFailsUnboundedAdmitsEverythingAndSettlesNothing(t *testing.T) {
	t.Parallel()
	a := newAbsent(t, tiers.Tier{FailMode: "open"}, nil)
	a.store.Fail(bucket.ErrUnavailable)
	for range 50 {
		answer := a.post(request{Query: half})
		require.Equal(t, http.StatusOK, answer.Status)
		require.Equal(t, true, answer.rateLimit(t)["storeUnavailable"])
	}
	a.store.Fail(nil)
	require.EqualValues(t, 100, a.post(request{Query: `{ __typename }`}).rateLimit(t)["remaining"])
	require.Equal(t, map[string]float64{"unjudged": 50, "admitted": 1}, a.sums("ratelimit.decisions", "ratelimit.outcome"))
}

// oddErrors are the ways in which a store does not answer.
var oddErrors = map[string]error{"away": bucket.ErrUnavailable, "ambiguous": bucket.ErrAmbiguous, "busy": bucket.ErrBusy}

func TestABlockedTenantIsNeverServedWhateverTheStoreAndTheFailMode(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"bounded", "closed", "local", "open"} {
		for name, err := range oddErrors {
			a := newAbsent(t, tiers.Tier{FailMode: mode}, nil)
			_, failed := a.store.SetOverride(t.Context(), "free", bucket.Override{Blocked: true, Reason: "abuse", Actor: "ops"})
			require.NoError(t, failed)
			require.Equal(t, http.StatusForbidden, a.post(request{Query: half}).Status)
			for range 3 {
				a.store.Fail(err)
				for _, r := range []request{{Query: half}, {Query: `{ __typename }`}, {Query: createUser}, {Query: createUser, Key: testKey}} {
					answer := a.post(r)
					require.Equal(t, ratelimitclient.CodeTenantBlocked, answer.errorCode(t), "%s, %s", mode, name)
					require.Equal(t, http.StatusForbidden, answer.Status)
				}
				a.store.Fail(nil)
				require.Equal(t, http.StatusForbidden, a.post(request{Query: half}).Status)
			}
			require.Zero(t, a.resolver.Created.Load())
		}
	}
}

func TestABusyProcessJudgesByWhatItKnowsAndTellsClientsToComeBackSoon(t *testing.T) {
	t.Parallel()
	a := newAbsent(t, tiers.Tier{}, nil)
	require.Equal(t, http.StatusOK, a.post(request{Query: half}).Status)
	a.store.Fail(bucket.ErrBusy)
	for range 9 {
		answer := a.post(request{Query: half})
		require.Equal(t, http.StatusOK, answer.Status)
		require.Equal(t, true, answer.rateLimit(t)["storeUnavailable"])
	}
	for range 20 {
		refused := a.post(request{Query: half})
		require.Equal(t, http.StatusServiceUnavailable, refused.Status)
		require.Equal(t, ratelimitclient.CodeOverloaded, refused.errorCode(t))
		require.Equal(t, "1", refused.Header.Get("Retry-After"))
		after := refused.rateLimit(t)["retryAfter"]
		require.GreaterOrEqual(t, after, 0.05)
		require.LessOrEqual(t, after, 0.25)
	}
	require.Empty(t, a.events(), "a busy process says nothing of the store")
	require.Equal(t, map[string]float64{"admitted": 1, "admitted_locally": 9, "overloaded": 20},
		a.sums("ratelimit.decisions", "ratelimit.outcome"))
	require.Equal(t, map[string]float64{"": 0}, a.sums("ratelimit.store.away", "ratelimit.outcome"), "no time without the store")
	require.Empty(t, a.sums("ratelimit.store.away.points", "ratelimit.outcome"))
	require.Positive(t, a.sums("ratelimit.store.duration", "ratelimit.store.result")["busy"])
	a.store.Fail(nil)
	require.Equal(t, http.StatusTooManyRequests, a.post(request{Query: half}).Status, "what ran is charged")
	for _, told := range a.events() {
		require.NotContains(t, told, "store_")
	}
}

func TestABusyProcessRefusesWhatFailsClosedAndKeyedMutations(t *testing.T) {
	t.Parallel()
	for mode, operation := range map[string]request{
		"closed": {Query: half}, "bounded": {Query: createUser, Key: testKey}, "open": {Query: createUser, Key: testKey},
	} {
		a := newAbsent(t, tiers.Tier{FailMode: mode}, nil)
		a.store.Fail(bucket.ErrBusy)
		refused := a.post(operation)
		require.Equal(t, ratelimitclient.CodeOverloaded, refused.errorCode(t), mode)
		require.Equal(t, http.StatusServiceUnavailable, refused.Status)
		require.Zero(t, a.resolver.Created.Load())
		a.store.Fail(nil)
		require.Equal(t, http.StatusOK, a.post(operation).Status, "nothing has happened")
	}
}

func TestAChargeInABusyProcessIsJudgedByTheShareOfTheInstance(t *testing.T) {
	t.Parallel()
	a := newAbsent(t, tiers.Tier{Limits: map[string]*tiers.Limit{"exports": {Unit: "exports", Capacity: 10, Per: tiers.Hour}}}, nil)
	var errs []error
	a.resolver.OnExport = func(ctx context.Context, rows int) error {
		errs = append(errs, ratelimit.Charge(ctx, "exports", int64(rows)))
		return nil
	}
	a.store.Fail(bucket.ErrBusy)
	for _, rows := range []int{8, 12, 1} {
		a.post(request{Query: fmt.Sprintf(`{ export(rows: %d) }`, rows)})
	}
	require.NoError(t, errs[0])
	require.NoError(t, errs[1])
	var refused *ratelimit.RefusedError
	require.ErrorAs(t, errs[2], &refused)
	require.Equal(t, ratelimitclient.CodeOverloaded, refused.Code)
	require.Less(t, refused.RetryAfter, time.Second)
}
