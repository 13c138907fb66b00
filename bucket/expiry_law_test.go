package bucket_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
)

// latest is when a key that is full at a time has to be gone, if it was written at another.
func latest(full, written int64) int64 {
	const room = 8192
	return full + max(0, full-written) + room
}

// expiring is two stores of one history. Of the first the keys expire by the clock of the test, those of the other
// never do.
type expiring struct {
	client   *redis.Client
	clock    *clock
	policies [][]bucket.Bucket
	stores   [2]*bucket.Redis
	receipts [2][]bucket.Receipt
	// written is the date of the last write of a key of the first store, and persisted says that its expiry was taken away
	// since, and was a date before.
	value     map[string]string
	written   map[string]int64
	expiry    map[string]int64
	persisted map[string]int64
	// gone is when a key has expired last: it is not told what a clock says that is set back before that.
	gone   int64
	runs   int
	tenant string
	// kept counts the writes that left the expiry alone, and set those that did not.
	kept, set int
	dumps     map[string]dumped
}

// dumped is a key of both stores at a time.
type dumped struct {
	values [2]string
	expiry int64
}

// expiringLimit draws a limit: long and short, of both forms of the state, and windows.
func expiringLimit(t *rapid.T, name string) bucket.Limit {
	l := bucket.Limit{
		Name: name, Capacity: rapid.SampledFrom([]int64{3, 100, 5000}).Draw(t, "capacity"),
		Period: time.Duration(rapid.SampledFrom([]int64{1, 60, 3600, 86_400}).Draw(t, "period")) * time.Second,
	}
	l.Refill = l.Capacity / rapid.SampledFrom([]int64{1, 3}).Draw(t, "refill")
	switch rapid.IntRange(0, 5).Draw(t, "kind") {
	case 0:
		l.Refill, l.Window = 0, bucket.Window{Kind: bucket.FixedWindow}
	case 1:
		l.Refill, l.Window = 0, bucket.Window{Kind: bucket.SlidingWindow}
	case 2:
		l.Soft = true
	}
	return l
}

func (e *expiring) begin(t *rapid.T) {
	e.runs++
	e.clock.advance(time.Hour)
	e.tenant, e.gone, e.receipts, e.policies = fmt.Sprint("tenant-", e.runs), 0, [2][]bucket.Receipt{}, nil
	e.value, e.dumps = map[string]string{}, map[string]dumped{}
	e.written, e.expiry, e.persisted = map[string]int64{}, map[string]int64{}, map[string]int64{}
	for range 2 {
		var buckets []bucket.Bucket
		for _, owner := range []bucket.Owner{{}, {Level: bucket.User, Name: "ann"}} {
			var limits []bucket.Limit
			plain := rapid.Bool().Draw(t, "plain")
			for i := range rapid.IntRange(1, 4).Draw(t, "limits") {
				l := expiringLimit(t, fmt.Sprint("limit-", i))
				if plain {
					l.Refill, l.Soft, l.Window = max(1, l.Capacity/3), false, bucket.Window{}
				}
				limits = append(limits, l)
			}
			compiled, err := bucket.Compile(limits...)
			require.NoError(t, err)
			buckets = append(buckets, bucket.Bucket{Owner: owner, Limits: compiled})
		}
		e.policies = append(e.policies, buckets)
	}
}

// shown is what states say.
func shown(states []bucket.LimitState) string {
	var b strings.Builder
	for i := range states {
		l := &states[i]
		fmt.Fprintln(&b, l.Owner, l.Limit.Name, l.Asked, l.Charged, l.Remaining, l.Overdraft, l.ResetAfter, l.RetryAfter, l.Exceeded, l.Never)
	}
	return b.String()
}

// each has both stores do the same, and compares what they say.
func (e *expiring) each(t *rapid.T, do func(i int, store *bucket.Redis) (string, error)) {
	var said [2]string
	for i, store := range e.stores {
		var err error
		said[i], err = do(i, store)
		require.NoError(t, err)
	}
	require.Equal(t, said[1], said[0], "a key that expires counts nothing any more")
}

func (e *expiring) step(ctx context.Context, t *rapid.T) {
	buckets := e.policies[rapid.IntRange(0, 1).Draw(t, "policy")]
	buckets = buckets[:rapid.IntRange(1, len(buckets)).Draw(t, "owners")]
	switch action := rapid.IntRange(0, 15).Draw(t, "action"); action {
	case 0:
		e.each(t, func(_ int, store *bucket.Redis) (string, error) {
			states, err := store.Grant(ctx, e.tenant, buckets, points(2))
			return shown(states), err
		})
	case 1, 2:
		if len(e.receipts[0]) == 0 {
			return
		}
		at, worth := rapid.IntRange(0, len(e.receipts[0])-1).Draw(t, "receipt"), rapid.Int64Range(0, 5).Draw(t, "worth")
		e.each(t, func(i int, store *bucket.Redis) (string, error) {
			settled, err := store.Settle(ctx, bucket.Settlement{Receipt: e.receipts[i][at], Actual: points(worth)})
			return fmt.Sprint(settled.Applied) + shown(settled.Limits), err
		})
	case 3:
		capacity := rapid.SampledFrom([]int64{0, 7, 10_000}).Draw(t, "override")
		e.each(t, func(_ int, store *bucket.Redis) (string, error) {
			if capacity == 0 {
				_, err := store.ClearOverrides(ctx, e.tenant)
				return "", err
			}
			_, err := store.SetOverride(ctx, e.tenant, bucket.Override{Limit: "limit-0", Capacity: capacity, Refill: 1, Period: time.Minute, Reason: "law", Actor: "rapid"})
			return "", err
		})
	case 4:
		e.clock.advance(-time.Duration(rapid.Int64Range(0, min(100_000, max(0, e.clock.unixMilli()-e.gone))).Draw(t, "back")) * time.Millisecond)
	case 5:
		e.tamper(ctx, t, buckets[0].Owner)
	case 6, 7, 8:
		e.clock.advance(time.Duration(rapid.Int64Range(0, rapid.SampledFrom([]int64{50, 5000, 500_000, 200_000_000}).Draw(t, "scale")).Draw(t, "on")) * time.Millisecond)
	default:
		amount := rapid.Int64Range(0, 4).Draw(t, "amount")
		e.each(t, func(i int, store *bucket.Redis) (string, error) {
			result, err := store.Take(ctx, bucket.Take{Tenant: e.tenant, Buckets: buckets, Amounts: points(amount)})
			if !result.Receipt.IsZero() {
				e.receipts[i] = append(e.receipts[i], result.Receipt)
			}
			return fmt.Sprint(result.Verdict, result.RetryAfter) + shown(result.Limits), err
		})
	}
}

// tamper does what an operator may do to a key.
func (e *expiring) tamper(ctx context.Context, t *rapid.T, owner bucket.Owner) {
	var keys [2]string
	for i, store := range e.stores {
		keys[i] = store.BucketKey(e.tenant, owner)
	}
	value, exists := e.value[keys[0]]
	was, isDumped := e.dumps[keys[0]]
	switch action := rapid.IntRange(0, 3).Draw(t, "tampering"); {
	case action == 0 && exists:
		expiry, err := e.client.PExpireTime(ctx, keys[0]).Result()
		require.NoError(t, err)
		require.NoError(t, e.client.Persist(ctx, keys[0]).Err())
		if expiry > 0 {
			e.persisted[keys[0]] = expiry.Milliseconds()
		}
	case action == 1 && exists:
		for _, key := range keys {
			require.NoError(t, e.client.Rename(ctx, key, key+":away").Err())
			require.NoError(t, e.client.Rename(ctx, key+":away", key).Err())
		}
	case action == 2 && exists && e.persisted[keys[0]] == 0:
		expiry, err := e.client.PExpireTime(ctx, keys[0]).Result()
		require.NoError(t, err)
		other, err := e.client.Get(ctx, keys[1]).Result()
		require.NoError(t, err)
		e.dumps[keys[0]] = dumped{[2]string{value, other}, expiry.Milliseconds()}
	case action == 3 && isDumped && was.expiry > e.clock.unixMilli():
		for i, key := range keys {
			require.NoError(t, e.client.Do(ctx, "set", key, was.values[i], "pxat", was.expiry).Err())
		}
		e.value[keys[0]], e.written[keys[0]] = was.values[0], e.clock.unixMilli()
		delete(e.persisted, keys[0])
	}
}

// look checks the expiry of each key of the first store, and lets those expire whose time has come.
func (e *expiring) look(ctx context.Context, t *rapid.T) {
	now := e.clock.unixMilli()
	for _, b := range e.policies[0] {
		key := e.stores[0].BucketKey(e.tenant, b.Owner)
		text, err := e.client.Get(ctx, key).Result()
		if errors.Is(err, redis.Nil) {
			delete(e.value, key)
			continue
		}
		require.NoError(t, err)
		full, err := bucket.FullAt(text)
		require.NoError(t, err)
		expires, err := e.client.PExpireTime(ctx, key).Result()
		require.NoError(t, err)
		expiry := expires.Milliseconds()
		if text != e.value[key] {
			e.value[key], e.written[key] = text, now
			if e.expiry[key] == expiry {
				e.kept++
			} else {
				e.set++
			}
			e.expiry[key] = expiry
		}
		if was := e.persisted[key]; was > 0 && expires < 0 {
			require.LessOrEqual(t, full, was, "the first write after the old expiry gives the key a new one")
			continue
		}
		delete(e.persisted, key)
		require.GreaterOrEqual(t, expiry, full, "a key dies before it is full: %q", text)
		require.LessOrEqual(t, expiry, latest(full, e.written[key]), "a key lives on, written at %d, full at %d: %q", e.written[key], full, text)
		if expiry <= now {
			require.NoError(t, e.client.Del(ctx, key).Err())
			delete(e.value, key)
			e.gone = max(e.gone, expiry)
		}
	}
}

// TestNoKeyDiesBeforeItIsFullNorLivesOnForLong draws histories of takes, settlements, grants, override records, policies, clocks
// that jump, and operators.
func TestNoKeyDiesBeforeItIsFullNorLivesOnForLong(t *testing.T) {
	t.Parallel()
	ctx, client := t.Context(), patientClient(t, redistest.Start(t).Addr)
	e := &expiring{client: client, clock: newClock()}
	for i, namespace := range []string{"expires", "never"} {
		store, err := bucket.NewRedis(bucket.RedisConfig{Client: client, Timeout: patience, Namespace: namespace})
		require.NoError(t, err)
		require.NoError(t, store.SetTestClock(e.clock.unixMilli))
		e.stores[i] = store
	}
	rapid.Check(t, func(t *rapid.T) {
		e.begin(t)
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			e.step(ctx, t)
			e.look(ctx, t)
		}
	})
	t.Logf("%d histories: %d writes left the expiry alone, %d set it", e.runs, e.kept, e.set)
	require.Greater(t, e.kept, e.set/10)
}
