package source

import (
	"slices"

	"github.com/vektah/gqlparser/v2/ast"
)

// Client are the directives that clients take out of an operation before they send it, by name without @.
type Client struct {
	// Dropped are left out. What they mark is sent.
	Dropped []string
	// Local mark what a client answers itself. It is not sent.
	Local []string
}

// DefaultClient returns the directives of Apollo Client and its links.
func DefaultClient() Client {
	return Client{
		Dropped: []string{"connection", "export", "nonreactive", "type", "unmask"},
		Local:   []string{"client", "rest"},
	}
}

// Without returns the directives that no schema defines: those are for the server.
func (c Client) Without(schemas ...*Schema) Client {
	defined := func(name string) bool {
		return slices.ContainsFunc(schemas, func(schema *Schema) bool { return schema.Directives[name] != nil })
	}
	return Client{
		Dropped: slices.DeleteFunc(slices.Clone(c.Dropped), defined),
		Local:   slices.DeleteFunc(slices.Clone(c.Local), defined),
	}
}

// sending reduces operations and fragments to what a client sends. Fragments are shared by operations: each
// is reduced once, when the first spread of it is met.
type sending struct {
	client  Client
	library *library
	reduced map[*ast.FragmentDefinition]bool
}

// reduce leaves out of the operations what clients keep to themselves: the directives, what they mark, fragments
// of which nothing is left, and variables that nothing reads any more. An operation of which nothing is left is
// Local.
func (c Client) reduce(operations []*Operation, lib *library) {
	s := sending{client: c, library: lib, reduced: map[*ast.FragmentDefinition]bool{}}
	before := make([]map[string]bool, len(operations))
	for i, op := range operations {
		before[i] = op.reads()
	}
	for _, op := range operations {
		def := op.Definition
		if s.local(def.Directives) {
			def.SelectionSet = nil
		}
		def.Directives = s.directives(def.Directives)
		def.SelectionSet = s.set(op.File, def.SelectionSet)
		op.Local = len(def.SelectionSet) == 0
	}
	for i, op := range operations {
		after := op.reads()
		// One that nothing ever read stays, because a server refuses it.
		op.Definition.VariableDefinitions = slices.DeleteFunc(op.Definition.VariableDefinitions, func(def *ast.VariableDefinition) bool {
			return before[i][def.Variable] && !after[def.Variable]
		})
	}
}

func (s *sending) local(directives ast.DirectiveList) bool {
	return slices.ContainsFunc(directives, func(d *ast.Directive) bool { return slices.Contains(s.client.Local, d.Name) })
}

func (s *sending) directives(directives ast.DirectiveList) ast.DirectiveList {
	return slices.DeleteFunc(directives, func(d *ast.Directive) bool {
		return slices.Contains(s.client.Dropped, d.Name) || slices.Contains(s.client.Local, d.Name)
	})
}

// set returns what is sent of the selections in a file.
func (s *sending) set(file string, set ast.SelectionSet) ast.SelectionSet {
	return slices.DeleteFunc(set, func(selection ast.Selection) bool {
		return !s.sent(file, selection)
	})
}

// sent reduces a selection and says whether anything is left of it.
func (s *sending) sent(file string, selection ast.Selection) bool {
	switch selected := selection.(type) {
	case *ast.Field:
		if s.local(selected.Directives) {
			return false
		}
		selected.Directives = s.directives(selected.Directives)
		before := len(selected.SelectionSet)
		selected.SelectionSet = s.set(file, selected.SelectionSet)
		return before == 0 || len(selected.SelectionSet) > 0
	case *ast.InlineFragment:
		if s.local(selected.Directives) {
			return false
		}
		selected.Directives = s.directives(selected.Directives)
		selected.SelectionSet = s.set(file, selected.SelectionSet)
		return len(selected.SelectionSet) > 0
	case *ast.FragmentSpread:
		if s.local(selected.Directives) {
			return false
		}
		selected.Directives = s.directives(selected.Directives)
		// What cannot be found is left to whoever prices the operation, who says so.
		found, err := s.library.find(file, selected)
		left := err != nil || len(found) == 0
		for _, fragment := range found {
			left = s.fragment(fragment) || left
		}
		return left
	}
	return true
}

// fragment reduces a fragment once and says whether anything is left of it. Of one that spreads itself
// something is left, until validation refuses it.
func (s *sending) fragment(fragment *ast.FragmentDefinition) bool {
	if !s.reduced[fragment] {
		s.reduced[fragment] = true
		if s.local(fragment.Directives) {
			fragment.SelectionSet = nil
		}
		fragment.Directives = s.directives(fragment.Directives)
		file := ""
		if fragment.Position != nil && fragment.Position.Src != nil {
			file = fragment.Position.Src.Name
		}
		fragment.SelectionSet = s.set(file, fragment.SelectionSet)
	}
	return len(fragment.SelectionSet) > 0
}

// reads returns the variables that an operation reads, none if its fragments cannot be found.
func (op *Operation) reads() map[string]bool {
	names := map[string]bool{}
	doc, err := op.Document()
	if err != nil {
		return names
	}
	variablesOf(op.Definition.Directives, nil, names)
	readIn(op.Definition.SelectionSet, names)
	for _, fragment := range doc.Fragments {
		variablesOf(fragment.Directives, nil, names)
		readIn(fragment.SelectionSet, names)
	}
	return names
}

// readIn notes the variables that selections read, not those of the fragments that they spread.
func readIn(set ast.SelectionSet, names map[string]bool) {
	for _, selection := range set {
		switch selected := selection.(type) {
		case *ast.Field:
			variablesOf(selected.Directives, selected.Arguments, names)
			readIn(selected.SelectionSet, names)
		case *ast.InlineFragment:
			variablesOf(selected.Directives, nil, names)
			readIn(selected.SelectionSet, names)
		case *ast.FragmentSpread:
			variablesOf(selected.Directives, nil, names)
		}
	}
}

// variablesOf notes the variables in arguments and in those of directives.
func variablesOf(directives ast.DirectiveList, arguments ast.ArgumentList, names map[string]bool) {
	for _, directive := range directives {
		variablesOf(nil, directive.Arguments, names)
	}
	for _, argument := range arguments {
		variablesIn(argument.Value, names)
	}
}

func variablesIn(value *ast.Value, names map[string]bool) {
	if value == nil {
		return
	}
	if value.Kind == ast.Variable {
		names[value.Raw] = true
	}
	for _, child := range value.Children {
		variablesIn(child.Value, names)
	}
}
