package simulate_test

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/tiers/simulate"
)

func TestRecordsWrittenAtOnceAreReadBackWhole(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	writer := simulate.NewWriter(&log)
	at := time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)
	const writers, each = 8, 50
	var running sync.WaitGroup
	for range writers {
		running.Go(func() {
			for points := range int64(each) {
				if err := writer.Write(simulate.Record{At: at, Tenant: "acme", Points: points}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	running.Wait()
	read, sum := 0, int64(0)
	for record, err := range simulate.Read(strings.NewReader(log.String())) {
		require.NoError(t, err)
		read++
		sum += record.Points
	}
	require.Equal(t, writers*each, read)
	require.EqualValues(t, writers*each*(each-1)/2, sum)
}

func TestARecordThatCannotBeReplayedIsNotWritten(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	require.Error(t, simulate.NewWriter(&log).Write(simulate.Record{Tenant: "acme", Points: 1}))
	require.Empty(t, log.String())
}

func TestARecordThatIsTooLongForALineIsNotWritten(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)
	var log strings.Builder
	writer := simulate.NewWriter(&log)
	// The longest line that is read, found by what is left beside the name.
	require.NoError(t, writer.Write(simulate.Record{At: at, Tenant: "x"}))
	room := 64<<10 - log.Len() + 1
	require.NoError(t, writer.Write(simulate.Record{At: at, Tenant: strings.Repeat("x", room)}))
	require.ErrorContains(t, writer.Write(simulate.Record{At: at, Tenant: strings.Repeat("x", room+1)}), "64 KiB")
	fields := slices.Repeat([]string{"Query.aFieldWithALongName"}, 5000)
	require.ErrorContains(t, writer.Write(simulate.Record{At: at, Tenant: "x", Operations: fields}), "64 KiB")
	require.NoError(t, writer.Write(simulate.Record{At: at, Tenant: "last"}))
	var last simulate.Record
	for record, err := range simulate.Read(strings.NewReader(log.String())) {
		require.NoError(t, err)
		last = record
	}
	require.Equal(t, "last", last.Tenant)
}
