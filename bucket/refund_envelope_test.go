package bucket_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
)

// refunds is one random history of takes that are settled to less, on a memory store and on Redis.
type refunds struct {
	*rapid.T
	stores [2]bucket.Store
	clock  *clock
	tenant string
	limit  bucket.Limit
	bucket []bucket.Bucket
	taken  []*refundable
	// end is when the open window of the limit ends, and in which window of the history that is.
	end    int64
	window int
}

// refundable is an admitted take.
type refundable struct {
	receipts [2]bucket.Receipt
	at       int64
	// amount is in tokens, and net, what is not given back of it, in units of 1/p token.
	amount, net int64
	window      int
	settled     bool
}

// The token bucket of the histories gets 31 tokens in 97 ms, so that most numbers of tokens are broken.
const (
	refundCapacity = 50
	refundRefill   = 31
	refundPeriod   = 97
)

func (r *refunds) token() bool { return r.limit.Window.Kind == bucket.TokenBucket }

// unit is in what net counts a token.
func (r *refunds) unit() int64 {
	if r.token() {
		return refundPeriod
	}
	return 1
}

// now moves the windows of the history on and returns the time.
func (r *refunds) now() int64 {
	now := r.clock.unixMilli()
	for !r.token() && r.end != 0 && r.end <= now {
		r.window++
		// A sliding window goes on as long as anything was spent in it.
		if r.limit.Window.Kind == bucket.SlidingWindow && r.spentIn(r.window-1) > 0 {
			r.end += refundPeriod
		} else {
			r.end = 0
		}
	}
	return now
}

func (r *refunds) spentIn(window int) (net int64) {
	for _, take := range r.taken {
		if take.window == window {
			net += take.net
		}
	}
	return net
}

func (r *refunds) take(amount int64) {
	take := &refundable{at: r.now(), amount: amount, net: amount * r.unit()}
	var verdicts [2]bucket.Verdict
	for i, store := range r.stores {
		result, err := store.Take(context.Background(), bucket.Take{Tenant: r.tenant, Buckets: r.bucket, Amounts: points(amount)})
		require.NoError(r, err)
		verdicts[i], take.receipts[i] = result.Verdict, result.Receipt
	}
	require.Equal(r, verdicts[0], verdicts[1])
	if verdicts[0] != bucket.Admitted {
		return
	}
	if !r.token() && r.end == 0 {
		r.end = take.at + refundPeriod
	}
	take.window = r.window
	r.taken = append(r.taken, take)
}

// settle gives back, and checks that it was what the take still owed, and nothing if that was done before.
func (r *refunds) settle(take *refundable, actual int64) {
	now := r.now()
	owed := take.amount * r.unit()
	switch {
	case r.token():
		owed = max(0, owed-refundRefill*(now-take.at))
	case take.window != r.window:
		owed = 0
	}
	back := min((take.amount-actual)*r.unit(), owed)
	applied := !take.settled && now-take.at < maxReceiptAge.Milliseconds()
	if take.settled = true; !applied {
		back = 0
	}
	for i, store := range r.stores {
		settlement := bucket.Settlement{Receipt: take.receipts[i].Clone(), Actual: points(actual)}
		settled, err := store.Settle(context.Background(), settlement)
		require.NoError(r, err)
		require.Equal(r, applied, settled.Applied)
		if applied {
			require.Equal(r, -(back / r.unit()), settled.Limits[0].Charged, "given back, of %d owed 1/p", owed)
		}
	}
	take.net -= back
	if !r.token() && applied && r.spentIn(r.window) == 0 && (r.window == 0 || r.spentIn(r.window-1) == 0) {
		// Nothing is spent, so that the next take opens a window.
		r.window++
		r.end = 0
	}
}

// envelope checks that no window had more net of what was given back than the limit allows: by the time of
// the takes, which is when the work was done.
func (r *refunds) envelope() {
	if r.limit.Window.Kind == bucket.FixedWindow {
		for window := range r.window + 1 {
			require.LessOrEqual(r, r.spentIn(window), int64(refundCapacity))
		}
		return
	}
	refill := int64(refundRefill)
	if !r.token() {
		// Capacity × (1 + length / period), see SlidingWindow.
		refill = refundCapacity
	}
	history := make([]admission, len(r.taken))
	for i, take := range r.taken {
		history[i] = admission{at: take.at, amount: take.net * (refundPeriod / r.unit())}
	}
	require.LessOrEqual(r, steepest(history, 1, refill), int64(refundCapacity*refundPeriod))
}

func TestRefundsLetNoWindowOfAnyLengthAdmitMoreThanTheLimit(t *testing.T) {
	t.Parallel()
	client := patientClient(t, redistest.Start(t).Addr)
	var runs, given atomic.Int64
	rapid.Check(t, func(t *rapid.T) {
		c := newClock()
		redisStore, err := bucket.NewRedis(bucket.RedisConfig{Client: client, Timeout: patience})
		require.NoError(t, err)
		require.NoError(t, redisStore.SetTestClock(c.unixMilli))
		limit := bucket.Limit{Name: "limit", Capacity: refundCapacity, Refill: refundRefill, Period: refundPeriod * time.Millisecond}
		if limit.Window.Kind = rapid.SampledFrom([]bucket.WindowKind{
			bucket.TokenBucket, bucket.FixedWindow, bucket.SlidingWindow,
		}).Draw(t, "kind"); limit.Window.Kind != bucket.TokenBucket {
			limit.Refill = 0
		}
		limits, err := bucket.Compile(limit)
		require.NoError(t, err)
		r := &refunds{
			T: t, clock: c, tenant: fmt.Sprint("run-", runs.Add(1)), limit: limit, bucket: []bucket.Bucket{{Limits: limits}},
			stores: [2]bucket.Store{bucket.NewMemory(bucket.MemoryConfig{Clock: c.now}), redisStore},
		}
		take := func(t *rapid.T) { r.take(rapid.Int64Range(1, refundCapacity).Draw(t, "amount")) }
		t.Repeat(map[string]func(*rapid.T){
			"take": take, "take2": take,
			"settle": func(t *rapid.T) {
				if len(r.taken) == 0 {
					return
				}
				// Recent ones more often, and some twice.
				i := len(r.taken) - 1 - rapid.IntRange(0, min(4, len(r.taken)-1)).Draw(t, "take")
				before := r.taken[i].net
				r.settle(r.taken[i], rapid.Int64Range(0, r.taken[i].amount).Draw(t, "actual"))
				given.Add(before - r.taken[i].net)
			},
			"forward": func(t *rapid.T) {
				r.clock.ms.Add(rapid.OneOf(rapid.Int64Range(0, 40), rapid.Int64Range(0, 200), rapid.SampledFrom([]int64{59_999, 60_000})).Draw(t, "ms"))
			},
			"": func(*rapid.T) { r.envelope() },
		})
	})
	require.NotZero(t, given.Load(), "something was given back")
}
