package policy_test

import (
	"crypto/ed25519"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/policy"
)

func TestOnlyWhatAKeyHasSignedHolds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		old, current, stranger := keyOf(1), keyOf(2), keyOf(3)
		feed := &memory{newest: signed(revision(1), old)}
		f, _ := follow(t, feed, policy.Config{Keys: []ed25519.PublicKey{publicOf(old), publicOf(current)}})
		moved := signed(revision(2), old)
		moved.Number = 3
		renamed := signed(revision(3), old)
		renamed.Author = "eve"
		shifted := &policy.Revision{Number: 3, Document: document(3), Hash: policy.HashOf(document(3)), Author: "ab", Reason: "c"}
		shifted.Sign(old)
		shifted.Author, shifted.Reason = "a", "bc"
		later := signed(revision(3), old)
		later.Published = time.Now()
		for name, r := range map[string]*policy.Revision{
			"no signature": revision(3), "a stranger": signed(revision(3), stranger), "another number": moved,
			"another author": renamed, "a letter of the author in the reason": shifted, "another time": later,
			"a short signature": {Number: 3, Document: document(3), Hash: policy.HashOf(document(3)), Signature: []byte{1}},
		} {
			feed.set(r, nil)
			pass(3 * time.Second)
			require.Equal(t, 1, maxCost(f), name)
			require.Equal(t, policy.ReasonSignature, f.Status().Refused.Cause, name)
		}
		// The same revision is judged again when it is signed.
		feed.set(signed(revision(3), current), nil)
		pass(3 * time.Second)
		require.Equal(t, 3, maxCost(f), "a key that was added signs as well")
	})
}

func TestKeysOfAWrongLengthHaveSignedNothing(t *testing.T) {
	t.Parallel()
	require.Error(t, signed(revision(1), keyOf(1)).Verify([]ed25519.PublicKey{nil, make([]byte, 5)}))
}
