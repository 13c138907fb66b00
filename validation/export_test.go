package validation

import (
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/validator/core"
)

// Visits returns how much work the check of the first operation is, how much it may be, and what was reported. It
// does not need the walker of gqlparser, which takes the square of the time for a chain of fragments.
func Visits(schema *ast.Schema, document *ast.QueryDocument) (visits, most int, errs gqlerror.List) {
	c := newCheck(func(options ...core.ErrorOption) {
		err := &gqlerror.Error{}
		for _, option := range options {
			option(err)
		}
		errs = append(errs, err)
	})
	define(schema, document, schema.Query, document.Operations[0].SelectionSet)
	for _, fragment := range document.Fragments {
		fragment.Definition = schema.Types[fragment.TypeCondition]
		define(schema, document, fragment.Definition, fragment.SelectionSet)
	}
	c.root(schema, document.Operations[0].SelectionSet)
	most = visitsPerField*len(c.selections.fields) + visitsBesides
	return most - c.visits, most, errs
}

// define gives each selection its definition, as the walker of gqlparser does.
func define(schema *ast.Schema, document *ast.QueryDocument, parent *ast.Definition, set ast.SelectionSet) {
	for _, selection := range set {
		switch selection := selection.(type) {
		case *ast.Field:
			selection.ObjectDefinition, selection.Definition = parent, parent.Fields.ForName(selection.Name)
			define(schema, document, schema.Types[selection.Definition.Type.Name()], selection.SelectionSet)
		case *ast.InlineFragment:
			define(schema, document, schema.Types[selection.TypeCondition], selection.SelectionSet)
		case *ast.FragmentSpread:
			selection.Definition = document.Fragments.ForName(selection.Name)
		}
	}
}
