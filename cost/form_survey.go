package cost

import (
	"reflect"
	"slices"

	"github.com/vektah/gqlparser/v2/ast"
)

// survey is what one walk over the selections of an operation finds, each read once, however often the
// fragment that they stand in is spread.
type survey struct {
	shape shape
	// defers says that parts of the response may come later.
	defers bool
	// composite is how many fields have selections, about as many as calls will have to be remembered.
	composite int
}

// fragment is a fragment of the document that the operation reaches.
type fragment struct {
	def   *ast.FragmentDefinition
	shape shape
	// order is smaller than that of every fragment that this one spreads, at any depth.
	order int
	state visitState
	// pending are the conditions under which the set that is being collected spreads it.
	pending []int32
	// classified is the number of the value whose types it helped to tell apart last.
	classified int
}

// Before says that no spread of the fragment comes after the other is collected.
func (f *fragment) Before(g *fragment) bool { return f.order < g.order }

// surveyor surveys one operation.
type surveyor struct {
	c       *compiler
	found   survey
	defined map[string]*ast.FragmentDefinition
	// finished are the fragments in the order in which they were left, which is the reverse of the
	// topological one.
	finished []*fragment
}

// survey finds the fragments that the operation reaches, and what the document says of itself.
func (c *compiler) survey(doc *ast.QueryDocument) error {
	s := surveyor{c: c, defined: make(map[string]*ast.FragmentDefinition, len(doc.Fragments))}
	for _, def := range doc.Fragments {
		if def != nil && s.defined[def.Name] == nil {
			s.defined[def.Name] = def
		}
	}
	c.fragments = make(map[string]*fragment, len(s.defined))
	shape, err := s.set(c.op.SelectionSet, 0)
	if err != nil {
		return err
	}
	for i, f := range s.finished {
		f.order = len(s.finished) - i
	}
	shape.directives = saturate(shape.directives, len(c.op.Directives))
	for _, variable := range c.op.VariableDefinitions {
		if variable != nil {
			shape.directives = saturate(shape.directives, len(variable.Directives))
		}
	}
	s.found.shape = shape
	c.form.document = s.found
	return nil
}

// set measures a selection set and reaches the fragments in it.
func (s *surveyor) set(set ast.SelectionSet, depth int) (total shape, err error) {
	if depth > maxDepth {
		return shape{}, ErrTooDeep
	}
	for _, selection := range set {
		if is := reflect.ValueOf(selection); !is.IsValid() || is.IsNil() {
			return shape{}, malformed("a selection is missing")
		}
		var below shape
		var directives ast.DirectiveList
		switch selection := selection.(type) {
		case *ast.Field:
			directives = selection.Directives
			below, err = s.field(selection, depth)
		case *ast.InlineFragment:
			directives = selection.Directives
			below, err = s.set(selection.SelectionSet, depth+1)
		case *ast.FragmentSpread:
			directives = selection.Directives
			below, err = s.spread(selection.Name, depth)
		}
		if err != nil {
			return shape{}, err
		}
		if len(directives) > 0 {
			below.directives = saturate(below.directives, len(directives))
			s.found.defers = s.found.defers || slices.ContainsFunc(directives, func(d *ast.Directive) bool {
				return d != nil && d.Name == "defer"
			})
		}
		total = total.beside(below)
	}
	return total, nil
}

// field measures a field without its directives.
func (s *surveyor) field(field *ast.Field, depth int) (below shape, err error) {
	if len(field.SelectionSet) > 0 {
		s.found.composite++
		if below, err = s.set(field.SelectionSet, depth+1); err != nil {
			return shape{}, err
		}
	}
	if isAliased(field) {
		below.aliases = saturate(below.aliases, 1)
		s.c.aliased = remember(s.c.aliased, field.Name, true)
	}
	switch field.Name {
	case "__typename":
	case "__schema", "__type":
		below.introspection = 1 + max(below.depth, below.introspection)
		below.depth = 1
	default:
		below.depth++
	}
	return below, nil
}

func (s *surveyor) spread(name string, depth int) (shape, error) {
	if f := s.c.fragments[name]; f != nil {
		if f.state == visiting {
			return shape{}, ErrCyclicFragment
		}
		return f.shape, nil
	}
	def := s.defined[name]
	if def == nil {
		return shape{}, malformed("fragment %q is not defined", name)
	}
	f := &fragment{def: def, state: visiting}
	s.c.fragments[name] = f
	var err error
	if f.shape, err = s.set(def.SelectionSet, depth+1); err != nil {
		return shape{}, err
	}
	f.shape.directives = saturate(f.shape.directives, len(def.Directives))
	f.state = visited
	s.finished = append(s.finished, f)
	return f.shape, nil
}

// applies says whether a fragment with the type condition applies to the object.
func (c *compiler) applies(condition string, object *objectType) (bool, error) {
	if condition == "" || object.conditions[condition] {
		return true, nil
	}
	if c.index.outputs[condition] == nil {
		return false, malformed("fragment on unknown type %q", condition)
	}
	return false, nil
}
