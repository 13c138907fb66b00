package cost

import (
	"slices"

	"github.com/vektah/gqlparser/v2/ast"
)

// sizeSpec is what the list size of a field says about one call. The expression has no next, and a
// negative fallback if it may say nothing.
type sizeSpec struct {
	expr sizeExpr
	// given counts the slicing arguments that are certainly given.
	given int32
}

// inheritedSize is what a call says about the lists in its value. The zero value says nothing.
type inheritedSize struct {
	sizes *listSize
	expr  sizeExpr
}

// settled returns the size if it does not depend on variables, and is negative for no size.
func (s sizeExpr) settled() (size float64, ok bool) {
	if s.lo < s.hi {
		return 0, false
	}
	if s.constant >= 0 {
		return s.constant, true
	}
	return s.fallback, true
}

// spec reads the slicing arguments of a call whose field has a list size.
func (c *compiler) spec(field *ast.Field, info *fieldInfo) (sizeSpec, error) {
	key := inputKey{field, info}
	if spec, ok := c.specs[key]; ok {
		return spec, nil
	}
	spec := sizeSpec{expr: sizeExpr{constant: -1, fallback: info.sizes.assumed, next: -1, lo: int32(len(c.plan.lookups))}}
	for _, s := range info.sizes.slicers {
		if err := c.spend(1 + len(s.path) + scans(1, len(field.Arguments))); err != nil {
			return sizeSpec{}, err
		}
		value, found, dynamic := c.slice(field, s)
		switch {
		case dynamic != nil:
			c.plan.lookups = append(c.plan.lookups, *dynamic)
		case found && value != nil:
			spec.given++
			if size, ok := sizeOf(value, s.list); ok {
				spec.expr.constant = max(spec.expr.constant, size)
			}
		}
	}
	spec.expr.hi = int32(len(c.plan.lookups))
	c.specs[key] = spec
	return spec, nil
}

// slice finds the value of a slicing argument: a constant, or a lookup if a variable decides.
func (c *compiler) slice(field *ast.Field, s *slicer) (value any, found bool, dynamic *lookup) {
	steps := stepsOf(s.path)
	var literal *ast.Value
	if arg := field.Arguments.ForName(s.arg.name); arg != nil {
		literal = arg.Value
	}
	fallback, defaults := s.arg.value, s.arg.literal != nil
	for {
		switch {
		case literal == nil && !defaults:
			return nil, false, nil
		case literal == nil:
			value, found = follow(fallback, steps)
			return value, found, nil
		case literal.Kind == ast.Variable:
			return nil, false, &lookup{slot: c.slot(literal.Raw), steps: steps, fallback: fallback, defaults: defaults, list: s.list}
		case len(steps) == 0 && literal.Kind == ast.ListValue:
			// Only the length counts, whatever the elements are; a list of nothing takes no memory.
			return make([]struct{}, len(literal.Children)), true, nil
		case len(steps) == 0 && literal.Kind == ast.ObjectValue:
			// An object has no size, but is given.
			return struct{}{}, true, nil
		case len(steps) == 0:
			return literalValue(literal, 0), true, nil
		case literal.Kind != ast.ObjectValue:
			return nil, false, nil
		}
		// The next to spend sees that the limit is passed.
		c.work += scans(1, len(literal.Children))
		literal = literal.Children.ForName(steps[0].name)
		fallback, defaults = steps[0].fallback, steps[0].defaults
		steps = steps[1:]
	}
}

// size returns the number of elements of a call's list: n, or sizes[size] × n if size is not negative.
func (c *compiler) size(field *ast.Field, info *fieldInfo, inherit int32) (n float64, size int32, err error) {
	if info.depth == 0 {
		return 1, -1, nil
	}
	own := sizeExpr{constant: -1, fallback: c.e.options.listSize, next: -1}
	if info.sizes != nil && info.sizes.sizesOwn() {
		spec, err := c.spec(field, info)
		if err != nil {
			return 0, 0, err
		}
		own = spec.expr
		if own.fallback < 0 {
			own.fallback = c.e.options.listSize
		}
	}
	if from := c.inherit[inherit]; from.sizes != nil && slices.Contains(from.sizes.sized, info.name) {
		own = c.chain(from.expr, own)
	}
	if n, ok := own.settled(); ok {
		return times(n, info.scale), -1, nil
	}
	return info.scale, c.addSize(own), nil
}

// chain returns the expression that asks first, and then second if first says nothing.
func (c *compiler) chain(first, second sizeExpr) sizeExpr {
	if first.fallback >= 0 || first.constant >= 0 {
		return first
	}
	if n, ok := second.settled(); ok {
		first.fallback = n
	} else {
		first.next = c.addSize(second)
	}
	return first
}

func (c *compiler) addSize(expr sizeExpr) int32 {
	c.plan.sizes = append(c.plan.sizes, expr)
	return int32(len(c.plan.sizes) - 1)
}

// inherited returns the index of what the call says about the lists in its value.
func (c *compiler) inherited(field *ast.Field, info *fieldInfo) (int32, error) {
	if info.sizes == nil || len(info.sizes.sized) == 0 {
		return 0, nil
	}
	spec, err := c.spec(field, info)
	if err != nil {
		return 0, err
	}
	expr := spec.expr
	if n, ok := expr.settled(); ok {
		if n < 0 {
			return 0, nil
		}
		// Calls with the same size share what is below them.
		expr = sizeExpr{constant: n, fallback: -1, next: -1}
	}
	from := inheritedSize{sizes: info.sizes, expr: expr}
	if id, ok := c.inherits[from]; ok {
		return id, nil
	}
	id := int32(len(c.inherit))
	c.inherit = append(c.inherit, from)
	c.inherits[from] = id
	return id, nil
}
