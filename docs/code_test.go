package docs_test

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// TestEveryTestThatPagesNameIsThere holds the pages to commands that make their figures again.
func TestEveryTestThatPagesNameIsThere(t *testing.T) {
	t.Parallel()
	var tests strings.Builder
	for _, text := range files(t, func(name string) bool { return strings.HasSuffix(name, "_test.go") }) {
		tests.WriteString(text)
	}
	for _, p := range current(t) {
		for _, name := range regexp.MustCompile(`\b(?:Test|Benchmark)[A-Z]\w+`).FindAllString(p.code(), -1) {
			// A pattern of -run names the beginning.
			if !strings.Contains(tests.String(), "func "+name) {
				t.Errorf("%s: there is no %s", p.path, name)
			}
		}
	}
}

var goTest = regexp.MustCompile(`(?m)(?:cd (\S+) && )?go test .*`)

// TestEveryCommandOfPagesRunsSomething looks for what `-run` and `-bench` choose, in the packages of the command.
func TestEveryCommandOfPagesRunsSomething(t *testing.T) {
	t.Parallel()
	commands := 0
	for _, p := range current(t) {
		for _, found := range goTest.FindAllStringSubmatch(p.code(), -1) {
			command := found[0]
			places := regexp.MustCompile(` (\./\S+|\.)(?: |$)`).FindStringSubmatch(command)
			if places == nil || strings.HasPrefix(p.path, "contrib/") {
				continue
			}
			folder := path.Join(".", found[1], places[1])
			var tests strings.Builder
			for _, text := range files(t, func(name string) bool { return path.Dir(name) == folder && strings.HasSuffix(name, "_test.go") }) {
				tests.WriteString(text)
			}
			for _, m := range regexp.MustCompile(`-(run|bench)[ =]'?([^' ]+)'?`).FindAllStringSubmatch(command, -1) {
				kind := map[string]string{"run": "Test", "bench": "Benchmark"}[m[1]]
				if m[2] == "xxx" || m[2] == "^$" {
					continue // chooses nothing, on purpose
				}
				commands++
				chosen := regexp.MustCompile(`func (`+kind+`\w+)\(`).FindAllStringSubmatch(tests.String(), -1)
				if !slices.ContainsFunc(chosen, func(f []string) bool { return regexp.MustCompile(m[2]).MatchString(f[1]) }) {
					t.Errorf("%s: %q runs nothing in %s", p.path, m[0], folder)
				}
			}
		}
	}
	require.Positive(t, commands)
}

// lines returns the lines of a text without their indentation, and without empty ones.
func lines(text string) string {
	var kept []string
	for line := range strings.Lines(text) {
		if line = strings.Join(strings.Fields(line), " "); line != "" {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "\n") + "\n"
}

// gap is a line of code that stands for others, which a page leaves out.
var gap = regexp.MustCompile(`(?m)^\s*(?://\s*)?…$`)

// TestAllGoOfPagesIsCodeThatIsCompiled looks for it in Examples, in the modules that tests build, and in the root with its
// comments.
func TestAllGoOfPagesIsCodeThatIsCompiled(t *testing.T) {
	t.Parallel()
	var code strings.Builder
	for _, text := range files(t, func(name string) bool {
		return strings.HasPrefix(path.Base(name), "example") && strings.HasSuffix(name, "_test.go") ||
			strings.HasSuffix(name, ".go.txt") || !strings.Contains(name, "/") && strings.HasSuffix(name, ".go")
	}) {
		code.WriteString(lines(strings.ReplaceAll(text, "//\t", "")))
	}
	compiled := code.String()
	for _, p := range pages(t) {
		for _, block := range p.blocks("go") {
			for _, part := range gap.Split(block, -1) {
				if !strings.Contains(compiled, lines(part)) {
					t.Errorf("%s: no Example has these lines:\n%s", p.path, part)
				}
			}
		}
	}
}

// TestEveryPolicyOfPagesCompiles reads whole documents, and parts that are tiers, of which the first is the default.
func TestEveryPolicyOfPagesCompiles(t *testing.T) {
	t.Parallel()
	compiled := 0
	for _, p := range pages(t) {
		for _, block := range p.blocks("yaml") {
			text := block
			if first := regexp.MustCompile(`\Atiers:\n(?: *#.*\n)*  (\w+):`).FindStringSubmatch(block); first != nil {
				text = "version: 1\ndefault: " + first[1] + "\n" + block
			}
			if !regexp.MustCompile(`(?m)^version: 1`).MatchString(text) {
				continue
			}
			policy, err := tiers.Parse([]byte(text))
			if err != nil {
				t.Errorf("%s: %v\n%s", p.path, err, block)
				continue
			}
			snapshot, err := tiers.Compile(policy)
			require.NoError(t, err, "%s\n%s", p.path, block)
			require.Empty(t, snapshot.Warnings(), "%s\n%s", p.path, block)
			compiled++
		}
	}
	require.Positive(t, compiled)
}

// TestTheModelOfTheReferenceIsTheOneThatIsGenerated compares the binding of the type RateLimit with gqlgen.yml.
func TestTheModelOfTheReferenceIsTheOneThatIsGenerated(t *testing.T) {
	t.Parallel()
	configured, err := os.ReadFile(filepath.Join(root, "gqlgen.yml"))
	require.NoError(t, err)
	found := 0
	for _, p := range current(t) {
		for _, block := range p.blocks("yaml") {
			if strings.HasPrefix(block, "models:") {
				require.Contains(t, lines(string(configured)), lines(block), p.path)
				found++
			}
		}
	}
	require.Positive(t, found)
}
