package bucket_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// failingSettler is a store one of whose settlements fails.
type failingSettler struct {
	*bucket.Memory
	// fail decides about the next settlement of a receipt, which it may have done. Usage is told beside it.
	fail atomic.Pointer[func(settle func() (bucket.Settled, error)) error]
}

// Settle implements [bucket.Store].
func (s *failingSettler) Settle(ctx context.Context, settlement bucket.Settlement) (bucket.Settled, error) {
	if settlement.Receipt.IsZero() {
		return s.Memory.Settle(ctx, settlement)
	}
	if fail := s.fail.Swap(nil); fail != nil {
		if err := (*fail)(func() (bucket.Settled, error) { return s.Memory.Settle(ctx, settlement) }); err != nil {
			return bucket.Settled{}, err
		}
	}
	return s.Memory.Settle(ctx, settlement)
}

func isAway(func() (bucket.Settled, error)) error {
	return fmt.Errorf("%w: once", bucket.ErrUnavailable)
}

func losesItsAnswer(settle func() (bucket.Settled, error)) error {
	if _, err := settle(); err != nil {
		return err
	}
	return fmt.Errorf("%w: once", bucket.ErrAmbiguous)
}

// A window of a day has no refill that would hide what is lost.
var wholeDay = bucket.Limit{Name: "day", Capacity: 80_000, Refill: 80_000, Period: 24 * time.Hour, Window: bucket.Window{Kind: bucket.FixedWindow}}

func TestASettlementThatFailedInPartIsDoneWholeAndOnceWhenItIsTriedAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		// returned says that the lease is given back before the settlement, and mixed that the store was charged as well.
		returned, mixed bool
		fail            func(func() (bucket.Settled, error)) error
	}{
		"the lease was given back, and the store is away":         {true, false, isAway},
		"the lease was given back, and the store is not heard":    {true, false, losesItsAnswer},
		"the store was charged as well, and is away":              {false, true, isAway},
		"the store was charged as well, and is not heard":         {false, true, losesItsAnswer},
		"both, and the store is not heard":                        {true, true, losesItsAnswer},
		"the lease is held, and nobody else was charged":          {false, false, nil},
		"the lease was given back, and everything goes well":      {true, false, nil},
		"the store was charged as well, and everything goes well": {false, true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store := &failingSettler{Memory: bucket.NewMemory(bucket.MemoryConfig{})}
				leased := bucket.NewLeased(store, bucket.LeasedConfig{})
				leased.Allow(true)
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					leased.Run(ctx)
				}()
				tenant := bucket.Bucket{Limits: compile(t, wholeDay)}
				take := func(n int64, lease bucket.LeaseMode, buckets ...bucket.Bucket) bucket.Result {
					result, err := leased.Take(t.Context(), bucket.Take{Tenant: "acme", Buckets: buckets, Amounts: points(n), Lease: lease, Usage: &bucket.Usage{}})
					require.NoError(t, err)
					require.Equal(t, bucket.Admitted, result.Verdict)
					return result
				}
				used := int64(0)
				for range 40 {
					take(10, bucket.LeaseAlways, tenant)
					used += 10
					time.Sleep(20 * time.Millisecond) //nolint:forbidigo // the clock of a synctest bubble
				}
				buckets := []bucket.Bucket{tenant}
				if c.mixed {
					buckets = append(buckets, bucket.Bucket{Owner: bucket.Owner{Level: bucket.User, Name: "bob"}, Limits: compile(t, wholeDay)})
				}
				result := take(100, bucket.LeaseAlways, buckets...)
				if c.returned {
					// Who does not lease ends the lease.
					take(7, bucket.LeaseOff, tenant)
					used += 7
				}
				if c.fail != nil {
					// What runs meanwhile does not take the failure away.
					synctest.Wait()
					store.fail.Store(&c.fail)
				}
				settlement := bucket.Settlement{Receipt: result.Receipt.Clone(), Actual: points(0)}
				settled, err := leased.Settle(t.Context(), settlement)
				if c.fail != nil {
					require.Error(t, err)
					settled, err = leased.Settle(t.Context(), settlement)
				}
				require.NoError(t, err)
				require.True(t, settled.Applied)
				settled, err = leased.Settle(t.Context(), settlement)
				require.NoError(t, err)
				require.False(t, settled.Applied, "it is settled")
				require.NoError(t, leased.Shutdown(t.Context()))
				cancel()
				<-ended
				left, err := store.Peek(t.Context(), "acme", []bucket.Bucket{tenant})
				require.NoError(t, err)
				require.Equal(t, wholeDay.Capacity-used, left[0].Remaining)
				counts := int64(0)
				for _, grade := range []bucket.UsageGrade{bucket.UsageExact, bucket.UsageLocal} {
					counts += counted(t, store, "acme", time.Now(), grade)[string(bucket.Points)]
				}
				require.Equal(t, used, counts)
			})
		})
	}
}
