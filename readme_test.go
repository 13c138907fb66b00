package ratelimit_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/gqlgen-ratelimit/ratelimit/cost"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// blocks returns the fenced blocks of a language in README.md.
func blocks(t *testing.T, language string) []string {
	t.Helper()
	return blocksOf(t, "README.md", language)
}

func blocksOf(t *testing.T, page, language string) []string {
	t.Helper()
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	fences := regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	require.NotEmpty(t, fences)
	var found []string
	for _, fence := range fences {
		found = append(found, fence[1])
	}
	return found
}

// lines returns the lines of a text without their indentation, and without empty ones.
func lines(text string) string {
	var kept []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "\n") + "\n"
}

func TestAllGoInTheREADMEIsPartOfAnExample(t *testing.T) {
	t.Parallel()
	var examples string
	for _, path := range []string{"example_test.go", "example_policy_test.go", filepath.Join("gqlgenplugin", "example_test.go")} {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		examples += string(text)
	}
	for _, block := range blocks(t, "go") {
		if !strings.Contains(lines(examples), lines(block)) {
			t.Errorf("no Example has these lines:\n%s", block)
		}
	}
}

func TestTheFormOfShopifyInTheDocumentsIsPartOfAnExample(t *testing.T) {
	t.Parallel()
	examples, err := os.ReadFile("example_signals_test.go")
	require.NoError(t, err)
	found := 0
	for _, block := range blocksOf(t, filepath.Join("docs", "guide", "migration.md"), "go") {
		if function, use, is := strings.Cut(block, "\n\n"); is && strings.Contains(function, "shopifyCost") {
			require.Contains(t, lines(string(examples)), lines(function))
			require.Contains(t, lines(string(examples)), lines(use))
			found++
		}
	}
	require.Equal(t, 1, found)
}

// TestTheGeneratorInTheREADMEIsTheOneThatTestsRun looks for it in the module that gqlgenplugin is tested with.
func TestTheGeneratorInTheREADMEIsTheOneThatTestsRun(t *testing.T) {
	t.Parallel()
	generator, err := os.ReadFile(filepath.Join("gqlgenplugin", "testdata", "shop", "generate", "main.go.txt"))
	require.NoError(t, err)
	found := 0
	for _, block := range blocks(t, "go") {
		if strings.Contains(block, "gqlgenplugin.New") {
			require.Contains(t, lines(string(generator)), lines(block))
			found++
		}
	}
	require.Positive(t, found)
}

func TestTheSchemasInTheREADMEAreAccepted(t *testing.T) {
	t.Parallel()
	definitions, err := os.ReadFile("schema.graphqls")
	require.NoError(t, err)
	accepted := 0
	for _, block := range blocks(t, "graphql") {
		if !strings.HasPrefix(block, "type ") {
			continue
		}
		schema, err := gqlparser.LoadSchema(
			&ast.Source{Name: "schema.graphqls", Input: string(definitions)}, &ast.Source{Name: "README.md", Input: block})
		require.NoError(t, err)
		_, err = cost.New(schema, cost.Config{RequireListSizes: true})
		require.NoError(t, err)
		accepted++
	}
	require.Positive(t, accepted)
}

func TestThePoliciesInTheREADMECompile(t *testing.T) {
	t.Parallel()
	compiled := 0
	for _, block := range blocks(t, "yaml") {
		if !strings.HasPrefix(block, "version:") {
			continue
		}
		policy, err := tiers.Parse([]byte(block))
		require.NoError(t, err)
		snapshot, err := tiers.Compile(policy)
		require.NoError(t, err)
		require.Empty(t, snapshot.Warnings())
		compiled++
	}
	require.Positive(t, compiled)
}

// TestTheQueryInTheREADMEHasThePriceInItsMargin prices it against the schema of the example.
func TestTheQueryInTheREADMEHasThePriceInItsMargin(t *testing.T) {
	t.Parallel()
	var sources []*ast.Source
	for _, path := range []string{"schema.graphqls", filepath.Join("example", "schema.graphqls")} {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		sources = append(sources, &ast.Source{Name: path, Input: string(text)})
	}
	schema, err := gqlparser.LoadSchema(sources...)
	require.NoError(t, err)
	query := blocks(t, "graphql")[0]
	doc, errs := gqlparser.LoadQueryWithRules(schema, query, nil)
	require.Empty(t, errs)
	estimator, err := cost.New(schema, cost.Config{})
	require.NoError(t, err)
	plan, err := estimator.Compile(doc, doc.Operations[0])
	require.NoError(t, err)
	price, err := plan.Evaluate(nil)
	require.NoError(t, err)

	margin := regexp.MustCompile(`# (\d+) points, with 1 for the query itself`).FindStringSubmatch(query)
	require.Len(t, margin, 2)
	want, err := strconv.ParseInt(margin[1], 10, 64)
	require.NoError(t, err)
	require.Equal(t, want, price.Points())
}

func TestWhatTheReferenceQuotesStandsInTheCode(t *testing.T) {
	t.Parallel()
	reference := filepath.Join("docs", "reference", "responses.md")
	for _, quoted := range []struct{ language, block, file string }{
		{"yaml", "models:", "gqlgen.yml"},
		{"go", "RateLimit(ctx", "budget.go"},
	} {
		text, err := os.ReadFile(quoted.file)
		require.NoError(t, err)
		code := lines(strings.ReplaceAll(string(text), "//", ""))
		found := 0
		for _, block := range blocksOf(t, reference, quoted.language) {
			if strings.Contains(block, quoted.block) {
				require.Contains(t, code, lines(block))
				found++
			}
		}
		require.Positive(t, found, quoted.block)
	}
}
