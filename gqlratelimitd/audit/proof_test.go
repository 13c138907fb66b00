package audit_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/audit"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/audit/audittest"
)

// states returns a log of so many entries with the checkpoint of each of its sizes.
func states(t *testing.T, entries int) (*audittest.Memory, []*audit.Checkpoint) {
	t.Helper()
	log, key := &audittest.Memory{}, newKey(t)
	signer := newSigner(t, log, key)
	checkpoints := []*audit.Checkpoint{{Name: logName}}
	for n := range entries {
		fill(t, log, n, n+1)
		c, err := audit.OpenCheckpoint(sign(t, signer), key.Public())
		require.NoError(t, err)
		checkpoints = append(checkpoints, c)
	}
	return log, checkpoints
}

func TestEachEntryIsProvenAndNoOtherRecordIs(t *testing.T) {
	t.Parallel()
	const entries = 20
	log, checkpoints := states(t, entries)
	records, err := log.Records(t.Context(), 0, entries)
	require.NoError(t, err)
	for size := int64(1); size <= entries; size++ {
		for sequence := range size {
			proof, err := audit.ProveEntry(t.Context(), log, sequence, size)
			require.NoError(t, err)
			c := checkpoints[size]
			require.NoError(t, audit.CheckEntry(c, sequence, records[sequence], proof))
			var tampered *audit.TamperError
			other := (sequence + 1) % entries
			require.ErrorAs(t, audit.CheckEntry(c, sequence, records[other], proof), &tampered)
			require.ErrorAs(t, audit.CheckEntry(c, other, records[sequence], proof), &tampered)
			require.ErrorAs(t, audit.CheckEntry(checkpoints[size-1], sequence, records[sequence], proof), &tampered)
			require.Error(t, audit.CheckEntry(c, sequence, records[sequence], append(slices.Clone(proof), tlog.Hash{})))
			for i := range proof {
				forged := slices.Clone(proof)
				forged[i][3] ^= 1
				require.Error(t, audit.CheckEntry(c, sequence, records[sequence], forged))
			}
		}
	}
	require.EqualError(t, audit.CheckEntry(checkpoints[4], -1, records[0], nil), "audit: entry -1: the record is not proven to be this entry of the log")
	for _, wrong := range [][2]int64{{0, 21}, {20, 20}, {-1, 5}, {5, 5}, {0, 0}, {0, -1}} {
		_, err := audit.ProveEntry(t.Context(), log, wrong[0], wrong[1])
		require.Error(t, err, "%v", wrong)
	}
}

func TestGrowthIsProvenAndNothingElseIs(t *testing.T) {
	t.Parallel()
	const entries = 20
	log, checkpoints := states(t, entries)
	_, others := func() (*audittest.Memory, []*audit.Checkpoint) {
		forged, key := &audittest.Memory{}, newKey(t)
		signer := newSigner(t, forged, key)
		found := []*audit.Checkpoint{{Name: logName}}
		for n := range entries {
			fill(t, forged, n+100, n+101)
			c, err := audit.OpenCheckpoint(sign(t, signer), key.Public())
			require.NoError(t, err)
			found = append(found, c)
		}
		return forged, found
	}()
	for newer := int64(0); newer <= entries; newer++ {
		for older := range newer + 1 {
			proof, err := audit.ProveGrowth(t.Context(), log, older, newer)
			require.NoError(t, err)
			require.NoError(t, audit.CheckGrowth(checkpoints[older], checkpoints[newer], proof), "%d to %d", older, newer)
			if older == 0 {
				continue
			}
			var tampered *audit.TamperError
			require.ErrorAs(t, audit.CheckGrowth(others[older], checkpoints[newer], proof), &tampered)
			require.ErrorAs(t, audit.CheckGrowth(checkpoints[older], others[newer], proof), &tampered)
			if older < newer {
				require.ErrorAs(t, audit.CheckGrowth(checkpoints[newer], checkpoints[older], proof), &tampered)
			}
			for i := range proof {
				forged := slices.Clone(proof)
				forged[i][3] ^= 1
				require.Error(t, audit.CheckGrowth(checkpoints[older], checkpoints[newer], forged))
			}
		}
	}
	other := *checkpoints[5]
	other.Name = "other"
	require.Error(t, audit.CheckGrowth(&other, checkpoints[5], nil))
	for _, wrong := range [][2]int64{{5, 21}, {6, 5}, {-1, 5}, {0, -1}} {
		_, err := audit.ProveGrowth(t.Context(), log, wrong[0], wrong[1])
		require.Error(t, err, "%v", wrong)
	}
}

func TestALogWithoutACheckpointIsNotExported(t *testing.T) {
	t.Parallel()
	log := &audittest.Memory{}
	fill(t, log, 0, 3)
	require.ErrorIs(t, audit.Export(t.Context(), log, nil), audit.ErrUnsigned)
}

func TestAnExportEndsWithTheNewestCheckpointAndNotWithTheLog(t *testing.T) {
	t.Parallel()
	log, key := &audittest.Memory{}, newKey(t)
	signer := newSigner(t, log, key)
	// More entries and checkpoints than are read at once.
	for n := range 150 {
		fill(t, log, n, n+1)
		sign(t, signer)
	}
	fill(t, log, 150, 400)
	sign(t, signer)
	want := export(t, log)
	fill(t, log, 400, 405)
	require.Equal(t, want, export(t, log))
	report, err := audit.Verify(bytes.NewReader(want), audit.VerifyConfig{Keys: []string{key.Public()}})
	require.NoError(t, err)
	require.Equal(t, 151, report.Checkpoints)
	require.EqualValues(t, 400, report.Newest.Size)
	// What is signed while an export is written is left out.
	newest, err := log.Newest(t.Context())
	require.NoError(t, err)
	sign(t, signer)
	require.Equal(t, want, export(t, &tampered{Memory: log, newest: newest}))
	require.NotEqual(t, want, export(t, log))
}

// TestAnExportHasEachCheckpointWhereverAPageOfThemEnds holds where two checkpoints of one size are on two pages.
func TestAnExportHasEachCheckpointWhereverAPageOfThemEnds(t *testing.T) {
	t.Parallel()
	for before := 60; before < 68; before++ {
		log, key := &audittest.Memory{}, newKey(t)
		signer := newSigner(t, log, key)
		for n := range before {
			fill(t, log, n, n+1)
			sign(t, signer)
		}
		require.NoError(t, audit.Rotate(t.Context(), log, key, newKey(t), audittest.Entry(before)))
		report, err := audit.Verify(bytes.NewReader(export(t, log)), audit.VerifyConfig{Keys: []string{key.Public()}})
		require.NoError(t, err)
		require.Equal(t, before+2, report.Checkpoints)
	}
}
