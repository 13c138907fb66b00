package state_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gqlgen-ratelimit/ratelimit/internal/state"
)

func TestDividingByMultiplyingIsExactUpTo2To53(t *testing.T) {
	t.Parallel()
	const end = int64(1) << 53
	check := func(t require.TestingT, a, by int64) {
		quotient, rest := state.Quotient(a, by)
		require.Equal(t, [2]int64{a / by, a % by}, [2]int64{quotient, rest}, "%d / %d", a, by)
	}
	for _, by := range []int64{1, 2, 3, 5, 7, 1000, 86_399_981, 1<<31 - 1, 1 << 40, 1<<52 - 1, 1 << 52, end - 1, end} {
		for _, a := range []int64{0, 1, 2, by - 1, by, min(by+1, end), end / by * by, max(0, end/by*by-1), end - 1, end} {
			check(t, a, by)
		}
	}
	number := rapid.OneOf(rapid.Int64Range(1, 1000), rapid.Int64Range(1, end), rapid.Int64Range(end-1000, end))
	rapid.Check(t, func(t *rapid.T) {
		by, near := number.Draw(t, "by"), number.Draw(t, "a")
		// Next to multiples the estimate is off.
		for _, a := range []int64{near, near / by * by, max(0, near/by*by-1)} {
			check(t, a, by)
		}
	})
}
