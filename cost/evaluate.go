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
	prices []pair
	// insides are what the input fields in variables cost, as far as calls have asked.
	insides []insideCost
	// left is how many values may still be read; it is negative when there were too many.
	left int
	// broken says that some call broke a rule, whether or not it happens.
	broken bool
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
// The only error is a [LimitError]: the request breaks a rule of a field that it really calls. The
// cost is valid even then.
func (p *Plan) Evaluate(variables map[string]any) (Cost, error) {
	cost := Cost{Base: p.base, Free: p.free, Approximate: p.approximate}
	if p.root.isFixed() {
		cost.Type, cost.Field = max(0, p.weight+p.root.constant.typ), p.root.constant.field
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
	machines.Put(m)
	return cost, err
}

// run returns the price of what is selected on the root type.
func (m *machine) run(p *Plan, variables map[string]any) (root pair, err error) {
	m.load(p, variables)
	for i := range p.nodes {
		m.prices[i] = m.node(p, &p.nodes[i])
	}
	root = m.price(p.root)
	if m.left < 0 {
		// Some calls were not priced, so no list of size 0 around them may make them cheap.
		root = pair{math.Inf(1), math.Inf(1)}
	}
	if m.broken {
		err = p.broken(m)
	}
	return root, err
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
	m.prices = slices.Grow(m.prices[:0], len(p.nodes))[:len(p.nodes)]
	m.holds = slices.Grow(m.holds[:0], len(p.conditions))[:len(p.conditions)]
	for i := range p.conditions {
		g := &p.conditions[i]
		switch g.op {
		case conditionVariable:
			is, ok := m.values[g.a].value.(bool)
			// What is no Boolean fails before execution; pricing the selection is the safe reading.
			m.holds[i] = !ok || is == g.want
		case conditionAnd:
			m.holds[i] = m.holds[g.a] && m.holds[g.b]
		case conditionOr:
			m.holds[i] = false
			for _, id := range g.any {
				m.holds[i] = m.holds[i] || m.holds[id]
			}
		default:
			m.holds[i] = true
		}
	}
}

func (m *machine) price(r ref) pair {
	if r.node < 0 {
		return r.constant
	}
	return r.constant.plus(m.prices[r.node])
}

func (m *machine) node(p *Plan, n *node) pair {
	var total pair
	switch n.op {
	case opSum:
		for _, e := range p.edges[n.lo:n.hi] {
			total = total.plus(m.price(e))
		}
	case opMax:
		for _, e := range p.edges[n.lo:n.hi] {
			total = total.max(m.price(e))
		}
	case opCall:
		total = m.call(p, &p.calls[n.lo])
	case opEntities:
		total = m.entities(p, &p.entities[n.lo])
	case opGate:
		if m.holds[n.condition] {
			total = m.price(p.edges[n.lo])
		}
	case opSized:
		size, ok := m.size(p, n.size)
		if !ok {
			return m.price(p.edges[n.lo+2])
		}
		element := m.price(p.edges[n.lo+1])
		total = m.price(p.edges[n.lo]).plus(pair{times(size, element.typ), times(size, element.field)})
	}
	return total
}

func (m *machine) call(p *Plan, c *call) pair {
	if !m.holds[c.condition] {
		return pair{}
	}
	if c.rule && m.given(p, c) != 1 {
		m.broken = true
	}
	n := c.n
	if c.size >= 0 {
		size, _ := m.size(p, c.size)
		n = times(size, n)
	}
	return priceCall(m.own(p, c), n, c.weight, m.price(c.child))
}

// own is what the call itself costs.
func (m *machine) own(p *Plan, c *call) float64 {
	own := c.own + m.terms(p, c.termsLo, c.termsHi)
	if c.extrasLo < c.extrasHi {
		dearest := math.Inf(-1)
		for i := range p.extras[c.extrasLo:c.extrasHi] {
			x := &p.extras[int(c.extrasLo)+i]
			if m.holds[x.condition] {
				dearest = max(dearest, x.own+m.terms(p, x.lo, x.hi))
			}
		}
		own += dearest
	}
	return own
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

// given counts the slicing arguments that the call gives.
func (m *machine) given(p *Plan, c *call) int {
	given := int(c.given)
	for i := range p.lookups[c.lookupsLo:c.lookupsHi] {
		if m.lookup(&p.lookups[int(c.lookupsLo)+i]) != nil {
			given++
		}
	}
	return given
}

func (m *machine) entities(p *Plan, e *entityCall) pair {
	if !m.holds[e.call.condition] {
		return pair{}
	}
	total := pair{field: max(0, m.own(p, &e.call))}
	if m.represented(e) > e.max {
		m.broken = true
		return pair{math.Inf(1), math.Inf(1)}
	}
	if !m.visit(m.represented(e)) {
		return pair{math.Inf(1), math.Inf(1)}
	}
	add := func(name any) {
		if name, ok := name.(string); ok {
			if r, ok := e.byType[name]; ok {
				total = total.plus(m.price(r))
				return
			}
		}
		total = total.plus(m.price(e.unknown))
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
