package validation_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/validator"
	"github.com/vektah/gqlparser/v2/validator/core"
	"github.com/vektah/gqlparser/v2/validator/rules"

	"github.com/gqlgen-ratelimit/ratelimit/validation"
)

var valued = gqlparser.MustLoadSchema(&ast.Source{Input: `
type Query { s: Int n: Query of(where: Where, color: Color, text: String, count: Int): Query }
input Where { not: Where and: [Where] n: Int s: String }
enum Color { RED GREEN }
`})

// asGqlgen are the rules as a gqlgen server uses them, which puts its own in the place of two.
func asGqlgen() *rules.Rules {
	all := validation.Rules()
	for _, rule := range []core.Rule{rules.FieldsOnCorrectTypeRule, rules.ScalarLeafsRule} {
		all.RemoveRule(rule.Name)
		all.AddRule(rule.Name, rule.RuleFunc)
	}
	return all
}

// visited validates a text, and counts the fields that rules are told of.
func visited(t *testing.T, text string) (fields int, errs gqlerror.List) {
	t.Helper()
	all := asGqlgen()
	all.AddRule("Counting", func(events *core.Events, _ core.AddErrFunc) {
		events.OnField(func(*core.Walker, *ast.Field) { fields++ })
	})
	return fields, validator.ValidateWithRules(valued, document(t, text), all)
}

// chained has n fragments of which each spreads the next one and a last one with other selections.
func chained(n int, last string) string {
	var b strings.Builder
	b.WriteString("{...f0}")
	for i := range n {
		fmt.Fprintf(&b, " fragment f%d on Query{...f%d ...last}", i, i+1)
	}
	fmt.Fprintf(&b, " fragment f%d on Query{s} fragment last on Query{%s}", n, last)
	return b.String()
}

func TestAValidationEndsAfterSoManyErrorsWhereverTheyAre(t *testing.T) {
	t.Parallel()
	for name, each := range map[string]string{
		"fields that are not there":                  " w",
		"objects of which nothing is selected":       " n",
		"scalars of which something is selected":     " s{s}",
		"long fields that are not there":             " " + strings.Repeat("w", 256),
		"objects of which nothing is selected, long": " x" + strings.Repeat("w", 256) + ":n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, n := range []int{1, 10, 100} {
				fields, errs := visited(t, chained(n, strings.Repeat(each, 600)))
				require.LessOrEqual(t, fields, 300)
				require.LessOrEqual(t, len(errs), 101)
				require.Contains(t, byRule(errs), validation.MaxErrors.Name)
			}
		})
	}
}

func TestFewerErrorsThanTheLimitAreAllReported(t *testing.T) {
	t.Parallel()
	_, errs := visited(t, "{"+strings.Repeat(" missing", 90)+"}")
	require.Len(t, errs, 90)
	require.Contains(t, errs[0].Message, `Cannot query field "missing" on type "Query".`)
}

func TestARuleReportsSoManyErrors(t *testing.T) {
	t.Parallel()
	for _, each := range []string{` of(unknown: 1){s}`, ` of(color: BLACK){s}`, ` of(where: {unknown: 1}){s}`, ` s @unknown`, ` ...on Unknown{s}`, ` ...unknown`} {
		_, errs := visited(t, chained(20, repeated(100, each)))
		perRule := map[string]int{}
		for _, err := range errs {
			perRule[err.Rule]++
		}
		require.NotEmpty(t, errs, each)
		for rule, reported := range perRule {
			require.LessOrEqual(t, reported, 100, rule)
		}
	}
}

func TestArgumentsTypesAndValuesAreComparedWithNoNames(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"{of(tex:1){s}}", "{of(where:{nott:1}){s}}", "{of(color:REDD){s}}", `{of(color:"RED"){s}}`, "{...f} fragment f on Quer{s}", "{s @skip(iff:true if:true)}",
	} {
		suggesting := validator.ValidateWithRules(valued, document(t, text), rules.NewDefaultRules())
		require.Contains(t, suggesting.Error(), "Did you mean", text)
		here := validator.ValidateWithRules(valued, document(t, text), asGqlgen())
		require.NotContains(t, here.Error(), "Did you mean", text)
		require.Equal(t, byRule(suggesting), byRule(here))
	}
}

// nested is a value in itself, so deep.
func nested(depth int, value string) string {
	return strings.Repeat("{not:", depth) + value + strings.Repeat("}", depth)
}

func TestValuesThatTakeTooLongAreRefused(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"a default of a list, in a list of variables, nested": "query($v:Where={and:[" + strings.Repeat("{n:1}", 200) + "]}){...f} fragment f on Query{of(where:" +
			nested(30, "{and:["+strings.Repeat("$v ", 300)+"]}") + "){s}}",
		"an error in each of many levels": "{of(where:" + nested(60, "{n:99999999999999999999 s:\""+strings.Repeat("x", 60_000)+"\"}") + "){s}}",
		"one of many fragments":           chained(60, "of(where:"+nested(60, "{s:\""+strings.Repeat("x", 1000)+"\"}")+"){s}"),
		"many operations":                 repeated(16, "query q#{...f}") + "fragment f on Query{of(where:" + nested(400, "{}") + "){s}}",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			errs := validator.ValidateWithRules(valued, document(t, text), asGqlgen())
			require.NotEmpty(t, errs)
			last := errs[len(errs)-1]
			require.Equal(t, validation.MaxValues.Name, last.Rule, errs[0].Message[:min(80, len(errs[0].Message))])
			told := 0
			for _, err := range errs {
				told += len(err.Message)
			}
			require.Less(t, told, 5<<20)
		})
	}
}

func TestValuesOfAnyKindThatStandInADocumentOnceAreWithinTheBound(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"a long text":           "{of(where:" + nested(8, "{s:\""+strings.Repeat("x", 60_000)+"\"}") + "){s}}",
		"many values":           "{of(where:{and:[" + strings.Repeat(nested(4, "{n:1}"), 120) + "]}){s}}",
		"the nesting of a door": "{of(where:" + nested(60, "{n:1}") + "){s}}",
		"a variable used often": "query($n:Int=1){" + repeated(300, " x#:of(count:$n){s}") + "}",
	} {
		require.Empty(t, validator.ValidateWithRules(valued, document(t, text), asGqlgen()), name)
	}
}
