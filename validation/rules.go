package validation

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/validator/core"
	"github.com/vektah/gqlparser/v2/validator/rules"
)

// Rules returns the rules of gqlparser with [OverlappingFieldsCanBeMerged] and [MaxIntrospectionDepth] in the place of its
// own, and with [MaxErrors] and [MaxValues], which end the validation of a document that would take long. Each rule
// reports 100 errors at most. Those about arguments, types and values suggest no names, for which gqlparser compares a
// name with all others; those about fields are of gqlgen, which suggests names unless SetDisableSuggestion(true) was called.
//
// Each call returns another set, which is the caller's to change. The four rules above, FieldsOnCorrectType and ScalarLeafs
// have their own names in it. All others are one, [Others], because gqlparser sorts and allocates for each rule of a set
// in each validation; their errors have the names that gqlparser gives them. To do without one of those, or to put
// another in its place, begin with rules.NewDefaultRules and set the four; without a bound on what each reports.
//
// It is a function for SetValidationRulesFn of a gqlgen server, and safe for concurrent use.
func Rules() *rules.Rules { return rules.NewRules(all()...) }

// Others is the name of the rule that is all rules of gqlparser that [Rules] has no name of its own for.
const Others = "Others"

// all are the rules, made once.
var all = sync.OnceValue(func() []core.Rule {
	of := rules.NewDefaultRules()
	of.ReplaceRule(rules.KnownArgumentNamesRule.Name, rules.KnownArgumentNamesRuleWithoutSuggestions.RuleFunc)
	of.ReplaceRule(rules.KnownTypeNamesRule.Name, rules.KnownTypeNamesRuleWithoutSuggestions.RuleFunc)
	of.ReplaceRule(rules.ValuesOfCorrectTypeRule.Name, rules.ValuesOfCorrectTypeRuleWithoutSuggestions.RuleFunc)
	named := []core.Rule{
		rules.FieldsOnCorrectTypeRule, MaxErrors, MaxIntrospectionDepth, MaxValues, OverlappingFieldsCanBeMerged, rules.ScalarLeafsRule,
	}
	for i, rule := range named {
		of.RemoveRule(rule.Name)
		named[i].RuleFunc = limited(rule)
	}
	var others []core.Rule
	for name, rule := range of.GetInner() {
		others = append(others, core.Rule{Name: name, RuleFunc: rule})
	}
	slices.SortFunc(others, func(x, y core.Rule) int { return strings.Compare(x.Name, y.Name) })
	return append(named, core.Rule{Name: Others, RuleFunc: limited(others...)})
})

// OverlappingFieldsCanBeMerged is the rule of gqlparser of that name, with the verdict of the version that is installed (older
// ones let pass some of what the specification refuses) and in a time that grows with the document. It finds conflicts too
// that gqlparser misses, because that compares a fragment with a field and forgets that it has not compared it with the one
// above. It knows each selection, and each set of selections that are merged, once, however often the document has them,
// and compares the fields of a set with one of them and not with each other. The method is that of Simon Adameit: "A vastly
// more performant algorithm for GraphQL field selection merging", 2019.
//
// A document can be made whose sets have many more fields than the document. A check therefore ends after 64 visits of
// fields for each field of the document, and 65 536 more: the document is refused, with an error that says why. No document
// that was written to be answered comes near.
//
// It reports each conflict once, and at most ten in a document. gqlparser reports one for each pair of fields in each
// operation and fragment.
var OverlappingFieldsCanBeMerged = core.Rule{Name: rules.OverlappingFieldsCanBeMergedRule.Name, RuleFunc: overlappingFieldsCanBeMerged}

func overlappingFieldsCanBeMerged(events *core.Events, report core.AddErrFunc) {
	var c *check
	begun := func() *check {
		if c == nil {
			c = newCheck(report)
		}
		return c
	}
	events.OnOperation(func(w *core.Walker, operation *ast.OperationDefinition) {
		if !distinct(operation.SelectionSet) {
			begun().root(w.Schema, operation.SelectionSet)
		}
	})
	// Fragments come after all operations: what one of these spreads was checked with it.
	events.OnFragment(func(w *core.Walker, fragment *ast.FragmentDefinition) {
		if c != nil {
			if _, known := c.selections.fragments[fragment]; known {
				return
			}
		}
		if !distinct(fragment.SelectionSet) {
			begun().root(w.Schema, fragment.SelectionSet)
		}
	})
}

// mostDistinct is how many fields a set may have that is looked through for equal names without a map.
const mostDistinct = 16

// distinct says whether a set has nothing that is merged, as most have: neither two fields of one response name nor a
// spread, and neither has any set below it. It may say no of a large one that has none.
func distinct(set ast.SelectionSet) bool {
	var names [mostDistinct]string
	_, ok := distinctIn(set, names[:0])
	return ok
}

func distinctIn(set ast.SelectionSet, names []string) ([]string, bool) {
	for _, selection := range set {
		switch selection := selection.(type) {
		case *ast.Field:
			name := cmp.Or(selection.Alias, selection.Name)
			if len(names) == mostDistinct || slices.Contains(names, name) || !distinct(selection.SelectionSet) {
				return nil, false
			}
			names = append(names, name)
		case *ast.InlineFragment:
			var ok bool
			if names, ok = distinctIn(selection.SelectionSet, names); !ok {
				return nil, false
			}
		default:
			return nil, false
		}
	}
	return names, true
}
