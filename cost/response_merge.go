package cost

import "slices"

// Where selections are summed the calls of one response name are several, on sets that include others. A
// response has each once, with all that they select: they are merged while it is read, as far as it has them.

// gathering is what was merged so far.
type gathering struct {
	// sets are the merged sets: the set -1-i is made of sets[i].
	sets [][]int32
	// calls are those that happen, by set and response name.
	calls  map[int32]map[string][]int32
	values map[string]*toldValue
}

// find looks for a response name among the calls of a set that happen, first where it is expected. Where
// selections are summed there may be others of the same name.
func (t *Tally) find(set, expected int32, key []byte) (at int32, others []int32, ok bool) {
	if !t.r.summed {
		if at, ok = expected, uint32(expected) < uint32(t.r.sets[set].calls.hi) && t.r.calls[expected].key == string(key); !ok {
			if at, ok = t.o.find(set, key); !ok {
				return 0, nil, false
			}
		}
		return at, nil, t.r.m.holds[t.r.calls[at].condition]
	}
	calls := once(&t.gathered.calls, set, func() map[string][]int32 {
		calls, sets, seen := map[string][]int32{}, []int32{set}, map[int32]bool{}
		if set < 0 {
			sets = t.gathered.sets[-1-set]
		}
		for _, set := range sets {
			t.gather(set, calls, seen)
		}
		return calls
	})
	if others = calls[string(key)]; len(others) == 0 {
		return 0, nil, false
	}
	return others[0], others[1:], true
}

// expected returns where the n-th call of a set stands.
func (t *Tally) expected(set, n int32) int32 {
	if set < 0 {
		return -1
	}
	return t.r.sets[set].calls.lo + n
}

// gather finds the calls of a set, and of those that it includes, each once.
func (t *Tally) gather(set int32, calls map[string][]int32, seen map[int32]bool) {
	if seen[set] {
		return
	}
	seen[set] = true
	s := &t.r.sets[set]
	for i := s.calls.lo; i < s.calls.hi; i++ {
		if c := &t.r.calls[i]; t.r.m.holds[c.condition] {
			calls[c.key] = append(calls[c.key], i)
		}
	}
	for _, i := range t.r.includes[s.includes.lo:s.includes.hi] {
		if t.r.m.holds[i.condition] {
			t.gather(i.set, calls, seen)
		}
	}
}

// merged returns what is selected on what a call returns by it and by others of the same response name, nil
// if it returns nothing on which anything is.
func (t *Tally) merged(c *call, others []int32) *toldValue {
	if c.value < 0 {
		return nil
	}
	values := []int32{c.value}
	for _, other := range others {
		values = append(values, t.r.calls[other].value)
	}
	slices.Sort(values)
	values = slices.Compact(values)
	if len(values) == 1 {
		return &t.o.told[c.value]
	}
	return once(&t.gathered.values, spelled(values), func() *toldValue { return t.merge(c.info.output, values) })
}

// merge divides the types of an output by what the values select on them together.
func (t *Tally) merge(output *outputType, values []int32) *toldValue {
	merged := &toldValue{}
	selected := make(map[*objectType][]int32, len(output.objects))
	for _, value := range values {
		classes := t.r.values[value].classes
		for _, class := range t.r.classes[classes.lo:classes.hi] {
			for _, object := range class.objects {
				selected[object] = append(selected[object], class.set)
			}
		}
	}
	known := map[string]int{}
	for _, object := range output.objects {
		// A class of any value has objects of one weight.
		at := once(&known, spelled(selected[object]), func() int {
			t.gathered.sets = append(t.gathered.sets, selected[object])
			merged.classes = append(merged.classes, typeClass{
				set: int32(-len(t.gathered.sets)), weight: object.weight, types: map[string]bool{},
			})
			return len(merged.classes) - 1
		})
		merged.classes[at].types[object.name] = true
	}
	return merged
}

// withOthers returns what a call costs itself of which others are parts: what the dearest of them does. The
// prices that functions give are summed, as they are estimated.
func (t *Tally) withOthers(own float64, others []int32) float64 {
	for _, other := range others {
		if price, function := t.own(other); function {
			own += price
		} else {
			own = max(own, price)
		}
	}
	return own
}
