package audit_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/audit"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/audit/audittest"
	_ "github.com/gqlgen-ratelimit/ratelimit/internal/seed"
)

const logName = "log.example.org/ratelimit"

// newKey makes a key of the log of these tests.
func newKey(t testing.TB) *audit.Key {
	t.Helper()
	private, public, err := audit.NewKey(logName)
	require.NoError(t, err)
	key, err := audit.ParseKey(private)
	require.NoError(t, err)
	require.Equal(t, public, key.Public())
	return key
}

// newSigner is a signer of a log.
func newSigner(t testing.TB, log audit.Log, key *audit.Key) *audit.Signer {
	t.Helper()
	signer, err := audit.NewSigner(log, audit.SignerConfig{Key: key})
	require.NoError(t, err)
	return signer
}

// fill appends the entries with these numbers.
func fill(t testing.TB, log audit.Log, from, to int) {
	t.Helper()
	require.NoError(t, log.Change(context.Background(), func(ctx context.Context, s audit.Storage) error {
		for n := from; n < to; n++ {
			if _, err := audit.Append(ctx, s, audittest.Entry(n)); err != nil {
				return err
			}
		}
		return nil
	}))
}

// sign signs and returns the newest checkpoint.
func sign(t testing.TB, signer *audit.Signer) []byte {
	t.Helper()
	signed, err := signer.Sign(context.Background(), audittest.Entry(0).Time)
	require.NoError(t, err)
	return signed
}

// export exports a log.
func export(t testing.TB, log audit.Reader) []byte {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, audit.Export(context.Background(), log, &b))
	return b.Bytes()
}

// small is a log of 7 entries and 3 checkpoints: after 2, 5 and 7 entries.
func small(t testing.TB, key *audit.Key) (log *audittest.Memory, checkpoints [][]byte) {
	t.Helper()
	log = &audittest.Memory{}
	signer := newSigner(t, log, key)
	for _, part := range [][2]int{{0, 2}, {2, 5}, {5, 7}} {
		fill(t, log, part[0], part[1])
		checkpoints = append(checkpoints, sign(t, signer))
	}
	return log, checkpoints
}

func TestAnExportIsVerified(t *testing.T) {
	t.Parallel()
	key := newKey(t)
	log, checkpoints := small(t, key)
	var actions []int64
	report, err := audit.Verify(bytes.NewReader(export(t, log)), audit.VerifyConfig{
		Keys: []string{key.Public()}, Kept: checkpoints,
		Each: func(e *audit.Entry) error { actions = append(actions, e.Sequence); return nil },
	})
	require.NoError(t, err)
	require.Equal(t, []int64{0, 1, 2, 3, 4, 5, 6}, actions)
	newest, err := audit.OpenCheckpoint(checkpoints[2], key.Public())
	require.NoError(t, err)
	require.Equal(t, &audit.Report{Name: logName, Newest: *newest, Checkpoints: 3, Kept: 3, Key: key.Public()}, report)
}

// verify verifies an export against one key.
func verify(export []byte, key *audit.Key, kept ...[]byte) error {
	_, err := audit.Verify(bytes.NewReader(export), audit.VerifyConfig{Keys: []string{key.Public()}, Kept: kept})
	return err
}

// TestEachFlippedByteIsFound flips each byte of an export, the ends of lines included, and puts each other one in the place of those
// that end a signature: base64 leaves bits of the last one open.
func TestEachFlippedByteIsFound(t *testing.T) {
	t.Parallel()
	log, key := &audittest.Memory{}, newKey(t)
	signer := newSigner(t, log, key)
	for n := range 3 {
		if fill(t, log, n, n+1); n > 0 {
			sign(t, signer)
		}
	}
	whole := export(t, log)
	require.NoError(t, verify(whole, key))
	for i, c := range whole {
		masks := []byte{0x01, 0x04, 0x20, 0x80}
		if i+1 < len(whole) && whole[i+1] == '=' {
			for mask := byte(1); mask != 0; mask++ {
				masks = append(masks, mask)
			}
		}
		for _, mask := range masks {
			whole[i] = c ^ mask
			require.Error(t, verify(whole, key), "byte %d is %q, %q", i, whole[i], whole[max(0, i-40):min(len(whole), i+10)])
		}
		whole[i] = c
	}
	require.NoError(t, verify(whole, key))
}

// TestEachRemovedInsertedOrReorderedLineIsFound makes every such change of an export that there is with its own lines.
func TestEachRemovedInsertedOrReorderedLineIsFound(t *testing.T) {
	t.Parallel()
	key := newKey(t)
	log, kept := small(t, key)
	whole := export(t, log)
	lines := bytes.SplitAfter(bytes.TrimSuffix(whole, []byte("\n")), []byte("\n"))
	lines[len(lines)-1] = append(lines[len(lines)-1], '\n')
	isCheckpoint := func(i int) bool { return bytes.HasPrefix(lines[i], []byte(`{"checkpoint"`)) }
	require.Len(t, lines, 1+7+3)
	found := func(what string, changed [][]byte) {
		t.Helper()
		var tampered *audit.TamperError
		err := verify(bytes.Join(changed, nil), key, kept...)
		require.Error(t, err, what)
		if bytes.Equal(changed[0], lines[0]) {
			require.ErrorAs(t, err, &tampered, what)
			require.NotContains(t, err.Error(), "\n")
		}
	}
	for i := range lines {
		if !isCheckpoint(i) || i == len(lines)-1 {
			found(fmt.Sprintf("line %d removed", i), slices.Delete(slices.Clone(lines), i, i+1))
		}
		for to := range len(lines) + 1 {
			if isCheckpoint(i) && (to == i || to == i+1) {
				// The same checkpoint twice says nothing twice.
				continue
			}
			found(fmt.Sprintf("line %d again before %d", i, to), slices.Insert(slices.Clone(lines), to, lines[i]))
		}
		for j := range i {
			swapped := slices.Clone(lines)
			swapped[i], swapped[j] = swapped[j], swapped[i]
			found(fmt.Sprintf("lines %d and %d swapped", i, j), swapped)
		}
	}
	for n := range lines {
		found(fmt.Sprintf("cut after %d lines", n), slices.Insert(slices.Clone(lines[:n]), n, []byte(nil)))
	}
}

func TestWhatIsCutBehindACheckpointIsFoundByOneThatWasKept(t *testing.T) {
	t.Parallel()
	key := newKey(t)
	log, kept := small(t, key)
	whole := export(t, log)
	mark := []byte(`{"checkpoint"`)
	cut := whole[:bytes.Index(whole, mark)]
	cut = append(slices.Clone(cut), whole[len(cut):len(cut)+bytes.IndexByte(whole[len(cut):], '\n')+1]...)
	require.NoError(t, verify(cut, key), "it is the log of then")
	require.NoError(t, verify(cut, key, kept[0]))
	var tampered *audit.TamperError
	require.ErrorAs(t, verify(cut, key, kept[2]), &tampered)
	require.EqualValues(t, 2, tampered.From)
	require.EqualValues(t, 7, tampered.To)
}

// TestAChangeIsLocatedBetweenCheckpoints holds that what was covered before is known to hold.
func TestAChangeIsLocatedBetweenCheckpoints(t *testing.T) {
	t.Parallel()
	key := newKey(t)
	log, _ := small(t, key)
	changed := bytes.Replace(export(t, log), []byte("tenant-3 second"), []byte("tenant-3 minute"), 1)
	var tampered *audit.TamperError
	require.ErrorAs(t, verify(changed, key), &tampered)
	require.EqualValues(t, 2, tampered.From)
	require.EqualValues(t, 5, tampered.To)
	require.EqualError(t, verify(changed, key), "audit: entries 2 to 4: the next checkpoint is of 5 other ones")
}

// TestALogThatWasWrittenAnewIsFoundByACheckpointThatWasKept is the attack of who has database and key.
func TestALogThatWasWrittenAnewIsFoundByACheckpointThatWasKept(t *testing.T) {
	t.Parallel()
	key := newKey(t)
	_, kept := small(t, key)
	for name, rewrite := range map[string]func(*audit.Entry){
		"one letter": func(e *audit.Entry) { e.Reason = strings.Replace(e.Reason, "import", "export", 1) },
		"one actor":  func(e *audit.Entry) { e.Actor.Subject = "eve" },
	} {
		for at := range 7 {
			forged := &audittest.Memory{}
			signer := newSigner(t, forged, key)
			for n := range 9 {
				require.NoError(t, forged.Change(t.Context(), func(ctx context.Context, s audit.Storage) error {
					e := audittest.Entry(n)
					if n == at {
						rewrite(&e)
					}
					_, err := audit.Append(ctx, s, e)
					return err
				}))
				sign(t, signer)
			}
			whole := export(t, forged)
			require.NoError(t, verify(whole, key), "%s of entry %d: nothing but a kept checkpoint tells", name, at)
			for i, size := range []int{2, 5, 7} {
				err := verify(whole, key, kept[i])
				if at >= size {
					require.NoError(t, err, "what a checkpoint does not cover")
					continue
				}
				var tampered *audit.TamperError
				require.ErrorAs(t, err, &tampered, "%s of entry %d, the checkpoint of %d", name, at, size)
			}
		}
	}
}

func TestAnExportOfAnotherKeyIsRefused(t *testing.T) {
	t.Parallel()
	key, other := newKey(t), newKey(t)
	log, kept := small(t, key)
	whole := export(t, log)
	require.Error(t, verify(whole, other))
	_, err := audit.Verify(bytes.NewReader(whole), audit.VerifyConfig{})
	require.Error(t, err, "no key vouches for anything")
	_, err = audit.Verify(bytes.NewReader(whole), audit.VerifyConfig{Keys: []string{"rubbish"}})
	require.ErrorContains(t, err, "not a public key")
	_, foreign := small(t, other)
	require.ErrorContains(t, verify(whole, key, foreign[0]), "not of this log")
	// The same entries in a log of another name, whose key is known as well.
	private, _, err := audit.NewKey("other.example.org")
	require.NoError(t, err)
	named, err := audit.ParseKey(private)
	require.NoError(t, err)
	_, renamed := small(t, named)
	_, err = audit.Verify(bytes.NewReader(whole), audit.VerifyConfig{Keys: []string{key.Public(), named.Public()}, Kept: renamed})
	require.ErrorContains(t, err, "not of this log")
	require.Error(t, verify(whole, key, []byte("rubbish")))
	require.Error(t, verify(whole, key, append(bytes.Clone(kept[0]), '\n')))
}

func TestVerifyEndsWithTheErrorOfEach(t *testing.T) {
	t.Parallel()
	key := newKey(t)
	log, _ := small(t, key)
	enough := errors.New("enough")
	_, err := audit.Verify(bytes.NewReader(export(t, log)), audit.VerifyConfig{Keys: []string{key.Public()}, Each: func(*audit.Entry) error { return enough }})
	require.ErrorIs(t, err, enough)
	_, err = audit.Verify(io.MultiReader(bytes.NewReader(export(t, log)[:700]), brokenReader{}), audit.VerifyConfig{Keys: []string{key.Public()}})
	require.ErrorIs(t, err, errBroken)
}

var errBroken = errors.New("the disk is broken")

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, errBroken }

func TestALineThatIsTooLongIsRefused(t *testing.T) {
	t.Parallel()
	key := newKey(t)
	log, _ := small(t, key)
	whole := export(t, log)
	header := whole[:bytes.IndexByte(whole, '\n')+1]
	var tampered *audit.TamperError
	require.ErrorAs(t, verify(append(bytes.Clone(header), bytes.Repeat([]byte("x"), 10<<20)...), key), &tampered)
	require.Error(t, verify(bytes.Repeat([]byte("x"), 10<<20), key))
	require.Error(t, verify(nil, key))
}

// TestChangesOfLargerLogsAreFound draws logs with checkpoints anywhere, and changes of their lines.
func TestChangesOfLargerLogsAreFound(t *testing.T) {
	t.Parallel()
	key := newKey(t)
	rapid.Check(t, func(r *rapid.T) {
		log := &audittest.Memory{}
		signer := newSigner(t, log, key)
		for n := 0; n < 1+rapid.IntRange(0, 200).Draw(r, "entries"); {
			more := rapid.IntRange(1, 40).Draw(r, "more")
			fill(t, log, n, n+more)
			n += more
			sign(t, signer)
		}
		newest, err := log.Newest(context.Background())
		require.NoError(r, err)
		whole := export(t, log)
		require.NoError(r, verify(whole, key, newest))
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
		if err := verify(changed, key, newest); err == nil && !sameEntries(whole, changed) {
			r.Fatalf("%d bytes became %d, and nothing was found", len(whole), len(changed))
		}
	})
}

// sameEntries says whether two exports have the same entries in the same order. They may have other checkpoints of the same log: one may
// be missing, which takes no entry away.
func sameEntries(a, b []byte) bool {
	entries := func(export []byte) [][]byte {
		return slices.DeleteFunc(bytes.Split(export, []byte("\n")), func(line []byte) bool { return bytes.HasPrefix(line, []byte(`{"checkpoint"`)) })
	}
	return slices.EqualFunc(entries(a), entries(b), bytes.Equal)
}

// FuzzVerify holds that what is verified begins with the entries of the log that the key has signed, whatever the export.
func FuzzVerify(f *testing.F) {
	// Fuzzing runs in several processes, which have to have one key.
	key, err := audit.ParseKey("PRIVATE+KEY+log.example.org+b1db5813+AQABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f")
	require.NoError(f, err)
	log, kept := small(f, key)
	whole := export(f, log)
	f.Add(whole)
	f.Add([]byte(`{"format":"gqlratelimitd-audit-1","log":"log.example.org"}` + "\n"))
	line, err := json.Marshal(map[string]string{"checkpoint": string(kept[0])})
	require.NoError(f, err)
	f.Add(append(slices.Clone(whole), line...))
	f.Fuzz(func(t *testing.T, data []byte) {
		report, err := audit.Verify(bytes.NewReader(data), audit.VerifyConfig{Keys: []string{key.Public()}})
		if err == nil {
			require.True(t, slices.Contains([]int64{2, 5, 7}, report.Newest.Size))
			require.Equal(t, bytes.Split(whole, []byte("\n"))[1], bytes.Split(data, []byte("\n"))[1])
		}
	})
}

// FuzzParseRecord holds that a record that is read is written again as it was.
func FuzzParseRecord(f *testing.F) {
	e := whole()
	record, err := e.Record()
	require.NoError(f, err)
	f.Add(record)
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := audit.ParseRecord(data)
		if err == nil {
			again, err := e.Record()
			require.NoError(t, err)
			require.Equal(t, data, again)
			require.NotContains(t, string(data), "\n")
			require.WithinRange(t, e.Time, time.Unix(0, 0), time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC))
		}
	})
}
