package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	_ "github.com/gqlgen-ratelimit/ratelimit/internal/seed"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimittest"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// silentToTenants is a store that does not answer some takes of tenants.
type silentToTenants struct {
	*ratelimittest.Store

	lose atomic.Bool
}

func (s *silentToTenants) Take(ctx context.Context, take bucket.Take) (bucket.Result, error) {
	if take.Tenant != "" && s.lose.Load() {
		return bucket.Result{}, bucket.ErrUnavailable
	}
	return s.Store.Take(ctx, take)
}

const modelled = `
version: 1
default: large
backstop: {limits: {points: {capacity: 1500, refill: 360, per: hour}}}
tiers:
  large: {failMode: closed, limits: {day: {capacity: 100000, per: day}}}
  small: {failMode: closed, limits: {day: {capacity: 300, per: day}, few: {capacity: 5, per: day, unit: requests}}}
  unlimited: {unlimited: true}
  shadow: {mode: shadow, failMode: closed, limits: {day: {capacity: 1, per: day}}}
tenants:
  small: {tier: small}
  unlimited: {tier: unlimited}
  shadow: {tier: shadow}
`

// admittedOfAll is what was admitted at a time, in points that it came to.
type admittedOfAll struct {
	at     time.Duration
	points int64
}

// TestWhatTheBackstopHoldsIsWhatWasAdmitted says after each step that what is left is what was there less what ran, to the point, whatever
// was refused, lost, replayed and given back in between, and that no interval admits more than the backstop.
func TestWhatTheBackstopHoldsIsWhatWasAdmitted(t *testing.T) {
	t.Parallel()
	const capacity, each = 1500, 10 * time.Second // of which one point comes back
	rapid.Check(t, func(r *rapid.T) {
		var store *silentToTenants
		f := newFixture(t, func(cfg *ratelimit.Config) {
			store = &silentToTenants{Store: cfg.Store.(*ratelimittest.Store)}
			cfg.Store, cfg.Policy = store, policyOf(t, modelled)
			cfg.Settlement = ratelimit.SettlementConfig{Refund: true}
		})
		rules := policyOf(t, modelled).Rules(ratelimit.Subject{Tenant: "a"}, tiers.Selection{})
		now, level, ran := time.Duration(0), int64(capacity), []admittedOfAll(nil)
		for step := range rapid.IntRange(1, 40).Draw(r, "steps") {
			pause := time.Duration(rapid.IntRange(0, 300).Draw(r, "pause")) * each
			if rapid.IntRange(0, 3).Draw(r, "waits") == 0 {
				f.clock.Advance(pause)
				now, level = now+pause, min(capacity, level+int64(pause/each))
			}
			first := rapid.IntRange(1, 400).Draw(r, "first")
			q := request{
				Query:  fmt.Sprintf(`{ users(first: %d) { name } }`, first),
				Tenant: rapid.SampledFrom([]string{"a", "b", "small", "unlimited", "shadow"}).Draw(r, "tenant"),
			}
			if rapid.Bool().Draw(r, "keyed") {
				q.Key = fmt.Sprint("a-key-of-", first%3, "-", q.Tenant)
			}
			store.lose.Store(rapid.IntRange(0, 7).Draw(r, "loses") == 0)
			answer := f.post(q)
			f.settled()
			came, estimate := int64(2+min(first, 100)), int64(2+first)
			if answer.Status == http.StatusOK && answer.rateLimit(t)["replayed"] != true {
				require.GreaterOrEqual(t, level, estimate, "step %d: what it could cost was there", step)
				level -= came
				ran = append(ran, admittedOfAll{now, came})
			}
			if len(f.shared()) > 0 {
				require.Equal(t, level, f.left("", rules.Backstop[0])[0], "step %d: %+v: %s", step, q, answer.Body)
			}
		}
		for i := range ran {
			sum := int64(0)
			for _, one := range ran[i:] {
				sum += one.points
				require.LessOrEqual(t, sum, capacity+int64((one.at-ran[i].at)/each))
			}
		}
	})
}
