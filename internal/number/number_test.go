package number_test

import (
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gqlgen-ratelimit/ratelimit/internal/number"
)

func TestANumberHasOneSpelling(t *testing.T) {
	t.Parallel()
	for want, spellings := range map[string][]string{
		"0":                     {"0", "-0", "0.000", "0e99999", "-0e-5"},
		"1":                     {"1", "1.0", "1e0", "10e-1", "0.1E1", "1.000e+0"},
		"-1.5":                  {"-1.5", "-15e-1", "-1.50"},
		"120":                   {"120", "1.2e2", "12e1"},
		"9007199254740993":      {"9007199254740993", "9007199254740993.0"},
		"100000000000000000000": {"1e20", "100000000000000000000"},
		"1e+21":                 {"1e21", "1000000000000000000000"},
		"0.000001":              {"1e-6", "0.000001"},
		"1.5e-7":                {"15e-8", "0.00000015"},
	} {
		for _, spelled := range spellings {
			got, ok := number.Plain(spelled)
			require.True(t, ok, spelled)
			require.Equal(t, want, got, spelled)
		}
	}
	for _, none := range []string{"", "-", "e5", "1e", "1e9999999999", "0x1", "1_0", "NaN", "+Inf"} {
		_, ok := number.Plain(none)
		require.False(t, ok, none)
	}
}

func TestTwoNumbersHaveOneSpellingOnlyIfTheyAreEqual(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) (string, *big.Rat) {
			text := rapid.StringMatching(`-?[0-9]{1,4}(\.[0-9]{1,4})?([eE][-+]?[0-9]{1,2})?`).Draw(t, name)
			n, ok := new(big.Rat).SetString(text)
			require.True(t, ok, text)
			return text, n
		}
		a, one := draw("a")
		b, other := draw("b")
		x, ok := number.Plain(a)
		require.True(t, ok)
		y, ok := number.Plain(b)
		require.True(t, ok)
		require.Equal(t, one.Cmp(other) == 0, x == y, "%s %s", x, y)
		back, ok := new(big.Rat).SetString(x)
		require.True(t, ok, x)
		require.Zero(t, one.Cmp(back), "%s is %s", a, x)
	})
}
