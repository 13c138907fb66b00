package bucket_test

import (
	"cmp"
	"context"
	"flag"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
)

// envelopeTime is how long each history is; `make test-long` asks for more.
var envelopeTime = flag.Duration("envelope", 250*time.Millisecond, "how long each history of concurrent takes is")

// admission is one admitted take of a history, by the time of Redis, or a grant, which has a negative
// amount: what it gave back counts on the side of the budget.
type admission struct {
	at, amount int64
}

// steepest is the most that the admissions of any interval exceed what comes back in its length, in units
// of 1/p token of which r come back each millisecond. Both ends belong to the interval, with all that they
// hold, since the order within a millisecond is not known.
func steepest(history []admission, p, r int64) int64 {
	most, running := int64(0), int64(0)
	for i, a := range history {
		if i > 0 && a.at > history[i-1].at {
			running = max(0, running-r*(a.at-history[i-1].at))
		}
		running += a.amount * p
		most = max(most, running)
	}
	return most
}

// fullest is the most that was admitted in any of the windows, each of which opens with the first
// admission after the one before.
func fullest(history []admission, length int64) int64 {
	most, used, end := int64(0), int64(0), int64(0)
	for _, a := range history {
		if a.at >= end {
			used, end = 0, a.at+length
		}
		used += a.amount
		most = max(most, used)
	}
	return most
}

// record takes from the buckets as fast as many callers can, and returns what was admitted in order.
func record(t *testing.T, store *bucket.Redis, buckets []bucket.Bucket) []admission {
	t.Helper()
	var mu sync.Mutex
	var history []admission
	var callers sync.WaitGroup
	refused := 0
	stop := time.Now().Add(*envelopeTime)
	for caller := range 16 {
		callers.Go(func() {
			for i := caller; time.Now().Before(stop); i++ {
				amount := int64(1 + i%7)
				result, err := store.Take(context.Background(), bucket.Take{Tenant: t.Name(), Buckets: buckets, Amounts: points(amount)})
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				if result.Verdict == bucket.Admitted {
					history = append(history, admission{at: bucket.TakenAt(result.Receipt), amount: amount})
				} else {
					refused++
				}
				mu.Unlock()
			}
		})
	}
	callers.Wait()
	require.NotZero(t, refused, "the limits were reached")
	require.NotEmpty(t, history)
	sortHistory(history)
	return history
}

func sortHistory(history []admission) {
	slices.SortFunc(history, func(a, b admission) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.amount, b.amount))
	})
}

func TestNoWindowOfAnyLengthAdmitsMoreThanTheLimit(t *testing.T) {
	t.Parallel()
	const capacity, period = 50, 97 * time.Millisecond
	ms := period.Milliseconds()
	client := patientClient(t, redistest.Start(t).Addr)
	token := bucket.Limit{Name: "token", Capacity: capacity, Refill: 31, Period: period}
	fixed := bucket.Limit{Name: "fixed", Capacity: capacity, Period: period, Window: bucket.Window{Kind: bucket.FixedWindow}}
	sliding := bucket.Limit{Name: "sliding", Capacity: capacity, Period: period, Window: bucket.Window{Kind: bucket.SlidingWindow}}
	user := bucket.Owner{Level: bucket.User, Name: "ann"}
	holds := map[string]func(*testing.T, []admission){
		"token": func(t *testing.T, history []admission) {
			t.Helper()
			require.LessOrEqual(t, steepest(history, ms, 31), capacity*ms)
		},
		"fixed": func(t *testing.T, history []admission) {
			t.Helper()
			require.LessOrEqual(t, fullest(history, ms), int64(capacity))
		},
		"sliding": func(t *testing.T, history []admission) {
			t.Helper()
			// Capacity × (1 + length / period), see SlidingWindow.
			require.LessOrEqual(t, steepest(history, ms, capacity), capacity*ms)
		},
	}
	for _, c := range []struct {
		name    string
		buckets []bucket.Bucket
		rules   []string
	}{
		{"a token bucket", []bucket.Bucket{{Limits: compile(t, token)}}, []string{"token"}},
		{"a fixed window", []bucket.Bucket{{Limits: compile(t, fixed)}}, []string{"fixed"}},
		{"a sliding window", []bucket.Bucket{{Limits: compile(t, sliding)}}, []string{"sliding"}},
		{"all at once, of two owners", []bucket.Bucket{
			{Limits: compile(t, token, fixed)}, {Owner: user, Limits: compile(t, sliding)},
		}, []string{"token", "fixed", "sliding"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			history := record(t, newRedisStore(t, client), c.buckets)
			for _, rule := range c.rules {
				holds[rule](t, history)
			}
			t.Logf("%d admissions, none above the limit", len(history))
		})
	}
}

func TestTheEnvelopeOfAHistorySeesOneTokenTooMany(t *testing.T) {
	t.Parallel()
	history := []admission{{0, 50}, {97, 31}, {194, 31}}
	require.Equal(t, int64(50*97), steepest(history, 97, 31))
	history[2].amount++
	require.Equal(t, int64(51*97), steepest(history, 97, 31))
	granted := []admission{{0, 50}, {0, -20}, {0, 20}, {97, 31}}
	sortHistory(granted)
	require.Equal(t, int64(50*97), steepest(granted, 97, 31))
	granted[3].amount++
	require.Equal(t, int64(51*97), steepest(granted, 97, 31))
	require.Equal(t, int64(50), fullest([]admission{{0, 20}, {96, 30}, {97, 50}}, 97))
	require.Equal(t, int64(51), fullest([]admission{{0, 20}, {96, 31}, {97, 50}}, 97))
}
