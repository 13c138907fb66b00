package cost

import (
	"slices"

	"github.com/vektah/gqlparser/v2/ast"
)

// survey is what one walk over the selections of an operation finds, each read once, however often the
// fragment that they stand in is spread.
type survey struct {
	shape shape
	// fields are the coordinates of the root fields; free says that all of them only read the budget.
	fields []string
	free   bool
	// calls is how many calls there are on the root type.
	calls int
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
	// counted says that its selections on the root type were counted, included that their fields were noted.
	counted, included bool
	// classified is the number of the value whose types it helped to tell apart last.
	classified int
}

// surveyor surveys one operation.
type surveyor struct {
	c       *compiler
	found   survey
	defined map[string]*ast.FragmentDefinition
	// finished are the fragments in the order in which they were left, which is the reverse of the
	// topological one.
	finished []*fragment
	// names are the response names on the root type, nil if they are not limited.
	names map[string]bool
}

// survey finds the fragments that the operation reaches, and what the document says of itself.
func (c *compiler) survey(doc *ast.QueryDocument) error {
	s := surveyor{c: c, defined: make(map[string]*ast.FragmentDefinition, len(doc.Fragments))}
	if c.index.options.limits.MaxRootFields > 0 {
		s.names = map[string]bool{}
	}
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
	if err := s.root(c.op.SelectionSet, true, 0); err != nil {
		return err
	}
	s.found.calls = len(s.names)
	slices.Sort(s.found.fields)
	s.found.fields = slices.Compact(s.found.fields)
	s.found.free = true
	for _, coordinate := range s.found.fields {
		s.found.free = s.found.free && c.index.options.free[coordinate]
	}
	c.form.document = s.found
	return nil
}

// set measures a selection set and reaches the fragments in it.
func (s *surveyor) set(set ast.SelectionSet, depth int) (total shape, err error) {
	if depth > maxDepth {
		return shape{}, ErrTooDeep
	}
	for _, selection := range set {
		var below shape
		var directives ast.DirectiveList
		switch selection := selection.(type) {
		case *ast.Field:
			if selection == nil {
				return shape{}, malformed("a selection is missing")
			}
			directives = selection.Directives
			below, err = s.field(selection, depth)
		case *ast.InlineFragment:
			if selection == nil {
				return shape{}, malformed("a selection is missing")
			}
			directives = selection.Directives
			below, err = s.set(selection.SelectionSet, depth+1)
		case *ast.FragmentSpread:
			if selection == nil {
				return shape{}, malformed("a selection is missing")
			}
			directives = selection.Directives
			below, err = s.spread(selection.Name, depth)
		default:
			err = malformed("a selection is missing")
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
	if field.Alias != "" && field.Alias != field.Name {
		below.aliases = saturate(below.aliases, 1)
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

// root finds the response names on the root type, and the coordinates of the fields that are included.
// As in execution, a fragment adds its fields once, however often it is spread.
func (s *surveyor) root(set ast.SelectionSet, included bool, depth int) error {
	if depth > maxDepth {
		return ErrTooDeep
	}
	for _, selection := range set {
		var below ast.SelectionSet
		var condition string
		var directives ast.DirectiveList
		var spread *fragment
		switch selection := selection.(type) {
		case *ast.Field:
			if err := s.rootField(selection, included); err != nil {
				return err
			}
			continue
		case *ast.InlineFragment:
			below, condition, directives = selection.SelectionSet, selection.TypeCondition, selection.Directives
		case *ast.FragmentSpread:
			spread = s.c.fragments[selection.Name]
			below, condition, directives = spread.def.SelectionSet, spread.def.TypeCondition, selection.Directives
		}
		live := included && s.c.included(always, directives) != never
		if spread != nil {
			if spread.included || spread.counted && !live {
				continue
			}
			spread.counted, spread.included = true, live
		}
		if live {
			applies, err := s.c.applies(condition, s.c.form.rootType)
			if err != nil {
				return err
			}
			live = applies
		}
		if err := s.root(below, live, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (s *surveyor) rootField(field *ast.Field, included bool) error {
	if field.Name == "__typename" {
		return nil
	}
	if s.names != nil {
		s.names[responseName(field)] = true
	}
	if !included || s.c.included(always, field.Directives) == never {
		return nil
	}
	info := s.c.form.rootType.fields[field.Name]
	if info == nil {
		return malformed("%s has no field %q", s.c.form.rootType.name, field.Name)
	}
	// Aliases of one field are mostly neighbours.
	if fields := s.found.fields; len(fields) == 0 || fields[len(fields)-1] != info.coordinate {
		s.found.fields = append(fields, info.coordinate)
	}
	return nil
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
