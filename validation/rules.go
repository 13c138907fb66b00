package validation

import (
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
// Each call returns another set, which is the caller's to change. It is a function for SetValidationRulesFn of a gqlgen
// server, and safe for concurrent use.
func Rules() *rules.Rules { return rules.NewRules(all()...) }

// all are the rules, made once.
var all = sync.OnceValue(func() []core.Rule {
	of := rules.NewDefaultRules()
	of.ReplaceRule(OverlappingFieldsCanBeMerged.Name, OverlappingFieldsCanBeMerged.RuleFunc)
	of.ReplaceRule(MaxIntrospectionDepth.Name, MaxIntrospectionDepth.RuleFunc)
	of.ReplaceRule(rules.KnownArgumentNamesRule.Name, rules.KnownArgumentNamesRuleWithoutSuggestions.RuleFunc)
	of.ReplaceRule(rules.KnownTypeNamesRule.Name, rules.KnownTypeNamesRuleWithoutSuggestions.RuleFunc)
	of.ReplaceRule(rules.ValuesOfCorrectTypeRule.Name, rules.ValuesOfCorrectTypeRuleWithoutSuggestions.RuleFunc)
	made := []core.Rule{MaxErrors, MaxValues}
	for name, rule := range of.GetInner() {
		made = append(made, core.Rule{Name: name, RuleFunc: limited(rule)})
	}
	slices.SortFunc(made, func(x, y core.Rule) int { return strings.Compare(x.Name, y.Name) })
	return made
})

// OverlappingFieldsCanBeMerged is the rule of gqlparser of that name, with the verdict of the version that is installed (older
// ones let pass some of what the specification refuses) and in a time
// that grows with the document. It finds conflicts too that gqlparser misses, because that compares a fragment with a field and
// forgets that it has not compared it with the one above: fewer than one in 100 000 random documents has such a one. It knows each selection, and each set of selections that are merged, once, however often
// the document has them, and compares the fields of a set with one of them and not with each other. The method is that of
// Simon Adameit: "A vastly more performant algorithm for GraphQL field selection merging", 2019.
//
// A document can be made whose sets have many more fields than the document. A check therefore ends after 64 visits of
// fields for each field of the document, and 65 536 more: the document is refused, with an error that says why. No document
// that was written to be answered comes near.
//
// It reports each conflict once, and at most ten in a document. gqlparser reports one for each pair of fields in each
// operation and fragment.
var OverlappingFieldsCanBeMerged = core.Rule{Name: rules.OverlappingFieldsCanBeMergedRule.Name, RuleFunc: overlappingFieldsCanBeMerged}

func overlappingFieldsCanBeMerged(events *core.Events, report core.AddErrFunc) {
	c := newCheck(report)
	events.OnOperation(func(w *core.Walker, operation *ast.OperationDefinition) {
		c.root(w.Schema, operation.SelectionSet)
	})
	// Fragments come after all operations: what one of these spreads was checked with it.
	events.OnFragment(func(w *core.Walker, fragment *ast.FragmentDefinition) {
		if _, known := c.selections.fragments[fragment]; !known {
			c.root(w.Schema, fragment.SelectionSet)
		}
	})
}
