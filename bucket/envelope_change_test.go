package bucket_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
)

// changing is a history of concurrent takes and grants under several generations of a policy at once, which
// have limits of different kinds under one name.
type changing struct {
	*testing.T

	store       *bucket.Redis
	generations []bucket.Limit
	buckets     [][]bucket.Bucket
	// ticker is an owner with an open window, from whose state follows when a grant was made.
	ticker bucket.Bucket

	mu               sync.Mutex
	history          []admission
	refused, granted int64
}

const (
	// grantAmount is what is granted, about once in grantEvery calls.
	grantAmount = 20
	grantEvery  = 100
	// generationCalls is for how many calls a caller stays with a generation.
	generationCalls = 8
)

func newChanging(t *testing.T, store *bucket.Redis, generations []bucket.Limit) *changing {
	t.Helper()
	c := &changing{T: t, store: store, generations: generations}
	for _, limit := range generations {
		c.buckets = append(c.buckets, []bucket.Bucket{{Limits: compile(t, limit)}})
	}
	hour := bucket.Limit{
		Name: "ticker", Unit: bucket.Requests, Capacity: 1, Period: time.Hour, Window: bucket.Window{Kind: bucket.FixedWindow},
	}
	c.ticker = bucket.Bucket{Owner: bucket.Owner{Level: bucket.User, Name: "ticker"}, Limits: compile(t, hour)}
	result, err := store.Take(context.Background(), bucket.Take{
		Tenant: t.Name(), Buckets: []bucket.Bucket{c.ticker}, Amounts: bucket.Amounts{{Unit: bucket.Requests, N: 1}},
	})
	require.NoError(t, err)
	require.Equal(t, bucket.Admitted, result.Verdict)
	return c
}

func (c *changing) take(generation int, amount int64) error {
	result, err := c.store.Take(context.Background(), bucket.Take{Tenant: c.Name(), Buckets: c.buckets[generation], Amounts: points(amount)})
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if result.Verdict == bucket.Admitted {
		c.history = append(c.history, admission{at: bucket.TakenAt(result.Receipt), amount: amount})
	} else {
		c.refused++
	}
	return nil
}

func (c *changing) grant(generation int) error {
	buckets := []bucket.Bucket{c.buckets[generation][0], c.ticker}
	states, err := c.store.Grant(context.Background(), c.Name(), buckets, points(grantAmount))
	if err != nil {
		return err
	}
	// What is reported is rounded down to whole tokens, which windows of a fixed length have alone.
	given := -states[0].Charged
	if kind := c.generations[generation].Window.Kind; kind == bucket.TokenBucket {
		given = min(given+1, grantAmount)
	} else if kind == bucket.SlidingWindow {
		given++
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.granted += given
	c.history = append(c.history, admission{at: states[1].WindowEnd - states[1].ResetAfter.Milliseconds(), amount: -given})
	return nil
}

// patienceForAll is for how much longer callers go on who have not seen everything: on a starved machine few calls are made.
const patienceForAll = 30 * time.Second

// unseen reports whether nothing was refused yet, or nothing granted.
func (c *changing) unseen() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.refused == 0 || c.granted == 0
}

// record makes calls as fast as many callers can, and returns what was admitted and granted in order.
func (c *changing) record() []admission {
	c.Helper()
	var callers sync.WaitGroup
	stop := time.Now().Add(*envelopeTime)
	for caller := range 16 {
		callers.Go(func() {
			for i := caller * generationCalls / 2; time.Now().Before(stop) || c.unseen() && time.Now().Before(stop.Add(patienceForAll)); i++ {
				generation, call := i/generationCalls%len(c.generations), c.take
				if i%grantEvery == 0 {
					call = func(generation int, _ int64) error { return c.grant(generation) }
				}
				if err := call(generation, int64(1+i%7)); err != nil {
					c.Error(err)
					return
				}
			}
		})
	}
	callers.Wait()
	require.NotZero(c, c.refused, "the limits were reached")
	require.NotZero(c, c.granted, "something was granted")
	sortHistory(c.history)
	return c.history
}

func TestGrantsAndChangesOfKindLetNoWindowOfAnyLengthAdmitMoreThanTheLimit(t *testing.T) {
	t.Parallel()
	const capacity, refill, period, shorter = 50, 31, 97 * time.Millisecond, 53 * time.Millisecond
	client := patientClient(t, redistest.Start(t).Addr)
	token := bucket.Limit{Name: "limit", Capacity: capacity, Refill: refill, Period: period}
	fixed := bucket.Limit{Name: "limit", Capacity: capacity, Period: period, Window: bucket.Window{Kind: bucket.FixedWindow}}
	sliding := bucket.Limit{Name: "limit", Capacity: capacity, Period: period, Window: bucket.Window{Kind: bucket.SlidingWindow}}
	short := sliding
	short.Period = shorter
	for _, test := range []struct {
		name        string
		generations []bucket.Limit
		// Any interval admits burst, and in each length so much more.
		burst, more int64
		length      time.Duration
	}{
		{"grants to a token bucket", []bucket.Limit{token}, capacity, refill, period},
		{"grants to a sliding window", []bucket.Limit{sliding}, capacity, capacity, period},
		// Two windows may meet in an interval, and each end gives everything back.
		{"grants to a fixed window", []bucket.Limit{fixed}, 2 * capacity, capacity, period},
		{"a token bucket that slides and back", []bucket.Limit{token, sliding}, capacity, capacity, period},
		{"a sliding window of two lengths", []bucket.Limit{sliding, short}, capacity, capacity, shorter},
		{"a token bucket that becomes a fixed window and back", []bucket.Limit{token, fixed}, 2 * capacity, capacity + refill, period},
		{"all kinds", []bucket.Limit{token, fixed, sliding}, 2 * capacity, 2 * capacity, period},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c := newChanging(t, newRedisStore(t, client), test.generations)
			history := c.record()
			ms := test.length.Milliseconds()
			excess := max(0, steepest(history, ms, test.more)-test.burst*ms)
			require.Zero(t, excess, "in 1/%d token, of %d calls", ms, len(history))
			t.Logf("%d admissions and grants, %d granted, excess %d", len(history), c.granted, excess)
		})
	}
}
