package cost

import "github.com/vektah/gqlparser/v2/ast"

// slicing reads the slicing arguments of a call whose field has a list size.
func (c *compiler) slicing(field *ast.Field, info *fieldInfo) (int32, error) {
	key := inputKey{field, info}
	if id, ok := c.slicings[key]; ok {
		return id, nil
	}
	bounds, lookups := int32(len(c.form.bounds)), int32(len(c.form.lookups))
	s := slicing{constant: -1}
	for _, slicer := range info.sizes.slicers {
		if err := c.spend(1 + len(slicer.path) + scans(1, len(field.Arguments))); err != nil {
			return -1, err
		}
		found, nulled, b := c.slice(field, slicer)
		if b.lookup < 0 {
			if found == nil {
				continue
			}
			if b.size = sizeOf(found, slicer.list); nulled {
				b.size = max(b.size, slicer.least)
			} else {
				s.given++
			}
			s.constant = max(s.constant, b.size)
		}
		if c.whole {
			c.form.bounds = append(c.form.bounds, b)
		}
	}
	s.bounds = span{bounds, int32(len(c.form.bounds))}
	s.lookups = c.shareLookups(lookups)
	for i := range c.form.bounds[bounds:] {
		if b := &c.form.bounds[int(bounds)+i]; b.lookup >= 0 {
			b.lookup += s.lookups.lo - lookups
		}
	}
	id := push(&c.form.slicings, s)
	c.slicings[key] = id
	return id, nil
}

// lookupsKey tells lists of up to two lookups apart, which is as many as first and last make.
type lookupsKey [2]lookupKey

type lookupKey struct {
	slot int32
	list bool
	// defaults says that an argument that is absent is given by its default, which is of the size.
	defaults bool
	size     float64
	// least is the least size of null in the place of the default.
	least float64
	// steps is the first one, nil if there is none; those of one slicing argument lie together.
	steps *step
}

// shareLookups returns where the lookups from lo to the last one stand, which is in another place if
// the same are in the plan already.
func (c *compiler) shareLookups(lo int32) span {
	hi := int32(len(c.form.lookups))
	var key lookupsKey
	if lo == hi || int(hi-lo) > len(key) {
		return span{lo, hi}
	}
	for i, l := range c.form.lookups[lo:hi] {
		key[i] = lookupKey{slot: l.slot + 1, list: l.list, size: -1}
		if len(l.steps) > 0 {
			// The argument and the steps already taken, which this names, decide about the default too.
			key[i].steps = &l.steps[0]
		} else if l.defaults && l.fallback != nil {
			key[i].defaults = true
			key[i].size, key[i].least = sizeOf(l.fallback, l.list), l.least
		}
	}
	if known, ok := c.shared[key]; ok {
		c.form.lookups = c.form.lookups[:lo]
		return span{known, known + hi - lo}
	}
	c.shared = remember(c.shared, key, lo)
	return span{lo, hi}
}

// slice finds the value of a slicing argument, nil if there is none, and where it comes from; nulled says that null stood in
// the place of a default. If a variable decides, it appends a lookup instead, which each evaluation reads (machine.size in
// plan_machine.go).
func (c *compiler) slice(field *ast.Field, s *slicer) (found any, nulled bool, b bound) {
	steps := s.steps
	var literal *ast.Value
	if arg := field.Arguments.ForName(s.arg.name); arg != nil {
		literal = arg.Value
	}
	fallback, defaults := s.arg.value, s.arg.literal != nil
	b = bound{slicer: s, lookup: -1}
	for {
		switch {
		case literal == nil || literal.Kind == ast.NullValue:
			if !defaults {
				return nil, false, b
			}
			b.defaulted = true
			found, nulled = follow(fallback, steps)
			return found, nulled || literal != nil, b
		case literal.Kind == ast.Variable:
			b.lookup = int32(len(c.form.lookups))
			c.form.lookups = append(c.form.lookups, lookup{
				slot: c.slot(literal.Raw), steps: steps, fallback: fallback, defaults: defaults, list: s.list, least: s.least,
			})
			return nil, false, b
		case len(steps) == 0 && literal.Kind == ast.ListValue:
			// Only the length counts, whatever the elements are; a list of nothing takes no memory.
			return make([]struct{}, len(literal.Children)), false, b
		case len(steps) == 0 && literal.Kind == ast.ObjectValue:
			// An object is no number, and is a list of one where a list is.
			return struct{}{}, false, b
		case len(steps) == 0:
			return literalValue(literal, 0), false, b
		case literal.Kind != ast.ObjectValue:
			return unreadable{}, false, b
		}
		// The next to spend sees that the limit is passed.
		c.work += scans(1, len(literal.Children))
		literal = literal.Children.ForName(steps[0].name)
		fallback, defaults = steps[0].fallback, steps[0].defaults
		steps = steps[1:]
	}
}
