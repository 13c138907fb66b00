package number_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/internal/number"
)

func TestASumNeitherOverflowsNorFalls(t *testing.T) {
	t.Parallel()
	require.Equal(t, int64(5), number.Sum(2, 3))
	require.Equal(t, int64(math.MaxInt64), number.Sum(math.MaxInt64, 1))
	require.Equal(t, int64(3), number.Sum(math.MinInt64, 3))
	require.Zero(t, number.Sum(-1, math.MinInt64))
}
