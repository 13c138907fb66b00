package tiers_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

func TestRecordsWrittenAtOnceAreReadBackWhole(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	writer := tiers.NewRecordWriter(&log)
	at := time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)
	const writers, each = 8, 50
	var running sync.WaitGroup
	for range writers {
		running.Go(func() {
			for points := range int64(each) {
				if err := writer.Write(tiers.Record{At: at, Tenant: "acme", Points: points}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	running.Wait()
	read, sum := 0, int64(0)
	for record, err := range tiers.ReadRecords(strings.NewReader(log.String())) {
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
	require.Error(t, tiers.NewRecordWriter(&log).Write(tiers.Record{Tenant: "acme", Points: 1}))
	require.Empty(t, log.String())
}
