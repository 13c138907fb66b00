package audit_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/audit"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/audit/audittest"
)

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

// goneOn is an export with one entry more, which a key has signed that never named another.
func goneOn(t *testing.T, log *audittest.Memory, key *audit.Key) []byte {
	t.Helper()
	size, err := log.Size(t.Context())
	require.NoError(t, err)
	records, err := log.Records(t.Context(), 0, int(size))
	require.NoError(t, err)
	forged := &audittest.Memory{}
	for _, record := range records {
		e, err := audit.ParseRecord(record)
		require.NoError(t, err)
		_, err = audit.Append(t.Context(), forged, *e)
		require.NoError(t, err)
	}
	fill(t, forged, 900, 901)
	sign(t, newSigner(t, forged, key))
	lines := bytes.SplitAfter(export(t, forged), []byte("\n"))
	addition := bytes.Join(lines[1+size:], nil)
	require.Contains(t, string(addition), "tenant-900")
	return append(export(t, log), addition...)
}

// TestARetiredKeySignsNoMore holds that who finds an old key cannot go on with the log.
func TestARetiredKeySignsNoMore(t *testing.T) {
	t.Parallel()
	old, next, last := newKey(t), newKey(t), newKey(t)
	given := func(export []byte) error {
		_, err := audit.Verify(bytes.NewReader(export), audit.VerifyConfig{Keys: []string{old.Public(), next.Public(), last.Public()}})
		return err
	}
	log := &audittest.Memory{}
	fill(t, log, 0, 3)
	sign(t, newSigner(t, log, old))
	require.NoError(t, given(goneOn(t, log, old)))
	require.NoError(t, audit.Rotate(t.Context(), log, old, next, audittest.Entry(3)))
	require.ErrorContains(t, given(goneOn(t, log, old)), "no key has signed")
	require.NoError(t, given(goneOn(t, log, next)))
	require.NoError(t, audit.Rotate(t.Context(), log, nil, last, audittest.Entry(4)))
	require.ErrorContains(t, given(goneOn(t, log, old)), "no key has signed")
	require.ErrorContains(t, given(goneOn(t, log, next)), "no key has signed", "it was lost, and may have been found")
	require.NoError(t, given(goneOn(t, log, last)))
}

// TestAKeyThatHasNamedAnotherSignsNoMore holds also where the checkpoint of the other is gone.
func TestAKeyThatHasNamedAnotherSignsNoMore(t *testing.T) {
	t.Parallel()
	old, log := newKey(t), &tampered{Memory: &audittest.Memory{}}
	fill(t, log, 0, 3)
	require.NoError(t, audit.Rotate(t.Context(), log, nil, old, audittest.Entry(3)))
	require.NoError(t, audit.Rotate(t.Context(), log, old, newKey(t), audittest.Entry(4)))
	checkpoints, err := log.Checkpoints(t.Context(), 5, 1)
	require.NoError(t, err)
	log.newest = checkpoints[0]
	_, err = newSigner(t, log, old).Sign(t.Context(), time.Now())
	require.ErrorIs(t, err, audit.ErrOtherKey)
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
