package cost

import (
	"math"
	"reflect"
	"slices"
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
	// broken says that some call broke a rule, whether or not it happens.
	broken bool
	// variables and happens are set if the plan has functions: happens says which nodes are of calls
	// that really happen.
	variables map[string]any
	happens   []bool
}

type slotValue struct {
	value   any
	present bool
}

// machines keeps the memory of evaluations that are over for those to come.
var machines sync.Pool

// Evaluate returns the cost with the given variables, coerced as gqlparser's validator does; the map
// is only read. It never panics, whatever the variables hold, and reads no more of them than
// [Config.MaxValues]: if there is more, the cost is infinite.
//
// The only error is a [LimitError]: the request breaks one of the [Limits], or a rule of a field that it
// really calls. The cost is valid even then. The error may be shared and must not be modified.
func (p *Plan) Evaluate(variables map[string]any) (Cost, error) {
	cost, err := p.evaluate(variables)
	if p.limits != nil {
		err = p.limits.check(variables, err)
	}
	return cost, err
}

// evaluate knows the rules of fields only.
func (p *Plan) evaluate(variables map[string]any) (Cost, error) {
	cost := Cost{Base: p.base, Free: p.free, Approximate: p.approximate}
	if len(p.program) == 0 && len(p.rules) == 0 {
		cost.Type, cost.Field = max(0, p.weight+p.result.constant.typ), p.result.constant.field
		return cost, nil
	}
	m, ok := machines.Get().(*machine)
	if !ok {
		m = new(machine)
	}
	root, err := m.run(p, variables)
	cost.Type, cost.Field = max(0, p.weight+root.typ), root.field
	// The pool must not keep a request's values alive.
	clear(m.values)
	m.variables = nil
	machines.Put(m)
	return cost, err
}

// load sizes the memory, reads the variables and decides the conditions.
func (m *machine) load(p *Plan, variables map[string]any) {
	m.broken = false
	m.left = p.values
	m.insides = slices.Grow(m.insides[:0], len(p.insides))[:len(p.insides)]
	clear(m.insides)
	m.values = slices.Grow(m.values[:0], len(p.variables))[:len(p.variables)]
	for i := range p.variables {
		v := &p.variables[i]
		value, present := variables[v.name]
		if !present && v.defaults {
			value, present = v.fallback, true
		}
		m.values[i] = slotValue{value, present}
	}
	m.registers = slices.Grow(m.registers[:0], p.registers)[:p.registers]
	m.holds = slices.Grow(m.holds[:0], len(p.conditions))[:len(p.conditions)]
	decide(p.conditions, m.holds, func(slot int32) any { return m.values[slot].value })
}

// own returns what a call costs itself.
func (m *machine) own(p *Plan, o *ownExpr) float64 {
	if !m.holds[o.condition] {
		return 0
	}
	own := o.constant + m.terms(p, o.termsLo, o.termsHi)
	if o.extrasLo < o.extrasHi {
		dearest := math.Inf(-1)
		for i := range p.extras[o.extrasLo:o.extrasHi] {
			x := &p.extras[int(o.extrasLo)+i]
			if m.holds[x.condition] {
				dearest = max(dearest, x.own+m.terms(p, x.lo, x.hi))
			}
		}
		own += dearest
	}
	return max(0, own)
}

func (m *machine) terms(p *Plan, lo, hi int32) float64 {
	total := 0.0
	for i := range p.terms[lo:hi] {
		t := &p.terms[int(lo)+i]
		if v := &m.values[t.slot]; v.present {
			total += t.weight + m.inside(p, t.inside)
		} else {
			total += t.absent
		}
	}
	return total
}

// size evaluates a size; it says whether there is one.
func (m *machine) size(p *Plan, at int32) (float64, bool) {
	for at >= 0 {
		s := &p.sizes[at]
		largest := s.constant
		for i := range p.lookups[s.lo:s.hi] {
			l := &p.lookups[int(s.lo)+i]
			if value := m.lookup(l); value != nil {
				if size, ok := sizeOf(value, l.list); ok {
					largest = max(largest, size)
				}
			}
		}
		if largest >= 0 {
			return largest, true
		}
		if s.fallback >= 0 {
			return s.fallback, true
		}
		at = s.next
	}
	return 0, false
}

// lookup returns nil for what is absent as well as for null: neither sizes a list.
func (m *machine) lookup(l *lookup) any {
	v := &m.values[l.slot]
	value := v.value
	if !v.present {
		if !l.defaults {
			return nil
		}
		value = l.fallback
	}
	if len(l.steps) > 0 {
		value, _ = follow(value, l.steps)
	}
	return value
}

// given counts the slicing arguments in lookups[lo:hi] that are given.
func (m *machine) given(p *Plan, lo, hi int32) int {
	given := 0
	for i := range p.lookups[lo:hi] {
		if m.lookup(&p.lookups[int(lo)+i]) != nil {
			given++
		}
	}
	return given
}

func (m *machine) entities(p *Plan, e *entityCall) pair {
	if !m.holds[e.call.condition] {
		return pair{}
	}
	total := pair{field: m.own(p, &p.owns[e.own])}
	if m.represented(e) > e.max {
		m.broken = true
		return infinite
	}
	if !m.visit(m.represented(e)) {
		return infinite
	}
	add := func(name any) {
		if name, ok := name.(string); ok {
			if at, ok := e.forms[name]; ok {
				total = total.plus(m.form(p, &p.forms[at]))
				return
			}
		}
		total = total.plus(m.form(p, &p.forms[e.unknownForm]))
	}
	for _, name := range e.names {
		add(name)
	}
	for i := range e.found {
		add(m.lookup(&e.found[i]))
	}
	if e.whole < 0 {
		return total
	}
	switch list := m.values[e.whole].value.(type) {
	case nil:
	case []any:
		for _, representation := range list {
			object, _ := representation.(map[string]any)
			add(object["__typename"])
		}
	case []map[string]any:
		for _, object := range list {
			add(object["__typename"])
		}
	case map[string]any:
		add(list["__typename"])
	default:
		for range m.represented(e) {
			add(nil)
		}
	}
	return total
}

// represented counts the representations.
func (m *machine) represented(e *entityCall) int {
	count := len(e.names) + len(e.found)
	if e.whole < 0 {
		return count
	}
	switch list := m.values[e.whole].value.(type) {
	case nil:
	case []any:
		count += len(list)
	default:
		if v := reflect.ValueOf(list); v.Kind() == reflect.Slice {
			count += v.Len()
		} else {
			count++
		}
	}
	return count
}
