package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// priced is what the sub-command cost writes with -json.
type priced struct {
	Failed bool
	Broken []struct {
		File, Message string
		Line          int
	}
	Operations []struct {
		Name                               string
		Points                             *int64
		OverMaxCost                        bool
		MissingVariables, AssumedVariables []string
		ChosenVariables                    []string
		Problems                           []struct{ Message string }
	}
}

// priceIn prices the operations in a directory with a schema.graphqls.
func priceIn(t *testing.T, dir string, code int, args ...string) priced {
	t.Helper()
	c, stdout, stderr := quiet()
	args = append([]string{"cost", "-schema", filepath.Join(dir, "schema.graphqls"), "-json", dir}, args...)
	require.Equal(t, code, run(c, args), "%s%s", stdout, stderr)
	var found priced
	require.NoError(t, json.Unmarshal(stdout.Bytes(), &found))
	return found
}

func TestAFileThatDoesNotParseIsNamedAndTheOthersArePriced(t *testing.T) {
	t.Parallel()
	dir := files(t, map[string]string{
		"schema.graphqls": "type Query { a: Query b: Int }",
		"fine.graphql":    "query Fine { a { b } }",
		"broken.graphql":  "query Broken {\n  a {\n    b(: 1)\n  }\n}",
		"binary.graphql":  "\x00",
	})
	schema, broken := filepath.Join(dir, "schema.graphqls"), filepath.Join(dir, "broken.graphql")
	c, stdout, stderr := quiet()
	require.Equal(t, exitFound, run(c, []string{"cost", "-schema", schema, dir}))
	require.Empty(t, stderr.String())
	require.Contains(t, stdout.String(), "! "+broken+":3:7: Expected Name")
	require.Contains(t, stdout.String(), "binary.graphql: the file is not UTF-8 text")
	require.Regexp(t, `(?m)^ +3 +2 +1  Fine`, stdout.String())
	require.Contains(t, stdout.String(), "1 operation, 3 points in all, 2 files left out")

	found := priceIn(t, dir, exitFound)
	require.True(t, found.Failed)
	require.Len(t, found.Broken, 2)
	require.Equal(t, broken, found.Broken[1].File)
	require.Equal(t, 3, found.Broken[1].Line)
	require.Len(t, found.Operations, 1)

	c, stdout, _ = quiet()
	require.Equal(t, exitFound, run(c, []string{"diff", "-old", schema, "-new", schema, dir}))
	require.Contains(t, stdout.String(), broken+":3:7: ")
	require.Contains(t, stdout.String(), "1 with the same price, 2 files left out")
	c, stdout, _ = quiet()
	require.Equal(t, exitFound, run(c, []string{"diff", "-old", schema, "-new", schema, "-json", dir}))
	require.Contains(t, stdout.String(), `"failed": true`)
}

const shelf = `
	type Query {
		find(filter: Filter!, tags: [Tag!]): [Book!]! @listSize(assumedSize: 100)
		books(first: Int!): [Book!]! @listSize(slicingArguments: ["first"])
		book(page: Page!): [Book!]! @listSize(slicingArguments: ["page.size"])
	}
	input Filter { text: Text! title: String @cost(weight: "5") }
	input Text { word: String! @cost(weight: "2") }
	input Tag { name: String! }
	input Page { size: Int! }
	type Book { name: String! }`

// Saleor's own operations: 98 of 154 failed for want of an input that adds a point.
func TestARequiredInputWithoutAValueIsPricedAsPresentAndOnlyAListSizeIsMissed(t *testing.T) {
	t.Parallel()
	for operation, want := range map[string]struct {
		points           int64
		missing, assumed []string
	}{
		// 1 for the root, 100 books, 1 call; filter 1, text 1, word 2.
		`query ($f: Filter!) { find(filter: $f) { name } }`:                                     {106, nil, []string{"f"}},
		`query ($t: Text!) { find(filter: {text: $t}) { name } }`:                               {106, nil, []string{"t"}},
		`query ($w: String!) { find(filter: {text: {word: $w}}) { name } }`:                     {106, nil, nil},
		`query ($f: Filter!, $t: [Tag!]!) { find(filter: $f, tags: $t) { name } }`:              {107, nil, []string{"f", "t"}},
		`query ($n: Int!) { books(first: $n) { name } }`:                                        {12, []string{"n"}, nil},
		`query ($p: Page!) { book(page: $p) { name } }`:                                         {13, []string{"p"}, nil},
		`query ($f: Filter!, $n: Int!) { find(filter: $f) { name } books(first: $n) { name } }`: {117, []string{"n"}, []string{"f"}},
	} {
		dir := files(t, map[string]string{"schema.graphqls": shelf, "operation.graphql": operation})
		code := exitOK
		if want.missing != nil {
			code = exitFound
		}
		one := priceIn(t, dir, code, "-max-cost", "1000").Operations[0]
		require.Equal(t, want.points, *one.Points, operation)
		require.Equal(t, want.missing, one.MissingVariables, operation)
		require.Equal(t, want.assumed, one.AssumedVariables, operation)

		c, stdout, _ := quiet()
		require.Equal(t, exitOK, run(c, []string{"cost", "-schema", filepath.Join(dir, "schema.graphqls"), dir}))
		require.Equal(t, want.assumed != nil, strings.Contains(stdout.String(), "priced with what is required in it"), operation)
	}
}

func TestARequiredBooleanWithoutAValueHasTheDearerOne(t *testing.T) {
	t.Parallel()
	for operation, want := range map[string]struct {
		points          int64
		missing, chosen []string
	}{
		`query ($b: Boolean!) { books(first: 30) @include(if: $b) { name } }`:                                                                        {32, nil, []string{"b"}},
		`query ($b: Boolean!) { books(first: 30) @skip(if: $b) { name } }`:                                                                           {32, nil, []string{"b"}},
		`query ($a: Boolean!, $b: Boolean!) { x: books(first: 30) @skip(if: $b) { name } books(first: 20) @include(if: $b) @skip(if: $a) { name } }`: {32, nil, []string{"a", "b"}},
		// The cheaper choice has a list that may have any size.
		`query ($b: Boolean!, $n: Int!) { x: books(first: 30) @skip(if: $b) { name } books(first: $n) @include(if: $b) { name } }`: {32, []string{"n"}, []string{"b"}},
	} {
		dir := files(t, map[string]string{"schema.graphqls": shelf, "operation.graphql": operation})
		code := exitOK
		if want.missing != nil {
			code = exitFound
		}
		one := priceIn(t, dir, code, "-max-cost", "32").Operations[0]
		require.Equal(t, want.points, *one.Points, operation)
		require.Equal(t, want.missing, one.MissingVariables, operation)
		require.Equal(t, want.chosen, one.ChosenVariables, operation)
		require.True(t, priceIn(t, dir, exitFound, "-max-cost", "31").Operations[0].OverMaxCost, operation)
	}

	// More than can be tried.
	var text strings.Builder
	for i := range 20 {
		fmt.Fprintf(&text, " b%d: books(first: 1) @include(if: $v%d) { name }", i, i)
	}
	query := "query ($v0: Boolean!"
	for i := 1; i < 20; i++ {
		query += fmt.Sprintf(", $v%d: Boolean!", i)
	}
	dir := files(t, map[string]string{"schema.graphqls": shelf, "many.graphql": query + ") {" + text.String() + " }"})
	require.NotEmpty(t, priceIn(t, dir, exitFound, "-max-cost", "1000").Operations[0].MissingVariables)
}

func TestListsHaveSizesByPatterns(t *testing.T) {
	t.Parallel()
	dir := files(t, map[string]string{
		"schema.graphqls": `
			type Query { save: SavePayload! drop: DropPayload! }
			type SavePayload { errors: [Problem!]! }
			type DropPayload { errors: [Problem!]! @listSize(assumedSize: 3) }
			type Problem { text: String }`,
		"operation.graphql": `{ save { errors { text } } drop { errors { text } } }`,
		"pricing.yaml":      `listSizes: {"*.errors": {assumedSize: 1}}`,
	})
	points := func(args ...string) int64 { return *priceIn(t, dir, exitOK, args...).Operations[0].Points }
	// The root, four calls, two payloads, and the errors of both.
	require.Equal(t, points()-9, points("-config", filepath.Join(dir, "pricing.yaml")))
}

func TestDiffNamesAPathOnceAndShowsASmallRise(t *testing.T) {
	t.Parallel()
	schema := func(weight string) string {
		return `
			type Query { node: Node! many: [A!]! @listSize(assumedSize: 50000) }
			interface Node { next: Node }
			type A implements Node @cost(weight: "` + weight + `") { next: Node }
			type B implements Node { next: Node @cost(weight: "30") }`
	}
	dir := files(t, map[string]string{
		"old.graphqls": schema("1"), "new.graphqls": schema("20"),
		"nodes.graphql": `query Nodes { node { next { __typename } } }`,
	})
	c, stdout, _ := quiet()
	run(c, []string{"diff", "-old", filepath.Join(dir, "old.graphqls"), "-new", filepath.Join(dir, "new.graphqls"), filepath.Join(dir, "nodes.graphql")})
	require.Equal(t, 1, strings.Count(stdout.String(), "  node.next  "), stdout)

	dir = files(t, map[string]string{
		"old.graphqls": `type Query { a: A many: [A!]! @listSize(assumedSize: 9000) } type A { b: Int }`,
		"new.graphqls": `type Query { a: A @cost(weight: "4") many: [A!]! @listSize(assumedSize: 9000) } type A { b: Int }`,
		"many.graphql": `query Many { a { b } many { b } }`,
	})
	c, stdout, _ = quiet()
	args := []string{"diff", "-old", filepath.Join(dir, "old.graphqls"), "-new", filepath.Join(dir, "new.graphqls"), filepath.Join(dir, "many.graphql")}
	require.Equal(t, exitOK, run(c, args), stdout)
	require.Contains(t, stdout.String(), "9004      9007    +0.03%  Many")
}
