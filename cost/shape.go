package cost

import "github.com/vektah/gqlparser/v2/ast"

// shape is what a selection set, with all fragments in it, counts for the limits. Sums saturate.
type shape struct {
	// depth and introspection are the longest paths of fields, outside introspection and inside.
	depth, introspection int
	aliases, directives  int
}

// beside is the shape of two parts next to each other.
func (s shape) beside(t shape) shape {
	return shape{
		depth:         max(s.depth, t.depth),
		introspection: max(s.introspection, t.introspection),
		aliases:       saturate(s.aliases, t.aliases),
		directives:    saturate(s.directives, t.directives),
	}
}

// saturate adds two counts.
func saturate(a, b int) int {
	if a > maxCount-b {
		return maxCount
	}
	return a + b
}

// measurer measures an operation whose fragments are known to be defined and free of cycles. Each
// selection is read once, because what a fragment counts is remembered.
type measurer struct {
	fragments map[string]*fragment
	known     map[*fragment]shape
	// names are the response names on the root type.
	names map[string]bool
	// work counts the selections and directives read.
	work int
}

func (m *measurer) operation(op *ast.OperationDefinition) shape {
	s := m.set(op.SelectionSet).beside(m.directives(op.Directives))
	for _, variable := range op.VariableDefinitions {
		if variable != nil {
			s = s.beside(m.directives(variable.Directives))
		}
	}
	return s
}

func (m *measurer) directives(directives ast.DirectiveList) shape {
	m.work += len(directives)
	return shape{directives: len(directives)}
}

func (m *measurer) set(set ast.SelectionSet) shape {
	var total shape
	for _, selection := range set {
		m.work++
		switch s := selection.(type) {
		case *ast.Field:
			total = total.beside(m.field(s)).beside(m.directives(s.Directives))
		case *ast.InlineFragment:
			total = total.beside(m.set(s.SelectionSet)).beside(m.directives(s.Directives))
		case *ast.FragmentSpread:
			total = total.beside(m.fragment(m.fragments[s.Name])).beside(m.directives(s.Directives))
		}
	}
	return total
}

func (m *measurer) fragment(f *fragment) shape {
	s, ok := m.known[f]
	if !ok {
		s = m.set(f.def.SelectionSet).beside(m.directives(f.def.Directives))
		m.known[f] = s
	}
	return s
}

// field measures a field without its directives.
func (m *measurer) field(field *ast.Field) shape {
	s := m.set(field.SelectionSet)
	if responseName(field) != field.Name {
		s.aliases = saturate(s.aliases, 1)
	}
	switch field.Name {
	case "__typename":
	case "__schema", "__type":
		s.introspection = 1 + max(s.depth, s.introspection)
		s.depth = 1
	default:
		s.depth++
	}
	return s
}

// root finds the response names on the root type. As in execution, a fragment adds its fields once,
// however often it is spread.
func (m *measurer) root(set ast.SelectionSet, spread map[string]bool) {
	for _, selection := range set {
		m.work++
		switch s := selection.(type) {
		case *ast.Field:
			if s.Name != "__typename" {
				m.names[responseName(s)] = true
			}
		case *ast.InlineFragment:
			m.root(s.SelectionSet, spread)
		case *ast.FragmentSpread:
			if !spread[s.Name] {
				spread[s.Name] = true
				m.root(m.fragments[s.Name].def.SelectionSet, spread)
			}
		}
	}
}
