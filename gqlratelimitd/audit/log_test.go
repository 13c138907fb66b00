package audit_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/audit"
)

func TestAppendNumbersEntriesAndStoresWhatItReturns(t *testing.T) {
	t.Parallel()
	log := &memory{}
	for n := range 3 {
		e := whole()
		e.Sequence = 99
		e.Time = time.Date(2026, 11, 22, 21, 0, 0, 123456789, time.FixedZone("CET", 3600))
		stored, err := audit.Append(t.Context(), log, e)
		require.NoError(t, err)
		require.EqualValues(t, n, stored.Sequence)
		require.Equal(t, time.Date(2026, 11, 22, 20, 0, 0, 123456000, time.UTC), stored.Time)
		rows, err := log.Rows(t.Context(), int64(n), 1)
		require.NoError(t, err)
		record, err := stored.Record()
		require.NoError(t, err)
		require.Equal(t, record, rows[0].Record)
	}
}

func TestWhatIsNoEntryIsNotAppended(t *testing.T) {
	t.Parallel()
	log := &memory{}
	_, err := audit.Append(t.Context(), log, audit.Entry{Action: "a"})
	var wrong *audit.EntryError
	require.ErrorAs(t, err, &wrong)
	size, err := log.Size(t.Context())
	require.NoError(t, err)
	require.Zero(t, size)
}
