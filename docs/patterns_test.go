package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestThePageOnPatterns(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("guide", "patterns.md"))
	require.NoError(t, err)
	page := string(text)

	t.Run("the matrix has each pattern", func(t *testing.T) {
		t.Parallel()
		sections := regexp.MustCompile(`(?m)^## ([A-Z][a-z]+[- ][A-Z][a-z]+(?: [A-Z][a-z]+)?)$`).FindAllStringSubmatch(page, -1)
		require.Len(t, sections, 10)
		for _, section := range sections {
			require.Contains(t, page, "\n| "+section[1]+" |")
		}
	})
	t.Run("the figures are those of the report", func(t *testing.T) {
		t.Parallel()
		report, err := os.ReadFile(filepath.Join("reports", "performance.md"))
		require.NoError(t, err)
		figures := regexp.MustCompile(`took ([\d.]+ µs) .* added ([\d.]+) ms at the median and ([\d.]+) ms at the 99th`).FindStringSubmatch(page)
		require.Len(t, figures, 4)
		require.Regexp(t, `(?m)^\| \*\*gqlgen with ratelimit\*\* \|.* `+figures[1]+` \|`, string(report))
		require.Regexp(t, `(?m)^\| \*\*with ratelimit, Redis\*\* \|.* `+figures[2]+` \| `+figures[3]+` \|`, string(report))
	})
}
