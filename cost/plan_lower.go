package cost

// setCost is what a selection set costs under a parent that sizes lists in it: in each of these lists once,
// with the size that the list has of itself, and everything else. A set costs what it does at every size by
// these three, so that none is priced again for each. Without such a parent everything is the rest.
type setCost struct{ rest, element, own polynomial }

// sizedSet is a set and the lists in it that its parent sizes.
type sizedSet struct {
	set   int32
	sizes *sizedFields
}

// sizedKey is a value, and what its parent says about the lists in it.
type sizedKey struct {
	value int32
	sizes *sizedFields
	size  int32
}

// below is what is selected below a call: the maximum over the classes of its possible types.
func (l *lowering) below(c *call) polynomial {
	if c.value < 0 {
		return polynomial{}
	}
	sizes, expr := l.gives(c)
	key := sizedKey{value: c.value, sizes: sizes}
	if sizes != nil {
		key.size = l.addSize(expr)
	} else if known := &l.values[c.value]; known.known {
		return known.cost
	}
	if known, ok := l.sized[key]; ok {
		return known
	}
	classes := l.form.values[c.value].classes
	lo := len(l.stack)
	for _, class := range l.form.classes[classes.lo:classes.hi] {
		if sizes == nil {
			l.stack = append(l.stack, l.set(sizedSet{set: class.set}).rest)
		} else {
			l.stack = append(l.stack, l.sizedBy(l.shared(sizedSet{class.set, sizes}), key.size))
		}
	}
	cost := l.highest(lo)
	l.stack = l.stack[:lo]
	if sizes == nil {
		l.values[c.value] = memo{cost, true}
	} else {
		l.sized = remember(l.sized, key, cost)
	}
	return cost
}

// sizedBy is what a set costs whose parent sizes lists.
func (l *lowering) sizedBy(cost setCost, size int32) polynomial {
	if cost.element == (polynomial{}) {
		return cost.rest
	}
	expr := &l.program.sizes[size]
	if n, ok := expr.settled(); ok {
		return l.add(cost.rest, l.times(cost.element, n))
	}
	total := l.add(cost.rest, l.scale(cost.element, l.size(size)))
	if expr.uncertain() {
		total = l.add(total, l.scale(cost.own, l.size(size)+1))
	}
	return total
}

// shared is a set that others include, or whose parent sizes lists: it is priced once for all of these.
func (l *lowering) shared(key sizedSet) setCost {
	return once(&l.sets, key, func() setCost { return l.set(key) })
}

// set is what is selected on an object.
func (l *lowering) set(key sizedSet) setCost {
	s := &l.form.sets[key.set]
	// Where the parent sizes lists the parts of the calls lie in threes.
	lo, each := len(l.stack), 1
	if key.sizes != nil {
		each = 3
	}
	var constant pair
	add := func(cost setCost) {
		if each == 1 && cost.rest.isConstant() {
			constant = constant.plus(cost.rest.constant)
			return
		}
		parts := [3]polynomial{cost.rest, cost.element, cost.own}
		l.stack = append(l.stack, parts[:each]...)
	}
	for i := s.calls.lo; i < s.calls.hi; i++ {
		cost := l.call(&l.form.calls[i], key.sizes)
		if key.set == l.form.root {
			if l.calls == nil {
				l.calls = make([]polynomial, 0, s.calls.hi-s.calls.lo)
			}
			l.calls = append(l.calls, cost.rest)
		}
		add(cost)
	}
	for _, i := range l.form.includes[s.includes.lo:s.includes.hi] {
		cost := l.shared(sizedSet{i.set, key.sizes})
		add(setCost{l.when(i.condition, cost.rest), l.when(i.condition, cost.element), l.when(i.condition, cost.own)})
	}
	var parts [3]polynomial
	for i := range each {
		parts[i] = l.sum(lo+i, each)
	}
	parts[0].constant = parts[0].constant.plus(constant)
	l.stack = l.stack[:lo]
	return setCost{parts[0], parts[1], parts[2]}
}

// call prices a call, by parts if its parent sizes lists.
func (l *lowering) call(c *call, sizes *sizedFields) setCost {
	cost := l.withoutAlias(c, sizes)
	if c.further != never && !l.nodes {
		further := polynomial{constant: pair{field: l.form.index.options.alias}}
		cost.rest = l.add(cost.rest, l.when(c.further, further))
	}
	return cost
}

// withoutAlias is call without what it pays for being one of a further alias.
func (l *lowering) withoutAlias(c *call, sizes *sizedFields) setCost {
	if sizing := c.info.sizes; sizing != nil && sizing.one && !l.nodes {
		l.rule(c)
	}
	if c.info.kind == entities {
		return setCost{rest: l.entities(c)}
	}
	if inner := sizes.through(c.info); inner != nil {
		return l.passed(c, inner)
	}
	own, below := l.own(c, c.info.weight), l.below(c)
	var one, elements polynomial
	if c.info.kind != constant {
		one = l.element(c, below)
		n, size := l.listSize(c)
		if elements = l.times(one, n); size >= 0 {
			elements = l.scale(elements, l.size(size))
		}
	}
	if c.info.complexity != nil && !l.nodes {
		f := l.function(c, below)
		l.begin()
		l.put(f, pair{typ: 1})
		l.put(f+1, pair{field: 1})
		said := l.end(pair{})
		own, one, elements = l.add(said, l.unless(own, f)), l.unless(one, f), l.unless(elements, f)
	}
	if sizes == nil || !sizes.names(c.info) {
		return setCost{rest: l.when(c.condition, l.add(own, elements))}
	}
	return setCost{l.when(c.condition, own), l.when(c.condition, l.times(one, c.info.scale)), l.when(c.condition, elements)}
}

// passed prices a call that lies between lists and what sizes them, by parts. It returns one object of one
// type, which has no negative weight (builder.checkPassages).
func (l *lowering) passed(c *call, sizes *sizedFields) setCost {
	cost := l.shared(sizedSet{l.form.classOf(c).set, sizes})
	rest := l.add(l.own(c, c.info.weight), l.element(c, cost.rest))
	return setCost{l.when(c.condition, rest), l.when(c.condition, cost.element), l.when(c.condition, cost.own)}
}

// element is one element of what a call returns: its weight and what is selected on it.
func (l *lowering) element(c *call, below polynomial) polynomial {
	switch {
	case !l.nodes:
		return l.weighing(below, l.form.weight(c))
	case c.info.depth > 0 && c.info.output != nil && !c.info.introspects:
		return l.weighing(below, 1)
	default:
		return below
	}
}

// weighing adds a weight to a type cost, which ends at 0. A number of elements is not negative, so it may be
// multiplied with afterwards.
func (l *lowering) weighing(cost polynomial, weight float64) polynomial {
	cost.constant.typ += weight
	switch {
	case cost.constant.typ >= 0:
		return cost
	case cost.isConstant():
		cost.constant.typ = 0
		return cost
	default:
		return l.computed(opSum, l.sumOf(cost), 0)
	}
}

// own is what a call costs itself. Calls that cost the same share a register.
func (l *lowering) own(c *call, weight float64) polynomial {
	if l.nodes {
		return polynomial{}
	}
	expr := l.ownExpr(c, weight)
	if expr.terms.empty() && expr.directives.empty() {
		return polynomial{constant: pair{field: max(0, expr.constant)}}
	}
	l.begin()
	l.put(l.ownRegister(expr), pair{field: 1})
	return l.end(pair{})
}

// ownExpr folds what does not depend on variables: what all directives cost, or the dearest of selections
// that are all included whenever one is.
func (l *lowering) ownExpr(c *call, weight float64) ownExpr {
	expr := ownExpr{condition: c.condition, constant: weight + c.own.constant, terms: c.own.terms}
	if c.directives.empty() {
		return expr
	}
	all := l.form.directives[c.directives.lo:c.directives.hi]
	dearest := all[0].own.constant
	settled, same := true, true
	for i := range all {
		settled = settled && all[i].own.terms.empty() && all[i].condition == all[0].condition
		same = same && all[i].own.terms.empty() && all[i].own.constant == all[0].own.constant
		dearest = max(dearest, all[i].own.constant)
	}
	if settled || same {
		expr.constant += dearest
	} else {
		expr.directives = c.directives
	}
	return expr
}

func (l *lowering) ownRegister(expr ownExpr) int32 {
	terms := l.form.terms[expr.terms.lo:expr.terms.hi]
	key := ownKey{expr: ownExpr{condition: expr.condition, constant: expr.constant}, count: int32(len(terms))}
	if !expr.directives.empty() || len(terms) > len(key.terms) {
		return l.emit(opOwn, push(&l.program.owns, expr), 0, 1)
	}
	copy(key.terms[:], terms)
	return once(&l.owns, key, func() int32 { return l.emit(opOwn, push(&l.program.owns, expr), 0, 1) })
}

// rule lets each evaluation check a rule. Calls with the same arguments share one.
func (l *lowering) rule(c *call) {
	s := &l.form.slicings[c.slicing]
	r := rule{c.condition, s.given, s.lookups}
	if s.given == 1 && s.lookups.empty() || l.rules[r] {
		return
	}
	l.rules = remember(l.rules, r, true)
	l.program.rules = append(l.program.rules, r)
}

// entities is a call of _entities, each of whose elements has the type of a representation.
func (l *lowering) entities(c *call) polynomial {
	v := &l.form.values[c.value]
	e := entityPrices{condition: c.condition, representations: c.special, own: -1, sums: make(map[string]int32, len(v.output.objects))}
	lo := len(l.stack)
	for _, class := range l.form.classes[v.classes.lo:v.classes.hi] {
		weight := l.form.counted(class.objects[0].weight)
		if l.nodes {
			weight = 1
		}
		cost := l.weighing(l.set(sizedSet{set: class.set}).rest, weight)
		sum := l.sumOf(cost)
		for _, object := range class.objects {
			e.sums[object.name] = sum
		}
		l.stack = append(l.stack, cost)
	}
	e.unknown = l.sumOf(l.highest(lo))
	l.stack = l.stack[:lo]
	if !l.nodes {
		e.own = push(&l.program.owns, l.ownExpr(c, c.info.weight))
	}
	return l.computed(opEntities, push(&l.program.entities, e), 0)
}

// function asks the function of a call, once, and returns the first of its registers.
func (l *lowering) function(c *call, below polynomial) int32 {
	f := functionPrices{info: c.info, weight: l.form.weight(c), at: c.special, sum: l.sumOf(below)}
	l.sumOf(l.own(c, 0))
	return l.emit(opFunction, push(&l.program.functions, f), 0, 4)
}

// unless is a cost as far as the function with the registers does not decide it.
func (l *lowering) unless(cost polynomial, function int32) polynomial {
	l.begin()
	l.put(function+2, pair{typ: cost.constant.typ})
	l.put(function+3, pair{field: cost.constant.field})
	for _, a := range l.addends[cost.lo:cost.hi] {
		if a.coefficient.typ != 0 {
			l.put(l.product(a.register, function+2), pair{typ: a.coefficient.typ})
		}
		if a.coefficient.field != 0 {
			l.put(l.product(a.register, function+3), pair{field: a.coefficient.field})
		}
	}
	return l.end(pair{})
}

// uncertain says that variables may give no size.
func (s sizeExpr) uncertain() bool { return s.constant < 0 && s.fallback < 0 }

// settled returns the size if it does not depend on variables, and is negative for no size.
func (s sizeExpr) settled() (size float64, ok bool) {
	if !s.lookups.empty() {
		return 0, false
	}
	if s.constant >= 0 {
		return s.constant, true
	}
	return s.fallback, true
}

// said is what the list size of a call's field says, with a negative fallback if it may say nothing.
func (l *lowering) said(c *call) sizeExpr {
	s := &l.form.slicings[c.slicing]
	return sizeExpr{constant: s.constant, lookups: s.lookups, fallback: c.info.sizes.assumed}
}

// listSize returns the number of elements of a call's list: n, or sizes[size] × n if size is not negative.
func (l *lowering) listSize(c *call) (n float64, size int32) {
	info := c.info
	if info.depth == 0 {
		return info.scale, -1
	}
	expr := sizeExpr{constant: -1, fallback: l.form.index.options.listSize}
	if info.sizes != nil && info.sizes.sizesOwn() {
		expr = l.said(c)
		if expr.fallback < 0 {
			expr.fallback = l.form.index.options.listSize
		}
	}
	if n, ok := expr.settled(); ok {
		return times(n, info.scale), -1
	}
	return info.scale, l.addSize(expr)
}

func (l *lowering) addSize(expr sizeExpr) int32 {
	return once(&l.sizeIDs, expr, func() int32 {
		l.sizes = append(l.sizes, -1)
		return push(&l.program.sizes, expr)
	})
}

// gives returns what a call says about the lists in its value, nil if it says nothing.
func (l *lowering) gives(c *call) (*sizedFields, sizeExpr) {
	if c.info.sizes == nil || c.info.sizes.sized == nil {
		return nil, sizeExpr{}
	}
	expr := l.said(c)
	if n, ok := expr.settled(); ok {
		if n < 0 {
			return nil, sizeExpr{}
		}
		// Calls with the same size share what is below them.
		expr = sizeExpr{constant: n, fallback: -1}
	}
	return c.info.sizes.sized, expr
}
