package source_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/cli"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/source"
	"github.com/gqlgen-ratelimit/ratelimit/cost"
)

// write writes files below a new directory, named by their paths, and returns the directory.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	return dir
}

// load returns the schema in one file.
func load(t *testing.T, text string) *ast.Schema {
	t.Helper()
	schema, err := source.LoadSchema([]string{write(t, map[string]string{"schema.graphqls": text})})
	require.NoError(t, err)
	return schema.Schema
}

func TestTheDefinitionsAreThoseOfTheRepository(t *testing.T) {
	t.Parallel()
	own, err := os.ReadFile("schema.graphqls")
	require.NoError(t, err)
	root, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "schema.graphqls"))
	require.NoError(t, err)
	require.Equal(t, string(root), string(own), "make generate copies it")
}

func TestDefinitionsOfTheDirectivesAreAddedIfTheSchemaHasNone(t *testing.T) {
	t.Parallel()
	const types = `type Query { a: [Query!] @cost(weight: "2") @listSize(assumedSize: 3) }`
	for name, text := range map[string]string{
		"none": types,
		"one":  `directive @cost(weight: Int! ) on OBJECT ` + `type Query @cost(weight: 2) { a: [Query!] @listSize(assumedSize: 3) }`,
		"both": types + ` directive @cost(weight: String!) on FIELD_DEFINITION directive @listSize(assumedSize: Int) on FIELD_DEFINITION`,
	} {
		schema := load(t, text)
		require.NotNil(t, schema.Directives["cost"], name)
		require.NotNil(t, schema.Directives["listSize"], name)
		_, err := cost.New(schema, cost.Config{})
		require.NoError(t, err, name)
	}
}

func TestAPrintedSchemaMayRepeatWhatIsBuiltIn(t *testing.T) {
	t.Parallel()
	schema := load(t, `scalar Int scalar String scalar Boolean directive @skip(if: Boolean!) on FIELD type Query { a: Int }`)
	require.NotNil(t, schema.Types["Query"])
}

func TestAFieldThatIsDefinedTwiceInTheSameWayIsDropped(t *testing.T) {
	t.Parallel()
	twice := func(first, second string) (*source.Schema, error) {
		return source.LoadSchema([]string{write(t, map[string]string{"a.graphqls": "type Query {\n" + first + "\n" + second + "\n}"})})
	}
	schema, err := twice(`a(b: Int = 3): Int @cost(weight: "2")`, `"again" a("again" b: Int = 3): Int @cost(weight: "2")`)
	require.NoError(t, err)
	require.Len(t, schema.Query.Fields, 3, "with __schema and __type")
	require.Len(t, schema.Repeated, 1)
	require.Equal(t, "Query.a", schema.Repeated[0].Coordinate)
	require.Equal(t, 3, schema.Repeated[0].Position.Line)
	for _, other := range []string{
		`a(b: Int = 3): Int! @cost(weight: "2")`, `a(b: Int = 4): Int @cost(weight: "2")`, `a(b: Int = 3): Int @cost(weight: "3")`,
		`a(b: Int = 3): Int`, `a(c: Int = 3): Int @cost(weight: "2")`, `a: Int @cost(weight: "2")`,
	} {
		_, err := twice(`a(b: Int = 3): Int @cost(weight: "2")`, other)
		require.ErrorContains(t, err, "a.graphqls:3:", other)
	}
}

func TestTheSchemaOfASubgraphNeedsNoDefinitionsOfFederation(t *testing.T) {
	t.Parallel()
	schema := load(t, `
		extend schema @link(url: "https://specs.apollo.dev/federation/v2.3", import: ["@key", "@shareable"])
		type Query { users(id: ID @tag(name: "x")): [User!] @shareable @listSize(assumedSize: 3) }
		type User @key(fields: "id") @tag(name: "mine") { id: ID! @external role: Role }
		enum Role { ADMIN @inaccessible }
		extend type User @key(fields: "role")
		directive @tag(name: String!) on OBJECT | ARGUMENT_DEFINITION
	`)
	require.Nil(t, schema.Types["User"].Directives.ForName("key"))
	require.NotNil(t, schema.Types["User"].Directives.ForName("tag"), "the schema defines it")
	require.NotNil(t, schema.Query.Fields.ForName("users").Directives.ForName("listSize"))

	_, err := source.LoadSchema([]string{write(t, map[string]string{"a.graphqls": "type Query { a: Int @listsize(assumedSize: 3) }"})})
	require.ErrorContains(t, err, "listsize", "a misspelt directive is no directive of federation")
}

func TestASchemaIsMergedFromAllFiles(t *testing.T) {
	t.Parallel()
	dir := write(t, map[string]string{
		"a.graphqls":                "type Query { a: Int }",
		"deep/b.graphql":            "extend type Query { b: Int }",
		"node_modules/c.graphqls":   "type Query { none: Int }",
		".hidden/d.graphqls":        "type Query { none: Int }",
		"deep/unrelated.json":       "{}",
		"deep/deeper/mutation.gql":  "type Mutation { c: Int }",
		"deep/deeper/mutation.text": "type Mutation { none: Int }",
	})
	schema, err := source.LoadSchema([]string{dir, filepath.Join(dir, "a.graphqls")})
	require.NoError(t, err)
	require.NotNil(t, schema.Query.Fields.ForName("b"))
	require.NotNil(t, schema.Mutation)
}

func TestEveryMistakeOfASchemaNamesItsFile(t *testing.T) {
	t.Parallel()
	dir := write(t, map[string]string{"a.graphqls": "type {", "b.graphqls": "\n\n  nonsense"})
	_, err := source.LoadSchema([]string{dir})
	require.ErrorContains(t, err, filepath.Join(dir, "a.graphqls")+":1:6: ")
	require.ErrorContains(t, err, filepath.Join(dir, "b.graphqls")+":3:3: ")
}

func TestHostileFilesAreRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"binary":               {"\x7fELF\x00\x01\x02", "not UTF-8 text"},
		"no UTF-8":             {"type Query { a\xff: Int }", "not UTF-8 text"},
		"too large":            {strings.Repeat("#", 32<<20+1), "more than 33554432 bytes"},
		"too many tokens":      {"type Query { " + strings.Repeat("a: B ", 340_000), "token limit"},
		"deeply nested":        {"type Query { a: " + strings.Repeat("[", 900_000) + "Int", "1000 levels"},
		"deeply nested values": {"\"{\" type Query { a(b: Int = " + strings.Repeat("[", 900_000), "1000 levels"},
		"empty":                {"", "no query type"},
		"no query":             {"type A { a: Int }", "no query type"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(write(t, map[string]string{"schema.graphqls": c.text}), "schema.graphqls")
			_, err := source.LoadSchema([]string{file})
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, file)
		})
	}
}

func TestHostileOperationsAreRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"binary":          {"\x00", "not UTF-8 text"},
		"too large":       {strings.Repeat("#", 4<<20+1), "more than 4194304 bytes"},
		"too many tokens": {"{" + strings.Repeat("a ", 200_001), "token limit"},
		"deeply nested":   {strings.Repeat("{a", 90_000), "1000 levels"},
		"nothing":         {"# nothing", "no operation"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(write(t, map[string]string{"op.graphql": c.text}), "op.graphql")
			_, _, err := source.LoadOperations([]string{file}, nil)
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, file)
		})
	}
}

func TestBracketsInStringsAndCommentsDoNotNest(t *testing.T) {
	t.Parallel()
	open := strings.Repeat("{", 2_000)
	for _, text := range []string{
		"type Query { a: Int } # " + open,
		`type Query { "` + open + `" a: Int }`,
		`type Query { "\\\"` + open + `" a: Int }`,
		`type Query { """ " \""" ` + open + ` """ a: Int }`,
		"type Query { a: Int }" + strings.Repeat("\n# { \"", 2_000),
	} {
		load(t, text)
	}
}

func TestLinksToDirectoriesAreNotFollowed(t *testing.T) {
	t.Parallel()
	dir := write(t, map[string]string{"deep/a.graphql": "{ a }"})
	require.NoError(t, os.Symlink(dir, filepath.Join(dir, "deep", "loop")))
	require.NoError(t, os.Symlink(dir, filepath.Join(dir, "deep", "loop.graphql")))
	require.NoError(t, os.Symlink(filepath.Join(dir, "nowhere"), filepath.Join(dir, "broken.graphql")))
	require.NoError(t, os.Symlink(filepath.Join(dir, "deep", "a.graphql"), filepath.Join(dir, "linked.graphql")))
	files, err := source.Files([]string{dir}, ".graphql")
	require.NoError(t, err)
	require.Equal(t, []string{filepath.Join(dir, "deep", "a.graphql"), filepath.Join(dir, "linked.graphql")}, files)
}

func TestFragmentsAreFoundInAllFiles(t *testing.T) {
	t.Parallel()
	dir := write(t, map[string]string{
		"a.graphql": "query A { ...F ...Same } fragment Same on Query { a }",
		"b.graphql": "fragment F on Query { a ...G ...F }",
		"c.graphql": "fragment G on Query { b } fragment Same on Query { b }",
		"d.graphql": "query D { ...Same }",
		"e.graphql": "query E { ...Missing }",
		"f.graphql": "query F { ...Twice } fragment Twice on Query { a } fragment Twice on Query { b }",
	})
	operations, _, err := source.LoadOperations([]string{dir}, nil)
	require.NoError(t, err)
	require.Len(t, operations, 4)

	doc, err := operations[0].Document()
	require.NoError(t, err)
	require.Len(t, doc.Fragments, 3)
	require.Equal(t, filepath.Join(dir, "a.graphql"), doc.Fragments.ForName("Same").Position.Src.Name)

	_, err = operations[1].Document()
	require.ErrorContains(t, err, `d.graphql:1:14: fragment "Same" is defined at `)

	doc, err = operations[2].Document()
	require.NoError(t, err)
	require.Empty(t, doc.Fragments, "validation reports what is missing")

	doc, err = operations[3].Document()
	require.NoError(t, err)
	require.Len(t, doc.Fragments, 2, "validation reports what is defined twice")
}

func TestAnOperationReachesABoundedNumberOfFragments(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	text.WriteString("query Fine { ...F1 } query Chain { ...F0 } fragment F1000 on Query { a }")
	for i := range 1000 {
		fmt.Fprintf(&text, " fragment F%d on Query { ...F%d }", i, i+1)
	}
	operations, _, err := source.LoadOperations([]string{write(t, map[string]string{"a.graphql": text.String()})}, nil)
	require.NoError(t, err)
	_, err = operations[0].Document()
	require.NoError(t, err)
	_, err = operations[1].Document()
	require.ErrorContains(t, err, "a.graphql:1:22: the operation reaches more than 1000 fragments")
}

func TestFilesOfTheSchemaHoldNoOperations(t *testing.T) {
	t.Parallel()
	dir := write(t, map[string]string{"schema.graphql": "type Query { a: Int }", "a.graphql": "{ a }"})
	operations, _, err := source.LoadOperations([]string{dir}, []string{filepath.Join(dir, "schema.graphql")})
	require.NoError(t, err)
	require.Len(t, operations, 1)
	require.Equal(t, "a", operations[0].Name, "after its file")
}

func TestAPathIsNoCommandToTheRunnerOfGitHubActions(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"::warning file=a::b.graphql": "./::warning file=a::b.graphql:3",
		"  ::stop-commands::x":        "./  ::stop-commands::x:3",
		"a::b.graphql":                "a::b.graphql:3",
	} {
		require.Equal(t, want, cli.Position(path, 3, 0, ""))
	}
}
