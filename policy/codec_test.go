package policy_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"

	"github.com/gqlgen-ratelimit/ratelimit/policy"
)

// attributes are attributes as text.
var attributes = attribute.DefaultEncoder()

func FuzzARevisionInAFileIsWholeOrRefused(f *testing.F) {
	r := revision(7)
	r.Author, r.Reason, r.Published, r.Signature = "ada", "a “reason”", time.UnixMilli(1_790_000_000_123).UTC(), []byte{1, 2}
	data, err := r.MarshalBinary()
	require.NoError(f, err)
	f.Add(data)
	f.Add(data[:len(data)-1])
	f.Add(data[:30])
	f.Add([]byte("#ratelimit-revision 1\n{}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var got policy.Revision
		if got.UnmarshalBinary(data) != nil {
			require.Equal(t, policy.Revision{}, got, "nothing is taken of what is refused")
			return
		}
		require.NoError(t, got.Check())
		again, err := got.MarshalBinary()
		require.NoError(t, err)
		var once policy.Revision
		require.NoError(t, once.UnmarshalBinary(again))
		require.Equal(t, got, once)
	})
}

func TestARevisionWhoseTextsDoNotFitIsNone(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*policy.Revision){
		"no number":       func(r *policy.Revision) { r.Number = 0 },
		"a huge number":   func(r *policy.Revision) { r.Number = policy.MaxNumber + 1 },
		"a long author":   func(r *policy.Revision) { r.Author = strings.Repeat("a", policy.MaxText+1) },
		"a broken reason": func(r *policy.Revision) { r.Reason = "\xff" },
		"a far year":      func(r *policy.Revision) { r.Published = time.Date(20_000, 1, 1, 0, 0, 0, 0, time.UTC) },
		"another hash":    func(r *policy.Revision) { r.Hash[0]++ },
	} {
		r := revision(1)
		change(r)
		_, err := r.MarshalBinary()
		require.Error(t, err, name)
	}
	most := revision(policy.MaxNumber)
	most.Author, most.Reason = strings.Repeat("\x00", policy.MaxText), strings.Repeat("<", policy.MaxText)
	most.Sign(keyOf(1))
	data, err := most.MarshalBinary()
	require.NoError(t, err)
	var got policy.Revision
	require.NoError(t, got.UnmarshalBinary(data))
	require.Equal(t, *most, got)
}

func TestAHashReadsTheSameAfterItWasWritten(t *testing.T) {
	t.Parallel()
	for _, h := range []policy.Hash{{}, policy.HashOf(nil)} {
		text, err := h.MarshalText()
		require.NoError(t, err)
		var got policy.Hash
		require.NoError(t, got.UnmarshalText(text))
		require.Equal(t, h, got)
	}
	var h policy.Hash
	for _, text := range []string{"x", "sha256:", "sha256:" + strings.Repeat("g", 64), strings.Repeat("a", 71)} {
		require.Error(t, h.UnmarshalText([]byte(text)))
		require.Zero(t, h)
	}
}
