package source_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/source"
)

func TestWhatIsNotPrintableIsReplaced(t *testing.T) {
	t.Parallel()
	require.Equal(t, "Größe 10 × ∞ 名前", source.Printable("Größe 10 × ∞ 名前"))
	for name, text := range map[string]string{
		"an escape":                        "a\x1b[31m",
		"a new line":                       "a\n[31m",
		"a turn of the direction":          "a\u202e[31m",
		"an isolated turn":                 "a\u2066[31m",
		"a character of no width":          "a\u200b[31m",
		"a separator of lines":             "a\u2028[31m",
		"what is for private use":          "a\ue000[31m",
		"a byte that begins no character":  "a\xff[31m",
		"a control character in two bytes": "a\u009b[31m",
	} {
		require.Equal(t, "a\ufffd[31m", source.Printable(text), name)
	}
}

func TestAPathIsNoCommandToTheRunnerOfGitHubActions(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"::warning file=a::b.graphql": "./::warning file=a::b.graphql:3",
		"  ::stop-commands::x":        "./  ::stop-commands::x:3",
		"a::b.graphql":                "a::b.graphql:3",
	} {
		require.Equal(t, want, source.Position(path, 3, 0, ""))
	}
}
