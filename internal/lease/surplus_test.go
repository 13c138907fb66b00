package lease_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/internal/lease"
	"github.com/gqlgen-ratelimit/ratelimit/internal/state"
)

// exchanged has a holder exchange, and do something before it is answered. It returns what the holder gave back of its level.
func exchanged(t *testing.T, h *lease.Holder, now, level int64, meanwhile func()) int64 {
	t.Helper()
	m, ok := h.Begin(now, false)
	require.True(t, ok)
	meanwhile()
	given := state.Given{Level: level, DueCapacity: 100}
	if m.Number == 1 {
		given.Capacity = 100
	}
	require.True(t, h.Receive(now, now, &m, &state.ExchangeAnswer{Status: state.Exchanged, Holders: 1, Given: []state.Given{given}}, 0))
	return m.Limits[0].GivesLevel
}

func TestWhatIsPutBackAndFindsNoRoomIsTheStores(t *testing.T) {
	t.Parallel()
	nothing := func() {}
	for name, put := range map[string]func(t *testing.T, h *lease.Holder, back func()){
		"after the part was filled": func(t *testing.T, h *lease.Holder, back func()) {
			t.Helper()
			require.Zero(t, exchanged(t, h, 2, 60, nothing))
			back()
		},
		"while the part is filled": func(t *testing.T, h *lease.Holder, back func()) {
			t.Helper()
			require.Zero(t, exchanged(t, h, 2, 60, back))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clock := func() int64 { return 1 }
			h := lease.New([]lease.Limit{{Unit: 1, Capacity: 1000, Rate: 1}}, func() [8]byte { return [8]byte{1} })
			require.Zero(t, exchanged(t, h, 1, 100, nothing))
			_, ok := h.Take(1, []int64{60}, clock)
			require.True(t, ok)
			mark := h.Mark()
			put(t, h, func() { h.PutBack(2, mark, []int64{60}) })
			require.Equal(t, lease.Holding{Capacity: 100, Level: 100}, h.Holds(0, 2))
			require.EqualValues(t, 60, exchanged(t, h, 3, 0, nothing))
			require.Zero(t, exchanged(t, h, 4, 0, nothing), "once")
		})
	}
}
