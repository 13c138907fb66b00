package cost

import "slices"

// typeClass is a group of possible types of a value on which the same selections cost the same, so
// that a response need not tell them apart.
type typeClass struct {
	set    span
	weight float64
	types  map[string]bool
}

// comparedClasses is how many classes of a value a type is compared with. With more a type may get a
// class of its own that is equal to another.
const comparedClasses = 16

// indexedSet is from how many calls on a set has an index of its response names.
const indexedSet = 16

// prepareResponses finds out what reading a response needs to know of the outline.
func (o *Outline) prepareResponses() {
	o.index = map[int]map[string]int{}
	o.addIndex(o.root)
	for _, set := range o.sets {
		o.addIndex(set)
	}
	for i := range o.calls {
		c := &o.calls[i]
		c.settled = c.info.argsFree && len(o.e.directives) == 0
	}
	o.untold = map[string]bool{}
	left := o.e.options.workLimit
	for i := range o.values {
		v := &o.values[i]
		for at, object := range v.output.objects {
			set := o.sets[int(v.lo)+at]
			same := func(class typeClass) bool { return class.weight == object.weight && o.sameSet(class.set, set) }
			found := slices.IndexFunc(v.classes[:min(len(v.classes), comparedClasses)], same)
			if found < 0 {
				found = len(v.classes)
				v.classes = append(v.classes, typeClass{set: set, weight: object.weight, types: map[string]bool{}})
			}
			v.classes[found].types[object.name] = true
		}
		left = o.findUntold(v.classes, left)
		v.agree = o.agree(v.classes)
	}
}

// agree says whether calls of one response name cost the same in all classes that have it.
func (o *Outline) agree(classes []typeClass) bool {
	if len(classes) < 2 {
		return true
	}
	calls := map[string]*outlineCall{}
	for _, class := range classes {
		for i := class.set.lo; i < class.set.hi; i++ {
			c := &o.calls[i]
			known := calls[c.key]
			if known == nil {
				calls[c.key] = c
			} else if !sameCall(known, c) {
				return false
			}
		}
	}
	return true
}

func (o *Outline) addIndex(set span) {
	if set.hi-set.lo < indexedSet || o.index[set.lo] != nil {
		return
	}
	names := make(map[string]int, set.hi-set.lo)
	for i := set.hi - 1; i >= set.lo; i-- {
		names[o.calls[i].key] = i
	}
	o.index[set.lo] = names
}

// sameSet says whether two sets cost the same in every response.
func (o *Outline) sameSet(a, b span) bool {
	return slices.EqualFunc(o.calls[a.lo:a.hi], o.calls[b.lo:b.hi], func(x, y outlineCall) bool {
		return x.key == y.key && x.condition == y.condition && sameCall(&x, &y)
	})
}

// sameCall says whether two calls cost the same where both happen.
func sameCall(x, y *outlineCall) bool {
	if x.value != y.value || !slices.Equal(x.members, y.members) {
		return false
	}
	same := x.info.weight == y.info.weight && x.info.leaf == y.info.leaf && x.info.depth == y.info.depth && x.info.kind == y.info.kind &&
		x.info.complexity == y.info.complexity
	return x.info == y.info || same && x.info.argsFree && y.info.argsFree
}

// findUntold records the types of classes that a complete response may leave in doubt: two classes are
// told apart if each has __typename, or a response name that the other lacks. It compares as many calls
// as are left, takes the rest to be in doubt, and returns how many are left then.
func (o *Outline) findUntold(classes []typeClass, left int) int {
	for i, class := range classes {
		told := true
		for j, other := range classes {
			if left -= 2 + class.set.hi - class.set.lo + other.set.hi - other.set.lo; left < 0 && len(classes) > 1 {
				told = false
			}
			if !told {
				break
			}
			told = i == j || o.tells(class.set, other.set) && o.tells(other.set, class.set)
		}
		if told {
			continue
		}
		for name := range class.types {
			o.untold[name] = true
		}
	}
	return max(0, left)
}

// tells says whether every object of the first set shows that it is not of the second.
func (o *Outline) tells(set, other span) bool {
	for i := set.lo; i < set.hi; i++ {
		c := &o.calls[i]
		if c.condition != always {
			continue
		}
		if _, found := o.find(other, other.lo, []byte(c.key)); !found || c.info == typenameField {
			return true
		}
	}
	return false
}

// find looks for a response name in a set, first where it is expected.
func (o *Outline) find(set span, expected int, key []byte) (at int, ok bool) {
	if expected < set.hi && o.calls[expected].key == string(key) {
		return expected, true
	}
	if index := o.index[set.lo]; index != nil && set.hi-set.lo >= indexedSet {
		at, ok = index[string(key)]
		return at, ok
	}
	for i := set.lo; i < set.hi; i++ {
		if o.calls[i].key == string(key) {
			return i, true
		}
	}
	return 0, false
}

// NeedsTypes says whether a response to the operation may leave open what some object costs, because
// neither __typename nor the response names tell its type from another that costs something else. For
// such operations it pays to call [Tally.Observe]; for others it is of no use.
func (o *Outline) NeedsTypes() bool { return len(o.untold) > 0 }

// NeedsType says whether objects of the type are among those that a response may leave open.
func (o *Outline) NeedsType(name string) bool { return o.untold[name] }
