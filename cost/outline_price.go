package cost

import (
	"math"
	"slices"
)

// reading is a form with the variables of one request, which it prices call by call: what the program of
// the form computes at once. It is not safe for concurrent use.
type reading struct {
	*form
	m machine
	// What was found out before: the prices of sets, of functions, and of the representations of calls.
	prices    map[sizedSet]setPrice
	functions map[*call]functionPrice
	shared    map[*call]*shares
}

// parentSizes is the size that a call gives to some lists in its value. The zero value gives none.
type parentSizes struct {
	sizes  *sizedFields
	source ListSource
}

// valuePrice is the maximum over the classes of possible types, and which of them it is of.
type valuePrice struct {
	price pair
	// typ and field are indices of classes, -1 if nothing has a price.
	typ, field int32
}

// setPrice is what a selection set, or a call in it, costs: one element of each list that the parent sizes,
// these lists at the sizes that they have of themselves, and everything else.
type setPrice struct{ rest, element, own pair }

func (p setPrice) plus(q setPrice) setPrice {
	return setPrice{p.rest.plus(q.rest), p.element.plus(q.element), p.own.plus(q.own)}
}

// under is the price under a parent.
func (p setPrice) under(parent parentSizes) pair {
	if parent.sizes == nil {
		return p.rest.plus(p.own)
	}
	return p.rest.plus(p.element.times(parent.source.Size))
}

func (r *reading) begin(f *form, variables map[string]any) *reading {
	r.form = f
	r.m.load(&f.tables, variables, f.index.options.maxValues)
	return r
}

// inputs is what the arguments of a call and the directives of its dearest selection cost.
func (r *reading) inputs(c *call) float64 {
	cost := c.own.constant + r.m.terms(&r.tables, c.own.terms)
	if !c.directives.empty() {
		dearest, _ := r.m.dearest(&r.tables, c.directives)
		cost += dearest
	}
	return cost
}

// own is the field cost of one call without its elements.
func (r *reading) own(c *call) float64 { return max(0, c.info.weight+r.inputs(c)) }

// extra is the field cost of a call's arguments and directives.
func (r *reading) extra(c *call) float64 { return max(0, r.inputs(c)) }

// call prices one call, given what its parent says about lists.
func (r *reading) call(c *call, parent parentSizes) pair {
	return r.parts(c, parent.sizes).under(parent)
}

// parts prices one call, by parts if its parent sizes the list.
func (r *reading) parts(c *call, sizes *sizedFields) setPrice {
	if !r.m.holds[c.condition] {
		return setPrice{}
	}
	price := r.withoutAlias(c, sizes)
	price.rest.field += r.alias(c)
	return price
}

// withoutAlias is parts without what the call pays for being one of a further alias.
func (r *reading) withoutAlias(c *call, sizes *sizedFields) setPrice {
	if c.info == typenameField {
		return setPrice{}
	}
	own := pair{field: r.own(c)}
	if c.info.kind == entities {
		return setPrice{rest: own.plus(r.shares(c).price())}
	}
	if inner := sizes.through(c.info); inner != nil {
		below := r.split(sizedSet{r.classOf(c).set, inner})
		below.rest.typ += r.weight(c)
		below.rest.field += own.field
		return below
	}
	one := r.below(c, parentSizes{}).price
	if one.typ = max(0, r.weight(c)+one.typ); c.info.kind == constant {
		one = pair{}
	}
	elements := one.times(r.size(c, parentSizes{}).Size)
	if c.info.complexity != nil {
		price, ordinary := r.function(c).with(r.extra(c))
		own, one, elements = price.plus(own.each(ordinary)), one.each(ordinary), elements.each(ordinary)
	}
	if sizes == nil || !sizes.names(c.info) {
		return setPrice{rest: own.plus(elements)}
	}
	return setPrice{own, one.times(c.info.scale), elements}
}

// function asks the function of a call's field, once.
func (r *reading) function(c *call) functionPrice {
	return once(&r.functions, c, func() functionPrice {
		return r.m.ask(c.info, &r.form.functions[c.special], r.weight(c), r.below(c, parentSizes{}).price)
	})
}

// below prices what is selected below a call under a parent.
func (r *reading) below(c *call, given parentSizes) valuePrice {
	if c.value < 0 {
		return valuePrice{typ: -1, field: -1}
	}
	parent, v := r.gives(c, given), &r.values[c.value]
	highest := valuePrice{typ: -1, field: -1}
	for i := v.classes.lo; i < v.classes.hi; i++ {
		price := r.set(r.classes[i].set, parent)
		if price.typ > highest.price.typ {
			highest.price.typ, highest.typ = price.typ, i
		}
		if price.field > highest.price.field {
			highest.price.field, highest.field = price.field, i
		}
	}
	return highest
}

// set prices a set under a parent.
func (r *reading) set(at int32, parent parentSizes) pair {
	return r.split(sizedSet{at, parent.sizes}).under(parent)
}

// split prices a set by parts, once.
func (r *reading) split(key sizedSet) setPrice {
	if known, ok := r.prices[key]; ok {
		return known
	}
	s := &r.sets[key.set]
	var total setPrice
	for i := s.calls.lo; i < s.calls.hi; i++ {
		total = total.plus(r.parts(&r.calls[i], key.sizes))
	}
	for _, i := range r.includes[s.includes.lo:s.includes.hi] {
		if r.m.holds[i.condition] {
			total = total.plus(r.split(sizedSet{i.set, key.sizes}))
		}
	}
	r.prices = remember(r.prices, key, total)
	return total
}

// shares are how many representations of an _entities call are priced as each class of object types. The
// numbers of the two components differ where a type is unknown and the dearest of each component counts.
type shares struct {
	of    []share
	total int
}

type share struct {
	class      int32
	typ, field float64
	// one is what one representation costs.
	one pair
}

func (s *shares) price() pair {
	var total pair
	for _, share := range s.of {
		total = total.plus(pair{times(share.typ, share.one.typ), times(share.field, share.one.field)})
	}
	return total
}

// shares returns the possible types of an _entities call with their representations, which are read once.
func (r *reading) shares(c *call) *shares {
	return once(&r.shared, c, func() *shares { return r.divide(c) })
}

func (r *reading) divide(c *call) *shares {
	v := &r.values[c.value]
	representations := &r.representations[c.special]
	divided := &shares{total: r.m.represented(representations)}
	typ, field := 0, 0
	// There may be many of both, and many such calls.
	index := make(map[string]int, len(v.output.objects))
	for i := v.classes.lo; i < v.classes.hi; i++ {
		class, at := &r.classes[i], len(divided.of)
		below := r.set(class.set, parentSizes{})
		one := pair{max(0, r.counted(class.objects[0].weight)+below.typ), below.field}
		divided.of = append(divided.of, share{class: i, one: one})
		if one.typ > divided.of[typ].one.typ {
			typ = at
		}
		if one.field > divided.of[field].one.field {
			field = at
		}
		for _, object := range class.objects {
			index[object.name] = at
		}
	}
	few := divided.total <= r.index.options.maxEntries && r.m.represent(representations, func(_ int, name string) {
		if at, ok := index[name]; ok {
			divided.of[at].typ++
			divided.of[at].field++
		} else if len(divided.of) > 0 {
			divided.of[typ].typ++
			divided.of[field].field++
		}
	})
	for i := range divided.of {
		if !few {
			divided.of[i].typ, divided.of[i].field = math.Inf(1), math.Inf(1)
		}
	}
	return divided
}

// size returns how many elements a call has, 1 if it returns no list, and why.
func (r *reading) size(c *call, parent parentSizes) ListSource {
	info := c.info
	if info.depth == 0 {
		return ListSource{Size: info.scale}
	}
	if parent.sizes != nil && parent.sizes.names(info) {
		source := parent.source
		source.Size, source.Inherited = times(source.Size, info.scale), true
		return source
	}
	if info.sizes != nil && info.sizes.sizesOwn() {
		if source, ok := r.sliced(c); ok {
			source.Size = times(source.Size, info.scale)
			return source
		}
	}
	return ListSource{Size: times(r.index.options.listSize, info.scale), Rule: DefaultSize}
}

// gives returns what a call under a parent, or this parent, says about the lists in its value.
func (r *reading) gives(c *call, parent parentSizes) parentSizes {
	if inner := parent.sizes.through(c.info); inner != nil {
		return parentSizes{inner, parent.source}
	}
	if c.info.sizes == nil || c.info.sizes.sized == nil {
		return parentSizes{}
	}
	source, ok := r.sliced(c)
	if !ok {
		return parentSizes{}
	}
	return parentSizes{c.info.sizes.sized, source}
}

// sliced returns the size that the list size of a call's field gives, if it gives one.
func (r *reading) sliced(c *call) (largest ListSource, ok bool) {
	sizes := c.info.sizes
	bounds := r.slicings[c.slicing].bounds
	for i := range r.bounds[bounds.lo:bounds.hi] {
		b := &r.bounds[int(bounds.lo)+i]
		size, source, given := b.size, ListSource{Source: FromLiteral}, true
		if b.defaulted {
			source.Source = FromSchema
		}
		if b.lookup >= 0 {
			size, source, given = r.lookedUp(b)
		}
		if given && (!ok || size > largest.Size) {
			source.Size, source.Rule, source.Argument = size, SlicingArgument, b.slicer.name()
			largest, ok = source, true
		}
	}
	if !ok && sizes.assumed >= 0 {
		largest, ok = ListSource{Size: sizes.assumed, Rule: AssumedSize}, true
	}
	if c.info.introspects {
		largest.Rule = IntrospectionSize
		return largest, ok
	}
	largest.Coordinate, largest.Configured = sizes.coordinate, sizes.configured
	return largest, ok
}

// lookedUp returns the size that a variable gives, and which it is.
func (r *reading) lookedUp(b *bound) (size float64, source ListSource, given bool) {
	l := &r.lookups[b.lookup]
	_, nulled := r.m.lookup(l)
	size, given = r.m.sized(l)
	source = ListSource{Source: FromSchema}
	if !nulled && r.m.values[l.slot].present {
		source = ListSource{Source: FromVariable, Variable: r.variables[l.slot].name}
	}
	return size, source, given
}

// costs returns what the arguments of a call cost, and those of the directives of its dearest selection,
// one by one in the order of their declaration.
func (r *reading) costs(c *call) []ArgumentCost {
	costs := r.costsOf(nil, c.own)
	if !c.directives.empty() {
		if _, at := r.m.dearest(&r.tables, c.directives); at >= 0 {
			costs = r.costsOf(costs, r.directives[at].own)
		}
	}
	return costs
}

func (r *reading) costsOf(costs []ArgumentCost, own ownCost) []ArgumentCost {
	for i := range r.arguments[own.args.lo:own.args.hi] {
		a := &r.arguments[int(own.args.lo)+i]
		if cost := a.constant + r.m.terms(&r.tables, a.terms); cost != 0 {
			costs = append(costs, ArgumentCost{Coordinate: a.declared.coordinate, Cost: finite(cost)})
		}
	}
	return slices.Clip(costs)
}
