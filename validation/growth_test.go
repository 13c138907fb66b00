package validation_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/parser"
	"github.com/vektah/gqlparser/v2/validator"
	"github.com/vektah/gqlparser/v2/validator/rules"
	"go.yaml.in/yaml/v3"

	"github.com/gqlgen-ratelimit/ratelimit/validation"
)

var recursive = gqlparser.MustLoadSchema(&ast.Source{Input: `
type Query { n: N s: Int i: I }
interface I { s: Int n: N i: I }
type N implements I { s: Int n: N i: I }
type M implements I { s: Int n: N i: I }
`})

// repeated is a text n times, with the number in the place of #.
func repeated(n int, text string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.ReplaceAll(text, "#", strconv.Itoa(i)))
	}
	return b.String()
}

// worst are the families of valid documents that take gqlparser longest, by size, and those that aim at this rule.
var worst = []struct {
	name string
	text func(n int) string
}{
	{"one field", func(n int) string { return "{" + repeated(n, " s") + "}" }},
	{"one fragment in equal fields", func(n int) string {
		return "{" + repeated(n/6, " n{...F}") + "} fragment F on N{" + repeated(n*5/6, " s") + "}"
	}},
	{"a fragment with objects in equal fields", func(n int) string {
		return "{" + repeated(n/6, " n{...F}") + "} fragment F on N{" + repeated(n/6, " x#:n{s}") + "}"
	}},
	{"a fragment beside other fields in each place", func(n int) string {
		return "{" + repeated(n/4, " u#:n{...F x#:s}") + "} fragment F on N{" + repeated(n/2, " f#:s") + "}"
	}},
	{"two fragments beside other fields in each place", func(n int) string {
		return "{" + repeated(n/4, " u#:n{...F ...G x#:s}") + "} fragment F on N{" + repeated(n/4, " f#:s") + "}" +
			" fragment G on N{" + repeated(n/4, " f#:s g#:s") + "}"
	}},
	{"merged objects with other fields each", func(n int) string { return "{" + repeated(n/2, " n{x#:s}") + "}" }},
	{"deep objects", func(n int) string {
		return "{" + repeated(n/60, " u#:n"+strings.Repeat("{x#:s n", 20)+"{s}"+strings.Repeat(" n{s}}", 20)) + "}"
	}},
	{"a chain of fragments", func(n int) string {
		var b strings.Builder
		b.WriteString("{n{...F0}}")
		for i := range n / 4 {
			fmt.Fprintf(&b, " fragment F%d on N{x%d:s n{...F%d}}", i, i, i+1)
		}
		fmt.Fprintf(&b, " fragment F%d on N{s}", n/4)
		return b.String()
	}},
	{"a chain of fragments without objects between them", func(n int) string {
		var b strings.Builder
		b.WriteString("{n{...F0}}")
		for i := range n / 3 {
			fmt.Fprintf(&b, " fragment F%d on N{x%d:s ...F%d}", i, i, i+1)
		}
		fmt.Fprintf(&b, " fragment F%d on N{s}", n/3)
		return b.String()
	}},
	{"fragments on two types", func(n int) string {
		return "{" + repeated(n/4, " i{...on N{x#:n{y:s}} ...on M{x#:n{z:s}}}") + "}"
	}},
	{"fragments on two types and their interface", func(n int) string {
		return "{" + repeated(n/6, " i{...on N{n{x#:s}} ...on M{n{y#:s}} n{z#:s}}") + "}"
	}},
}

func document(t testing.TB, text string) *ast.QueryDocument {
	t.Helper()
	parsed, err := parser.ParseQuery(&ast.Source{Input: text})
	require.NoError(t, err)
	return parsed
}

func TestTheWorkGrowsWithTheDocument(t *testing.T) {
	t.Parallel()
	const size = 120
	for _, family := range worst {
		t.Run(family.name, func(t *testing.T) {
			t.Parallel()
			var each [3]float64
			for i, times := range [...]int{1, 10, 100} {
				visits, most, errs := validation.Visits(recursive, document(t, family.text(times*size)))
				require.Empty(t, errs)
				require.Less(t, visits, most)
				each[i] = float64(visits) / float64(times)
			}
			t.Logf("visits for each %d fields: %.0f, %.0f, %.0f", size, each[0], each[1], each[2])
			require.Less(t, each[2], 1.5*each[0])
		})
	}
}

// TestADocumentOfCountlessMergedSetsIsRefusedSoonAndToldWhy reads a document of which each path of a and b merges another
// set of fragments: those that began where an a was.
func TestADocumentOfCountlessMergedSetsIsRefusedSoonAndToldWhy(t *testing.T) {
	t.Parallel()
	const levels = 24
	var b strings.Builder
	b.WriteString("{n{...F0}}")
	for i := range levels {
		fmt.Fprintf(&b, " fragment F%d on N{a:n{...F%d ...G0} b:n{...F%d}}", i, i+1, i+1)
	}
	for i := range levels - 1 {
		fmt.Fprintf(&b, " fragment G%d on N{x%d:s a:n{...G%d} b:n{...G%d}}", i, i, i+1, i+1)
	}
	fmt.Fprintf(&b, " fragment F%d on N{s} fragment G%d on N{s}", levels, levels-1)
	parsed := document(t, b.String())
	visits, most, errs := validation.Visits(recursive, parsed)
	require.Less(t, visits, 2*most)
	require.Len(t, errs, 1)
	require.Equal(t, "The document merges too many selections of fields to be checked: select each field once.", errs[0].Message)
	require.Len(t, validator.ValidateWithRules(recursive, parsed, validation.Rules()), 1)
}

func BenchmarkValidate(b *testing.B) {
	for _, family := range worst {
		for _, of := range []struct {
			name  string
			rules func() *rules.Rules
		}{{"gqlparser", rules.NewDefaultRules}, {"linear", validation.Rules}} {
			b.Run(family.name+"/"+of.name, func(b *testing.B) {
				parsed := document(b, family.text(600))
				b.ReportAllocs()
				for b.Loop() {
					if errs := validator.ValidateWithRules(recursive, parsed, of.rules()); len(errs) > 0 {
						b.Fatal(errs)
					}
				}
			})
		}
	}
}

// spec is one case of the suite of gqlparser.
type spec struct {
	Name, Rule, Schema, Query string
	Errors                    []struct{ Message string }
}

func TestTheSuiteOfGqlparserHasTheSameVerdicts(t *testing.T) {
	t.Parallel()
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/vektah/gqlparser/v2").Output()
	require.NoError(t, err)
	suite := filepath.Join(strings.TrimSpace(string(dir)), "validator", "imported", "spec")
	var texts []string
	read(t, filepath.Join(suite, "schemas.yml"), &texts)
	files, err := filepath.Glob(filepath.Join(suite, "*.spec.yml"))
	require.NoError(t, err)
	cases := 0
	for _, file := range files {
		var all []spec
		read(t, file, &all)
		for _, s := range all {
			schema := s.Schema
			if i, err := strconv.Atoi(schema); err == nil {
				schema = texts[i]
			}
			loaded, err := gqlparser.LoadSchema(&ast.Source{Input: schema})
			if err != nil {
				continue
			}
			parsed, err := parser.ParseQuery(&ast.Source{Input: s.Query})
			if err != nil {
				continue
			}
			want := validator.ValidateWithRules(loaded, parsed, rules.NewDefaultRules())
			got := validator.ValidateWithRules(loaded, parsed, validation.Rules())
			require.Equalf(t, byRule(want), byRule(got), "%s: %s\n%s\ngqlparser: %v\nhere: %v", filepath.Base(file), s.Name, s.Query, want, got)
			if conflicts := of(want, validation.OverlappingFieldsCanBeMerged.Name); len(conflicts) == 1 && strings.Count(conflicts[0], " and") < 3 {
				// Two issues that gqlparser lists in one message are two here.
				require.Equal(t, conflicts, of(got, validation.OverlappingFieldsCanBeMerged.Name), s.Name)
			}
			cases++
		}
	}
	t.Logf("%d cases", cases)
	require.Greater(t, cases, 400)
}

// of returns the words of the messages of a rule. Which of two fields stands first depends on the order of fragments.
func of(errs gqlerror.List, rule string) []string {
	var messages []string
	for _, e := range errs {
		if e.Rule == rule {
			words := strings.Fields(e.Message)
			slices.Sort(words)
			messages = append(messages, strings.Join(words, " "))
		}
	}
	return messages
}

// byRule are the rules that are broken.
func byRule(errs gqlerror.List) map[string]bool {
	broken := map[string]bool{}
	for _, e := range errs {
		broken[e.Rule] = true
	}
	return broken
}

func read(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(text, into))
}
