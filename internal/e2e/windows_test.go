package e2e_test

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// limited returns a server whose only tier has these limits.
func limited(t *testing.T, limits string) *fixture {
	t.Helper()
	policy, err := tiers.Parse([]byte(fmt.Sprintf("{version: 1, default: pro, tiers: {pro: {limits: {%s}}}}", limits)))
	require.NoError(t, err)
	snapshot, err := tiers.Compile(policy)
	require.NoError(t, err)
	return newFixture(t, func(cfg *ratelimit.Config) { cfg.Policy = snapshot })
}

// shown is the same where clients are told of trials.
func shown(t *testing.T, limits string) *fixture {
	t.Helper()
	return newFixture(t, func(cfg *ratelimit.Config) {
		underLimits(t, limits)(cfg)
		showShadow(cfg)
	})
}

func TestTheEndOfAWindowIsSpreadOverItsTenants(t *testing.T) {
	t.Parallel()
	f := limited(t, "hour: {capacity: 30, per: hour, window: fixed}")
	told := make(map[float64]bool)
	for i := range 50 {
		tenant := strconv.Itoa(i)
		require.Equal(t, http.StatusOK, f.post(request{Query: half, Tenant: tenant}).Status)
		refused := f.post(request{Query: half, Tenant: tenant})
		require.Equal(t, http.StatusTooManyRequests, refused.Status)
		after, _ := refused.rateLimit(t)["retryAfter"].(float64)
		require.GreaterOrEqual(t, after, time.Hour.Seconds(), "never before the window ends")
		require.Less(t, after, (time.Hour + time.Minute).Seconds())
		require.EqualValues(t, time.Hour.Seconds(), refused.rateLimit(t)["resetAfter"], "what is not waited for is exact")
		require.Contains(t, refused.Header.Get("RateLimit"), ";t="+refused.Header.Get("Retry-After"))
		require.Equal(t, `"hour";q=30;w=3600;qu="points"`, refused.Header.Get("RateLimit-Policy"))
		require.Equal(t, after, f.post(request{Query: half, Tenant: tenant}).rateLimit(t)["retryAfter"], "the same each time")
		told[after] = true
	}
	require.Greater(t, len(told), 40, "fifty tenants, milliseconds of a minute")
}

func TestABucketThatRefillsIsNotSpread(t *testing.T) {
	t.Parallel()
	f := limited(t, "minute: {capacity: 30, per: minute}")
	f.post(request{Query: half})
	require.EqualValues(t, 28, f.post(request{Query: half}).rateLimit(t)["retryAfter"])
}

func TestASoftLimitReportsAndPacesNobody(t *testing.T) {
	t.Parallel()
	f := limited(t, "minute: {capacity: 100, per: minute}, report: {capacity: 30, per: hour, window: fixed, soft: true}")
	f.post(request{Query: half})
	second := f.post(request{Query: half, Cost: "full"})
	require.Equal(t, http.StatusOK, second.Status)
	signal := second.rateLimit(t)
	require.Nil(t, signal["wouldRefuse"])
	require.EqualValues(t, 56, signal["remaining"], "that of the limit which can refuse")
	require.NotContains(t, second.Header.Get("RateLimit"), "report")
	limits, _ := signal["limits"].([]any)
	require.Len(t, limits, 2)
	require.Subset(t, limits[1], map[string]any{"name": "report", "soft": true, "remaining": 0.0, "overdraft": 14.0})

	only := limited(t, "report: {capacity: 30, per: hour, soft: true}").post(request{Query: half})
	require.NotContains(t, only.rateLimit(t), "remaining", "no limit refuses")
	require.Empty(t, only.Header.Get("RateLimit"))
}

func TestLimitsThatRefuseNothingPaceNobodyBesideOthers(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"shadow", "warn"} {
		f := shown(t, "minute: {capacity: 1000, per: minute}, trial: {capacity: 22, per: day, mode: "+mode+"}")
		f.post(request{Query: half})
		second := f.post(request{Query: half})
		require.Equal(t, http.StatusOK, second.Status)
		require.NotContains(t, second.Header.Get("RateLimit"), "trial")
		require.NotContains(t, second.Header.Get("RateLimit-Policy"), "trial")
		signal := second.rateLimit(t)
		require.EqualValues(t, 1000, signal["capacity"])
		require.EqualValues(t, 956, signal["remaining"])
		require.Equal(t, ratelimitclient.CodeRateLimited, signal["wouldRefuse"])
		limits, _ := signal["limits"].([]any)
		require.Len(t, limits, 2, "they stay where each limit is told")

		only := shown(t, "trial: {capacity: 22, per: day, mode: "+mode+"}, report: {capacity: 10, per: day, soft: true}").post(request{Query: half})
		require.EqualValues(t, 22, only.rateLimit(t)["capacity"], "what is to come, where nothing refuses")
		require.Equal(t, `"trial";r=0;t=3928`, only.Header.Get("RateLimit"))
	}
	both := shown(t, "soon: {capacity: 50, per: day, mode: warn}, later: {capacity: 30, per: day, mode: shadow}").post(request{Query: half})
	require.Equal(t, `"soon";r=28;t=1728`, both.Header.Get("RateLimit"))
}

func TestMoreOfAWindowComesAtItsExactEndUnlessItRefused(t *testing.T) {
	t.Parallel()
	f := limited(t, "f: {capacity: 100, per: hour, window: fixed}, d: {capacity: 100, per: day, window: calendar}, "+
		"s: {capacity: 100, per: hour, window: sliding}, n: {capacity: 30, per: second}")
	times := func(reply reply) map[string]int {
		found := make(map[string]int)
		for item := range strings.SplitSeq(reply.Header.Get("RateLimit"), ", ") {
			name, rest, _ := strings.Cut(item, ";")
			_, seconds, _ := strings.Cut(rest, ";t=")
			found[strings.Trim(name, `"`)], _ = strconv.Atoi(seconds)
		}
		return found
	}
	start := f.clock.Now()
	midnight := int(start.Truncate(24 * time.Hour).Add(24 * time.Hour).Sub(start).Seconds())
	sliding := 3600 + 164 // One of 22 is back after 1/22 of the next window.
	require.Equal(t, map[string]int{"f": 3600, "d": midnight, "s": sliding, "n": 1}, times(f.post(request{Query: half, Cost: "full"})))

	require.Equal(t, map[string]int{"n": 1}, times(f.post(request{Query: half})), "of others less than half is used")
	refused := f.post(request{Query: half, Cost: "full"})
	require.Equal(t, "1", refused.Header.Get("Retry-After"))
	require.Equal(t, map[string]int{"f": 3600, "d": midnight, "s": sliding, "n": 1}, times(refused), "no other has more in a second")

	f.clock.Advance(90 * time.Minute)
	// Half of the window before covers 11, and another 22 come; the current one ends in half an hour.
	got := times(f.post(request{Query: half, Cost: "full"}))
	require.Equal(t, 3600, got["f"])
	require.Equal(t, midnight-5400, got["d"])
	require.Equal(t, 1800+110, got["s"], "at most so late, by 33 that are used")
	f.clock.Advance(time.Hour)
	got = times(f.post(request{Query: `{ __typename }`, Cost: "full"}))
	require.Equal(t, 180, got["s"], "11 are left for half an hour")
}
