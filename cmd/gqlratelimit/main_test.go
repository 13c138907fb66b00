package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/cli"
)

// quiet returns a console that writes into memory.
func quiet() (c cli.Console, stdout, stderr *bytes.Buffer) {
	stdout, stderr = &bytes.Buffer{}, &bytes.Buffer{}
	return cli.Console{Stdout: stdout, Stderr: stderr, Getenv: func(string) string { return "" }}, stdout, stderr
}

// files writes files into a new directory and returns it.
func files(t *testing.T, texts map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range texts {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return dir
}

// TestTheBuiltCommandExitsWithTheCodeOfItsDocumentation builds it once, as a user does.
func TestTheBuiltCommandExitsWithTheCodeOfItsDocumentation(t *testing.T) {
	t.Parallel()
	binary := filepath.Join(t.TempDir(), "gqlratelimit")
	built, err := exec.Command("go", "build", "-o", binary, "./cmd/gqlratelimit").CombinedOutput()
	require.NoError(t, err, string(built))
	const schema, operations = "-schema=example/schema.graphqls", "example/operations"
	for line, want := range map[string]int{
		"help":                              0,
		"cost -h":                           0,
		"cost " + schema + " " + operations: 0,
		"cost " + schema + " -max-cost 100 " + operations: 1,
		"lint " + schema: 0,
		"lint -schema cmd/gqlratelimit/testdata/lint/unsized.graphqls":                                        1,
		"diff -old example/schema.graphqls -new cmd/gqlratelimit/testdata/rise/schema.graphqls " + operations: 1,
		"":                            2,
		"cost " + schema + " nowhere": 2,
		"cost -unknown":               2,
		"doctor -h":                   0,
		"doctor -redis 127.0.0.1:1":   1,
		"doctor":                      2,
	} {
		command := exec.Command(binary, strings.Fields(line)...)
		var stdout, stderr bytes.Buffer
		command.Stdout, command.Stderr = &stdout, &stderr
		err := command.Run()
		var exit *exec.ExitError
		if err != nil {
			require.ErrorAs(t, err, &exit, line)
		}
		require.Equal(t, want, command.ProcessState.ExitCode(), "%s\n%s%s", line, &stdout, &stderr)
		require.NotContains(t, stdout.String()+stderr.String(), "\x1b", "nothing orders a terminal about")
		if want == exitUsage {
			require.Empty(t, stdout.String(), line)
			require.NotEmpty(t, stderr.String(), line)
		} else {
			require.Empty(t, stderr.String(), line)
		}
	}
}

func TestHelpOfASubCommandIsWhatItsFlagPrints(t *testing.T) {
	t.Parallel()
	o := &operator{}
	for _, line := range []string{"cost", "budget", "budget show"} {
		code, asked, stderr := o.run("help " + line)
		require.Equal(t, exitOK, code, stderr)
		_, printed, _ := o.run(line + " -h")
		require.Equal(t, printed, asked)
		require.Contains(t, asked, "gqlratelimit "+line)
	}
	code, _, stderr := o.run("help bugdet")
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, "bugdet")
}

func TestFragmentsThatSpreadThemselvesAreAProblemOfTheirOperation(t *testing.T) {
	t.Parallel()
	dir := files(t, map[string]string{
		"schema.graphqls": "type Query { a: Query b: Int }",
		"cyclic.graphql":  "query Cyclic { ...A } fragment A on Query { a { ...B } }",
		"other.graphql":   "fragment B on Query { a { ...A } } query Fine { b }",
	})
	c, stdout, stderr := quiet()
	code := run(c, []string{"cost", "-schema", filepath.Join(dir, "schema.graphqls"), dir})
	require.Equal(t, exitFound, code, stderr)
	require.Contains(t, stdout.String(), "within itself")
	require.Regexp(t, `(?m)^ +1 +1 +0  Fine`, stdout.String(), "the others are priced")
}

func TestASlicingArgumentIsNotMissingBecauseItsVariableHasNoValueHere(t *testing.T) {
	t.Parallel()
	dir := files(t, map[string]string{
		"schema.graphqls":   `type Query { a(n: Int): [Query!]! @listSize(slicingArguments: ["n"]) b: Int }`,
		"variable.graphql":  "query Variable($n: Int!) { a(n: $n) { b } }",
		"forgotten.graphql": "query Forgotten { a { b } }",
	})
	schema := filepath.Join(dir, "schema.graphqls")
	c, stdout, _ := quiet()
	require.Equal(t, exitOK, run(c, []string{"cost", "-schema", schema, filepath.Join(dir, "variable.graphql")}))
	require.Contains(t, stdout.String(), "? no value for $n")
	c, stdout, _ = quiet()
	require.Equal(t, exitFound, run(c, []string{"cost", "-schema", schema, filepath.Join(dir, "forgotten.graphql")}))
	require.Contains(t, stdout.String(), "a server refuses this: Query.a at a: exactly one of n is required, 0 given")
}

func TestAnOperationWhosePriceAMissingVariableDecidesIsNotBelowAnyMaximum(t *testing.T) {
	t.Parallel()
	const schema = `
		type Query {
			users(first: Int!, after: String): [User!]! @listSize(slicingArguments: ["first"])
			names(first: Int!): [String!]! @listSize(slicingArguments: ["first"])
			user(id: ID!): User
			find(filter: Filter!): User
			text(text: String): User
		}
		type User { name: String! friends(first: Int!): [User!]! @listSize(slicingArguments: ["first"]) }
		input Filter { text: String @cost(weight: "5") }`
	for operation, decides := range map[string]bool{
		`query ($n: Int!) { users(first: $n) { name } }`:                               true,
		`query ($a: String!) { users(first: 1, after: $a) { name } }`:                  false,
		`query ($id: ID!) { user(id: $id) { name } }`:                                  false,
		`query ($n: Int!) { names(first: $n) }`:                                        false,
		`query ($b: Boolean!) { user(id: 1) @include(if: $b) { name } }`:               false,
		`query ($f: Filter!) { find(filter: $f) { name } }`:                            false,
		`query ($t: String!) { find(filter: {text: $t}) { name } }`:                    false,
		`query ($t: String!) { text(text: $t) { name } }`:                              false,
		`query ($id: ID!, $n: Int!) { user(id: $id) { friends(first: $n) { name } } }`: true,
		`query ($n: Int! = 3) { users(first: $n) { name } }`:                           false,
	} {
		dir := files(t, map[string]string{"schema.graphqls": schema, "operation.graphql": operation})
		args := []string{"cost", "-schema", filepath.Join(dir, "schema.graphqls"), filepath.Join(dir, "operation.graphql")}
		c, stdout, _ := quiet()
		require.Equal(t, exitOK, run(c, args), "without a maximum: %s", operation)
		require.Equal(t, decides, strings.Contains(stdout.String(), "priced without, which is no upper bound"), "%s\n%s", operation, stdout)

		for _, format := range []string{"-json=false", "-json"} {
			want := exitOK
			if decides {
				want = exitFound
			}
			require.NoError(t, os.WriteFile(filepath.Join(dir, "dear.graphql"), []byte(`{ users(first: 100) { name } }`), 0o600))
			c, stdout, _ = quiet()
			withDear := append(args, filepath.Join(dir, "dear.graphql"), "-top", "1", "-max-cost", "9000000", format)
			require.Equal(t, want, run(c, withDear), "%s\n%s", operation, stdout)
			require.Equal(t, decides, strings.Contains(stdout.String(), "operation.graphql"), "what fails is shown")
		}
		if decides {
			require.Contains(t, stdout.String(), `"missingVariables"`)
		}
	}
}

func TestAPriceThatOverflowsIsAboveEveryMaximum(t *testing.T) {
	t.Parallel()
	dir := files(t, map[string]string{
		"schema.graphqls": `type Query { a(n: Int!): [Query!]! @listSize(slicingArguments: ["n"]) }`,
		"deep.graphql":    "query Deep { " + strings.Repeat("a(n: 2000000000) { ", 60) + "__typename" + strings.Repeat(" }", 61),
	})
	schema := filepath.Join(dir, "schema.graphqls")
	for _, format := range []string{"-json=false", "-json"} {
		c, stdout, stderr := quiet()
		code := run(c, []string{"cost", "-schema", schema, "-max-cost", "9007199254740990", format, dir})
		require.Equal(t, exitFound, code, stderr)
		if format == "-json" {
			require.Contains(t, stdout.String(), `"points": 9007199254740991,`)
		} else {
			require.Contains(t, stdout.String(), "∞")
		}
	}
}

func TestAnOperationThatIsTooLargeToMergeIsPricedByTheSumOfItsSelections(t *testing.T) {
	t.Parallel()
	dir := files(t, map[string]string{
		"schema.graphqls": "type Query { a: Query b: Int }",
		"large.graphql":   "query Large { a { b } x: a { b } y: a { b } }",
		"pricing.yaml":    "workLimit: 2",
	})
	c, stdout, stderr := quiet()
	code := run(c, []string{"cost", "-schema", filepath.Join(dir, "schema.graphqls"), "-config", filepath.Join(dir, "pricing.yaml"), dir})
	require.Equal(t, exitOK, code, stderr)
	require.Contains(t, stdout.String(), "too large to merge")
	require.Contains(t, stdout.String(), "2.1         1       1.1    y", "there is a breakdown")
}

// TestAnOperationOfManyFieldsIsPricedWithoutTheCheckInPairs takes minutes if it is not.
func TestAnOperationOfManyFieldsIsPricedWithoutTheCheckInPairs(t *testing.T) {
	t.Parallel()
	dir := files(t, map[string]string{
		"schema.graphqls": "type Query { b: Int }",
		"many.graphql":    "query Many {" + strings.Repeat(" b", 50_000) + " }",
	})
	c, stdout, stderr := quiet()
	require.Equal(t, exitOK, run(c, []string{"cost", "-schema", filepath.Join(dir, "schema.graphqls"), dir}), stderr)
	require.Contains(t, stdout.String(), "too large to check whether its fields can be merged")
}

func TestEveryMistakeInTheDirectivesHasItsPosition(t *testing.T) {
	t.Parallel()
	dir := files(t, map[string]string{
		"schema.graphqls": "type Query {\n  a: Int @cost(weight: \"x\")\n  b: Int @cost(weight: \"y\")\n}",
		"a.graphql":       "{ a }",
		"pricing.yaml":    "weights: {Query.c: 1}",
	})
	schema := filepath.Join(dir, "schema.graphqls")
	c, _, stderr := quiet()
	code := run(c, []string{"cost", "-schema", schema, "-config", filepath.Join(dir, "pricing.yaml"), dir})
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr.String(), schema+":2:3: Query.a: ")
	require.Contains(t, stderr.String(), schema+":3:3: Query.b: ")
	require.Contains(t, stderr.String(), "Query.c: Config.Weights names nothing")
}

func TestControlCharactersOfFilesDoNotReachATerminal(t *testing.T) {
	t.Parallel()
	dir := files(t, map[string]string{
		"schema.graphqls":      "type Query { a(b: Int): Int @cost(weight: \"\\u001b[31m\") }",
		"fine.graphqls":        "type Query { a(b: Int): Int }",
		"evil\x1b[31m.graphql": `{ a(b: "\u001b[31m") c }`,
	})
	for _, args := range [][]string{
		{"cost", "-schema", filepath.Join(dir, "fine.graphqls"), dir},
		{"cost", "-schema", filepath.Join(dir, "schema.graphqls"), dir},
		{"lint", "-schema", filepath.Join(dir, "schema.graphqls")},
		{"diff", "-old", filepath.Join(dir, "fine.graphqls"), "-new", filepath.Join(dir, "fine.graphqls"), dir},
	} {
		c, stdout, stderr := quiet()
		run(c, args)
		require.Contains(t, stdout.String()+stderr.String(), "[31m", args[0])
		require.NotContains(t, stdout.String()+stderr.String(), "\x1b", args[0])
	}
}

func TestTheSchemasInTheDocumentsHaveNothingThatLintFinds(t *testing.T) {
	t.Parallel()
	var pages []byte
	for _, page := range []string{"README.md", "docs/guide/start.md", "docs/guide/pricing.md"} {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		pages = append(pages, text...)
	}
	inspected := 0
	for _, block := range regexp.MustCompile("(?s)```graphql\n(type .*?)```").FindAllSubmatch(pages, -1) {
		schema := filepath.Join(files(t, map[string]string{"schema.graphqls": string(block[1])}), "schema.graphqls")
		c, stdout, stderr := quiet()
		require.Equal(t, exitOK, run(c, []string{"lint", "-schema", schema, "-fail-on", "note"}), "%s%s", stdout, stderr)
		inspected++
	}
	require.Positive(t, inspected)
}

// broken is an output that is gone.
type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("the pipe is broken") }

func TestAReportThatCannotBeWrittenIsAnError(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"cost", "-schema", "example/schema.graphqls", "example/operations"},
		{"lint", "-schema", "example/schema.graphqls"},
		{"diff", "-old", "example/schema.graphqls", "-new", "example/schema.graphqls", "example/operations"},
		{"doctor", "-redis", "127.0.0.1:1"},
	} {
		for _, format := range []string{"-json=false", "-json"} {
			c, _, stderr := quiet()
			c.Stdout = broken{}
			require.Equal(t, exitUsage, run(c, append(args, format)), args)
			require.Contains(t, stderr.String(), "the pipe is broken")
		}
	}
}
