package audit_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/audit"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/audit/audittest"
)

func TestACheckpointHasTheseLines(t *testing.T) {
	t.Parallel()
	const private = "PRIVATE+KEY+log.example.org+b1db5813+AQABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f"
	key, err := audit.ParseKey(" " + private + "\n")
	require.NoError(t, err)
	require.Equal(t, "log.example.org+b1db5813+AQOhB7/zzhC+HXDdGOdLwJln5NYwm6UNXx3chmQSVTG4", key.Public())
	log := &audittest.Memory{}
	fill(t, log, 0, 3)
	signed := sign(t, newSigner(t, log, key))
	root, err := audit.Root(t.Context(), log, 3)
	require.NoError(t, err)
	text, _, _ := bytes.Cut(signed, []byte("\n\n"))
	require.Equal(t, "log.example.org\n3\n"+root.String()+"\ntime 2026-11-22T20:00:00.123456Z\nkey "+key.Public(), string(text))
	c, err := audit.OpenCheckpoint(signed, newKey(t).Public(), key.Public())
	require.NoError(t, err)
	require.Equal(t, &audit.Checkpoint{
		Name: "log.example.org", Size: 3, Root: root, Time: time.Date(2026, 11, 22, 20, 0, 0, 123456000, time.UTC), Key: key.Public(),
	}, c)
	for i := range signed {
		forged := bytes.Clone(signed)
		forged[i] ^= 1
		_, err := audit.OpenCheckpoint(forged, key.Public())
		require.Error(t, err, "byte %d", i)
	}
}

func TestACheckpointHasOneTextAndOneSignature(t *testing.T) {
	t.Parallel()
	private, _, err := audit.NewKey(logName)
	require.NoError(t, err)
	key, err := audit.ParseKey(private)
	require.NoError(t, err)
	log := &audittest.Memory{}
	fill(t, log, 0, 2)
	signed := string(sign(t, newSigner(t, log, key)))
	signer, err := note.NewSigner(private)
	require.NoError(t, err)
	text, signature, _ := strings.Cut(signed, "\n\n")
	resigned := func(text string) string {
		again, err := note.Sign(&note.Note{Text: text + "\n"}, signer)
		require.NoError(t, err)
		return string(again)
	}
	require.Equal(t, signed, resigned(text))
	for name, other := range map[string]string{
		"the signature twice":  signed + signature,
		"a signature more":     signed + strings.Replace(signature, "— ", "— x", 1),
		"a line more":          resigned(text + "\nmore"),
		"a line less":          resigned(text[:strings.LastIndex(text, "\n")]),
		"no name of the key":   resigned(strings.Replace(text, "\nkey ", "\n", 1)),
		"another time":         resigned(strings.Replace(text, "456Z", "456000Z", 1)),
		"a size with a plus":   resigned(strings.Replace(text, "\n2\n", "\n+2\n", 1)),
		"a negative size":      resigned(strings.Replace(text, "\n2\n", "\n-2\n", 1)),
		"a size that is none":  resigned(strings.Replace(text, "\n2\n", "\ntwo\n", 1)),
		"a root that is none":  resigned(strings.Replace(text, "=\ntime", "\ntime", 1)),
		"a key of another log": resigned(strings.Replace(text, key.Name()+"\n", "other\n", 1)),
	} {
		_, err := audit.OpenCheckpoint([]byte(other), key.Public())
		require.Error(t, err, name)
	}
}

func TestAPrivateKeyIsNotPrinted(t *testing.T) {
	t.Parallel()
	private, public, err := audit.NewKey(logName)
	require.NoError(t, err)
	key, err := audit.ParseKey(private)
	require.NoError(t, err)
	var logged bytes.Buffer
	slog.New(slog.NewJSONHandler(&logged, nil)).Info("key", "key", key, "in", struct{ Key *audit.Key }{key})
	for _, text := range []string{fmt.Sprintf("%v %+v %#v %s", key, key, key, key), logged.String()} {
		require.NotContains(t, text, private[len(private)-30:])
		require.Contains(t, text, public)
	}
	for _, wrong := range []string{"", "rubbish-secret", public, private[:len(private)-4], "PRIVATE+KEY+a+00000000+" + private[len(private)-44:]} {
		_, err := audit.ParseKey(wrong)
		require.EqualError(t, err, "audit: not a private key of a log, as NewKey returns it")
	}
	for _, name := range []string{"", "a b", "a+b", "a\nb", "é"} {
		_, _, err := audit.NewKey(name)
		require.Error(t, err, name)
	}
}

func TestACheckpointIsSignedOnlyWhereTheLogHasGrown(t *testing.T) {
	t.Parallel()
	log, key := &audittest.Memory{}, newKey(t)
	var told [][]byte
	signer, err := audit.NewSigner(log, audit.SignerConfig{Key: key, OnCheckpoint: func(signed []byte) { told = append(told, signed) }})
	require.NoError(t, err)
	require.Nil(t, sign(t, signer), "an empty log")
	newest, err := signer.Status()
	require.NoError(t, err)
	require.Nil(t, newest)
	fill(t, log, 0, 1)
	first := sign(t, signer)
	require.Equal(t, first, sign(t, signer))
	require.Equal(t, first, sign(t, newSigner(t, log, key)), "another service of the same log")
	fill(t, log, 1, 3)
	second := sign(t, signer)
	require.NotEqual(t, first, second)
	require.Equal(t, [][]byte{first, second}, told)
	newest, err = signer.Status()
	require.NoError(t, err)
	require.EqualValues(t, 3, newest.Size)
}

func TestSignersSayAllMistakesAtOnce(t *testing.T) {
	t.Parallel()
	_, err := audit.NewSigner(&audittest.Memory{}, audit.SignerConfig{Every: time.Millisecond})
	require.ErrorContains(t, err, "SignerConfig.Key is missing")
	require.ErrorContains(t, err, "SignerConfig.Every is 1ms")
}

func TestRunSignsWhereSomethingHasChangedAndOnceMoreAtTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log := &audittest.Memory{}
		sizes := make(chan int64, 10)
		signer, err := audit.NewSigner(log, audit.SignerConfig{Key: newKey(t), OnCheckpoint: func([]byte) {
			size, _ := log.Size(context.Background())
			sizes <- size
		}})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { signer.Run(ctx); close(done) }()
		fill(t, log, 0, 2)
		wait := func(d time.Duration) { <-time.After(d); synctest.Wait() }
		wait(59 * time.Second)
		require.Empty(t, sizes)
		wait(time.Second)
		require.EqualValues(t, 2, <-sizes)
		wait(10 * time.Minute)
		require.Empty(t, sizes, "nothing has changed")
		fill(t, log, 2, 3)
		cancel()
		<-done
		require.EqualValues(t, 3, <-sizes, "what came last is covered")
	})
}

// tampered is a log in which somebody with rights on the database has changed something.
type tampered struct {
	*audittest.Memory
	record func(sequence int64, record []byte) []byte
	hash   func(index int64, hash tlog.Hash) tlog.Hash
	less   int64
	newest []byte
}

func (l *tampered) Change(ctx context.Context, change func(context.Context, audit.Storage) error) error {
	return l.Memory.Change(ctx, func(ctx context.Context, _ audit.Storage) error { return change(ctx, l) })
}

func (l *tampered) Size(ctx context.Context) (int64, error) {
	size, err := l.Memory.Size(ctx)
	return size - l.less, err
}

func (l *tampered) Newest(ctx context.Context) ([]byte, error) {
	if l.newest != nil {
		return l.newest, nil
	}
	return l.Memory.Newest(ctx)
}

func (l *tampered) Records(ctx context.Context, from int64, n int) ([][]byte, error) {
	records, err := l.Memory.Records(ctx, from, n)
	if l.record != nil {
		for i := range records {
			records[i] = l.record(from+int64(i), records[i])
		}
		records = slices.DeleteFunc(records, func(r []byte) bool { return r == nil })
	}
	return records, err
}

func (l *tampered) Hashes(ctx context.Context, indexes []int64) ([]tlog.Hash, error) {
	hashes, err := l.Memory.Hashes(ctx, indexes)
	if l.hash != nil {
		for i := range hashes {
			hashes[i] = l.hash(indexes[i], hashes[i])
		}
	}
	return hashes, err
}

// TestNothingIsSignedOverALogThatWasTamperedWith holds that a service does not give its name to whatever the database says.
func TestNothingIsSignedOverALogThatWasTamperedWith(t *testing.T) {
	t.Parallel()
	key := newKey(t)
	for name, tamper := range map[string]func(*tampered){
		"a record of before was changed with its hashes": func(l *tampered) {
			l.hash = func(index int64, h tlog.Hash) tlog.Hash {
				if index == tlog.StoredHashIndex(2, 0) {
					h[0] ^= 1
				}
				return h
			}
		},
		"a record since was changed": func(l *tampered) {
			l.record = func(sequence int64, r []byte) []byte {
				if sequence == 6 {
					return bytes.Replace(r, []byte("ada"), []byte("eve"), 1)
				}
				return r
			}
		},
		"a record since was removed": func(l *tampered) {
			l.record = func(sequence int64, r []byte) []byte {
				if sequence == 6 {
					return nil
				}
				return r
			}
		},
		"records since are no records": func(l *tampered) { l.record = func(int64, []byte) []byte { return []byte("{}") } },
		"all records are gone":         func(l *tampered) { l.record = func(int64, []byte) []byte { return nil } },
		"entries are gone":             func(l *tampered) { l.less = 4 },
		"a hash since was changed": func(l *tampered) {
			l.hash = func(index int64, h tlog.Hash) tlog.Hash {
				if index == tlog.StoredHashIndex(0, 6) {
					h[0] ^= 1
				}
				return h
			}
		},
	} {
		log := &tampered{Memory: &audittest.Memory{}}
		signer := newSigner(t, log, key)
		fill(t, log, 0, 5)
		sign(t, signer)
		fill(t, log, 5, 7)
		tamper(log)
		for _, s := range []*audit.Signer{signer, newSigner(t, log, key)} {
			var found *audit.TamperError
			_, err := s.Sign(t.Context(), time.Now())
			require.ErrorAs(t, err, &found, name)
			_, err = s.Status()
			require.ErrorAs(t, err, &found, name)
		}
	}
}

// TestASignerDoesNotForgetWhatItHasSigned holds against who puts an earlier state back, checkpoints and all: as long as the service
// runs, it knows better.
func TestASignerDoesNotForgetWhatItHasSigned(t *testing.T) {
	t.Parallel()
	key := newKey(t)
	log := &tampered{Memory: &audittest.Memory{}}
	signer := newSigner(t, log, key)
	fill(t, log, 0, 5)
	first := sign(t, signer)
	fill(t, log, 5, 7)
	sign(t, signer)
	log.less, log.newest = 2, first
	var found *audit.TamperError
	_, err := signer.Sign(t.Context(), time.Now())
	require.ErrorAs(t, err, &found)
	require.EqualValues(t, 5, found.From)
	require.EqualValues(t, 7, found.To)

	// Another log of the same key, and of the same size.
	other := &audittest.Memory{}
	fill(t, other, 1, 10)
	sign(t, newSigner(t, other, key))
	log.Memory, log.less, log.newest = other, 0, nil
	_, err = signer.Sign(t.Context(), time.Now())
	require.ErrorAs(t, err, &found)
	require.EqualValues(t, 0, found.From)
}

// failing is a log that cannot be changed.
type failing struct{ err error }

func (l failing) Change(context.Context, func(context.Context, audit.Storage) error) error {
	return l.err
}

func TestRunGoesOnAfterAFailureAndSaysIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var logged bytes.Buffer
		signer, err := audit.NewSigner(failing{errors.New("the database is away")}, audit.SignerConfig{
			Key: newKey(t), Logger: slog.New(slog.NewTextHandler(&logged, nil)),
		})
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 150*time.Second)
		defer cancel()
		signer.Run(ctx)
		require.Equal(t, 3, bytes.Count(logged.Bytes(), []byte("the database is away")))
	})
}
