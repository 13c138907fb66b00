package audit_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
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

func TestTheKeyOfALogIsRotated(t *testing.T) {
	t.Parallel()
	old, next, last := newKey(t), newKey(t), newKey(t)
	log := &audittest.Memory{}
	before := newSigner(t, log, old)
	fill(t, log, 0, 3)
	kept := sign(t, before)
	rotation := audittest.Entry(3)
	rotation.Action = "audit.rotate-key"
	require.NoError(t, audit.Rotate(t.Context(), log, old, next, rotation))
	fill(t, log, 4, 6)
	_, err := before.Sign(t.Context(), time.Now())
	require.ErrorIs(t, err, audit.ErrOtherKey, "the old key signs no more")
	keptLater := sign(t, newSigner(t, log, next))

	report, err := audit.Verify(bytes.NewReader(export(t, log)), audit.VerifyConfig{Keys: []string{old.Public()}, Kept: [][]byte{kept, keptLater}})
	require.NoError(t, err, "the old key vouches for the new one")
	require.Equal(t, next.Public(), report.Key)
	require.EqualValues(t, 6, report.Newest.Size)
	require.Equal(t, 2, report.Kept)
	require.Error(t, verify(export(t, log), next), "the new key does not vouch for the old one")
	var named string
	_, err = audit.Verify(bytes.NewReader(export(t, log)), audit.VerifyConfig{Keys: []string{old.Public()}, Each: func(e *audit.Entry) error {
		if e.Action == "audit.rotate-key" {
			named = string(e.After)
		}
		return nil
	}})
	require.NoError(t, err)
	requireText(t, `{"key":"`+next.Public()+`"}`, []byte(named))

	// The key is lost, and so nothing in the log vouches for the one that follows.
	require.ErrorIs(t, audit.Rotate(t.Context(), log, old, last, rotation), audit.ErrOtherKey)
	require.NoError(t, audit.Rotate(t.Context(), log, nil, last, rotation))
	require.Error(t, verify(export(t, log), old))
	_, err = audit.Verify(bytes.NewReader(export(t, log)), audit.VerifyConfig{Keys: []string{old.Public(), last.Public()}})
	require.NoError(t, err)
}

// TestARetiredKeySignsNoMore holds that who finds an old key cannot go on with the log.
func TestARetiredKeySignsNoMore(t *testing.T) {
	t.Parallel()
	old, next := newKey(t), newKey(t)
	log := &audittest.Memory{}
	fill(t, log, 0, 3)
	sign(t, newSigner(t, log, old))
	require.NoError(t, audit.Rotate(t.Context(), log, old, next, audittest.Entry(3)))
	whole := export(t, log)
	// The thief takes a log of the same entries and goes on with the old key, which never named another.
	forged := &audittest.Memory{}
	fill(t, forged, 0, 4)
	records, err := log.Records(t.Context(), 3, 1)
	require.NoError(t, err)
	forged = &audittest.Memory{}
	fill(t, forged, 0, 3)
	e, err := audit.ParseRecord(records[0])
	require.NoError(t, err)
	require.NoError(t, forged.Change(t.Context(), func(ctx context.Context, s audit.Storage) error {
		_, err := audit.Append(ctx, s, *e)
		return err
	}))
	fill(t, forged, 4, 5)
	sign(t, newSigner(t, forged, old))
	lines := bytes.SplitAfter(export(t, forged), []byte("\n"))
	addition := bytes.Join(lines[5:], nil)
	require.Contains(t, string(addition), "tenant-4")
	require.NoError(t, verify(whole, old))
	err = verify(append(bytes.Clone(whole), addition...), old)
	require.ErrorContains(t, err, "no key has signed")
	require.Error(t, verify(append(bytes.Clone(whole), addition...), old, nil))
}

func TestAKeyOfAnotherLogCannotTakeOver(t *testing.T) {
	t.Parallel()
	private, _, err := audit.NewKey("other.example.org")
	require.NoError(t, err)
	other, err := audit.ParseKey(private)
	require.NoError(t, err)
	log, key := &audittest.Memory{}, newKey(t)
	fill(t, log, 0, 3)
	sign(t, newSigner(t, log, key))
	for _, old := range []*audit.Key{key, nil} {
		require.ErrorContains(t, audit.Rotate(t.Context(), log, old, other, audittest.Entry(3)), "has the name of the log")
	}
	require.Error(t, audit.Rotate(t.Context(), log, key, nil, audittest.Entry(3)))
	_, err = newSigner(t, log, other).Sign(t.Context(), time.Now())
	require.ErrorIs(t, err, audit.ErrOtherKey)
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
