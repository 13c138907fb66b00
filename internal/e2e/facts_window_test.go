package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// onlyTier returns a policy whose only tier has these limits.
func onlyTier(t *testing.T, limits string) *tiers.Snapshot {
	t.Helper()
	return policyOf(t, fmt.Sprintf("{version: 1, default: pro, tiers: {pro: {limits: {%s}}}}", limits))
}

func policyOf(t *testing.T, document string) *tiers.Snapshot {
	t.Helper()
	policy, err := tiers.Parse([]byte(document))
	require.NoError(t, err)
	snapshot, err := tiers.Compile(policy)
	require.NoError(t, err)
	return snapshot
}

// names counts events by their name.
func names(told []string) map[string]int {
	counts := make(map[string]int)
	for _, text := range told {
		name, _, _ := strings.Cut(text, " ")
		counts[name]++
	}
	return counts
}

func TestWhatNoWindowCanHoldIsToldOnceAlthoughNoneIsOpen(t *testing.T) {
	t.Parallel()
	for mode, want := range map[string]string{"enforce": "limit_reached", "shadow": "would_refuse"} {
		for _, window := range []string{"per: minute", "per: minute, window: fixed", "per: minute, window: sliding", "per: day, window: calendar"} {
			synctest.Test(t, func(t *testing.T) {
				server, told := observed(t, func(cfg *ratelimit.Config) {
					cfg.Policy = onlyTier(t, fmt.Sprintf("a: {capacity: 30, mode: %s, %s}", mode, window))
				})
				for range 10 {
					server.post(request{Query: dear, Tenant: "acme"})
				}
				require.Equal(t, map[string]int{want: 1}, names(told()), "%s, %s", mode, window)
			})
		}
	}
}

func TestAThresholdIsToldInEachWindowHoweverSoonItIsCrossed(t *testing.T) {
	t.Parallel()
	for window, length := range map[string]time.Duration{
		"per: hour, window: fixed": time.Hour, "per: hour, window: calendar": time.Hour, "per: day, window: calendar": 24 * time.Hour,
	} {
		synctest.Test(t, func(t *testing.T) {
			server, told := observed(t, func(cfg *ratelimit.Config) {
				cfg.Policy = onlyTier(t, "a: {capacity: 22, "+window+"}")
			})
			for range 20 {
				require.Equal(t, http.StatusOK, server.post(request{Query: half, Tenant: "batch"}).Status)
				require.Equal(t, map[string]int{"threshold_crossed": 2}, names(told()), window)
				time.Sleep(length) //nolint:forbidigo // the clock of a synctest bubble
			}
		})
	}
}

func TestFactsThatHoldForLongLeaveRoomForThoseThatHappen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server, told := observed(t, func(cfg *ratelimit.Config) {
			cfg.Policy = onlyTier(t, "month: {capacity: 3000, per: month, window: calendar}, "+
				"day: {capacity: 22, per: day, mode: shadow, window: calendar}, minute: {capacity: 22, per: minute}")
			cfg.Observe.Thresholds = []float64{0.005}
		})
		for i := range 3000 {
			server.post(request{Query: half, Tenant: fmt.Sprint("quiet", i)})
		}
		time.Sleep(61 * time.Second) //nolint:forbidigo // the clock of a synctest bubble
		told()
		const tenants = 200
		for range 20 {
			for i := range tenants {
				server.post(request{Query: half, Tenant: fmt.Sprint("hot", i)})
			}
			time.Sleep(time.Millisecond) //nolint:forbidigo // the clock of a synctest bubble
		}
		counts := names(told())
		// Where a fact goes is chosen by chance: where five share room for four, each is told in all 20
		// rounds. With the room taken by those that hold for long, all would be: 20 times as many.
		for _, kind := range []string{"limit_reached", "would_refuse"} {
			require.GreaterOrEqual(t, counts[kind], tenants)
			require.Less(t, counts[kind], 3*tenants)
		}
	})
}

func TestNamesInEventsAreBounded(t *testing.T) {
	t.Parallel()
	var told []event.Event
	server := newInProcess(t, bucket.NewMemory(bucket.MemoryConfig{}), func(cfg *ratelimit.Config) {
		cfg.Policy = policyOf(t, "{version: 1, default: p, tiers: {p: {maxCost: 50, mode: shadow, "+
			"users: {mode: enforce, limits: {m: {capacity: 22, per: day}}}}}}")
		cfg.Observe.Observer = event.Func(func(_ context.Context, e event.Event) { told = append(told, e) })
	})
	long := strings.Repeat("x", 10_000)
	for range 101 {
		server.post(request{Query: half, Tenant: long, User: long})
	}
	server.post(request{Query: dear, Tenant: long, User: long})
	counts := names(texts(told))
	require.Positive(t, counts["decided"])
	delete(counts, "decided")
	require.Equal(t, map[string]int{
		"threshold_crossed": 2, "limit_reached": 1, "would_refuse": 1, "refused_repeatedly": 1,
	}, counts)
	for _, text := range texts(told) {
		require.Less(t, len(text), 2000)
		require.Contains(t, text, strings.Repeat("x", tiers.MaxLongName))
	}
}

func texts(events []event.Event) []string {
	told := make([]string, len(events))
	for i, e := range events {
		told[i] = e.Name() + " " + e.LogValue().String()
	}
	return told
}

func TestHoweverManyReachTheirLimitsTheObserverIsToldABoundedNumberASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server, told := observed(t, func(cfg *ratelimit.Config) {
			cfg.Policy = onlyTier(t, "minute: {capacity: 22, per: minute}")
			cfg.Observe.Thresholds = nil
		})
		reach := func(tenants int) int {
			for i := range tenants {
				for range 4 {
					server.post(request{Query: half, Tenant: fmt.Sprint("t", i)})
				}
			}
			return names(told())["limit_reached"]
		}
		require.Equal(t, 250, reach(1000))
		time.Sleep(2 * time.Second) //nolint:forbidigo // the clock of a synctest bubble
		require.Positive(t, reach(1000), "what found no room is told when it happens again")
	})
}
