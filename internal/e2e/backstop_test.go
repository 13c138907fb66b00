package e2e_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
)

// backstopped has tenants of each kind before one budget of all, which %s is.
const backstopped = `
version: 1
default: free
backstop: %s
tiers:
  free: {limits: {minute: {capacity: 100000, per: minute}}}
  small: {limits: {few: {capacity: 2, per: hour, unit: requests}}}
  unlimited: {unlimited: true}
  shadow: {mode: shadow, limits: {minute: {capacity: 100000, per: minute}}}
  off: {mode: off, limits: {minute: {capacity: 100000, per: minute}}}
tenants:
  small: {tier: small}
  unlimited: {tier: unlimited}
  shadow: {tier: shadow}
  off: {tier: off}
`

const fiveOfAll = `{limits: {wallofall: {capacity: 5, per: hour, unit: requests}}}`

// lockedText is a log that may be written to by several at once.
type lockedText struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lockedText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lockedText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// verdicts are the outcomes of all decisions.
type verdicts struct {
	mu       sync.Mutex
	outcomes []string
}

func (v *verdicts) Observe(context.Context, event.Event) {}

func (v *verdicts) Count(verdict event.Verdict) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.outcomes = append(v.outcomes, verdict.Outcome)
}

func newBackstopped(t *testing.T, backstop string, configure func(*ratelimit.Config)) *fixture {
	t.Helper()
	return newFixture(t, func(cfg *ratelimit.Config) {
		cfg.Policy = policyOf(t, fmt.Sprintf(backstopped, backstop))
		if configure != nil {
			configure(cfg)
		}
	})
}

// ofAll returns what is left of the first limit of the backstop.
func (f *fixture) ofAll() int64 {
	f.t.Helper()
	f.settled()
	takes := f.shared()
	require.NotEmpty(f.t, takes)
	return f.left("", takes[0].Buckets[0])[0]
}

func TestTheBackstopHoldsForAllTenantsTogetherWhateverTheyAreAllowed(t *testing.T) {
	t.Parallel()
	var log lockedText
	f := newBackstopped(t, fiveOfAll, func(cfg *ratelimit.Config) { cfg.Observe.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	for _, tenant := range []string{"a", "b", "unlimited", "shadow", "off"} {
		r := f.post(request{Query: `{ me { name } }`, Tenant: tenant})
		require.Equal(t, http.StatusOK, r.Status, r.Body)
		require.NotContains(t, r.Body+fmt.Sprint(r.Header), "wallofall", "what all have left is nobody's to know")
	}
	for _, tenant := range []string{"a", "unlimited", "shadow", "off", "another"} {
		r := f.post(request{Query: `{ me { name } }`, Tenant: tenant, Cost: "full"})
		require.Equal(t, http.StatusServiceUnavailable, r.Status, r.Body)
		require.Equal(t, ratelimitclient.CodeOverloaded, r.errorCode(t))
		require.NotEmpty(t, r.Header.Get("Retry-After"))
		require.NotContains(t, r.Body+fmt.Sprint(r.Header), "wallofall")
		require.NotContains(t, r.Body, `"remaining"`, "neither what all nor what the tenant has left")
	}
	require.EqualValues(t, 0, f.ofAll())
	require.NotContains(t, log.String(), "wallofall")
	f.clock.Advance(12 * time.Minute)
	require.Equal(t, http.StatusOK, f.post(request{Query: `{ me { name } }`, Tenant: "another"}).Status)
}

func TestTheBackstopGetsBackWhatTheTenantIsRefused(t *testing.T) {
	t.Parallel()
	f := newBackstopped(t, fiveOfAll, nil)
	for i := range 200 {
		r := f.post(request{Query: `{ me { name } }`, Tenant: "small"})
		require.Equal(t, i < 2, r.Status == http.StatusOK, r.Body)
		if i >= 2 {
			require.Equal(t, ratelimitclient.CodeRateLimited, r.errorCode(t), "it is its own limit that refuses")
		}
	}
	require.EqualValues(t, 3, f.ofAll())
	for range 3 {
		require.Equal(t, http.StatusOK, f.post(request{Query: `{ me { name } }`, Tenant: "a"}).Status, "nobody is starved")
	}
}

func TestAReplayIsNotChargedToTheBackstop(t *testing.T) {
	t.Parallel()
	f := newBackstopped(t, fiveOfAll, nil)
	for i := range 4 {
		r := f.post(request{Query: logIn("jo"), Tenant: "a", Key: "key-of-a-replay"})
		require.Equal(t, http.StatusOK, r.Status, r.Body)
		require.Equal(t, i > 0, r.rateLimit(t)["replayed"] == true)
		require.EqualValues(t, 4, f.ofAll())
	}
	require.EqualValues(t, 1, f.resolver.Created.Load())
}

func TestTheBackstopIsSettledToWhatOperationsComeTo(t *testing.T) {
	t.Parallel()
	for _, tenant := range []string{"a", "unlimited"} {
		f := newBackstopped(t, `{limits: {points: {capacity: 1000, per: day}}}`, func(cfg *ratelimit.Config) {
			cfg.Settlement = ratelimit.SettlementConfig{Refund: true}
		})
		require.Equal(t, http.StatusOK, f.post(request{Query: generous, Tenant: tenant}).Status)
		require.EqualValues(t, 1000-102, f.ofAll(), tenant)
		require.Equal(t, http.StatusOK, f.post(request{Query: generous, Tenant: tenant, Key: "key-of-a-query"}).Status)
		require.EqualValues(t, 1000-2*102, f.ofAll(), "under a key too: %s", tenant)
	}
}

func TestWhatTheBackstopCanNeverHoldIsSaidToBeTooLarge(t *testing.T) {
	t.Parallel()
	f := newBackstopped(t, `{limits: {wallofall: {capacity: 301, per: day}}}`, nil)
	for _, tenant := range []string{"a", "unlimited"} {
		r := f.post(request{Query: generous, Tenant: tenant})
		require.Equal(t, ratelimitclient.CodeCostLimitExceeded, r.errorCode(t), r.Body)
		require.Empty(t, r.Header.Get("Retry-After"), "waiting does not help")
		require.Contains(t, r.Body, "ask for fewer list items or fields")
		require.NotContains(t, r.Body+fmt.Sprint(r.Header), "wallofall")
		require.NotContains(t, r.Body, "301")
	}
	require.EqualValues(t, 301, f.ofAll())
}

func TestABackstopInShadowModeRefusesNobodyAndIsCounted(t *testing.T) {
	t.Parallel()
	for mode, outcome := range map[string]ratelimit.Outcome{"shadow": ratelimit.OutcomeShadowed, "off": ratelimit.OutcomeAdmitted} {
		told := &verdicts{}
		f := newBackstopped(t, `{mode: `+mode+`, limits: {wallofall: {capacity: 1, per: hour, unit: requests}}}`, func(cfg *ratelimit.Config) {
			cfg.Response.ShowShadow = true
			cfg.Observe.Observer = told
		})
		for range 3 {
			r := f.post(request{Query: `{ me { name } }`, Tenant: "a"})
			require.Equal(t, http.StatusOK, r.Status)
			require.NotContains(t, r.Body+fmt.Sprint(r.Header), "wallofall")
		}
		told.mu.Lock()
		require.Equal(t, []string{string(ratelimit.OutcomeAdmitted), string(outcome), string(outcome)}, told.outcomes, mode)
		told.mu.Unlock()
	}
}

func TestAnOperationHasABudgetOverAllTenants(t *testing.T) {
	t.Parallel()
	f := newBackstopped(t, `{operations: {Mutation.createUser: {limits: {wallofall: {capacity: 3, per: hour, unit: requests}}}}}`, nil)
	require.Equal(t, http.StatusOK, f.post(request{Query: logIn("x", "y"), Tenant: "a"}).Status, "each call is one")
	r := f.post(request{Query: logIn("x", "y"), Tenant: "unlimited"})
	require.Equal(t, http.StatusServiceUnavailable, r.Status, r.Body)
	require.Equal(t, ratelimitclient.CodeOverloaded, r.errorCode(t))
	require.NotContains(t, r.Body+fmt.Sprint(r.Header), "wallofall")
	require.Equal(t, http.StatusOK, f.post(request{Query: logIn("x"), Tenant: "unlimited"}).Status)
	for _, tenant := range []string{"a", "unlimited", "b"} {
		require.Equal(t, http.StatusServiceUnavailable, f.post(request{Query: logIn("x"), Tenant: tenant}).Status)
		require.Equal(t, http.StatusOK, f.post(request{Query: `{ me { name } }`, Tenant: tenant}).Status, "others are free")
	}
	require.EqualValues(t, 3, f.resolver.Created.Load())
}

func TestAStoreThatIsAwayTakesNoAPIDownForItsBackstop(t *testing.T) {
	t.Parallel()
	for _, failMode := range []string{"bounded", "open"} {
		f := newBackstopped(t, `{failMode: `+failMode+`, limits: {wallofall: {capacity: 5, per: hour, unit: requests}}}`, nil)
		f.store.Fail(bucket.ErrUnavailable)
		for i := range 14 {
			r := f.post(request{Query: `{ me { name } }`, Tenant: "unlimited"})
			require.Equal(t, failMode == "open" || i < 10, r.Status == http.StatusOK, "%s: %d: %s", failMode, i, r.Body)
			if r.Status != http.StatusOK {
				// This instance is the only one, so that its share is all of the multiple that fails bounded.
				require.Equal(t, ratelimitclient.CodeOverloaded, r.errorCode(t), r.Body)
			}
			require.NotContains(t, r.Body+fmt.Sprint(r.Header), "wallofall")
		}
	}
}

func TestWhoIsExemptIsNoLoadToTheBackstop(t *testing.T) {
	t.Parallel()
	f := newBackstopped(t, fiveOfAll, func(cfg *ratelimit.Config) {
		cfg.Subject = func(context.Context, *ratelimit.Request) (ratelimit.Subject, error) {
			return ratelimit.Subject{Tenant: "a", Exempt: true}, nil
		}
	})
	for range 10 {
		require.Equal(t, http.StatusOK, f.post(request{Query: `{ me { name } }`, Tenant: "a"}).Status)
	}
	require.Empty(t, f.shared())
}
