package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/cost"
	"github.com/gqlgen-ratelimit/ratelimit/example/internal/codehost"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
)

var (
	documents  = flag.Int("documents", 250, "how many operations are tried to find the one that buys most bytes for a point")
	searchSeed = flag.Uint64("search-seed", 13, "what the search for that operation begins with")
)

// withLongTexts returns the handler of a store whose repository R_1 has a hundred issues with this body, each with such a comment.
func withLongTexts(t *testing.T, opts options, body string) http.Handler {
	t.Helper()
	store := newStore(t)
	for range 100 {
		issue, err := store.CreateIssue(store.UserByLogin("mira"), codehost.NewIssue{RepositoryID: "R_1", Title: "Long", Body: body})
		require.NoError(t, err)
		_, err = store.AddComment(store.UserByLogin("mira"), issue.ID, body)
		require.NoError(t, err)
	}
	return handlerOf(t, store, opts)
}

// TestFewPointsBuyNoAnswerOfManyMegabytes asks as the attack did that was answered with 227 MB for 95 points, with less that is
// refused elsewhere, and with what is admitted.
func TestFewPointsBuyNoAnswerOfManyMegabytes(t *testing.T) {
	t.Parallel()
	handler := withLongTexts(t, options{}, strings.Repeat("z", codehost.MaxBody))
	for i, tt := range []struct {
		issues, aliases, status int
		code, rule              string
	}{
		{90, 630, http.StatusBadRequest, ratelimitclient.CodeQueryLimitExceeded, string(cost.RuleAliases)},
		{90, 200, http.StatusBadRequest, ratelimitclient.CodeCostLimitExceeded, ""},
		{90, 20, http.StatusOK, ratelimitclient.CodeQueryLimitExceeded, string(ratelimit.RuleResponseBytes)},
	} {
		bodies := ""
		for alias := range tt.aliases {
			bodies += fmt.Sprintf("a%d: body ", alias)
		}
		got := askFrom(t, handler, fmt.Sprintf("192.0.2.%d:1", i+1),
			request{query: fmt.Sprintf(`{ node(id: "R_1") { ... on Repository { issues(first: %d) { nodes { %s} } } } }`, tt.issues, bodies)})
		require.Equal(t, tt.status, got.status)
		require.Less(t, len(got.body), 2000)
		require.Equal(t, tt.code, got.refusal(t).Code)
		require.Equal(t, tt.rule, got.refusal(t).Rule)
	}
}

// longText is how many characters the issues and comments have that a search reads.
const longText = 1000

// askedField is a field of an operation that a search tries.
type askedField struct {
	definition *ast.FieldDefinition
	// on is the type of the object whose field it is, which stands in a condition where the selection is of another.
	on string
	// choice chooses among arguments.
	choice int
	sub    []*askedField
}

func (f *askedField) clone() *askedField {
	c := *f
	c.sub = cloned(f.sub)
	return &c
}

func cloned(fields []*askedField) []*askedField {
	all := make([]*askedField, len(fields))
	for i := range fields {
		all[i] = fields[i].clone()
	}
	return all
}

// candidate is an operation, and what it was answered.
type candidate struct {
	fields        []*askedField
	text          string
	bytes, points int
	// bound is how many bytes the page says that a point buys at most.
	bound float64
}

func (c *candidate) perPoint() float64 { return float64(c.bytes) / float64(max(1, c.points)) }

// byteSearch looks for the operation that buys most bytes for a point of the example.
type byteSearch struct {
	schema  *ast.Schema
	random  *rand.Rand
	handler http.Handler
	asked   int
	// scalars are how many the richest type has, text is the longest of the texts as JSON, and longest the longest name of a
	// response.
	scalars, text, longest int
}

func newByteSearch(t *testing.T) *byteSearch {
	t.Helper()
	path := filepath.Join(t.TempDir(), "policy.yaml")
	writePolicy(t, path, policyOf(1_000_000_000))
	s := &byteSearch{
		schema: schema(), random: rand.New(rand.NewPCG(*searchSeed, 0)),
		handler: withLongTexts(t, options{policy: path}, strings.Repeat("x", longText)),
	}
	s.text = longText + len(`""`)
	for _, directive := range s.schema.Directives {
		s.describe(directive.Description)
		for _, argument := range directive.Arguments {
			s.describe(argument.Description)
		}
	}
	for _, definition := range s.schema.Types {
		s.describe(definition.Description)
		n := 1 // __typename
		for _, field := range definition.Fields {
			s.describe(field.Description)
			if s.schema.Types[field.Type.Name()].IsLeafType() {
				n++
			}
		}
		if !strings.HasPrefix(definition.Name, "__") && definition.Kind == ast.Object {
			s.scalars = max(s.scalars, n)
		}
	}
	return s
}

// describe notes a text that introspection shows.
func (s *byteSearch) describe(text string) {
	const escaped = 6 // such as \u003c
	s.text = max(s.text, len(text)+(escaped-1)*strings.Count(text, "<")+strings.Count(text, "\n")+strings.Count(text, `"`)+len(`""`))
}

// draw returns fields of a type.
func (s *byteSearch) draw(definition *ast.Definition, depth int) []*askedField {
	fields := make([]*askedField, 0, 4)
	for range 1 + s.random.IntN(4) {
		if f := s.field(definition, depth); f != nil {
			fields = append(fields, f)
		}
	}
	return fields
}

// field returns a field of a type, nil if it goes too deep.
func (s *byteSearch) field(definition *ast.Definition, depth int) *askedField {
	possible := s.schema.GetPossibleTypes(definition)
	object := possible[s.random.IntN(len(possible))]
	field := object.Fields[s.random.IntN(len(object.Fields))]
	f := &askedField{definition: field, on: object.Name, choice: s.random.IntN(6)}
	of := s.schema.Types[field.Type.Name()]
	if of.IsLeafType() {
		return f
	}
	const deepest = 7
	if depth == deepest {
		return nil
	}
	f.sub = s.draw(of, depth+1)
	return f
}

// mutate changes one thing in a selection of a type.
func (s *byteSearch) mutate(fields []*askedField, definition *ast.Definition, depth int) []*askedField {
	if len(fields) == 0 {
		return s.draw(definition, depth)
	}
	i := s.random.IntN(len(fields))
	f := fields[i]
	if of := s.schema.Types[f.definition.Type.Name()]; !of.IsLeafType() && s.random.IntN(4) > 0 {
		f.sub = s.mutate(f.sub, of, depth+1)
		return fields
	}
	switch s.random.IntN(6) {
	case 0:
		return slices.Delete(fields, i, i+1)
	case 1:
		f.choice = s.random.IntN(6)
	case 2:
		if another := s.field(definition, depth); another != nil {
			fields = append(fields, another)
		}
	case 3:
		return []*askedField{f}
	default:
		for range 1 << s.random.IntN(8) {
			fields = append(fields, f.clone())
		}
	}
	return fields
}

// write writes a selection of a type.
func (s *byteSearch) write(b *strings.Builder, fields []*askedField, definition *ast.Definition) {
	if len(fields) == 0 {
		b.WriteString("{ __typename }")
		return
	}
	b.WriteString("{")
	for i, f := range fields {
		if f.on != definition.Name {
			b.WriteString(" ... on " + f.on + " {")
		}
		name := fmt.Sprintf("a%d", i)
		s.longest = max(s.longest, len(name))
		fmt.Fprintf(b, " %s: %s%s", name, f.definition.Name, arguments(f))
		if of := s.schema.Types[f.definition.Type.Name()]; !of.IsLeafType() {
			s.write(b, f.sub, of)
		}
		if f.on != definition.Name {
			b.WriteString(" }")
		}
	}
	b.WriteString(" }")
}

// arguments are those that a field needs, and how long its list is.
func arguments(f *askedField) string {
	var given []string
	for _, argument := range f.definition.Arguments {
		value, found := map[string]string{
			"id": []string{`"R_1"`, `"U_1"`, `"I_700"`}[f.choice%3], "owner": `"mira"`, "name": `"amber-compass"`, "query": `"Long"`,
			"first": []string{"1", "2", "5", "20", "50", "100"}[f.choice],
		}[argument.Name]
		if found {
			given = append(given, argument.Name+": "+value)
		}
	}
	if len(given) == 0 {
		return ""
	}
	return "(" + strings.Join(given, ", ") + ")"
}

// ask fills in what a candidate was answered. Each comes from an address of its own, with budgets of its own.
func (s *byteSearch) ask(t *testing.T, c *candidate) {
	t.Helper()
	var b strings.Builder
	s.longest = 0
	s.write(&b, c.fields, s.schema.Query)
	c.text = b.String()
	// The page: max(10, F) × (V + K + 4), and for the object and the call around them K and some twenty more.
	c.bound = max(10, float64(s.scalars))*float64(s.text+s.longest+4) + float64(s.longest) + 30
	s.asked++
	got := askFrom(t, s.handler, fmt.Sprintf("10.%d.%d.%d:1", s.asked>>16&255, s.asked>>8&255, s.asked&255), request{query: c.text})
	var answer struct {
		Data       json.RawMessage
		Extensions struct{ RateLimit struct{ Cost int } }
	}
	require.NoError(t, json.Unmarshal([]byte(got.body), &answer), c.text)
	c.bytes, c.points = 0, answer.Extensions.RateLimit.Cost
	if string(answer.Data) != "null" {
		c.bytes = len(answer.Data)
	}
}

// TestAPointOfTheExampleBuysNoMoreBytesThanThePageSays evolves operations by the bytes that their answers have for each
// point, and holds each to what docs/reference/limitations.md says.
func TestAPointOfTheExampleBuysNoMoreBytesThanThePageSays(t *testing.T) {
	t.Parallel()
	s := newByteSearch(t)
	const generation = 20
	best := make([]*candidate, 0, 2*generation)
	for s.asked < *documents {
		c := &candidate{}
		if len(best) < generation {
			c.fields = s.draw(s.schema.Query, 0)
		} else {
			c.fields = cloned(best[min(s.random.IntN(generation), s.random.IntN(generation))].fields)
			for range 1 + s.random.IntN(3) {
				c.fields = s.mutate(c.fields, s.schema.Query, 0)
			}
		}
		s.ask(t, c)
		require.LessOrEqual(t, c.perPoint(), c.bound, "%d bytes for %d points: %s", c.bytes, c.points, c.text)
		best = append(best, c)
		if len(best) == cap(best) {
			slices.SortStableFunc(best, func(a, b *candidate) int { return int(b.perPoint()) - int(a.perPoint()) })
			best = best[:generation]
		}
	}
	worst := slices.MaxFunc(best, func(a, b *candidate) int { return int(a.perPoint()) - int(b.perPoint()) })
	t.Logf("%.0f of %.0f bytes a point: %d bytes for %d points in %d operations: %s",
		worst.perPoint(), worst.bound, worst.bytes, worst.points, s.asked, worst.text)
	require.Greater(t, worst.perPoint(), 0.3*worst.bound, "the search comes near it")
}
