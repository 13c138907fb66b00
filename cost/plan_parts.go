package cost

import "math"

// part is what the calls of one root field cost.
type part struct {
	field string
	// free says that the field costs nothing where it is all that an operation calls.
	free bool
	cost polynomial
}

// keepParts keeps what the calls of each root field cost, where there are several fields. Where selections are summed nobody
// knows: what is spread twice lies in one set.
func (l *lowering) keepParts(calls []polynomial) {
	f := l.form
	if l.nodes || f.summed || !f.severalRoots() {
		return
	}
	set, repeats := &f.sets[f.root], f.repeats()
	// The calls of a field lead from one to the next, 0 after the last one: no call comes before the first one of its field.
	next := make([]int, len(calls))
	places := make(map[string]int, 2)
	fields := make([]rootField, 0, 2)
	for i := range calls {
		info := f.calls[int(set.calls.lo)+i].info
		if info == typenameField {
			continue
		}
		if place, known := places[info.coordinate]; known {
			next[fields[place].last], fields[place].last = i, i
		} else {
			places[info.coordinate] = len(fields)
			fields = append(fields, rootField{info.coordinate, i, i})
		}
	}
	l.program.parts = make([]part, len(fields))
	for at, field := range fields {
		l.begin()
		constant := l.include(calls[field.first])
		for i := next[field.first]; i > 0; i = next[i] {
			constant = constant.plus(l.include(calls[i]))
		}
		l.program.parts[at] = part{
			field: field.coordinate, free: !repeats && f.index.options.free[field.coordinate], cost: l.keep(constant),
		}
	}
}

// rootField is a field of the root type with the first and the last one of its calls.
type rootField struct {
	coordinate  string
	first, last int
}

// severalRoots says whether an operation calls more than one field of the root type.
func (f *form) severalRoots() bool {
	first, several := "", false
	f.rootCalls(f.root, map[int32]bool{}, func(c *call) {
		if first == "" {
			first = c.info.coordinate
		}
		several = several || c.info.coordinate != first
	})
	return several
}

// Parts are what an operation would cost if it called one of its root fields alone, with the variables of one request. They
// are safe for concurrent use.
type Parts struct {
	plan  *Plan
	costs []pair
	// whole is the cost of the operation where its parts are not known.
	whole Cost
}

// Parts evaluates the operation with the variables, as [Plan.Evaluate] does.
func (p *Plan) Parts(variables map[string]any) Parts {
	parts := Parts{plan: p}
	if len(p.price.parts) == 0 {
		// Whatever is wrong with the operation, it has a price.
		parts.whole, _ = p.Evaluate(variables)
		return parts
	}
	parts.costs = make([]pair, len(p.price.parts))
	if p.price.constant() {
		for i := range parts.costs {
			parts.costs[i] = p.price.parts[i].cost.constant
		}
		return parts
	}
	m := p.machine(variables)
	_, _ = m.run(p, &p.price)
	for i := range parts.costs {
		if parts.costs[i] = m.sum(&p.price, &p.price.parts[i].cost); m.left < 0 {
			// Some calls were not priced.
			parts.costs[i] = infinite
		}
	}
	m.done()
	return parts
}

// Cost returns what the operation would cost if it called one of its root fields alone, as often as it does: the base and the
// root type with it, as of an operation of its own. So what is sent in one operation is never cheaper in parts. It is the whole
// cost of an operation that was too large to merge ([Cost.Approximate]) or has no other root field.
func (s *Parts) Cost(field string) Cost {
	if s.costs == nil {
		return s.whole
	}
	c, total := Cost{Base: s.plan.base, Free: true}, pair{}
	for i := range s.costs {
		if part := &s.plan.price.parts[i]; part.field == field {
			total, c.Free = s.costs[i], part.free
		}
	}
	c.Type, c.Field = max(0, s.plan.weight+total.typ), total.field
	if math.IsNaN(c.Type) {
		c.Type = math.Inf(1)
	}
	return c
}
