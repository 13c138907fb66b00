package cost_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"
	"pgregory.net/rapid"

	"github.com/gqlgen-ratelimit/ratelimit/cost"
)

// requireSum checks that a breakdown adds up to its cost.
func requireSum(t require.TestingT, b cost.Breakdown, text string) {
	typ, field := b.OmittedType, b.OmittedField
	for _, e := range b.Entries {
		typ += e.Type
		field += e.Field
	}
	if !math.IsInf(b.Cost.Type, 1) {
		require.InEpsilon(t, 1+b.Cost.Type, 1+typ, 1e-9, "%s\n%+v", text, b)
	}
	if !math.IsInf(b.Cost.Field, 1) {
		require.InEpsilon(t, 1+b.Cost.Field, 1+field, 1e-9, "%s\n%+v", text, b)
	}
}

func TestTheEntriesOfABreakdownAddUpToTheCost(t *testing.T) {
	t.Parallel()
	weights := map[string]float64{"Item": -3, "User": 2, "Query.a": -1, "Item.rel": -2, "Item.heavy": 7}
	for name, config := range map[string]cost.Config{
		"plain": {}, "signed": {Weights: weights},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			estimator, _ := newEstimator(t, "bypass", config)
			rapid.Check(t, func(t *rapid.T) {
				text := drawDocument(t).String()
				doc, err := parser.ParseQuery(&ast.Source{Input: text})
				require.NoError(t, err)
				outline, err := estimator.Outline(doc, doc.Operations[0])
				require.NoError(t, err)
				plan, err := estimator.Plan(doc, doc.Operations[0])
				require.NoError(t, err)
				variables := drawVariables(t)
				b := outline.Explain(variables, cost.ExplainOptions{MaxEntries: rapid.SampledFrom([]int{0, 0, 3, 20}).Draw(t, "max")})
				want, err := plan.Evaluate(variables)
				require.NoError(t, err)
				require.Equal(t, want, b.Cost)
				if b.Omitted == 0 {
					require.Zero(t, b.OmittedType)
					require.Zero(t, b.OmittedField)
				}
				requireSum(t, b, text)
			})
		})
	}
}

func TestTheEntriesOfABreakdownAddUpOnEverySchema(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := drawPriced(t)
		want, err := d.plan.Evaluate(d.variables)
		require.NoError(t, err)
		outline, err := d.estimator.Outline(d.doc, d.doc.Operations[0])
		require.NoError(t, err)
		whole := outline.Explain(d.variables, cost.ExplainOptions{})
		require.Equal(t, want, whole.Cost)
		require.Zero(t, whole.Omitted)
		requireSum(t, whole, d.String())
		some := outline.Explain(d.variables, cost.ExplainOptions{MaxEntries: 3})
		requireSum(t, some, d.String())
		for _, e := range whole.Entries {
			require.GreaterOrEqual(t, e.Field, 0.0, "%v\n%+v", d, e)
			require.False(t, e.Whole)
		}
	})
}

func TestTheEntriesOfEveryCaseAddUpToItsCost(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("testdata", "cases", "*.txtar"))
	require.NoError(t, err)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			_, sections := splitCase(string(text))
			c := loadCase(t, sections)
			outline, err := c.estimator.Outline(c.doc, c.op)
			if err != nil {
				plan, planErr := c.estimator.Plan(c.doc, c.op)
				if planErr != nil {
					require.Equal(t, planErr, err)
					return
				}
				require.ErrorIs(t, err, cost.ErrWorkLimit)
				price, _ := plan.Evaluate(c.variables)
				require.True(t, price.Approximate)
				return
			}
			b := outline.Explain(c.variables, cost.ExplainOptions{})
			if b.Omitted == 0 {
				require.Zero(t, b.OmittedType)
			}
			requireSum(t, b, sections["query"])
		})
	}
}

// explainCase spells the breakdown of a case as a table.
func explainCase(t *testing.T, sections map[string]string) string {
	t.Helper()
	c := loadCase(t, sections)
	outline, err := c.estimator.Outline(c.doc, c.op)
	require.NoError(t, err)
	b := outline.Explain(c.variables, cost.ExplainOptions{})
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	row := func(columns ...string) { _, _ = w.Write([]byte(strings.Join(columns, "\t") + "\n")) }
	row("path", "coordinate", "calls", "weight", "elements", "weight each", "type", "field", "why")
	for _, e := range b.Entries {
		elements, why := "", []string{}
		if e.List != nil {
			elements = number(e.List.Size)
			why = append(why, e.List.String())
		}
		for _, argument := range e.ArgumentCosts {
			why = append(why, argument.Coordinate+" "+number(argument.Cost))
		}
		for note, holds := range map[string]bool{"type clamped": e.TypeClamped, "field clamped": e.FieldClamped, "whole": e.Whole} {
			if holds {
				why = append(why, note)
			}
		}
		slices.Sort(why)
		row(strings.Join(e.Path, "."), e.Coordinate, number(e.Calls), number(e.Weight+e.Arguments), elements, number(e.TypeWeight),
			number(e.Type), number(e.Field), strings.Join(why, "; "))
	}
	require.NoError(t, w.Flush())
	var text strings.Builder
	for line := range strings.Lines(table.String()) {
		text.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	if b.Omitted > 0 {
		fmt.Fprintf(&text, "omitted %d: type %s, field %s\n", b.Omitted, number(b.OmittedType), number(b.OmittedField))
	}
	return text.String()
}

// told returns the entries without what they say about the spelling of values.
func told(b cost.Breakdown) []cost.Entry {
	for i := range b.Entries {
		if list := b.Entries[i].List; list != nil {
			list.Source, list.Variable = "", ""
		}
	}
	return b.Entries
}

func TestALiteralIsExplainedLikeTheSameValueInAVariable(t *testing.T) {
	t.Parallel()
	// Which of several aliases does not pay depends on what is skipped before it.
	estimator, _ := newEstimator(t, "bypass", cost.Config{AliasWeight: cost.None})
	rapid.Check(t, func(t *rapid.T) {
		text := drawDocument(t).String()
		variables := drawVariables(t)
		if _, given := variables["n"]; !given {
			variables["n"] = nil
		}
		operation := strings.TrimPrefix(text, header)
		for name, value := range variables {
			literal, err := json.Marshal(value)
			require.NoError(t, err)
			operation = strings.ReplaceAll(operation, "$"+name, string(literal))
		}
		var breakdowns []cost.Breakdown
		for _, query := range []string{text, operation} {
			doc, err := parser.ParseQuery(&ast.Source{Input: query})
			require.NoError(t, err, query)
			outline, err := estimator.Outline(doc, doc.Operations[0])
			require.NoError(t, err)
			breakdowns = append(breakdowns, outline.Explain(variables, cost.ExplainOptions{}))
		}
		// Execution, and so the price, knows no order; that of the operation includes what is skipped.
		require.ElementsMatch(t, told(breakdowns[0]), told(breakdowns[1]), "%s\n%s", text, operation)
		// Whether an operation only reads its budget does not depend on variables.
		breakdowns[1].Cost.Free = breakdowns[0].Cost.Free
		require.Equal(t, breakdowns[0].Cost, breakdowns[1].Cost)
	})
}

// However large the tree that an operation stands for, no more of it is unfolded than the entries ask
// for, and what is left out is counted.
func TestExplainingIsBoundedByTheNumberOfEntries(t *testing.T) {
	t.Parallel()
	estimator, _ := newEstimator(t, "bypass", cost.Config{})
	variables := map[string]any{"x": true, "y": false}
	for name, document := range hostile {
		for _, n := range []int{4, 30, 120} {
			doc := raw(t, document(n))
			outline, err := estimator.Outline(doc, doc.Operations[0])
			if err != nil {
				require.ErrorIs(t, err, cost.ErrWorkLimit)
				continue
			}
			for _, most := range []int{1, 10, 100} {
				require.LessOrEqual(t, outline.Unfolded(variables, most), 16*most+outline.LargestSet(), name)
				b := outline.Explain(variables, cost.ExplainOptions{MaxEntries: most})
				// The weight of the root type is an entry beside them.
				require.LessOrEqual(t, len(b.Entries), most+1, name)
				requireSum(t, b, name)
				_, err := json.Marshal(b)
				require.NoError(t, err)
			}
		}
	}
}

// 900 entries in a document that is 900 fields deep have 400 000 names in their
// paths, which is why the paths are bounded too.
func TestThePathsOfABreakdownAreBounded(t *testing.T) {
	t.Parallel()
	estimator, _ := newEstimator(t, "bypass", cost.Config{})
	doc := raw(t, hostile["nested fields"](900))
	outline, err := estimator.Outline(doc, doc.Operations[0])
	require.NoError(t, err)
	b := outline.Explain(nil, cost.ExplainOptions{})
	names := 0
	for _, e := range b.Entries {
		names += len(e.Path)
	}
	// Each is a letter, two quotation marks and a comma.
	require.LessOrEqual(t, 4*names, cost.DefaultMaxBytes)
	require.Greater(t, len(b.Entries), 50)
	require.Equal(t, 901, len(b.Entries)+b.Omitted)
	requireSum(t, b, "nested fields")
}

// A name that a client makes long stands in many entries, and so do the arguments of one directive. The
// answer is no longer than a bound, beside the numbers in it.
func TestTheNamesInABreakdownAreBounded(t *testing.T) {
	t.Parallel()
	schema := loadSchema(t, `
directive @log(level: Int @cost(weight: "4")) repeatable on FIELD
type Query { node: Node } type Node { node: Node name: String list(first: Int): [Node] @listSize(slicingArguments: ["first"]) }`, "")
	estimator, err := cost.New(schema, cost.Config{})
	require.NoError(t, err)
	long := strings.Repeat("x", 60<<10)
	for name, text := range map[string]string{
		"an alias":        "{ short: node { name node { name } } " + long + ": node {" + repeat(450, " f%[1]d: node { name }") + " } }",
		"a variable":      "query ($" + long + ": Int) { node { node { name }" + repeat(450, " f%[1]d: list(first: $"+long+") { name }") + " } }",
		"many directives": "{ node { node { name }" + repeat(450, " f%[1]d: node { ...F }") + " } } fragment F on Node { node {name} name" + strings.Repeat(" @log(level: 1)", 60) + " }",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			doc := raw(t, text)
			outline, err := estimator.Outline(doc, doc.Operations[0])
			require.NoError(t, err)
			variables := map[string]any{long: 5}
			b := outline.Explain(variables, cost.ExplainOptions{})
			requireSum(t, b, name)
			require.Greater(t, len(b.Entries), 2, "what fits is there")
			require.Positive(t, b.Omitted)
			encoded, err := json.Marshal(b)
			require.NoError(t, err)
			require.Less(t, len(encoded), cost.DefaultMaxBytes+300*len(b.Entries))
			few := outline.Explain(variables, cost.ExplainOptions{MaxBytes: 200})
			encoded, err = json.Marshal(few)
			require.NoError(t, err)
			require.Less(t, len(encoded), 200+300*(1+len(few.Entries)))
			requireSum(t, few, name)
		})
	}
}

// Each representation is found by its name, whatever the number of types.
func TestRepresentationsAreNotComparedWithEveryType(t *testing.T) {
	t.Parallel()
	const most = 9999
	elapsed := func(types int) time.Duration {
		schema := loadSchema(t, "scalar _Any union _Entity = "+repeat(types, "| T%[1]d ")+" type Query { _entities(representations: [_Any!]!): [_Entity]! }"+
			repeat(types, " type T%[1]d { name: String }"), "")
		estimator, err := cost.New(schema, cost.Config{})
		require.NoError(t, err)
		doc := raw(t, "query ($r: [_Any!]!) {"+repeat(20, " e%[1]d: _entities(representations: $r) { __typename }")+" }")
		outline, err := estimator.Outline(doc, doc.Operations[0])
		require.NoError(t, err)
		representations := make([]any, most)
		for i := range representations {
			representations[i] = map[string]any{"__typename": fmt.Sprintf("T%d", types-1)}
		}
		least := time.Hour
		for range 3 {
			start := time.Now()
			b := outline.Explain(map[string]any{"r": representations}, cost.ExplainOptions{})
			least = min(least, time.Since(start))
			require.InDelta(t, 20*most, b.Cost.Type, 1)
		}
		return least
	}
	require.Less(t, elapsed(1000), 20*elapsed(1))
}

func TestTheDearestEntriesAreKept(t *testing.T) {
	t.Parallel()
	estimator, _ := newEstimator(t, "bypass", cost.Config{})
	doc := raw(t, `{ a { a { e1 { id } } } e2 { id } items(first: 90) { id } other: a { e1 { id } } }`)
	outline, err := estimator.Outline(doc, doc.Operations[0])
	require.NoError(t, err)
	b := outline.Explain(nil, cost.ExplainOptions{MaxEntries: 3})
	var coordinates []string
	for _, e := range b.Entries {
		coordinates = append(coordinates, strings.Join(e.Path, ".")+" "+e.Coordinate)
	}
	// What is left out are items, for 91, and the three calls of a, for 2 each.
	require.Equal(t, []string{" Query", "a.a.e1 Query.e1", "e2 Query.e2", "other.e1 Query.e1"}, coordinates)
	require.Equal(t, 4, b.Omitted)
	requireSum(t, b, "")
}

func TestAnInfiniteCostIsExplainedInFiniteNumbers(t *testing.T) {
	t.Parallel()
	estimator, _ := newEstimator(t, "bypass", cost.Config{Weights: map[string]float64{"Item": -1}})
	doc := raw(t, `query ($n: Int) { users(first: $n) { posts(first: $n) { rel(first: $n) { heavy } } } }`)
	outline, err := estimator.Outline(doc, doc.Operations[0])
	require.NoError(t, err)
	b := outline.Explain(map[string]any{"n": json.Number("1e400")}, cost.ExplainOptions{})
	require.True(t, math.IsInf(b.Cost.Field, 1))
	text, err := json.Marshal(b)
	require.NoError(t, err)
	var back struct {
		Cost    struct{ Field float64 }
		Entries []struct{ Calls float64 }
	}
	require.NoError(t, json.Unmarshal(text, &back))
	require.Equal(t, math.MaxFloat64, back.Cost.Field)
	require.Equal(t, math.MaxFloat64, back.Entries[len(back.Entries)-1].Calls)
}

// FuzzExplain explains whatever operation parses with whatever variables.
func FuzzExplain(f *testing.F) {
	seed(f, func(query, variables string) { f.Add(query, variables) })
	f.Add(`query ($n: Int) { conn(first: $n) { edges { node { rel(first: $n) { heavy } } } } }`, `{"n": 1e400}`)
	estimator, _ := newEstimator(f, "bypass", cost.Config{WorkLimit: 5000})
	f.Fuzz(func(t *testing.T, query, text string) {
		doc, err := parser.ParseQuery(&ast.Source{Input: query})
		if err != nil {
			return
		}
		var variables map[string]any
		decoder := json.NewDecoder(strings.NewReader(text))
		decoder.UseNumber()
		if decoder.Decode(&variables) != nil {
			return
		}
		for _, op := range doc.Operations {
			plan, err := estimator.Compile(doc, op)
			if err != nil {
				_, err := estimator.Outline(doc, op)
				require.Error(t, err)
				continue
			}
			want, _ := plan.Evaluate(variables)
			outline, err := estimator.Outline(doc, op)
			if err != nil {
				require.ErrorIs(t, err, cost.ErrWorkLimit)
				require.True(t, want.Approximate)
				continue
			}
			b := outline.Explain(variables, cost.ExplainOptions{MaxEntries: 50})
			require.Equal(t, want, b.Cost)
			requireSum(t, b, query)
			_, err = json.Marshal(b)
			require.NoError(t, err)
		}
	})
}
