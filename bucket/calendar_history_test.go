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

// calendarHistory is what many callers take, settle and are granted of a limit for the hour.
type calendarHistory struct {
	clock *clock
	store bucket.Store
	// generations of the policy are in use side by side.
	generations []*bucket.Limits
	// step is by how much each call sets the clock on, and setBack that it is also set back over the edges of hours.
	step    time.Duration
	setBack bool

	// grants are made while no other call is under way: see grant.
	grants sync.RWMutex

	mu               sync.Mutex
	charged          map[int64]int64
	refused, granted int64
}

// take takes two points, of which a settlement gives one back: what has opened a window is never given back as a whole,
// because an hour that nothing was charged may be forgotten, and an earlier one filled again while the clock is back.
func (h *calendarHistory) take(tenant string, limits *bucket.Limits, settles bool) (refused bool, err error) {
	result, err := h.store.Take(context.Background(), bucket.Take{
		Tenant: tenant, Amounts: points(2), Buckets: []bucket.Bucket{{Limits: limits}},
	})
	if err != nil {
		return false, err
	}
	net := int64(2)
	if result.Verdict == bucket.Admitted && settles {
		settled, err := h.store.Settle(context.Background(), bucket.Settlement{Receipt: result.Receipt, Actual: points(1)})
		if err != nil {
			return false, err
		}
		if settled.Applied {
			net += settled.Limits[len(settled.Limits)-1].Charged
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if result.Verdict == bucket.Admitted {
		h.charged[bucket.TakenAt(result.Receipt)/time.Hour.Milliseconds()] += net
	} else {
		h.refused++
	}
	return result.Verdict != bucket.Admitted, nil
}

// grant gives some points back where a take is refused.
//
// No other call comes between, so that what is granted is less than what the refusal has seen.
func (h *calendarHistory) grant(tenant string, limits *bucket.Limits) error {
	h.grants.Lock()
	defer h.grants.Unlock()
	if refused, err := h.take(tenant, limits, false); err != nil || !refused {
		return err
	}
	const amount = 5
	states, err := h.store.Grant(context.Background(), tenant, []bucket.Bucket{{Limits: limits}}, points(amount))
	if err != nil {
		return err
	}
	hour := states[len(states)-1]
	given := -hour.Charged
	if hour.Limit.Window.Kind == bucket.TokenBucket {
		// What is reported is rounded down to whole tokens.
		given = min(given+1, amount)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.granted += given
	return nil
}

const (
	calendarCapacity = 40
	calendarCallers  = 8
	calendarCalls    = 400
)

func (h *calendarHistory) call(tenant string, limits *bucket.Limits, i int) error {
	if i%5 == 0 {
		return h.grant(tenant, limits)
	}
	h.grants.RLock()
	defer h.grants.RUnlock()
	_, err := h.take(tenant, limits, i%3 == 0)
	return err
}

func (h *calendarHistory) record(t *testing.T) (total int64) {
	t.Helper()
	var group sync.WaitGroup
	for caller := range calendarCallers {
		group.Go(func() {
			furthest := int64(0)
			for i := range calendarCalls {
				// One caller may be far ahead of the others: the clock is never set back from where it was before.
				if now := h.clock.unixMilli(); h.setBack && caller == 0 && i%20 == 13 && now > furthest {
					furthest = now
					h.clock.ms.Add(-(50 * time.Minute).Milliseconds())
				}
				h.clock.advance(h.step)
				limits := h.generations[(i+caller)%len(h.generations)]
				if err := h.call(t.Name(), limits, i); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	require.NotZero(t, h.refused, "the limit was reached")
	require.NotZero(t, h.granted, "something was granted")
	require.Greater(t, len(h.charged), 2, "hours have passed")
	for _, n := range h.charged {
		total += n
	}
	t.Logf("%d charged in %d hours, %d refused, %d granted", total, len(h.charged), h.refused, h.granted)
	return total
}

// TestNoWindowOfTheCalendarAdmitsMoreThanTheLimit lets many callers take, settle and grant while hours pass,
// the clock is set back over their edges, and a second generation of the policy is in use, which may have a
// token bucket for the hour. The limit is reached in each hour, so that one which was filled twice shows in the
// sum: a take while the clock is back may be charged to the later hour, which is why the sum is what has to hold.
func TestNoWindowOfTheCalendarAdmitsMoreThanTheLimit(t *testing.T) {
	t.Parallel()
	client := patientClient(t, redistest.Start(t).Addr)
	hour := bucket.Limit{Name: "hour", Capacity: calendarCapacity, Window: bucket.Window{Kind: bucket.HourWindow}}
	token := bucket.Limit{Name: "hour", Capacity: calendarCapacity, Period: time.Hour}
	minute := bucket.Limit{Name: "minute", Capacity: 1000, Period: time.Minute}
	for _, test := range []struct {
		name        string
		generations []*bucket.Limits
		step        time.Duration
		setBack     bool
	}{
		{"of two generations while the clock is set back", []*bucket.Limits{compile(t, hour), compile(t, minute, hour)}, 29 * time.Second, true},
		{"that becomes a token bucket and back", []*bucket.Limits{compile(t, hour), compile(t, minute, token)}, 12 * time.Second, false},
	} {
		for _, name := range []string{"memory", "redis"} {
			t.Run(test.name+" in "+name, func(t *testing.T) {
				t.Parallel()
				c := newClock()
				history := &calendarHistory{clock: c, generations: test.generations, step: test.step, setBack: test.setBack, charged: map[int64]int64{}}
				history.store = bucket.NewMemory(bucket.MemoryConfig{Clock: c.now})
				if name == "redis" {
					store := newRedisStore(t, client)
					require.NoError(t, store.SetTestClock(c.unixMilli))
					history.store = store
				}
				total := history.record(t)
				budget := int64(calendarCapacity * len(history.charged))
				if !test.setBack {
					// What comes back to the token bucket while the clock goes on.
					budget += int64(calendarCapacity * calendarCallers * calendarCalls * test.step / time.Hour)
				}
				excess := max(0, total-history.granted-budget)
				require.Zero(t, excess, "%d charged, %d granted", total, history.granted)
			})
		}
	}
}
