package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheIntervalOfAMedianIsThatOfItsRanks(t *testing.T) {
	t.Parallel()
	values := make([]float64, 60)
	for i := range values {
		values[len(values)-1-i] = float64(i + 1)
	}
	low, high := interval(values)
	// The binomial distribution has the 22nd and the 39th of sixty.
	require.InDelta(t, 22, low, 1)
	require.InDelta(t, 39, high, 1)

	low, high = interval([]float64{3, 1, 2})
	require.InDelta(t, 1, low, 0)
	require.InDelta(t, 3, high, 0)
}

func TestACommitComparedWithItselfHasARatioForEachBenchmark(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	require.NoError(t, run(t.Context(), &out, []string{"-against", "HEAD", "-match", "^BenchmarkEvaluate$", "-rounds", "1"}))
	require.Regexp(t, `(?m)^\| BenchmarkEvaluate\S* \| [\d.]+ .s \| [\d.]+ .s \| [\d.]+ \| [\d.]+–[\d.]+ \|$`, out.String())
}

func TestACommitThatIsNotThereIsAMistake(t *testing.T) {
	t.Parallel()
	require.ErrorContains(t, run(t.Context(), &strings.Builder{}, []string{"-against", "no-such-commit"}), "no-such-commit")
}
