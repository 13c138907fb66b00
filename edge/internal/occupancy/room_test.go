package occupancy_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/edge/internal/occupancy"
)

func TestASiteHasFourTimesAsMuchInsideAsAClient(t *testing.T) {
	t.Parallel()
	r := occupancy.New(-1, 2)
	for _, client := range []string{"a", "b", "c", "d"} {
		require.Equal(t, occupancy.Entered, r.Enter(client, "site", 2), client)
		require.Equal(t, occupancy.Crowded, r.Enter(client, "site", 1), client)
	}
	require.Equal(t, occupancy.Crowded, r.Enter("e", "site", 1))
	require.Equal(t, occupancy.Entered, r.Enter("e", "", 1), "of no site")
	require.Equal(t, 9, r.Total())
	r.Leave("a", "site", 2)
	require.Equal(t, occupancy.Entered, r.Enter("e", "site", 1))
}

func TestNobodyHasMoreInsideThanThereIsRoomLeft(t *testing.T) {
	t.Parallel()
	r := occupancy.New(8, -1)
	require.Equal(t, occupancy.Roomless, r.Enter("a", "", 9))
	require.Equal(t, occupancy.Entered, r.Enter("a", "", 4), "half")
	require.Equal(t, occupancy.Roomless, r.Enter("a", "", 1))
	require.Equal(t, occupancy.Entered, r.Enter("b", "", 2), "half of what is left")
	require.Equal(t, occupancy.Entered, r.Enter("", "", 2), "who is nobody has all that is left")
	require.Equal(t, occupancy.Roomless, r.Enter("", "", 1))
}
