package validation

import (
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/validator/core"
	"github.com/vektah/gqlparser/v2/validator/rules"
)

// mostListsOfTypes is how deep the lists of introspection may be in each other, as in gqlparser and graphql-js.
const mostListsOfTypes = 3

// MaxIntrospectionDepth is the rule of gqlparser of that name, with the same verdict on each document that has no cycle of
// fragments, and in a time that grows with the document. It reads each fragment once. gqlparser forgets on its way
// back which fragments it has read: 40 fragments that spread the next one twice, 1.6 kB, keep it busy for more than ten seconds, and each one more for twice as long.
//
// It does not follow a cycle, for which NoFragmentCycles refuses the document.
var MaxIntrospectionDepth = core.Rule{Name: rules.MaxIntrospectionDepth.Name, RuleFunc: maxIntrospectionDepth}

func maxIntrospectionDepth(events *core.Events, report core.AddErrFunc) {
	var d depths
	events.OnField(func(_ *core.Walker, field *ast.Field) {
		if field.Name != "__schema" && field.Name != "__type" {
			return
		}
		if d.fields == nil {
			d = depths{map[*ast.Field]int{}, map[*ast.FragmentDefinition]int{}}
		}
		if d.field(field) >= mostListsOfTypes {
			report(core.Message("Maximum introspection depth exceeded"), core.At(field.Position))
		}
	})
}

// depths are how many lists of introspection are in each other, at the deepest, in what was read.
type depths struct {
	fields    map[*ast.Field]int
	fragments map[*ast.FragmentDefinition]int
}

func (d *depths) field(field *ast.Field) int {
	deepest, known := d.fields[field]
	if known {
		return deepest
	}
	deepest = d.set(field.SelectionSet)
	switch field.Name {
	case "fields", "interfaces", "possibleTypes", "inputFields":
		deepest++
	}
	d.fields[field] = deepest
	return deepest
}

func (d *depths) set(set ast.SelectionSet) (deepest int) {
	for _, selection := range set {
		switch selection := selection.(type) {
		case *ast.Field:
			deepest = max(deepest, d.field(selection))
		case *ast.InlineFragment:
			deepest = max(deepest, d.set(selection.SelectionSet))
		case *ast.FragmentSpread:
			if selection.Definition != nil {
				deepest = max(deepest, d.fragment(selection.Definition))
			}
		}
	}
	return deepest
}

func (d *depths) fragment(fragment *ast.FragmentDefinition) int {
	deepest, known := d.fragments[fragment]
	if !known {
		// A cycle comes back to a fragment that is being read.
		d.fragments[fragment] = 0
		deepest = d.set(fragment.SelectionSet)
		d.fragments[fragment] = deepest
	}
	return deepest
}
