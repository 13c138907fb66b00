package cost

import (
	"math"
	"sync"
)

// machine is the working memory of one evaluation.
type machine struct {
	values []slotValue
	holds  []bool
	// registers are the results of the program.
	registers []float64
	// insides are what the input fields in variables cost, as far as calls have asked.
	insides []insideCost
	// left is how many values may still be read; it is negative when there were too many.
	left int
	// variables are what functions read.
	variables map[string]any
}

type slotValue struct {
	value   any
	present bool
}

// insideCost is what an evaluation found the input fields in a variable to cost.
type insideCost struct {
	cost  float64
	known bool
}

// machines keeps the memory of evaluations that are over for those to come.
var machines sync.Pool

// resized returns a slice of the length, of the same memory if it is large enough.
func resized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

// load sizes the memory, reads the variables and decides the conditions. At most so many values may be
// read.
func (m *machine) load(t *tables, variables map[string]any, maxValues int) {
	m.variables = variables
	m.insides = resized(m.insides, len(t.insides))
	m.allow(maxValues)
	m.values = resized(m.values, len(t.variables))
	for i := range t.variables {
		v := &t.variables[i]
		value, present := variables[v.name]
		if !present && v.defaults {
			value, present = v.fallback, true
		}
		m.values[i] = slotValue{value, present}
	}
	m.holds = resized(m.holds, len(t.conditions))
	decide(t.conditions, m.holds, func(slot int32) any { return m.values[slot].value })
}

// done gives the memory to evaluations that are to come.
func (m *machine) done() {
	// The pool must not keep a request's values alive.
	clear(m.values)
	m.variables = nil
	machines.Put(m)
}

// allow begins to count the values that are read.
func (m *machine) allow(maxValues int) {
	m.left = maxValues
	clear(m.insides)
}

// own returns what a call costs itself.
func (m *machine) own(t *tables, o *ownExpr) float64 {
	if !m.holds[o.condition] {
		return 0
	}
	own := o.constant + m.terms(t, o.terms)
	if !o.directives.empty() {
		dearest, _ := m.dearest(t, o.directives)
		own += dearest
	}
	return max(0, own)
}

// dearest returns what the directives of the dearest selection cost that is included, and which it is,
// -1 if none is.
func (m *machine) dearest(t *tables, directives span) (cost float64, at int32) {
	at = -1
	for i := directives.lo; i < directives.hi; i++ {
		d := &t.directives[i]
		if !m.holds[d.condition] {
			continue
		}
		if own := d.own.constant + m.terms(t, d.own.terms); at < 0 || own > cost {
			cost, at = own, i
		}
	}
	return cost, at
}

func (m *machine) terms(t *tables, terms span) float64 {
	total := 0.0
	for i := range t.terms[terms.lo:terms.hi] {
		x := &t.terms[int(terms.lo)+i]
		if v := &m.values[x.slot]; v.present && x.values != nil {
			total += m.weigh(x.values, v.value, 0)
		} else if v.present {
			total += x.weight + m.inside(t, x.inside)
		} else {
			total += x.absent
		}
	}
	return total
}

// size evaluates a size; it says whether there is one.
func (m *machine) size(t *tables, s *sizeExpr) (float64, bool) {
	largest := s.constant
	for i := range t.lookups[s.lookups.lo:s.lookups.hi] {
		l := &t.lookups[int(s.lookups.lo)+i]
		if size, ok := m.sized(l); ok {
			largest = max(largest, size)
		}
	}
	if largest < 0 {
		largest = s.fallback
	}
	if largest < 0 {
		return 0, false
	}
	return largest, true
}

// sized returns the size that a lookup finds, if it finds one.
func (m *machine) sized(l *lookup) (size float64, ok bool) {
	value, nulled := m.lookup(l)
	if value == nil {
		return 0, false
	}
	if size = sizeOf(value, l.list); nulled {
		size = max(size, l.least)
	}
	return size, true
}

// lookup returns nil for what is absent, and for null, if neither has a default; nulled says that null stood in the place of
// one.
func (m *machine) lookup(l *lookup) (found any, nulled bool) {
	v := &m.values[l.slot]
	found = v.value
	if found == nil && l.defaults {
		found, nulled = l.fallback, v.present
	}
	if len(l.steps) > 0 {
		var inner bool
		found, inner = follow(found, l.steps)
		nulled = nulled || inner
	}
	return found, nulled
}

// given counts the slicing arguments that are given in variables.
func (m *machine) given(t *tables, lookups span) int {
	given := 0
	for i := range t.lookups[lookups.lo:lookups.hi] {
		if found, nulled := m.lookup(&t.lookups[int(lookups.lo)+i]); found != nil && !nulled {
			given++
		}
	}
	return given
}

// represented counts the representations.
func (m *machine) represented(r *representations) int {
	if r.whole < 0 {
		return len(r.names)
	}
	return lengthOf(m.values[r.whole].value)
}

// represent tells the place and the __typename of each representation, which is empty where it is missing.
// It returns false if there are more than may be read.
func (m *machine) represent(r *representations, tell func(at int, name string)) bool {
	count := m.represented(r)
	if !m.visit(count) {
		return false
	}
	if r.whole < 0 {
		for i, name := range r.names {
			if found, ok := r.found[i]; ok {
				typename, _ := m.lookup(&found)
				name, _ = typename.(string)
			}
			tell(i, name)
		}
		return true
	}
	value := m.values[r.whole].value
	values, isList := listOf(value)
	for i := range count {
		if isList {
			value = values.at(i)
		}
		object, _ := value.(map[string]any)
		name, _ := object["__typename"].(string)
		tell(i, name)
	}
	return true
}

// ask asks the function of a field what a call costs that happens, given what is selected below it.
func (m *machine) ask(info *fieldInfo, f *function, weight float64, child pair) functionPrice {
	// The function may read all that it is given, for each call again.
	m.visit(1 + f.values)
	for _, slot := range f.slots {
		m.visitAll(m.values[slot].value, 0)
	}
	if m.left < 0 {
		return functionPrice{field: math.Inf(1), typ: math.Inf(1)}
	}
	return info.complexity.price(f.arguments, m.variables, weight, child)
}

// visitAll counts all values in a value.
func (m *machine) visitAll(value any, depth int) {
	if depth > maxDepth {
		m.left = -1
	}
	if !m.visit(1) {
		return
	}
	switch value := value.(type) {
	case nil, string, bool, int64, float64:
	case map[string]any:
		for _, inner := range value {
			m.visitAll(inner, depth+1)
		}
	default:
		if values, ok := listOf(value); ok {
			for i := 0; i < values.len() && m.left >= 0; i++ {
				m.visitAll(values.at(i), depth+1)
			}
		}
	}
}
