package cost

import (
	"slices"

	"github.com/vektah/gqlparser/v2/ast"
)

// fragment is a fragment of the document that the operation reaches.
type fragment struct {
	def *ast.FragmentDefinition
	// order is smaller than that of every fragment that this one spreads, at any depth.
	order int
	state visitState
	// pending are the conditions under which the set that is being collected spreads it.
	pending []int32
}

// orderFragments finds the fragments that the operation reaches and orders them topologically, so
// that when a fragment is collected all its spreads are known.
func (c *compiler) orderFragments(doc *ast.QueryDocument) error {
	defined := make(map[string]*ast.FragmentDefinition, len(doc.Fragments))
	for _, def := range doc.Fragments {
		if def != nil && defined[def.Name] == nil {
			defined[def.Name] = def
		}
	}
	c.fragments = make(map[string]*fragment, len(defined))
	o := fragmentOrder{defined: defined, reached: c.fragments}
	if err := o.visit(c.op.SelectionSet, 0); err != nil {
		return err
	}
	c.composite = o.composite
	for i, f := range o.finished {
		f.order = len(o.finished) - i
	}
	return nil
}

// fragmentOrder walks the whole document below an operation, each fragment once.
type fragmentOrder struct {
	defined map[string]*ast.FragmentDefinition
	reached map[string]*fragment
	// finished are the fragments in the order in which they were left, which is the reverse of the
	// topological one.
	finished []*fragment
	// composite counts the fields that have selections.
	composite int
}

func (o *fragmentOrder) visit(set ast.SelectionSet, depth int) error {
	if depth > maxDepth {
		return ErrTooDeep
	}
	for _, selection := range set {
		var err error
		switch s := selection.(type) {
		case *ast.Field:
			if s == nil {
				return malformed("a selection is missing")
			}
			if len(s.SelectionSet) > 0 {
				o.composite++
				err = o.visit(s.SelectionSet, depth+1)
			}
		case *ast.InlineFragment:
			if s == nil {
				return malformed("a selection is missing")
			}
			err = o.visit(s.SelectionSet, depth+1)
		case *ast.FragmentSpread:
			if s == nil {
				return malformed("a selection is missing")
			}
			err = o.spread(s.Name, depth)
		default:
			return malformed("a selection is missing")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (o *fragmentOrder) spread(name string, depth int) error {
	if f := o.reached[name]; f != nil {
		if f.state == visiting {
			return ErrCyclicFragment
		}
		return nil
	}
	def := o.defined[name]
	if def == nil {
		return malformed("fragment %q is not defined", name)
	}
	f := &fragment{def: def, state: visiting}
	o.reached[name] = f
	if err := o.visit(def.SelectionSet, depth+1); err != nil {
		return err
	}
	f.state = visited
	o.finished = append(o.finished, f)
	return nil
}

// applies says whether a fragment with the type condition applies to the object.
func (c *compiler) applies(condition string, object *objectType) (bool, error) {
	if condition == "" || object.conditions[condition] {
		return true, nil
	}
	if c.e.outputs[condition] == nil {
		return false, malformed("fragment on unknown type %q", condition)
	}
	return false, nil
}

// rootFields finds the coordinates of the root fields.
type rootFields struct {
	c      *compiler
	root   *objectType
	seen   map[*fragment]bool
	fields []string
}

func (r *rootFields) add(set ast.SelectionSet, depth int) error {
	if depth > maxDepth {
		return ErrTooDeep
	}
	for _, selection := range set {
		var err error
		switch s := selection.(type) {
		case *ast.Field:
			if s.Name == "__typename" || r.c.included(always, s.Directives) == never {
				continue
			}
			info := r.root.fields[s.Name]
			if info == nil {
				return malformed("%s has no field %q", r.root.name, s.Name)
			}
			// Aliases of one field are mostly neighbours.
			if len(r.fields) == 0 || r.fields[len(r.fields)-1] != info.coordinate {
				r.fields = append(r.fields, info.coordinate)
			}
		case *ast.InlineFragment:
			applies, unknown := r.c.applies(s.TypeCondition, r.root)
			if unknown != nil {
				return unknown
			}
			if applies && r.c.included(always, s.Directives) != never {
				err = r.add(s.SelectionSet, depth+1)
			}
		case *ast.FragmentSpread:
			f := r.c.fragments[s.Name]
			if r.seen[f] || r.c.included(always, s.Directives) == never {
				continue
			}
			r.seen[f] = true
			applies, unknown := r.c.applies(f.def.TypeCondition, r.root)
			if unknown != nil {
				return unknown
			}
			if applies {
				err = r.add(f.def.SelectionSet, depth+1)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// result returns the coordinates, and whether reading the budget is all that the operation does.
func (r *rootFields) result() (fields []string, free bool) {
	slices.Sort(r.fields)
	fields = slices.Compact(r.fields)
	free = true
	for _, coordinate := range fields {
		free = free && r.c.e.options.free[coordinate]
	}
	return fields, free
}
