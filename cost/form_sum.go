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
	object *objectType
	fields []occurrence
	infos  []*fieldInfo
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
	sum := summation{object: key.object}
	if err := c.read(&sum, selections, always, 0); err != nil {
		return 0, err
	}
	s := set{calls: span{lo: int32(len(c.form.calls))}}
	for i := range sum.fields {
		if err := c.call(responseName(sum.fields[i].field), sum.infos[i], sum.fields[i:i+1]); err != nil {
			return 0, err
		}
	}
	s.calls.hi = int32(len(c.form.calls))
	for i := s.calls.lo; i < s.calls.hi; i++ {
		info := c.form.calls[i].info
		if info.output == nil || info.kind == constant {
			continue
		}
		var err error
		if c.form.calls[i].value, err = c.value([]occurrence{{field: sum.fields[i-s.calls.lo].field}}, info.output); err != nil {
			return 0, err
		}
	}
	included := make([]include, len(sum.spreads))
	for i, spread := range sum.spreads {
		below, err := c.sum(sumKey{fragment: spread.fragment, object: key.object}, spread.fragment.def.SelectionSet)
		if err != nil {
			return 0, err
		}
		included[i] = include{set: below, condition: spread.condition}
	}
	s.includes.lo = int32(len(c.form.includes))
	c.form.includes = append(c.form.includes, included...)
	s.includes.hi = int32(len(c.form.includes))
	id := c.addSet(s)
	c.sums = remember(c.sums, key, id)
	return id, nil
}

// read finds the fields and the spreads of a selection set that apply to the object.
func (c *compiler) read(sum *summation, selections ast.SelectionSet, outer int32, depth int) error {
	if depth > maxDepth {
		return ErrTooDeep
	}
	for _, selection := range selections {
		var below ast.SelectionSet
		var condition int32
		var err error
		switch s := selection.(type) {
		case *ast.Field:
			if condition, err = c.enters(outer, "", s.Directives, sum.object); err == nil && condition != never {
				var info *fieldInfo
				if info, err = c.selected(s, sum.object); info != nil {
					sum.fields, sum.infos = append(sum.fields, occurrence{s, condition}), append(sum.infos, info)
				}
			}
		case *ast.InlineFragment:
			condition, err = c.enters(outer, s.TypeCondition, s.Directives, sum.object)
			below = s.SelectionSet
		case *ast.FragmentSpread:
			f := c.fragments[s.Name]
			condition, err = c.enters(outer, f.def.TypeCondition, s.Directives, sum.object)
			if condition != never {
				sum.spreads = append(sum.spreads, spread{f, condition})
			}
		}
		if err == nil && condition != never && below != nil {
			err = c.read(sum, below, condition, depth+1)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
