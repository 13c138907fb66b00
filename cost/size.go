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

// certain says whether there is a size whatever the variables are.
func (p *Plan) certain(at int32) bool {
	for at >= 0 {
		s := &p.sizes[at]
		if s.constant >= 0 || s.fallback >= 0 {
			return true
		}
		at = s.next
	}
	return false
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
		if value, found := c.slice(field, s); found && value != nil {
			spec.given++
			if size, ok := sizeOf(value, s.list); ok {
				spec.expr.constant = max(spec.expr.constant, size)
			}
		}
	}
	spec.expr.lo, spec.expr.hi = c.shareLookups(spec.expr.lo)
	c.specs[key] = spec
	return spec, nil
}

// lookupsKey tells lists of up to two lookups apart, which is as many as first and last make.
type lookupsKey [2]lookupKey

type lookupKey struct {
	slot int32
	list bool
	// defaults says that an argument that is absent is given by its default, which is of the size.
	defaults bool
	size     float64
	// steps is the first one, nil if there is none; those of one slicing argument lie together.
	steps *step
}

// shareLookups returns where the lookups from lo to the last one stand, which is in another place if
// the same are in the plan already.
func (c *compiler) shareLookups(lo int32) (from, to int32) {
	hi := int32(len(c.plan.lookups))
	var key lookupsKey
	if lo == hi || int(hi-lo) > len(key) {
		return lo, hi
	}
	for i, l := range c.plan.lookups[lo:hi] {
		key[i] = lookupKey{slot: l.slot + 1, list: l.list, size: -1}
		if len(l.steps) > 0 {
			// The argument and the steps already taken, which this names, decide about the default too.
			key[i].steps = &l.steps[0]
		} else if l.defaults && l.fallback != nil {
			key[i].defaults = true
			if size, ok := sizeOf(l.fallback, l.list); ok {
				key[i].size = size
			}
		}
	}
	if known, ok := c.lookups[key]; ok {
		c.plan.lookups = c.plan.lookups[:lo]
		return known, known + hi - lo
	}
	c.lookups[key] = lo
	return lo, hi
}

// slice finds the value of a slicing argument. If a variable decides it appends a lookup instead.
func (c *compiler) slice(field *ast.Field, s *slicer) (value any, found bool) {
	steps := s.steps
	var literal *ast.Value
	if arg := field.Arguments.ForName(s.arg.name); arg != nil {
		literal = arg.Value
	}
	fallback, defaults := s.arg.value, s.arg.literal != nil
	for {
		switch {
		case literal == nil && !defaults:
			return nil, false
		case literal == nil:
			return follow(fallback, steps)
		case literal.Kind == ast.Variable:
			c.plan.lookups = append(c.plan.lookups, lookup{slot: c.slot(literal.Raw), steps: steps, fallback: fallback, defaults: defaults, list: s.list})
			return nil, false
		case len(steps) == 0 && literal.Kind == ast.ListValue:
			// Only the length counts, whatever the elements are; a list of nothing takes no memory.
			return make([]struct{}, len(literal.Children)), true
		case len(steps) == 0 && literal.Kind == ast.ObjectValue:
			// An object has no size, but is given.
			return struct{}{}, true
		case len(steps) == 0:
			return literalValue(literal, 0), true
		case literal.Kind != ast.ObjectValue:
			return nil, false
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
	if id, ok := c.sizes[expr]; ok {
		return id
	}
	id := int32(len(c.plan.sizes))
	c.plan.sizes = append(c.plan.sizes, expr)
	c.sizes[expr] = id
	return id
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
	from := inheritedSize{sizes: info.sizes.like, expr: expr}
	if id, ok := c.inherits[from]; ok {
		return id, nil
	}
	id := int32(len(c.inherit))
	c.inherit = append(c.inherit, from)
	c.inherits[from] = id
	return id, nil
}
