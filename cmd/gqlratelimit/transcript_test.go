package main

import (
	"bytes"
	"compress/gzip"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write what the command prints into the transcripts and the documentation")

// prompt begins a line that a person types. What follows it is what the command prints, on either
// output, and what go run adds to an exit code that is not 0.
const prompt = "$ go run ./cmd/gqlratelimit "

// github is a directory with the schema of GitHub, which transcripts call $GITHUB.
var github string

// TestMain runs the tests at the root of the repository, where a reader runs the commands.
func TestMain(m *testing.M) {
	code, err := runTests(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func runTests(m *testing.M) (code int, err error) {
	if err := os.Chdir(filepath.Join("..", "..")); err != nil {
		return 0, err
	}
	if github, err = os.MkdirTemp("", "github"); err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(github) }()
	packed, err := os.Open(filepath.FromSlash("cmd/gqlratelimit/testdata/github/schema.graphql.gz"))
	if err != nil {
		return 0, err
	}
	defer func() { _ = packed.Close() }()
	unpacked, err := gzip.NewReader(packed)
	if err != nil {
		return 0, err
	}
	text, err := io.ReadAll(unpacked)
	if err != nil {
		return 0, err
	}
	if err := os.WriteFile(filepath.Join(github, "schema.graphql"), text, 0o600); err != nil {
		return 0, err
	}
	return m.Run(), nil
}

// output runs the command and returns what a person sees.
func output(args ...string) string {
	var both bytes.Buffer
	code := run(console{stdout: &both, stderr: &both, getenv: func(string) string { return "" }}, args)
	if code != exitOK {
		fmt.Fprintf(&both, "exit status %d\n", code)
	}
	return both.String()
}

// replay returns the text with what its commands print now, and how many commands it has.
func replay(text string) (replayed string, commands int) {
	var b strings.Builder
	lines := strings.SplitAfter(text, "\n")
	for i := 0; i < len(lines); i++ {
		b.WriteString(lines[i])
		args, ok := strings.CutPrefix(lines[i], prompt)
		if !ok {
			continue
		}
		commands++
		printed := output(strings.Fields(strings.ReplaceAll(args, "$GITHUB", github))...)
		b.WriteString(strings.ReplaceAll(printed, github, "$GITHUB"))
		for i+1 < len(lines) && !strings.HasPrefix(lines[i+1], "$ ") && !strings.HasPrefix(lines[i+1], "```") {
			i++
		}
	}
	return b.String(), commands
}

// documents are the texts whose transcripts are held to the truth.
func documents(t *testing.T) []string {
	t.Helper()
	transcripts, err := filepath.Glob("cmd/gqlratelimit/testdata/transcripts/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, transcripts)
	return append(transcripts, "docs/reference/command.md", "docs/guide/pricing.md")
}

func TestTheCommandPrintsWhatTheTranscriptsAndTheDocumentationSay(t *testing.T) {
	t.Parallel()
	for _, file := range documents(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			replayed, commands := replay(string(text))
			require.Positive(t, commands, "the text has a command")
			if *update {
				require.NoError(t, os.WriteFile(file, []byte(replayed), 0o644))
				return
			}
			require.Equal(t, string(text), replayed)
		})
	}
}
