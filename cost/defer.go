package cost

import "github.com/vektah/gqlparser/v2/ast"

// defers says whether parts of the response to an operation may come later. Fragments of the document
// count whether the operation spreads them or not.
func defers(doc *ast.QueryDocument, op *ast.OperationDefinition) bool {
	if defersIn(op.SelectionSet) {
		return true
	}
	for _, fragment := range doc.Fragments {
		if fragment != nil && defersIn(fragment.SelectionSet) {
			return true
		}
	}
	return false
}

func defersIn(set ast.SelectionSet) bool {
	for _, selection := range set {
		var directives ast.DirectiveList
		var below ast.SelectionSet
		switch s := selection.(type) {
		case *ast.Field:
			below = s.SelectionSet
		case *ast.InlineFragment:
			directives, below = s.Directives, s.SelectionSet
		case *ast.FragmentSpread:
			directives = s.Directives
		}
		if directives.ForName("defer") != nil || defersIn(below) {
			return true
		}
	}
	return false
}
