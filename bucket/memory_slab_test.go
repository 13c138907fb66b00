package bucket_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// TestEntriesOfASlabLieBesideEachOtherHoweverManyThereAre goes from block to block up to the last entry that has a place: a slab of these
// takes 2 TB, of which nothing is made.
func TestEntriesOfASlabLieBesideEachOtherHoweverManyThereAre(t *testing.T) {
	t.Parallel()
	for class := range bucket.Slabs {
		t.Run(fmt.Sprint("slab ", class), func(t *testing.T) {
			t.Parallel()
			next, bytes := uint64(0), uint64(0)
			for number := uint32(0); next <= bucket.MaxSlot; number++ {
				block, from, size, whole := bucket.Span(class, uint32(next))
				require.Equal(t, number, block)
				require.Zero(t, from)
				require.Zero(t, whole%size)
				// The last one of the block, and the first one whose beginning 32 bits do not count.
				entries := uint64(whole / size)
				for _, n := range []uint64{entries, entries/2 + 1, (1<<32)/uint64(size) + 1} {
					if n > entries || next+n-1 > bucket.MaxSlot {
						continue
					}
					block, from, _, _ = bucket.Span(class, uint32(next+n-1))
					require.Equal(t, number, block)
					require.Equal(t, (n-1)*uint64(size), uint64(from))
				}
				next += entries
				bytes += uint64(whole)
			}
			require.GreaterOrEqual(t, bytes, uint64(48)<<30)
		})
	}
}
