package audit_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/audit"
	_ "github.com/gqlgen-ratelimit/ratelimit/internal/seed"
)

// filled is a log with so many entries.
func filled(t testing.TB, entries int) *memory {
	t.Helper()
	log := &memory{}
	for n := range entries {
		_, err := audit.Append(context.Background(), log, entry(n))
		require.NoError(t, err)
	}
	return log
}

// export exports a log.
func export(t testing.TB, log audit.Reader) []byte {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, audit.Export(context.Background(), log, &b))
	return b.Bytes()
}

// verify verifies an export.
func verify(export []byte, known *audit.Mark) error {
	_, err := audit.Verify(bytes.NewReader(export), known)
	return err
}

// requireTampered holds that an error names a row.
func requireTampered(t testing.TB, row int64, err error) {
	t.Helper()
	var tampered *audit.TamperError
	require.ErrorAs(t, err, &tampered)
	require.Equal(t, row, tampered.Row, tampered.Problem)
}

func TestVerifyReportsTheLastRow(t *testing.T) {
	t.Parallel()
	log := filled(t, 70)
	rows, err := log.Rows(t.Context(), 69, 1)
	require.NoError(t, err)
	want := &audit.Report{Rows: 70, Last: audit.Mark{Sequence: 69, Hash: rows[0].Hash}}
	report, err := audit.Verify(bytes.NewReader(export(t, log)), nil)
	require.NoError(t, err)
	require.Equal(t, want, report)
	report, err = audit.VerifyLog(t.Context(), log, &report.Last)
	require.NoError(t, err)
	require.Equal(t, want, report)
	report, err = audit.Verify(strings.NewReader(""), nil)
	require.NoError(t, err)
	require.Zero(t, report.Rows)
}

func TestEachMutantIsFound(t *testing.T) {
	t.Parallel()
	for _, m := range mutants(filled(t, 7).rows) {
		log := &memory{m.rows}
		_, err := audit.VerifyLog(t.Context(), log, nil)
		requireTampered(t, m.row, err)
		requireTampered(t, m.row, verify(export(t, log), nil))
	}
}

func TestATailThatWasCutOffIsFoundByAKnownRow(t *testing.T) {
	t.Parallel()
	log := filled(t, 9)
	known := audit.Mark{Sequence: 6, Hash: log.rows[6].Hash}
	for size := range 10 {
		cut := &memory{log.rows[:size]}
		_, err := audit.VerifyLog(t.Context(), cut, nil)
		require.NoError(t, err)
		if _, err = audit.VerifyLog(t.Context(), cut, &known); size <= 6 {
			requireTampered(t, int64(size), err)
		} else {
			require.NoError(t, err)
		}
	}
}

// TestEachFlippedByteIsFound flips each byte of an export, the ends of lines included.
func TestEachFlippedByteIsFound(t *testing.T) {
	t.Parallel()
	whole := export(t, filled(t, 3))
	require.NoError(t, verify(whole, nil))
	row := int64(0)
	for i, c := range whole {
		for _, mask := range []byte{0x01, 0x04, 0x20, 0x80} {
			whole[i] = c ^ mask
			requireTampered(t, row, verify(whole, nil))
		}
		if whole[i] = c; c == '\n' {
			row++
		}
	}
	require.NoError(t, verify(whole, nil))
}

// TestALogThatWasWrittenAnewIsFoundByAKnownRow is the attack of someone who writes the database.
func TestALogThatWasWrittenAnewIsFoundByAKnownRow(t *testing.T) {
	t.Parallel()
	report, err := audit.VerifyLog(t.Context(), filled(t, 5), nil)
	require.NoError(t, err)
	for at := range 8 {
		forged := &memory{}
		for n := range 8 {
			e := entry(n)
			if n == at {
				e.Actor.Subject = "eve"
			}
			_, err := audit.Append(t.Context(), forged, e)
			require.NoError(t, err)
		}
		whole := export(t, forged)
		require.NoError(t, verify(whole, nil), "nothing but a known row tells")
		if at < 5 {
			requireTampered(t, 4, verify(whole, &report.Last))
		} else {
			require.NoError(t, verify(whole, &report.Last), "what follows the known row")
		}
	}
}

func TestAnExportThatIsNoneIsRefused(t *testing.T) {
	t.Parallel()
	whole := export(t, filled(t, 2))
	first := bytes.IndexByte(whole, '\n') + 1
	requireTampered(t, 1, verify(whole[:len(whole)-1], nil))
	requireTampered(t, 1, verify(append(bytes.Clone(whole[:first]), bytes.Repeat([]byte("x"), 10<<20)...), nil))
	requireTampered(t, 0, verify([]byte("{}\n"), nil))
	requireTampered(t, 0, verify([]byte("\n"), nil))
	_, err := audit.Verify(io.MultiReader(bytes.NewReader(whole[:first]), brokenReader{}), nil)
	require.ErrorIs(t, err, errBroken)
}

var errBroken = errors.New("the disk is broken")

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, errBroken }

func TestAMarkHasOneText(t *testing.T) {
	t.Parallel()
	mark := audit.Mark{Sequence: 12, Hash: audit.ChainHash(audit.Hash{}, []byte("{}"))}
	read, err := audit.ParseMark(mark.String())
	require.NoError(t, err)
	require.Equal(t, mark, read)
	digits := mark.Hash.String()
	for _, wrong := range []string{"", "12", "12:", "-1:" + digits, "x:" + digits, "12:" + digits[1:], "12:" + strings.ToUpper(digits), "12:" + strings.Repeat("x", 64)} {
		_, err := audit.ParseMark(wrong)
		require.Error(t, err, wrong)
	}
}

// TestChangesOfLargerLogsAreFound draws logs, and changes of the bytes and lines of their exports.
func TestChangesOfLargerLogsAreFound(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		log := filled(t, rapid.IntRange(1, 200).Draw(r, "entries"))
		report, err := audit.VerifyLog(context.Background(), log, nil)
		require.NoError(r, err)
		whole := export(t, log)
		changed := bytes.Clone(whole)
		switch rapid.SampledFrom([]string{"flip", "cut", "insert", "lines"}).Draw(r, "change") {
		case "flip":
			changed[rapid.IntRange(0, len(whole)-1).Draw(r, "at")] ^= byte(rapid.IntRange(1, 255).Draw(r, "with"))
		case "cut":
			at := rapid.IntRange(0, len(whole)-1).Draw(r, "at")
			changed = slices.Delete(changed, at, at+rapid.IntRange(1, len(whole)-at).Draw(r, "bytes"))
		case "insert":
			changed = slices.Insert(changed, rapid.IntRange(0, len(whole)).Draw(r, "at"), rapid.SliceOfN(rapid.Byte(), 1, 20).Draw(r, "bytes")...)
		case "lines":
			lines := bytes.SplitAfter(whole, []byte("\n"))
			i, j := rapid.IntRange(0, len(lines)-2).Draw(r, "i"), rapid.IntRange(0, len(lines)-2).Draw(r, "j")
			lines[i], lines[j] = lines[j], lines[i]
			changed = bytes.Join(lines, nil)
		}
		if err := verify(changed, &report.Last); err == nil && !bytes.Equal(whole, changed) {
			r.Fatalf("%d bytes became %d, and nothing was found", len(whole), len(changed))
		}
	})
}

// FuzzVerify holds that an export which is verified is the export of its rows, whatever the bytes.
func FuzzVerify(f *testing.F) {
	f.Add(export(f, filled(f, 3)))
	f.Add([]byte("{}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		report, err := audit.Verify(bytes.NewReader(data), nil)
		if err == nil {
			require.EqualValues(t, bytes.Count(data, []byte("\n")), report.Rows)
			require.NoError(t, verify(data, &report.Last))
		}
	})
}

// FuzzParseRecord holds that a record that is read can be written again, and says the same then.
func FuzzParseRecord(f *testing.F) {
	e := whole()
	record, err := e.Record()
	require.NoError(f, err)
	f.Add(record)
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := audit.ParseRecord(data)
		if err != nil {
			return
		}
		written, err := e.Record()
		require.NoError(t, err)
		read, err := audit.ParseRecord(written)
		require.NoError(t, err)
		again, err := read.Record()
		require.NoError(t, err)
		require.Equal(t, string(written), string(again))
	})
}
