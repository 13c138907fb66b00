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
		Local                              bool
		OverMaxCost                        bool
		MissingVariables, AssumedVariables []string
		ChosenVariables                    []string
		Problems                           []struct{ Message string }
		DearestCall, LongestList           *struct{ Path []string }
	}
}

// price prices the operations in a directory with a schema.graphqls.
func price(t *testing.T, dir string, code int, args ...string) priced {
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

	found := price(t, dir, exitFound)
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

	c, stdout, _ = quiet()
	require.Equal(t, exitFound, run(c, []string{"lint", "-schema", schema, "-dominant", "100%", dir}))
	require.Contains(t, stdout.String(), broken+":3:7: warning: ")
	require.Contains(t, stdout.String(), "(unread-file)")
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
		one := price(t, dir, code, "-max-cost", "1000").Operations[0]
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
		one := price(t, dir, code, "-max-cost", "32").Operations[0]
		require.Equal(t, want.points, *one.Points, operation)
		require.Equal(t, want.missing, one.MissingVariables, operation)
		require.Equal(t, want.chosen, one.ChosenVariables, operation)
		require.True(t, price(t, dir, exitFound, "-max-cost", "31").Operations[0].OverMaxCost, operation)
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
	require.NotEmpty(t, price(t, dir, exitFound, "-max-cost", "1000").Operations[0].MissingVariables)
}

func TestVariablesHaveValuesByTheirNames(t *testing.T) {
	t.Parallel()
	dir := files(t, map[string]string{
		"schema.graphqls":      shelf,
		"Given.variables.json": `{"first": 7}`,
		"operations.graphql": `
			query Without($first: Int!) { books(first: $first) { name } }
			query Given($first: Int!) { books(first: $first) { name } }
			query Defaulted($first: Int! = 9) { books(first: $first) { name } }
			query Other($first: Page!) { book(page: $first) { name } }`,
		"pricing.yaml": "variables: {first: 20}",
	})
	check := func(found priced, want map[string]int64) {
		t.Helper()
		for _, one := range found.Operations {
			require.Empty(t, one.Problems, one.Name)
			require.Equal(t, want[one.Name], *one.Points, one.Name)
			require.Equal(t, one.Name == "Other", len(one.MissingVariables) > 0, "a value that does not fit is none: %s", one.Name)
		}
	}
	check(price(t, dir, exitOK, "-variable", "first=50"), map[string]int64{"Without": 52, "Given": 9, "Defaulted": 11, "Other": 13})
	config := filepath.Join(dir, "pricing.yaml")
	check(price(t, dir, exitOK, "-config", config), map[string]int64{"Without": 22, "Given": 9, "Defaulted": 11, "Other": 13})
	check(price(t, dir, exitOK, "-config", config, "-variable", "$first=30"), map[string]int64{"Without": 32, "Given": 9, "Defaulted": 11, "Other": 13})

	found := price(t, dir, exitOK, "-variable", `first={"size": 40}`)
	require.Equal(t, "Other", found.Operations[0].Name)
	require.EqualValues(t, 43, *found.Operations[0].Points)
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
		"pricing.yaml":      `listSizes: {"*.errors": 1}`,
	})
	points := func(args ...string) int64 { return *price(t, dir, exitOK, args...).Operations[0].Points }
	// The root, four calls, two payloads, and the errors of both.
	without := points()
	require.Equal(t, without-9, points("-list-size", "*.errors=1"))
	require.Equal(t, without-9, points("-config", filepath.Join(dir, "pricing.yaml")))
	require.Equal(t, without-8, points("-config", filepath.Join(dir, "pricing.yaml"), "-list-size", "*.errors=2"))
	require.Equal(t, without-7, points("-config", filepath.Join(dir, "pricing.yaml"), "-list-size", "Save*.errors=3"))
	for _, wrong := range []string{"*.errors=many", "*.errors=-1", "*.errors", "=1"} {
		c, _, stderr := quiet()
		require.Equal(t, exitUsage, run(c, []string{"cost", "-schema", filepath.Join(dir, "schema.graphqls"), "-list-size", wrong, dir}))
		require.Contains(t, stderr.String(), "-list-size")
	}
}

func TestWhatClientsKeepToThemselvesIsNotPriced(t *testing.T) {
	t.Parallel()
	dir := files(t, map[string]string{
		"schema.graphqls": `type Query { books(first: Int): [Book!]! me: Book } type Book { name: String! title: String next: Book }`,
		"operation.graphql": `
			query Marked($id: ID!, $key: String, $first: Int) {
				books(first: $first) @connection(key: "books", filter: [$key]) { name isOpen(id: $id) @client ...Mine }
				me { ...Local @nonreactive }
				settings @client { theme ...Theme }
			}
			fragment Local on Book { isOpen @client }
			fragment Theme on Settings { colour(of: $id) }
			fragment Mine on Book { ... on Book { draft @rest(type: "Draft", path: "/draft") } title }
			query Own { settings @client { theme } }
			query Shared { me { ...Mine } }
			query Unused($id: ID) { me { name } }`,
	})
	byName := func(found priced) map[string]int {
		at := map[string]int{}
		for i, one := range found.Operations {
			at[one.Name] = i
		}
		return at
	}
	found := price(t, dir, exitFound)
	at := byName(found)
	require.Empty(t, found.Operations[at["Marked"]].Problems)
	require.EqualValues(t, 1+1+10, *found.Operations[at["Marked"]].Points, "the root, books and their call; of me nothing is left")
	require.Empty(t, found.Operations[at["Shared"]].Problems)
	require.True(t, found.Operations[at["Own"]].Local)
	require.Empty(t, found.Operations[at["Own"]].Problems)
	require.Zero(t, *found.Operations[at["Own"]].Points)
	require.Len(t, found.Operations[at["Unused"]].Problems, 1, "a server refuses a variable that nothing ever read")
}

func TestOtherDirectivesOfClientsAreGivenByNameAndThoseOfTheSchemaStay(t *testing.T) {
	t.Parallel()
	dir := files(t, map[string]string{
		"schema.graphqls":   `directive @connection(key: String! @cost(weight: "7")) on FIELD type Query { a: Query b: Int }`,
		"operation.graphql": `query Q { a @connection(key: "x") @cached(seconds: 3) { b } mine @local }`,
		"pricing.yaml":      "clientDirectives: [cached]\nclientOnly: [local]",
	})
	require.NotEmpty(t, price(t, dir, exitFound).Operations[0].Problems)
	for _, args := range [][]string{
		{"-client-directive", "@cached", "-client-only", "local"},
		{"-config", filepath.Join(dir, "pricing.yaml")},
	} {
		found := price(t, dir, exitOK, args...)
		require.EqualValues(t, 1+2+7, *found.Operations[0].Points, "the directive of the schema is sent and has its weight")
	}
}

func TestAnOperationThatCostsTooMuchNamesItsDearestCallAndLongestList(t *testing.T) {
	t.Parallel()
	dir := files(t, map[string]string{
		"schema.graphqls": `
			type Query { books(first: Int): [Book!]! @listSize(slicingArguments: ["first"]) }
			type Book { authors: [Author!]! @listSize(assumedSize: 3) }
			type Author { home: Place }
			type Place { name: String }`,
		"operation.graphql": `{ books(first: 50) { authors { home { name } } } }`,
	})
	c, stdout, _ := quiet()
	args := []string{"cost", "-schema", filepath.Join(dir, "schema.graphqls"), "-calls", "0", "-max-cost", "100", dir}
	require.Equal(t, exitFound, run(c, args))
	require.Contains(t, stdout.String(), "! above the maximum of 100: most by books.authors.home, 300; the longest list is books, 50 (first)")
	found := price(t, dir, exitFound, "-max-cost", "100")
	require.Equal(t, []string{"books", "authors", "home"}, found.Operations[0].DearestCall.Path)
	require.Equal(t, []string{"books"}, found.Operations[0].LongestList.Path)
	require.Nil(t, price(t, dir, exitOK).Operations[0].DearestCall)
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
