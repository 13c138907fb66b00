package observe_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/internal/decision"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

func TestAnOverrideHasChangedADecisionIfThatWasAnotherOneWithoutIt(t *testing.T) {
	t.Parallel()
	shadow, off := bucket.Shadow, bucket.Off
	minute := func(o bucket.Override) bucket.Override {
		o.Limit = "minute"
		return o
	}
	for name, c := range map[string]struct {
		override bucket.Override
		// amounts are asked for one after the other.
		amounts []int64
		changed []bool
	}{
		"raised":               {minute(bucket.Override{Capacity: 20}), []int64{8, 2, 5, 30, 1}, []bool{false, false, true, false, true}},
		"raised and exhausted": {minute(bucket.Override{Capacity: 20}), []int64{10, 10, 1}, []bool{false, true, false}},
		"lowered":              {minute(bucket.Override{Capacity: 3}), []int64{2, 2, 11}, []bool{false, true, false}},
		"eased":                {minute(bucket.Override{Mode: &shadow}), []int64{8, 8}, []bool{false, true}},
		"blocked":              {bucket.Override{Blocked: true}, []int64{1}, []bool{true}},
		"unlimited":            {bucket.Override{Unlimited: true}, []int64{100}, []bool{false}},
		"off":                  {minute(bucket.Override{Mode: &off}), []int64{100}, []bool{false}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := time.Now()
			store := bucket.NewMemory(bucket.MemoryConfig{Clock: func() time.Time { return now }})
			limits, err := bucket.Compile(
				bucket.Limit{Name: "minute", Unit: bucket.Points, Capacity: 10, Period: time.Hour},
				bucket.Limit{Name: "other", Unit: "other", Capacity: 10, Period: time.Hour},
			)
			require.NoError(t, err)
			c.override.Reason, c.override.Actor = "why", "ada"
			_, err = store.SetOverride(t.Context(), "acme", c.override)
			require.NoError(t, err)
			for i, amount := range c.amounts {
				take := bucket.Take{Tenant: "acme", Buckets: []bucket.Bucket{{Limits: limits}}, Amounts: bucket.Amounts{{Unit: bucket.Points, N: amount}}}
				result, err := store.Take(t.Context(), take)
				require.NoError(t, err)
				d := &decision.Decision{Rules: &tiers.Rules{}, Subject: tiers.Subject{Tenant: "acme"}, Limits: result.Limits, Outcome: decision.Admitted}
				d.Overridden = result.Verdict == bucket.Blocked
				for _, l := range result.Limits {
					d.Overridden = d.Overridden || l.Overridden
				}
				if lifted := result.LiftedBy(); lifted != nil {
					d.Lifted = &lifted
				}
				if result.Verdict != bucket.Admitted {
					d.Outcome, d.Refusal = decision.Limited, &decision.Refusal{Outcome: decision.Limited, BlockedBy: result.BlockedBy()}
				}
				to := &tally{}
				decided(t, to, d)
				require.Len(t, to.verdicts[0].Overrides, 1)
				use := to.verdicts[0].Overrides[0]
				require.Equal(t, event.Override{Level: "tenant", Limit: c.override.Limit, Reason: "why", Actor: "ada", SetAt: use.SetAt}, use.Override)
				require.Equal(t, c.changed[i], use.Changed, "%d", i)
				// What this instance decides alone it has a share for.
				d.Outcome, d.Refusal = decision.Unjudged, nil
				decided(t, to, d)
				for _, use := range to.verdicts[1].Overrides {
					require.False(t, use.Changed)
				}
			}
		})
	}
}
