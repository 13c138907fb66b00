package cost

import (
	"math"

	"github.com/vektah/gqlparser/v2/ast"
)

// KeepParts makes the tally add up the calls of each root field by themselves too, for [Tally.PartCost]. Call it before the
// first Add.
func (t *Tally) KeepParts() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.parts == nil {
		t.parts = make(map[string]pair, 2)
	}
}

// toPart adds what a call on the root type came to.
func (t *Tally) toPart(at int32, price pair) {
	field := t.r.calls[at].info.coordinate
	t.parts[field] = t.parts[field].plus(price)
}

// toPartAt adds what was deferred and belongs at a path, which leads to an object below some root field.
func (t *Tally) toPartAt(path ast.Path, price pair) {
	for _, element := range path {
		name, ok := element.(ast.PathName)
		if !ok {
			continue
		}
		if at, _, ok := t.find(t.o.query[0].set, -1, []byte(name)); ok {
			t.toPart(at, price)
		}
		return
	}
}

// PartCost returns what the operation would have come to so far if it had called those of its root fields alone that includes
// reports, each as often as it did: what [Tally.Cost] is for an operation that [Parts.Cost] has estimated in parts. Where
// that has no parts, and without [Tally.KeepParts], it is the whole.
//
// The error is that of [Tally.Cost].
func (t *Tally) PartCost(includes func(field string) bool) (Cost, error) {
	whole, err := t.Cost()
	t.mu.Lock()
	defer t.mu.Unlock()
	fields := t.o.plan.fields
	if t.parts == nil || t.r.summed || t.r.m.left < 0 || len(fields) < 2 && (len(fields) == 0 || includes(fields[0])) {
		return whole, err
	}
	part, total := whole, pair{}
	part.Free = len(fields) > 1
	for _, field := range fields {
		if includes(field) {
			total = total.plus(t.parts[field])
			part.Free = part.Free && t.o.form.index.options.free[field]
		}
	}
	part.Free = part.Free && !t.o.repeats()
	if part.Type, part.Field = max(0, t.o.rootType.weight+total.typ), total.field; math.IsNaN(part.Type) {
		part.Type = math.Inf(1)
	}
	return part, err
}
