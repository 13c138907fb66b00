package e2e_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// counting is a server whose tier has these lines.
func counting(t *testing.T, tier string) *fixture {
	t.Helper()
	policy := policyOf(t, "version: 1\ndefault: free\ntiers:\n  free:\n"+tier)
	return newFixture(t, func(cfg *ratelimit.Config) {
		cfg.Policy, cfg.Settlement.Refund = policy, true
	})
}

// usage is what was counted of the tenant: charged and given back, of root fields charged and calls.
func (f *fixture) usage() map[string][2]int64 {
	f.t.Helper()
	f.settled()
	sums := map[string][2]int64{}
	for hour := f.clock.Now().Add(-time.Hour); !hour.After(f.clock.Now().Add(time.Hour)); hour = hour.Add(time.Hour) {
		read, err := f.store.ReadUsage(f.t.Context(), "free", hour, bucket.UsageExact)
		require.NoError(f.t, err)
		if read == nil {
			continue
		}
		for _, c := range read.Counts {
			name := string(c.Unit)
			if c.Field != "" {
				name = c.Field
			}
			sum := sums[name]
			for _, m := range c.Minutes {
				sum[0], sum[1] = sum[0]+m.Charged, sum[1]+m.GivenBack+m.Calls
			}
			sums[name] = sum
		}
	}
	return sums
}

func TestWhatATierAdmitsIsCountedAndWhatItRefusesIsNot(t *testing.T) {
	t.Parallel()
	s := counting(t, "    usage: totals\n    limits: {requests: {capacity: 2, per: hour, unit: requests}}\n")
	for range 2 {
		require.Equal(t, http.StatusOK, s.post(request{Query: `{ me { name } }`}).Status)
	}
	require.Equal(t, http.StatusTooManyRequests, s.post(request{Query: `{ me { name } }`}).Status)
	require.Equal(t, map[string][2]int64{"points": {6, 0}, "requests": {2, 0}}, s.usage())
}

func TestATenantWithoutLimitsIsCountedAndSettled(t *testing.T) {
	t.Parallel()
	s := counting(t, "    usage: fields\n    unlimited: true\n")
	got := s.post(request{Query: `{ a: me { name } b: me { name } page(first: 300) { name } }`})
	require.Equal(t, http.StatusOK, got.Status)
	usage := s.usage()
	require.Equal(t, [2]int64{1, 0}, usage["requests"])
	require.Equal(t, [2]int64{302, 1}, usage["Query.page"])
	require.EqualValues(t, 2, usage["Query.me"][1], "calls")
	require.EqualValues(t, 200, usage["points"][1], "the list has a hundred")
	require.NotContains(t, got.Body, "refunded", "nothing was charged")
}

func TestNothingIsCountedOfATierThatDoesNotSaySo(t *testing.T) {
	t.Parallel()
	s := counting(t, "    limits: {requests: {capacity: 2, per: hour, unit: requests}}\n")
	s.post(request{Query: `{ me { name } }`})
	require.Empty(t, s.usage())
}

func TestAReplayIsNotCounted(t *testing.T) {
	t.Parallel()
	s := counting(t, "    usage: totals\n    limits: {minute: {capacity: 1000, per: minute}}\n")
	for range 3 {
		require.Equal(t, http.StatusOK, s.post(request{Query: createUser, Key: testKey}).Status)
	}
	require.Equal(t, [2]int64{1, 0}, s.usage()["requests"])
}
