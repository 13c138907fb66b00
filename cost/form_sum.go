package cost

import "github.com/vektah/gqlparser/v2/ast"

// sumKey addresses the sum of a selection set: that of a field, of a fragment, or of the operation.
type sumKey struct {
	field    *ast.Field
	fragment *fragment
	object   *objectType
}

// summation is a set whose selections are being summed.
type summation struct {
	c      *compiler
	object *objectType
	groups []group
	// spreads are the fragments that are included.
	spreads []spread
}

type spread struct {
	fragment  *fragment
	condition int32
}

// sum compiles a selection set on an object type, once, with every selection for itself. Calls that
// execution would merge are paid several times, so that the sum is never below the merged price, and takes
// time by the size of the document.
func (c *compiler) sum(key sumKey, selections ast.SelectionSet) (int32, error) {
	if id, ok := c.sums[key]; ok {
		return id, nil
	}
	if key.fragment != nil {
		if err := c.descend(); err != nil {
			return 0, err
		}
		defer c.ascend()
	}
	sum := summation{c: c, object: key.object}
	if err := c.walk(&sum, selections, key.object, always, 0); err != nil {
		return 0, err
	}
	calls, err := c.addCalls(sum.groups, key.object)
	if err != nil {
		return 0, err
	}
	included := make([]include, len(sum.spreads))
	for i, spread := range sum.spreads {
		below, err := c.sum(sumKey{fragment: spread.fragment, object: key.object}, spread.fragment.def.SelectionSet)
		if err != nil {
			return 0, err
		}
		included[i] = include{set: below, condition: spread.condition}
	}
	lo := int32(len(c.form.includes))
	c.form.includes = append(c.form.includes, included...)
	id := push(&c.form.sets, set{calls, span{lo, int32(len(c.form.includes))}})
	c.sums = remember(c.sums, key, id)
	return id, nil
}

func (s *summation) field(field *ast.Field, condition int32) error {
	info, err := s.c.selected(field, s.object)
	if info != nil {
		s.groups = append(s.groups, group{key: responseName(field), info: info, members: s.c.alone(field, condition)})
	}
	return err
}

func (s *summation) spread(f *fragment, condition int32) error {
	applies, err := s.c.applies(f.def.TypeCondition, s.object)
	if applies {
		s.spreads = append(s.spreads, spread{f, condition})
	}
	return err
}
