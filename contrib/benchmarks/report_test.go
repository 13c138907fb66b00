package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAReportStandsBetweenItsMarksAndLeavesTheRest(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "report.md")
	require.NoError(t, os.WriteFile(file, []byte("before\n"+reportBegins+"old\n"+reportEnds+"after\n"), 0o600))
	var out strings.Builder
	for range 2 {
		out.Reset()
		require.NoError(t, run(t.Context(), &out, []string{"-match", "none of them", "-into", file}))
	}
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NotContains(t, string(text), "old")
	require.True(t, strings.HasPrefix(string(text), "before\n"+reportBegins))
	require.True(t, strings.HasSuffix(string(text), reportEnds+"after\n"))
	require.Contains(t, string(text), "99designs/gqlgen v")
	require.Contains(t, out.String(), "99designs/gqlgen v")
}

func TestAFileWithoutMarksIsNotMeasuredForAndLeftAlone(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", reportBegins, reportEnds + reportBegins, reportBegins + reportBegins + reportEnds} {
		file := filepath.Join(t.TempDir(), "report.md")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		require.ErrorIs(t, run(t.Context(), &strings.Builder{}, []string{"-match", "none of them", "-into", file}), errNoMarks)
		kept, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, text, string(kept))
	}
}

func TestAnAimSaysByHowMuchItWasMissed(t *testing.T) {
	t.Parallel()
	require.Empty(t, atMost("", 2, 2, digits).missed)
	require.Empty(t, atLeast("", 2, 2, digits).missed)
	require.Equal(t, aim{bound: "≤ 2.00 ×", reached: "3.00 ×", missed: "missed by 50.0 %"}, atMost("", 2, 3, times))
	require.Equal(t, aim{bound: "≥ 2.00 ×", reached: "1.00 ×", missed: "missed by 50.0 %"}, atLeast("", 2, 1, times))
	require.Equal(t, "missed", atMost("", 0, 1, digits).missed)
	table := aimsTable([]aim{atMost("a", 2, 2, digits), atMost("b", 2, 3, digits)}).String()
	require.Empty(t, atMost("", 2, 1, times).unless(2, 2).unknown)
	late := aimsTable([]aim{atMost("", 2, 1, times).unless(3e6, 2), atMost("", 2, 3, times).unless(3e6, 2)}).String()
	require.Equal(t, 2, strings.Count(late, "| not shown: a bare timer came 3.00 ms late |"))
	require.Contains(t, table, "| a | ≤ 2.00 | 2.00 | yes |\n| b | ≤ 2.00 | 3.00 | **missed by 50.0 %** |\n")
}
