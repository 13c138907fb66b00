package seal_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/seal"
)

func box(t *testing.T, lines ...string) *seal.Box {
	t.Helper()
	b, err := seal.New(strings.Join(lines, "\n"))
	require.NoError(t, err)
	return b
}

func TestWhatIsSealedIsOpenedWithItsKeyInItsPlaceAndOtherwiseNot(t *testing.T) {
	t.Parallel()
	old, young, plain := seal.NewKey(), seal.NewKey(), []byte("whsec_very_secret")
	b := box(t, old)
	sealed := b.Seal("webhook 1", plain)
	require.False(t, bytes.Contains(sealed, plain[:8]))
	require.NotEqual(t, sealed, b.Seal("webhook 1", plain), "two of the same are not seen to be")
	opened, err := b.Open("webhook 1", sealed)
	require.NoError(t, err)
	require.Equal(t, plain, opened)

	_, err = b.Open("webhook 2", sealed)
	require.Error(t, err, "in the place of another")
	for i := range sealed {
		changed := bytes.Clone(sealed)
		changed[i] ^= 1
		_, err = b.Open("webhook 1", changed)
		require.Error(t, err, i)
	}
	_, err = b.Open("webhook 1", nil)
	require.Error(t, err)
	_, err = box(t, young).Open("webhook 1", sealed)
	require.ErrorIs(t, err, seal.ErrOtherKey)

	both := box(t, young, "", old)
	opened, err = both.Open("webhook 1", sealed)
	require.NoError(t, err, "a key that was changed still opens")
	require.Equal(t, plain, opened)
	opened, err = box(t, young).Open("x", both.Seal("x", plain))
	require.NoError(t, err, "the first one seals")
	require.Equal(t, plain, opened)
}

func TestATextThatIsNoKeyIsRefusedAndNotRepeated(t *testing.T) {
	t.Parallel()
	key := seal.NewKey()
	for _, text := range []string{"", "\n", key[1:], key[:len(key)-4], key + "\n" + "nonsense", strings.Repeat(key+"\n", 17)} {
		_, err := seal.New(text)
		require.Error(t, err)
		require.NotContains(t, err.Error(), key[30:40])
	}
	b := box(t, key)
	require.NotContains(t, fmt.Sprintf("%v %+v %#v %s %s", b, b, b, b, b.LogValue()), key[30:40])
}
