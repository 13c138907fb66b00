package bucket_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
)

// movableLeases is a store that leases, and whose tenants move.
type movableLeases interface {
	bucket.LeaseStore
	bucket.Movable
}

// leasedMove is a tenant that a holder leases in one store while somebody else moves it to another one, whose clock is ahead.
type leasedMove struct {
	*testing.T
	clock    *clock
	from, to movableLeases
	holder   *bucket.Leased
	take     bucket.Take
	// level is what the envelope of the limit has left, in points, times a second.
	level int64
	// held and central are what was admitted by the holder and in the store of arrival.
	held, central int64
}

const (
	moveCapacity = 2000
	moveRefill   = 1000
)

// step lets a millisecond go by in which both want three points.
func (m *leasedMove) step(n int, arrived bool) {
	m.clock.advance(time.Millisecond)
	m.level = min(m.level+moveRefill, moveCapacity*1000)
	result, err := m.holder.Take(m.Context(), m.take)
	if err == nil && result.Verdict == bucket.Admitted {
		require.False(m, arrived, "who holds a lease of before admits nothing where the tenant has arrived elsewhere")
		m.admit(&m.held)
	}
	if arrived {
		result, err = m.to.Take(m.Context(), m.take)
		require.NoError(m, err)
		if result.Verdict == bucket.Admitted {
			m.admit(&m.central)
		}
	}
	if n%20 == 0 {
		m.holder.Tend(m.Context())
	}
}

func (m *leasedMove) admit(sum *int64) {
	*sum += 3
	m.level -= 3000
	require.GreaterOrEqual(m, m.level, int64(0), "no more is admitted in any time than one bucket has")
}

// move tries to move the tenant.
func (m *leasedMove) move() (arrived bool) {
	parcel, err := m.from.Leave(m.Context(), "acme", bucket.BelongingsOf(m.take.Buckets), 2)
	require.NoError(m, err)
	err = m.to.Arrive(m.Context(), "acme", []*bucket.Parcel{parcel}, 2)
	var leased *bucket.StillLeasedError
	if errors.As(err, &leased) {
		require.Positive(m, leased.Wait)
		require.LessOrEqual(m, leased.Wait, 3*time.Second)
		return false
	}
	require.NoError(m, err)
	return true
}

func moveLeased(t *testing.T, open func(ahead int64, c *clock) movableLeases) {
	t.Helper()
	c := newClock()
	m := &leasedMove{T: t, clock: c, from: open(0, c), to: open(3000, c), level: moveCapacity * 1000}
	epoch := c.now()
	m.holder = bucket.NewLeased(m.from, bucket.LeasedConfig{Patience: time.Microsecond, Clock: func() time.Duration { return c.now().Sub(epoch) }})
	m.holder.Allow(true)
	limits, err := bucket.Compile(bucket.Limit{Name: "second", Capacity: moveCapacity, Refill: moveRefill, Period: time.Second})
	require.NoError(t, err)
	m.take = bucket.Take{
		Tenant: "acme", Buckets: []bucket.Bucket{{Limits: limits}}, Amounts: bucket.Amounts{{Unit: bucket.Points, N: 3}}, Lease: bucket.LeaseAlways,
	}
	for n := range 1500 {
		m.step(n, false)
	}
	require.Positive(t, m.holder.Stats().Admitted)
	require.False(t, m.move(), "who holds a part may still spend it")
	arrived, after := false, 0
	for n := range 4000 {
		if !arrived && n%10 == 0 {
			arrived = m.move()
		}
		if m.step(n, arrived); !arrived {
			after++
		}
	}
	require.True(t, arrived)
	require.LessOrEqual(t, after, 3000, "milliseconds until the leases have ended")
	t.Logf("it arrived after %d ms; the holder has admitted %d, and the store of arrival %d", after, m.held, m.central)
	require.Positive(t, m.central, "what comes back is admitted there")
}

func TestATenantThatIsLeasedIsNotDoubledByAMoveBetweenMemories(t *testing.T) {
	t.Parallel()
	moveLeased(t, func(ahead int64, c *clock) movableLeases {
		return bucket.NewMemory(bucket.MemoryConfig{Clock: func() time.Time { return time.UnixMilli(c.unixMilli() + ahead) }})
	})
}

func TestATenantThatIsLeasedIsNotDoubledByAMoveBetweenRedises(t *testing.T) {
	t.Parallel()
	moveLeased(t, func(ahead int64, c *clock) movableLeases {
		store := newRedisStore(t, patientClient(t, redistest.Start(t).Addr))
		require.NoError(t, store.SetTestClock(func() int64 { return c.unixMilli() + ahead }))
		return store
	})
}
