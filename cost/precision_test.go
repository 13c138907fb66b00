package cost_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// precisionRow is a row of docs/reports/precision.md that is about a case: class, file, expected, ours.
var precisionRow = regexp.MustCompile(`(?m)^\| (\S*) \| \[[^\]]+\]\(\.\./\.\./(cost/testdata/cases/\S+\.txtar)\) \| (.+) \| (.+) \|$`)

func TestThePageOnPrecisionSaysWhatTheCasesSay(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/reports/precision.md")
	require.NoError(t, err)
	rows := precisionRow.FindAllStringSubmatch(string(page), -1)
	require.Len(t, rows, strings.Count(string(page), "](../../cost/testdata/cases/"), "a row has another form")
	covered := map[string]bool{}
	for _, row := range rows {
		class, expected, ours := row[1], row[3], row[4]
		covered[class] = true
		text, err := os.ReadFile(filepath.Join("..", row[2]))
		require.NoError(t, err)
		_, sections := splitCase(string(text))
		require.Equal(t, priceOf(t, sections["expect"]), ours, row[2])
		requireAbout(t, expected, ours, row[2])
	}
	for _, row := range regexp.MustCompile("(?m)^\\| (V\\d+) \\| .+ \\| `(Test\\w+)` \\|$").FindAllStringSubmatch(string(page), -1) {
		covered[row[1]] = true
		require.Contains(t, testsOfThisPackage(t), "func "+row[2]+"(t *testing.T)")
	}
	for i := range 6 {
		require.Contains(t, covered, fmt.Sprintf("C%d", i+1))
	}
	for i := range 18 {
		require.Contains(t, covered, fmt.Sprintf("V%d", i+1))
	}
}

// priceOf spells the section expect of a case as the page does.
func priceOf(t *testing.T, expect string) string {
	t.Helper()
	if strings.HasPrefix(expect, "error ") {
		return "an error"
	}
	lines := strings.Split(expect, "\n")
	require.Greater(t, len(lines), 1)
	return strings.TrimPrefix(lines[0], "type ") + " / " + strings.TrimPrefix(lines[1], "field ")
}

// requireAbout compares two prices of the page. An expected number in scientific notation has two digits,
// and – expects nothing.
func requireAbout(t *testing.T, expected, ours, file string) {
	t.Helper()
	if expected == "–" {
		return
	}
	if !strings.Contains(expected, "e") || expected == "an error" {
		require.Equal(t, expected, ours, file)
		return
	}
	want, got := strings.Split(expected, " / "), strings.Split(ours, " / ")
	require.Len(t, got, len(want), file)
	for i := range want {
		x, err := strconv.ParseFloat(want[i], 64)
		require.NoError(t, err)
		y, err := strconv.ParseFloat(got[i], 64)
		require.NoError(t, err)
		require.Less(t, math.Abs(x-y), 0.05*x, file)
	}
}

func testsOfThisPackage(t *testing.T) string {
	t.Helper()
	files, err := filepath.Glob("*_test.go")
	require.NoError(t, err)
	var all strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		all.Write(text)
	}
	return all.String()
}
