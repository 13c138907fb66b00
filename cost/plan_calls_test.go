package cost_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/validator"
	"pgregory.net/rapid"

	"github.com/gqlgen-ratelimit/ratelimit/cost"
)

const callsSchema = `
	scalar JSON
	enum Kind { SMALL LARGE }
	input Address { email: String = "nobody", tags: [String!] }
	input Login { email: String, password: String, otp: Int, to: [Address!], address: Address, kind: Kind = SMALL }
	type Query {
		me: String
		matrix(origins: [String!], destinations: [String!] = ["a", "b"], first: Int = 3, scale: Float, raw: JSON, groups: [[ID!]!]): Int
	}
	type Mutation { login(input: Login, name: String = "guest", ids: [ID!], code: Int): Int, ping: Int }
`

// callsOf returns the calls of the only operation of a document, with the variables as gqlgen coerces them.
func callsOf(t testing.TB, query string, variables map[string]any, summed bool) *cost.Calls {
	t.Helper()
	schema := loadSchema(t, callsSchema, "")
	estimator, err := cost.New(schema, cost.Config{})
	require.NoError(t, err)
	doc := parse(t, schema, query, false)
	coerced, err := validator.VariableValues(schema, doc.Operations[0], variables)
	require.NoError(t, err)
	plan, err := estimator.Plan(doc, doc.Operations[0])
	if summed {
		plan, _, err = estimator.CompileSummed(doc, doc.Operations[0])
	}
	require.NoError(t, err)
	calls := plan.Calls(coerced)
	return &calls
}

func calledFields(calls *cost.Calls) []string {
	fields := []string{}
	for i := range calls.Len() {
		fields = append(fields, calls.Field(i))
	}
	return fields
}

func valuesOf(t testing.TB, calls *cost.Calls, path string) []any {
	t.Helper()
	values := []any{}
	require.True(t, calls.Values(0, path, func(value any) bool {
		values = append(values, value)
		return true
	}))
	return values
}

func TestEachResponseNameIsACallThatTheVariablesInclude(t *testing.T) {
	t.Parallel()
	const query = `mutation ($yes: Boolean!, $no: Boolean = false) {
		a: login b: login @include(if: $yes) b: login @include(if: $no) c: login @skip(if: $yes) ...F __typename
		d: login @include(if: false) ... @include(if: $no) { e: login }
	}
	fragment F on Mutation { a: login f: ping @include(if: $yes) ...G }
	fragment G on Mutation { g: ping @skip(if: $no) }`
	for _, summed := range []bool{false, true} {
		calls := callsOf(t, query, map[string]any{"yes": true}, summed)
		require.ElementsMatch(t, []string{"Mutation.login", "Mutation.login", "Mutation.ping", "Mutation.ping"}, calledFields(calls), summed)
		calls = callsOf(t, query, map[string]any{"yes": false, "no": true}, summed)
		require.ElementsMatch(t, []string{"Mutation.login", "Mutation.login", "Mutation.login", "Mutation.login"}, calledFields(calls), summed)
	}
	var none cost.Calls
	require.Zero(t, none.Len())
}

func TestAHundredAliasesAreAHundredCalls(t *testing.T) {
	t.Parallel()
	var query strings.Builder
	for i := range 100 {
		fmt.Fprintf(&query, "a%d: login ", i)
	}
	require.Len(t, calledFields(callsOf(t, "mutation {"+query.String()+"}", nil, false)), 100)
}

func TestACallTellsTheValuesThatItsResolverIsGiven(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		arguments string
		path      string
		want      []any
	}{
		"a literal":                       {`input: {email: "a@x"}`, "input.email", []any{"a@x"}},
		"a block string":                  {`input: {email: """a@x"""}`, "input.email", []any{"a@x"}},
		"a variable":                      {`input: $input`, "input.email", []any{"v@x"}},
		"a variable in a literal":         {`input: {email: $email}`, "input.email", []any{"e@x"}},
		"the default of a variable":       {`name: $name`, "name", []any{"default"}},
		"the default of the schema":       {`code: 1`, "name", []any{"guest"}},
		"that of an input field":          {`input: {address: {}}`, "input.address.email", []any{"nobody"}},
		"that in a variable":              {`input: $input`, "input.to.email", []any{"x", "nobody"}},
		"an absent variable":              {`input: {email: $absent}`, "input.email", []any{nil}},
		"an enum":                         {`input: {kind: LARGE}`, "input.kind", []any{"LARGE"}},
		"null":                            {`input: null`, "input.email", []any{nil}},
		"nothing":                         {`code: 1`, "input.email", []any{nil}},
		"what nobody declares":            {`code: 1`, "nobody", []any{nil}},
		"what no input declares":          {`input: {email: "a"}`, "input.nobody", []any{nil}},
		"what is below a text":            {`input: {email: "a"}`, "input.email.more", []any{nil}},
		"the elements of a list":          {`ids: ["a", "b"]`, "ids", []any{"a", "b"}},
		"a single value for a list":       {`ids: "a"`, "ids", []any{"a"}},
		"an empty list":                   {`ids: []`, "ids", []any{}},
		"each object of a list":           {`input: {to: [{email: "a"}, {email: "b"}]}`, "input.to.email", []any{"a", "b"}},
		"the elements of lists in a list": {`input: {to: [{tags: ["a", "b"]}, {tags: ["c"]}]}`, "input.to.tags", []any{"a", "b", "c"}},
	} {
		query := `mutation ($input: Login, $email: String, $absent: String, $name: String = "default") {
			login(` + test.arguments + `) x: login(input: $input, name: $name) y: login(input: {email: $email, password: $absent})
		}`
		calls := callsOf(t, query, map[string]any{
			"email": "e@x", "input": map[string]any{"email": "v@x", "to": []any{map[string]any{"email": "x"}, map[string]any{}}},
		}, false)
		require.Equal(t, test.want, valuesOf(t, calls, test.path), name)
	}
}

func TestAValueIsYieldedAsItsResolverReadsIt(t *testing.T) {
	t.Parallel()
	for _, code := range []any{"5", "05", "+5", 5, strings.Repeat("0", 1000) + "5"} {
		calls := callsOf(t, `mutation ($code: Int) { login(code: $code) }`, map[string]any{"code": code}, false)
		require.Equal(t, "5", fmt.Sprint(valuesOf(t, calls, "code")[0]), "%v", code)
	}
	const large = "9007199254740993" // It is no float64.
	calls := callsOf(t, `mutation ($code: Int) { login(code: $code) }`, map[string]any{"code": large}, false)
	require.Equal(t, large, fmt.Sprint(valuesOf(t, calls, "code")[0]))
	calls = callsOf(t, `mutation ($name: String) { login(name: $name) }`, map[string]any{"name": "05"}, false)
	require.Equal(t, []any{"05"}, valuesOf(t, calls, "name"), "a name is no number")
	calls = callsOf(t, `mutation ($name: String) { login(name: $name) }`, map[string]any{"name": json.Number("2.0")}, false)
	require.Equal(t, []any{"2.0"}, valuesOf(t, calls, "name"))
	calls = callsOf(t, `{ matrix(scale: 2.50) }`, nil, false)
	require.Equal(t, []any{2.5}, valuesOf(t, calls, "scale"))
	calls = callsOf(t, `mutation { login(input: {otp: 5, to: {tags: "a"}}) }`, nil, false)
	require.Equal(t, []any{map[string]any{"otp": int64(5), "kind": "SMALL", "to": []any{map[string]any{"email": "nobody", "tags": []any{"a"}}}}},
		valuesOf(t, calls, "input"))
}

func TestACallAsksForTheLengthsOfListsAndForNumbers(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		arguments, path string
		want            float64
	}{
		{`origins: ["a", "b", "c"]`, "origins", 3},
		{`origins: []`, "origins", 0},
		{`origins: "a"`, "origins", 1},
		{`origins: $origins`, "origins", 2},
		{`origins: null`, "origins", 1},
		{`origins: ["a"]`, "destinations", 2},
		{`destinations: null`, "destinations", 1},
		{`first: 40`, "first", 40},
		{`scale: 2.5`, "first", 3},
		{`scale: 2.5`, "scale", 2.5},
		{`first: -1`, "first", 0},
		{`first: $many`, "first", 12},
		{`origins: ["a"]`, "nothing", 1},
		{`raw: {size: 9}`, "raw.size", 9},
		{`raw: [{size: 9}, {size: 2}, {}]`, "raw.size", 12},
	} {
		calls := callsOf(t, `query ($origins: [String!], $many: Int) { matrix(`+test.arguments+`) x: matrix(origins: $origins, first: $many) }`,
			map[string]any{"origins": []any{"a", "b"}, "many": 12}, false)
		require.InDelta(t, test.want, calls.Size(0, test.path), 0, "%s of %s", test.path, test.arguments)
	}
}

// A list of lists asked for its outer length, whatever stood in it.
func TestAListOfListsAsksForWhatStandsInIt(t *testing.T) {
	t.Parallel()
	ids := `["1"` + strings.Repeat(`, "1"`, 99) + `]`
	for _, test := range []struct {
		argument string
		want     float64
	}{
		{`[` + ids + `]`, 100},
		{`[` + ids + `, ` + ids + `]`, 200},
		{`[["1", "2"], ["3"]]`, 3},
		{`[[], [], []]`, 3},
		{`[["1", "2"], [], []]`, 3},
		{`[["1", "2", "3", "4"], [], []]`, 4},
		{`["1", "2"]`, 2},
		{`"1"`, 1},
		{`[]`, 0},
	} {
		var given any
		require.NoError(t, json.Unmarshal([]byte(test.argument), &given))
		calls := callsOf(t, `query ($x: [[ID!]!], $raw: JSON) { matrix(groups: `+test.argument+`) a: matrix(groups: $x) b: matrix(raw: $raw) }`,
			map[string]any{"x": given, "raw": given}, false)
		require.InDelta(t, test.want, calls.Size(0, "groups"), 0, test.argument)
		require.InDelta(t, test.want, calls.Size(1, "groups"), 0, test.argument)
		if test.argument != `"1"` {
			require.InDelta(t, test.want, calls.Size(2, "raw"), 0, test.argument)
		}
	}
}

func TestTheLengthsOfListsAreBounded(t *testing.T) {
	t.Parallel()
	schema := loadSchema(t, callsSchema, "")
	estimator, err := cost.New(schema, cost.Config{MaxValues: 1000})
	require.NoError(t, err)
	doc := parse(t, schema, `query ($x: [[ID!]!], $y: [String!]) { a: matrix(groups: $x, origins: $y) b: matrix(groups: $x) }`, false)
	plan, err := estimator.Plan(doc, doc.Operations[0])
	require.NoError(t, err)
	calls := plan.Calls(map[string]any{"x": []any{make([]any, 600)}, "y": make([]any, 5000)})
	require.InDelta(t, 5000, calls.Size(0, "origins"), 0, "only its length is read")
	require.InDelta(t, 600, calls.Size(0, "groups"), 0)
	require.True(t, math.IsInf(calls.Size(1, "groups"), 1), "both together are too much")
}

func TestCallsReadNoMoreValuesThanTheyMay(t *testing.T) {
	t.Parallel()
	schema := loadSchema(t, callsSchema, "")
	estimator, err := cost.New(schema, cost.Config{MaxValues: 1000})
	require.NoError(t, err)
	doc := parse(t, schema, `mutation ($ids: [ID!], $raw: [Address!]) { a: login(ids: $ids) b: login(ids: $ids, input: {to: $raw}) }`, false)
	plan, err := estimator.Plan(doc, doc.Operations[0])
	require.NoError(t, err)
	many := make([]any, 600)
	for i := range many {
		many[i] = map[string]any{}
	}
	calls := plan.Calls(map[string]any{"ids": many, "raw": many})
	seen := 0
	count := func(any) bool { seen++; return true }
	require.True(t, calls.Values(0, "ids", count))
	require.False(t, calls.Values(1, "ids", count), "both calls together read more")
	require.Less(t, seen, 1000)
	require.False(t, calls.Values(0, "ids", count))
	require.True(t, math.IsInf(calls.Size(1, "input.to.email"), 1))
}

func TestTheUsualCallsNeedNoMemory(t *testing.T) {
	schema := loadSchema(t, callsSchema, "")
	estimator, err := cost.New(schema, cost.Config{})
	require.NoError(t, err)
	doc := parse(t, schema, `mutation ($input: Login) { login(input: $input) }`, false)
	plan, err := estimator.Plan(doc, doc.Operations[0])
	require.NoError(t, err)
	variables := map[string]any{"input": map[string]any{"email": "a"}}
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if calls := plan.Calls(variables); calls.Len() != 1 || calls.Field(0) != "Mutation.login" {
			panic("no call")
		}
	}))
}

// TestTheCallsAreThoseOfExecution compares them with a simple reading of the specification.
func TestTheCallsAreThoseOfExecution(t *testing.T) {
	t.Parallel()
	schema := loadSchema(t, callsSchema, "")
	estimator, err := cost.New(schema, cost.Config{})
	require.NoError(t, err)
	rapid.Check(t, func(rt *rapid.T) {
		condition := rapid.SampledFrom([]string{"", "@include(if: $x)", "@skip(if: $x)", "@include(if: $y)", "@skip(if: $y)"})
		var selections func(depth int) string
		selections = func(depth int) string {
			var text strings.Builder
			for range rapid.IntRange(1, 4).Draw(rt, "n") {
				when := condition.Draw(rt, "condition")
				if depth < 3 && rapid.Bool().Draw(rt, "fragment") {
					fmt.Fprintf(&text, " ... on Query %s {%s}", when, selections(depth+1))
				} else {
					fmt.Fprintf(&text, " %s: me %s", rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "name"), when)
				}
			}
			return text.String()
		}
		query := "query ($x: Boolean!, $y: Boolean!) {" + selections(0) + " z: me @include(if: $x) w: me @include(if: $y)}"
		doc := parse(t, schema, query, false)
		variables := map[string]any{"x": rapid.Bool().Draw(rt, "x"), "y": rapid.Bool().Draw(rt, "y")}
		want := make(map[string]bool)
		executed(doc.Operations[0].SelectionSet, variables, want)
		for _, summed := range []bool{false, true} {
			plan, err := estimator.Compile(doc, doc.Operations[0])
			if summed {
				plan, _, err = estimator.CompileSummed(doc, doc.Operations[0])
			}
			if err != nil {
				rt.Fatal(err)
			}
			calls := plan.Calls(variables)
			if calls.Len() != len(want) {
				rt.Fatalf("%d calls, want %d (summed: %v): %s", calls.Len(), len(want), summed, query)
			}
		}
	})
}

// executed notes the response names of the selections that the variables include.
func executed(selections ast.SelectionSet, variables map[string]any, names map[string]bool) {
	for _, selection := range selections {
		switch s := selection.(type) {
		case *ast.Field:
			if applies(s.Directives, variables) {
				names[s.Alias] = true
			}
		case *ast.InlineFragment:
			if applies(s.Directives, variables) {
				executed(s.SelectionSet, variables, names)
			}
		}
	}
}

func applies(directives ast.DirectiveList, variables map[string]any) bool {
	for _, directive := range directives {
		if variables[directive.Arguments[0].Value.Raw] != (directive.Name == "include") {
			return false
		}
	}
	return true
}
