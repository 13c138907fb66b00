package cost

import (
	"math"
	"slices"
)

const (
	// unfoldFactor is how many calls are looked at for each entry that a breakdown may have.
	unfoldFactor = 16
	// nameBytes is what a name takes beside its letters where it stands in a list.
	nameBytes = 3
	// argumentBytes is what the cost of an argument takes beside its coordinate.
	argumentBytes = 40
)

// unfolding turns an outline, which shares equal selections, into the tree of calls that it stands
// for: the dearest subtree first, until there are enough entries. That takes exponentially large trees
// apart where they cost most, and leaves the rest whole.
type unfolding struct {
	r   *reading
	max int
	// bytes is how much the names in the entries may still take.
	bytes   int
	roots   []*branch
	queue   queue[*branch]
	made    int
	entries []Entry
	omitted int
}

// branch is a call at its place in the tree, or a set that is included there.
type branch struct {
	// call is nil for an included set.
	call  *call
	set   int32
	given parentSizes
	// path is how many bytes the path takes.
	path int
	// typ and field say how often the call counts for each component: not at all if the component is that
	// of another possible type.
	typ, field float64
	// rank is what the branch adds to the cost: with all below it until it is expanded, then alone.
	rank     float64
	children []*branch
	// entry is nil until the branch is expanded; taken says that the breakdown has it.
	entry *Entry
	taken bool
}

// Before says that the branch is dearer.
func (b *branch) Before(other *branch) bool { return b.rank > other.rank }

// run fills in the entries.
func (u *unfolding) run() {
	o := u.r.form
	u.entries = []Entry{}
	total := u.r.set(o.root, parentSizes{})
	root := Entry{Path: []string{}, Coordinate: o.rootType.name, Calls: 1, TypeWeight: o.rootType.weight, Type: o.rootType.weight}
	typ := 1.0
	if root.Type+total.typ < 0 {
		typ, root.Type, root.TypeClamped = 0, 0, true
	}
	if root.TypeWeight != 0 {
		u.entries = append(u.entries, root)
	}
	u.roots = u.spread(o.root, parentSizes{}, typ, 1, 0)
	for taken := 0; len(u.queue) > 0 && taken < u.max; {
		b := u.queue.next()
		if b.entry == nil && u.made < u.max*unfoldFactor {
			u.expand(b)
			continue
		}
		if b.call == nil {
			u.omitted++
			continue
		}
		if b.entry == nil {
			u.keepWhole(b)
		}
		if b.rank == 0 && !b.entry.TypeClamped && !b.entry.FieldClamped {
			continue
		}
		if bytes := u.size(b); bytes <= u.bytes {
			u.bytes -= bytes
			b.taken = true
			taken++
		} else {
			u.omitted++
		}
	}
	for _, b := range u.queue {
		if b.rank != 0 {
			u.omitted++
		}
	}
	for _, b := range u.roots {
		u.collect(b, nil)
	}
}

// size is how many bytes the names in the entry of a branch take. A client can make them long, and have
// them in many entries.
func (u *unfolding) size(b *branch) int {
	bytes := b.path + len(b.entry.Coordinate)
	if list := b.entry.List; list != nil {
		bytes += len(list.Coordinate) + len(list.Argument) + len(list.Variable)
	}
	for _, cost := range u.r.costs(b.call) {
		if bytes += len(cost.Coordinate) + argumentBytes; bytes > u.bytes {
			return bytes
		}
	}
	return bytes
}

// spread makes branches of the calls of a set that add something, or that are clamped.
func (u *unfolding) spread(at int32, given parentSizes, typ, field float64, path int) []*branch {
	if typ == 0 && field == 0 {
		return nil
	}
	var branches []*branch
	add := func(b branch, price pair, clamped bool) {
		b.given, b.typ, b.field = given, typ, field
		if b.rank = finite(times(typ, price.typ)) + finite(times(field, price.field)); b.rank == 0 && !clamped {
			return
		}
		branches = append(branches, &b)
		u.queue.add(&b)
		u.made++
	}
	set := &u.r.sets[at]
	for i := set.calls.lo; i < set.calls.hi; i++ {
		if c := &u.r.calls[i]; u.r.m.holds[c.condition] {
			add(branch{call: c, path: path + len(c.key) + nameBytes}, u.r.call(c, given), u.r.clamped(c, given))
		}
	}
	for i := set.includes.lo; i < set.includes.hi; i++ {
		if below := &u.r.includes[i]; u.r.m.holds[below.condition] {
			add(branch{set: below.set, path: path}, u.r.set(below.set, given), false)
		}
	}
	return branches
}

// fieldClamped says whether the weight or the arguments of a call are held at 0.
func (r *reading) fieldClamped(c *call) bool { return c.info.weight+r.inputs(c) < 0 }

// clamped says whether the price of a call is held at 0 against negative weights.
func (r *reading) clamped(c *call, given parentSizes) bool {
	if c.info.complexity != nil {
		return false
	}
	if r.fieldClamped(c) {
		return true
	}
	return c.info.kind == ordinary && times(r.size(c, given).Size, r.weight(c)+r.below(c, given).price.typ) < 0
}

// expand finds out what a branch adds alone, and queues it again with those below it.
func (u *unfolding) expand(b *branch) {
	c := b.call
	if c == nil {
		b.children = u.spread(b.set, b.given, b.typ, b.field, b.path)
		return
	}
	b.entry = u.describe(b)
	u.withAlias(b)
	switch c.info.kind {
	case constant:
	case entities:
		u.expandEntities(b)
	default:
		n, below := u.r.size(c, b.given).Size, u.r.below(c, b.given)
		typ, field := times(b.typ, n), times(b.field, n)
		if times(n, u.r.weight(c)+below.price.typ) < 0 {
			typ, b.entry.TypeClamped = 0, true
		}
		b.entry.Type = finite(times(typ, u.r.weight(c)))
		if b.entry.Complexity {
			field = 0
			if price := u.r.function(c); price.typ >= 0 {
				typ, b.entry.Type, b.entry.TypeClamped = 0, finite(times(b.typ, price.typ)), false
			}
		}
		if c.value < 0 {
			break
		}
		given, classes := u.r.gives(c, b.given), u.r.values[c.value].classes
		for i := classes.lo; i < classes.hi; i++ {
			only := func(dearest int32, calls float64) float64 {
				if i != dearest {
					return 0
				}
				return calls
			}
			b.children = append(b.children, u.spread(u.r.classes[i].set, given, only(below.typ, typ), only(below.field, field), b.path)...)
		}
	}
	// What lowers the cost says as much as what raises it.
	b.rank = math.Abs(b.entry.Type) + b.entry.Field
	u.queue.add(b)
}

// expandEntities is expand for _entities, whose elements each have the type of a representation.
func (u *unfolding) expandEntities(b *branch) {
	entities := u.r.shares(b.call)
	b.entry.List = &ListSource{Size: float64(entities.total), Rule: Representations}
	for i := range entities.of {
		s := &entities.of[i]
		typ, field := times(b.typ, s.typ), times(b.field, s.field)
		class := &u.r.classes[s.class]
		weight := u.r.counted(class.objects[0].weight)
		if weight+u.r.set(class.set, parentSizes{}).typ < 0 {
			b.entry.TypeClamped = b.entry.TypeClamped || typ > 0
			typ = 0
		}
		b.entry.Type = finite(b.entry.Type + times(typ, weight))
		b.children = append(b.children, u.spread(class.set, parentSizes{}, typ, field, b.path)...)
	}
}

// describe returns the entry of a branch without its type cost.
func (u *unfolding) describe(b *branch) *Entry {
	c := b.call
	e := &Entry{
		Coordinate:   c.info.coordinate,
		Calls:        finite(max(b.typ, b.field)),
		Weight:       c.info.weight,
		Arguments:    finite(u.r.inputs(c)),
		TypeWeight:   u.r.weight(c),
		Field:        finite(times(b.field, u.r.own(c))),
		FieldClamped: u.r.fieldClamped(c),
	}
	if c.info.depth > 0 && c.info.kind == ordinary {
		list := u.r.size(c, b.given)
		list.Size = finite(list.Size)
		e.List = &list
	}
	if c.info.complexity == nil {
		return e
	}
	if price := u.r.function(c); !price.none {
		e.Complexity, e.FieldClamped = true, false
		e.Field = finite(times(b.field, price.field+u.r.extra(c)))
		if price.typ >= 0 {
			e.List = nil
		}
	}
	return e
}

// withAlias adds what a branch pays for being one of a further alias.
func (u *unfolding) withAlias(b *branch) {
	b.entry.Alias = u.r.alias(b.call)
	b.entry.Field = finite(b.entry.Field + times(b.field, b.entry.Alias))
}

// keepWhole makes a branch an entry together with all that is below it.
func (u *unfolding) keepWhole(b *branch) {
	price := u.r.call(b.call, b.given)
	b.entry = u.describe(b)
	b.entry.Type, b.entry.Field = finite(times(b.typ, price.typ)), finite(times(b.field, price.field))
	b.entry.Whole, b.entry.Alias = true, u.r.alias(b.call)
}

// collect appends the entries of the branches that were taken, in the order of the response.
func (u *unfolding) collect(b *branch, path []string) {
	if b.call != nil {
		path = append(path, b.call.key)
	}
	if b.taken {
		b.entry.Path, b.entry.ArgumentCosts = slices.Clone(path), u.r.costs(b.call)
		u.entries = append(u.entries, *b.entry)
	}
	for _, child := range b.children {
		u.collect(child, path)
	}
}

// left is what is left of a total when a part of it is taken away. Nothing is left of an infinite total
// when an infinite part is.
func left(total, part float64) float64 {
	if more := total - part; math.Abs(more) > noise*math.Max(1, math.Abs(total)) {
		return finite(more)
	}
	return 0
}
