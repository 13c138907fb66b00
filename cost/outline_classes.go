package cost

import "slices"

// toldValue is a value of an outline as a response tells it.
type toldValue struct {
	classes []typeClass
	// agree says that calls of one response name cost the same in all classes that have it.
	agree bool
}

// typeClass is a group of possible types of a value on which the same selections cost the same, so
// that a response need not tell them apart.
type typeClass struct {
	set    int32
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
	o.index = map[int32]map[string]int32{}
	for i := range o.sets {
		calls := o.sets[i].calls
		if calls.hi-calls.lo < indexedSet {
			continue
		}
		names := make(map[string]int32, calls.hi-calls.lo)
		for at := calls.hi - 1; at >= calls.lo; at-- {
			names[o.calls[at].key] = at
		}
		o.index[int32(i)] = names
	}
	o.query = []typeClass{{set: o.root}}
	o.untold = map[string]bool{}
	o.told = make([]toldValue, len(o.values))
	left := o.form.index.options.workLimit
	for i := range o.values {
		v := &o.told[i]
		classes := o.values[i].classes
		for _, class := range o.classes[classes.lo:classes.hi] {
			weight := class.objects[0].weight
			same := func(known typeClass) bool { return known.weight == weight && o.sameSet(known.set, class.set) }
			found := slices.IndexFunc(v.classes[:min(len(v.classes), comparedClasses)], same)
			if found < 0 {
				found = len(v.classes)
				v.classes = append(v.classes, typeClass{set: class.set, weight: weight, types: make(map[string]bool, len(class.objects))})
			}
			for _, object := range class.objects {
				v.classes[found].types[object.name] = true
			}
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
	if o.summed {
		return false
	}
	calls := map[string]*call{}
	for _, class := range classes {
		set := o.sets[class.set].calls
		for i := set.lo; i < set.hi; i++ {
			c := &o.calls[i]
			known := calls[c.key]
			if known == nil {
				calls[c.key] = c
			} else if !o.sameCall(known, c) {
				return false
			}
		}
	}
	return true
}

// sameSet says whether two sets cost the same in every response.
func (o *Outline) sameSet(a, b int32) bool {
	if a == b || o.summed {
		return a == b
	}
	x, y := o.sets[a].calls, o.sets[b].calls
	return slices.EqualFunc(o.calls[x.lo:x.hi], o.calls[y.lo:y.hi], func(x, y call) bool {
		return x.key == y.key && x.condition == y.condition && o.sameCall(&x, &y)
	})
}

// sameCall says whether two calls cost the same where both happen.
func (o *Outline) sameCall(x, y *call) bool {
	directives := func(s span) []directiveCost { return o.directives[s.lo:s.hi] }
	return x.info.alike == y.info.alike && x.value == y.value && x.own == y.own && x.special == y.special &&
		slices.Equal(directives(x.directives), directives(y.directives))
}

// findUntold records the types of classes that a complete response may leave in doubt: two classes are
// told apart if each has __typename, or a response name that the other lacks. It compares as many calls
// as are left, takes the rest to be in doubt, and returns how many are left then.
func (o *Outline) findUntold(classes []typeClass, left int) int {
	size := func(class typeClass) int {
		calls := o.sets[class.set].calls
		return int(calls.hi - calls.lo)
	}
	for i, class := range classes {
		told := !o.summed || len(classes) == 1
		for j, other := range classes {
			if left -= 2 + size(class) + size(other); left < 0 && len(classes) > 1 {
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
func (o *Outline) tells(set, other int32) bool {
	calls := o.sets[set].calls
	for i := calls.lo; i < calls.hi; i++ {
		c := &o.calls[i]
		if c.condition != always {
			continue
		}
		if _, found := o.find(other, []byte(c.key)); !found || c.info == typenameField {
			return true
		}
	}
	return false
}

// find looks for a response name among the calls of a set.
func (o *Outline) find(set int32, key []byte) (at int32, ok bool) {
	calls := o.sets[set].calls
	if calls.hi-calls.lo >= indexedSet {
		at, ok = o.index[set][string(key)]
		return at, ok
	}
	for i := calls.lo; i < calls.hi; i++ {
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
