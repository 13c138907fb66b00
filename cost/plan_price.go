package cost

import "slices"

// value is what a call returns: the maximum over the classes of its possible types.
func (l *lowering) value(at, inherit int32) (polynomial, error) {
	key := sizedKey{at, inherit}
	if inherit == 0 && l.values[at].known {
		return l.values[at].cost, nil
	}
	if known, ok := l.sized[key]; ok && inherit != 0 {
		return known, nil
	}
	classes := l.form.values[at].classes
	lo := len(l.stack)
	for _, class := range l.form.classes[classes.lo:classes.hi] {
		cost, err := l.set(class.set, inherit, wholeSet, nil)
		if err != nil {
			return polynomial{}, err
		}
		l.stack = append(l.stack, cost)
	}
	cost := l.highest(lo)
	l.stack = l.stack[:lo]
	if inherit == 0 {
		l.values[at] = memo{cost, true}
	} else {
		l.sized = remember(l.sized, key, cost)
	}
	return cost, nil
}

// set is what is selected on an object: a part of it, if it is included in one whose parent sizes lists.
func (l *lowering) set(at, inherit int32, part setPart, sizes *listSize) (polynomial, error) {
	s := &l.form.sets[at]
	if inherit != 0 {
		// What depends on the size is lowered for each size.
		if err := l.c.spend(int(s.calls.hi - s.calls.lo)); err != nil {
			return polynomial{}, err
		}
	}
	lo := len(l.stack)
	var constant pair
	add := func(cost polynomial) {
		if constant = constant.plus(cost.constant); !cost.isConstant() {
			l.stack = append(l.stack, cost)
		}
	}
	for i := s.calls.lo; i < s.calls.hi; i++ {
		cost, err := l.call(&l.form.calls[i], inherit, part, sizes)
		if err != nil {
			return polynomial{}, err
		}
		add(cost)
	}
	for _, i := range l.form.includes[s.includes.lo:s.includes.hi] {
		cost, err := l.included(i.set, inherit, part, sizes)
		if err != nil {
			return polynomial{}, err
		}
		add(l.when(i.condition, cost))
	}
	if len(l.stack) == lo {
		return polynomial{constant: constant}, nil
	}
	l.begin()
	for _, cost := range l.stack[lo:] {
		l.include(cost)
	}
	l.stack = l.stack[:lo]
	return l.end(constant), nil
}

// included is a set that is a part of another one.
func (l *lowering) included(set, inherit int32, part setPart, sizes *listSize) (polynomial, error) {
	from := l.inherits[inherit]
	if from.sizes == nil {
		return l.part(partKey{set, sizes, part})
	}
	var parts [3]polynomial
	for i, key := range []partKey{{set, from.sizes, restOfSet}, {set, from.sizes, elementOfSet}, {set, nil, wholeSet}} {
		var err error
		if parts[i], err = l.part(key); err != nil {
			return polynomial{}, err
		}
	}
	if parts[1] == (polynomial{}) {
		return parts[0], nil
	}
	size := l.addSize(from.expr)
	if l.certain(size) {
		return l.add(parts[0], l.scale(parts[1], l.size(size))), nil
	}
	first := l.sumOf(parts[0])
	l.sumOf(parts[1])
	l.sumOf(parts[2])
	return l.computed(opSized, size, first), nil
}

func (l *lowering) part(key partKey) (polynomial, error) {
	if known, ok := l.parts[key]; ok {
		return known, nil
	}
	cost, err := l.set(key.set, 0, key.part, key.sizes)
	l.parts = remember(l.parts, key, cost)
	return cost, err
}

// call prices a call, or a part of it.
func (l *lowering) call(c *call, inherit int32, part setPart, sizes *listSize) (polynomial, error) {
	if part != wholeSet && !sizes.names(c.info) {
		if part == elementOfSet {
			return polynomial{}, nil
		}
		part = wholeSet
	}
	if sizing := c.info.sizes; sizing != nil && sizing.one && !l.nodes {
		l.rule(c)
	}
	if c.info.kind == entities {
		return l.entities(c)
	}
	var below, elements polynomial
	var err error
	if c.value >= 0 {
		if below, err = l.value(c.value, l.gives(c)); err != nil {
			return polynomial{}, err
		}
	}
	switch {
	case c.info.kind == constant || part == restOfSet:
	case part == elementOfSet:
		elements = l.times(l.element(c, below), c.info.scale)
	default:
		n, size := l.listSize(c, inherit)
		elements = l.times(l.element(c, below), n)
		if size >= 0 && elements != (polynomial{}) {
			elements = l.scale(elements, l.size(size))
		}
	}
	if c.info.complexity != nil && !l.nodes {
		return l.function(c, below, elements, part)
	}
	cost := elements
	if part != elementOfSet {
		cost = l.add(cost, l.own(c, c.info.weight))
	}
	return l.when(c.condition, cost), nil
}

// element is one element of what a call returns: its weight and what is selected on it.
func (l *lowering) element(c *call, below polynomial) polynomial {
	cost := below
	cost.constant.typ += l.weight(c)
	if cost.constant.typ >= 0 {
		return cost
	}
	if cost.isConstant() {
		cost.constant.typ = 0
		return cost
	}
	// A number of elements is not negative, so it may be multiplied with after clamping.
	return l.computed(opSum, l.sumOf(cost), 0)
}

func (l *lowering) weight(c *call) float64 {
	if !l.nodes {
		return l.form.weight(c)
	}
	if c.info.isNode() {
		return 1
	}
	return 0
}

// own is what a call costs itself. Calls that cost the same share a register.
func (l *lowering) own(c *call, weight float64) polynomial {
	if l.nodes {
		return polynomial{}
	}
	expr := ownExpr{condition: c.condition, constant: weight + c.own.constant, terms: c.own.terms}
	l.foldDirectives(&expr, c.directives)
	if expr.terms.empty() && expr.directives.empty() {
		return polynomial{constant: pair{field: max(0, expr.constant)}}
	}
	l.begin()
	l.put(l.ownRegister(expr), pair{field: 1})
	return l.end(pair{})
}

// foldDirectives adds what the directives cost that does not depend on variables: they all cost the same, or
// all selections are included whenever one is.
func (l *lowering) foldDirectives(expr *ownExpr, directives span) {
	if directives.empty() {
		return
	}
	all := l.form.directives[directives.lo:directives.hi]
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
		expr.directives = directives
	}
}

func (l *lowering) addOwn(expr ownExpr) int32 {
	l.program.owns = append(l.program.owns, expr)
	return int32(len(l.program.owns) - 1)
}

func (l *lowering) ownRegister(expr ownExpr) int32 {
	terms := l.form.terms[expr.terms.lo:expr.terms.hi]
	key := ownKey{expr: ownExpr{condition: expr.condition, constant: expr.constant}, count: int32(len(terms))}
	if !expr.directives.empty() || len(terms) > len(key.terms) {
		return l.emit(opOwn, l.addOwn(expr), 0, 1)
	}
	copy(key.terms[:], terms)
	register, ok := l.owns[key]
	if !ok {
		register = l.emit(opOwn, l.addOwn(expr), 0, 1)
		l.owns = remember(l.owns, key, register)
	}
	return register
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
func (l *lowering) entities(c *call) (polynomial, error) {
	v := &l.form.values[c.value]
	e := entityPrices{condition: c.condition, representations: c.special, own: -1, sums: make(map[string]int32, len(v.output.objects))}
	lo := len(l.stack)
	for _, class := range l.form.classes[v.classes.lo:v.classes.hi] {
		cost, err := l.set(class.set, 0, wholeSet, nil)
		if err != nil {
			return polynomial{}, err
		}
		weight := l.form.counted(class.objects[0].weight)
		if l.nodes {
			weight = 1
		}
		cost.constant.typ += weight
		if cost.constant.typ < 0 {
			cost = l.computed(opSum, l.sumOf(cost), 0)
		}
		sum := l.sumOf(cost)
		for _, object := range class.objects {
			e.sums[object.name] = sum
		}
		l.stack = append(l.stack, cost)
	}
	e.unknown = l.sumOf(l.highest(lo))
	l.stack = l.stack[:lo]
	if !l.nodes {
		expr := ownExpr{condition: c.condition, constant: c.info.weight + c.own.constant, terms: c.own.terms}
		l.foldDirectives(&expr, c.directives)
		e.own = l.addOwn(expr)
	}
	l.program.entities = append(l.program.entities, e)
	return l.computed(opEntities, int32(len(l.program.entities)-1), 0), nil
}

// function is a call whose field has a function, or a part of it.
func (l *lowering) function(c *call, below, elements polynomial, part setPart) (polynomial, error) {
	f := functionPrices{info: c.info, weight: l.form.weight(c), at: c.special, element: part == elementOfSet}
	own := l.own(c, 0)
	ordinary := elements
	if part != elementOfSet {
		ordinary = l.add(ordinary, l.own(c, c.info.weight))
	}
	f.sum = l.sumOf(below)
	l.sumOf(ordinary)
	l.sumOf(own)
	l.program.functions = append(l.program.functions, f)
	return l.computed(opFunction, int32(len(l.program.functions)-1), 0), nil
}

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

// certain says whether there is a size whatever the variables are.
func (l *lowering) certain(at int32) bool {
	for at >= 0 {
		s := &l.program.sizes[at]
		if s.constant >= 0 || s.fallback >= 0 {
			return true
		}
		at = s.next
	}
	return false
}

// said is what the list size of a call's field says, with a negative fallback if it may say nothing.
func (l *lowering) said(c *call) sizeExpr {
	s := &l.form.slicings[c.slicing]
	return sizeExpr{constant: s.constant, lookups: s.lookups, fallback: c.info.sizes.assumed, next: -1}
}

// listSize returns the number of elements of a call's list: n, or sizes[size] × n if size is not negative.
func (l *lowering) listSize(c *call, inherit int32) (n float64, size int32) {
	info := c.info
	if info.depth == 0 {
		return 1, -1
	}
	expr := sizeExpr{constant: -1, fallback: l.form.index.options.listSize, next: -1}
	if info.sizes != nil && info.sizes.sizesOwn() {
		expr = l.said(c)
		if expr.fallback < 0 {
			expr.fallback = l.form.index.options.listSize
		}
	}
	if from := l.inherits[inherit]; from.sizes != nil && from.sizes.names(info) {
		expr = l.chain(from.expr, expr)
	}
	if n, ok := expr.settled(); ok {
		return times(n, info.scale), -1
	}
	return info.scale, l.addSize(expr)
}

// chain returns the expression that asks first, and then second if first says nothing.
func (l *lowering) chain(first, second sizeExpr) sizeExpr {
	if first.fallback >= 0 || first.constant >= 0 {
		return first
	}
	if n, ok := second.settled(); ok {
		first.fallback = n
	} else {
		first.next = l.addSize(second)
	}
	return first
}

func (l *lowering) addSize(expr sizeExpr) int32 {
	id, ok := l.sizeIDs[expr]
	if !ok {
		id = int32(len(l.program.sizes))
		l.program.sizes = append(l.program.sizes, expr)
		l.sizes = append(l.sizes, -1)
		l.sizeIDs = remember(l.sizeIDs, expr, id)
	}
	return id
}

// gives returns the index of what a call says about the lists in its value.
func (l *lowering) gives(c *call) int32 {
	if c.info.sizes == nil || len(c.info.sizes.sized) == 0 {
		return 0
	}
	expr := l.said(c)
	if n, ok := expr.settled(); ok {
		if n < 0 {
			return 0
		}
		// Calls with the same size share what is below them.
		expr = sizeExpr{constant: n, fallback: -1, next: -1}
	}
	from := inheritedSize{sizes: c.info.sizes.like, expr: expr}
	id, ok := l.inheritIDs[from]
	if !ok {
		id = int32(len(l.inherits))
		l.inherits = append(l.inherits, from)
		l.inheritIDs = remember(l.inheritIDs, from, id)
	}
	return id
}

// names says whether the list size gives one to a field of the returned object.
func (s *listSize) names(info *fieldInfo) bool {
	return info.depth > 0 && slices.Contains(s.sized, info.name)
}
