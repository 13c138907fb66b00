package cost

// opcode says what an instruction computes.
type opcode uint8

const (
	// opHolds is 1 if conditions[a] holds, else 0.
	opHolds opcode = iota
	// opSize is sizes[a], which certainly gives a size.
	opSize
	// opTimes is the register a times the register b.
	opTimes
	// opOwn is what the calls of owns[a] cost themselves.
	opOwn
	// opForm is forms[a], a type cost below 0 taken as 0, in two registers: the type and the field cost.
	opForm
	// opMax is the component-wise maximum of forms[a:b], in two registers.
	opMax
	// opSized is forms[b] plus sizes[a] times forms[b+1], or forms[b+2] if there is no such size, in two
	// registers.
	opSized
	// opEntities is entities[a], in two registers.
	opEntities
	// opFunction is functions[a], in two registers.
	opFunction
)

// instruction computes the register to, and the one after it if it has two results. Registers hold
// numbers that are not negative; infinity is one of them.
type instruction struct {
	op   opcode
	to   int32
	a, b int32
}

// form is a cost that is linear in registers: a constant and addends[lo:hi].
type form struct {
	constant pair
	lo, hi   int32
}

// addend is a register times a coefficient.
type addend struct {
	register    int32
	coefficient pair
}

// ownExpr is what a call costs itself when that depends on variables. It is nothing unless the
// condition holds.
type ownExpr struct {
	condition int32
	constant  float64
	// terms[termsLo:termsHi] are added, and the largest of extras[extrasLo:extrasHi], if there are any.
	termsLo, termsHi   int32
	extrasLo, extrasHi int32
}

// rule asks for exactly one slicing argument where the condition holds: given of them are constant,
// lookups[lo:hi] may add to them.
type rule struct {
	condition int32
	given     int32
	lo, hi    int32
}

// run evaluates the program.
func (m *machine) run(p *Plan, variables map[string]any) (root pair, err error) {
	m.load(p, variables)
	if len(p.functions) > 0 {
		m.variables = variables
		m.reach(p)
	}
	for i := range p.program {
		in := &p.program[i]
		switch in.op {
		case opHolds:
			m.registers[in.to] = 0
			if m.holds[in.a] {
				m.registers[in.to] = 1
			}
		case opSize:
			m.registers[in.to], _ = m.size(p, in.a)
		case opTimes:
			m.registers[in.to] = times(m.registers[in.a], m.registers[in.b])
		case opOwn:
			m.registers[in.to] = m.own(p, &p.owns[in.a])
		default:
			price := m.pair(p, in)
			m.registers[in.to], m.registers[in.to+1] = price.typ, price.field
		}
	}
	root = m.form(p, &p.result)
	if m.left < 0 {
		// Some calls were not priced, so no list of size 0 around them may make them cheap.
		root = infinite
	}
	for i := range p.rules {
		r := &p.rules[i]
		if m.holds[r.condition] && int(r.given)+m.given(p, r.lo, r.hi) != 1 {
			return root, p.broken(m)
		}
	}
	if m.broken {
		err = p.broken(m)
	}
	return root, err
}

// pair computes an instruction with two results.
func (m *machine) pair(p *Plan, in *instruction) pair {
	var price pair
	switch in.op {
	case opForm:
		price = m.form(p, &p.forms[in.a])
		price.typ = max(0, price.typ)
	case opMax:
		for i := in.a; i < in.b; i++ {
			price = price.max(m.form(p, &p.forms[i]))
		}
	case opSized:
		size, ok := m.size(p, in.a)
		if !ok {
			return m.form(p, &p.forms[in.b+2])
		}
		price = m.form(p, &p.forms[in.b]).plus(m.form(p, &p.forms[in.b+1]).times(size))
	case opFunction:
		price = m.function(p, &p.functions[in.a])
	default:
		price = m.entities(p, &p.entities[in.a])
	}
	return price
}

func (m *machine) form(p *Plan, f *form) pair {
	total := f.constant
	for i := range p.addends[f.lo:f.hi] {
		a := &p.addends[int(f.lo)+i]
		total = total.plus(a.coefficient.times(m.registers[a.register]))
	}
	return total
}
