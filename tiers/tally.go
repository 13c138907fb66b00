package tiers

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

const (
	// maxValues is how many different values of an argument one operation may have where a limit is divided by them.
	maxValues = 16
	// maxReadValues is how many values are read for that, the same ones included.
	maxReadValues = 1 << 14
	// maxAmount is the largest amount that is asked for: no capacity is as large.
	maxAmount = 1<<53 - 1
)

// tally counts the calls of one operation for the rules that match it.
type tally struct {
	rules   *operationRules
	calls   Calls
	matched uint64
	// requests are the calls that each rule matches, and amounts what they ask for in each computed unit.
	requests []int64
	amounts  [][]int64
	// total is what all calls ask for in each computed unit, and sizes what the call at hand does.
	total, sizes []int64
	// parts are the values of each group, and excess what it has more of than fits, in words. That is empty if all fit.
	parts  [][]part
	excess []string
	// read counts the values that were read, and texts are those that were folded for that.
	read  int
	texts folder

	// calling says that there is a call, and common are the rules that match every call.
	calling bool
	common  uint64
}

// part is one value by which a group is divided, and what the calls with it ask for.
type part struct {
	name     string
	requests int64
	amounts  []int64
}

// tally counts the calls of an operation.
func (o *operationRules) tally(selected *Selection, matched uint64) *tally {
	t := &tally{
		rules: o, calls: selected.arguments(), matched: matched,
		requests: make([]int64, len(o.rules)), parts: make([][]part, len(o.groups)), excess: make([]string, len(o.groups)),
		common: ^uint64(0),
	}
	if len(o.units) > 0 {
		t.total, t.sizes = make([]int64, len(o.units)), make([]int64, len(o.units))
		t.amounts = make([][]int64, len(o.rules))
	}
	// A hostile operation calls few fields many times, and patterns take time.
	known := make(map[string]uint64, len(selected.Fields))
	for i := range selected.calls() {
		field := selected.call(i)
		matching, found := known[field]
		if !found {
			// What a document says holds for all that it calls.
			matching = o.match(field)&matched | matched&o.documents&o.standing
			known[field] = matching
		}
		t.call(i, matching)
	}
	return t
}

func (t *tally) each(set uint64, visit func(rule int)) {
	for rest := set; rest != 0; rest &= rest - 1 {
		visit(bits.TrailingZeros64(rest))
	}
}

// call counts one call that a set of rules matches.
func (t *tally) call(i int, matching uint64) {
	t.calling = true
	t.common &= matching
	if t.calls == nil {
		// Nobody knows the arguments.
		t.each(matching, func(rule int) { t.requests[rule]++ })
		return
	}
	clear(t.sizes)
	t.each(matching&t.rules.reading, func(rule int) {
		for _, c := range t.rules.rules[rule].computes {
			// Of rules that compute the same unit the largest counts: it is one call.
			t.sizes[c.unit] = max(t.sizes[c.unit], t.size(i, c.paths))
		}
	})
	add(t.total, t.sizes)
	t.each(matching, func(rule int) {
		t.requests[rule]++
		if t.amounts != nil {
			t.amounts[rule] = added(t.amounts[rule], t.sizes)
		}
		for _, group := range t.rules.rules[rule].groups {
			t.divide(i, group)
		}
	})
}

// size returns the product of what a call asks for at the paths.
func (t *tally) size(i int, paths []string) int64 {
	product := 1.0
	for _, path := range paths {
		product *= t.calls.Size(i, path)
	}
	if product = math.Ceil(product); product < maxAmount {
		return max(0, int64(product))
	}
	// What is no number at all is infinity times nothing.
	return maxAmount
}

// divide counts a call for each value by which a group is divided.
func (t *tally) divide(i, at int) {
	if t.excess[at] != "" {
		return
	}
	g, given := &t.rules.groups[at], false
	read := t.calls.Values(i, g.by, func(value any) bool {
		given = true
		return t.value(at, value)
	})
	if !given {
		// An empty list has no value, and the call happens all the same.
		t.value(at, nil)
	}
	if !read && t.excess[at] == "" {
		t.excess[at] = "the server reads"
	}
}

// value counts one value. It returns false if there are too many.
func (t *tally) value(at int, value any) bool {
	if t.read++; t.read > maxReadValues {
		t.excess[at] = fmt.Sprintf("%d values", maxReadValues)
		return false
	}
	name, folded := t.rules.groups[at].part(value, &t.texts)
	if !folded {
		t.excess[at] = fmt.Sprintf("%d KiB of values, as far as they are read and folded,", maxFolded>>10)
		return false
	}
	parts := t.parts[at]
	for i := range parts {
		if parts[i].name == name {
			parts[i].requests++
			add(parts[i].amounts, t.sizes)
			return true
		}
	}
	if len(parts) == maxValues {
		t.excess[at] = fmt.Sprintf("%d different values", maxValues)
		return false
	}
	t.parts[at] = append(parts, part{name: name, requests: 1, amounts: added(nil, t.sizes)})
	return true
}

// add adds numbers to sums, which saturate.
func add(sums, numbers []int64) {
	for i, n := range numbers {
		sums[i] = min(sums[i]+n, maxAmount)
	}
}

// added is add for sums that may not be there yet.
func added(sums, numbers []int64) []int64 {
	if sums == nil {
		sums = make([]int64, len(numbers))
	}
	add(sums, numbers)
	return sums
}

// ask completes the rules with what the operation is asked for: the buckets of rules that match it, and the amounts.
func (t *tally) ask(rules *Rules, buckets []bucket.Bucket, user string) {
	o := t.rules
	if t.standing() {
		buckets = rules.spare(buckets)
	}
	for at, total := range t.total {
		if total > 0 {
			rules.Amounts = append(rules.Amounts, bucket.Amount{Unit: o.units[at], N: total})
		}
	}
	t.each(t.matched, func(rule int) {
		r := &o.rules[rule]
		b := r.bucket
		switch {
		case b.Limits == nil:
		case o.personal&(1<<rule) == 0:
			b.Amounts = t.amountsOf(r.counted, t.requests[rule], t.of(rule))
			buckets = append(buckets, b)
		case user != "":
			b.Owner.Part = UserPart(user)
			b.Amounts = t.amountsOf(r.counted, t.requests[rule], t.of(rule))
			buckets = append(buckets, b)
		}
		for _, at := range r.groups {
			buckets = t.askGroup(rules, buckets, at)
		}
	})
	rules.Buckets = buckets
}

// askGroup adds a bucket for each value of a group.
func (t *tally) askGroup(rules *Rules, buckets []bucket.Bucket, at int) []bucket.Bucket {
	g := &t.rules.groups[at]
	if most := t.excess[at]; most != "" {
		if g.excess.Mode != bucket.Off && (rules.TooMany == nil || g.excess.Mode < rules.TooMany.Mode) {
			tooMany := g.excess
			tooMany.Most = most
			rules.TooMany = &tooMany
		}
		return buckets
	}
	for i := range t.parts[at] {
		p := &t.parts[at][i]
		b := bucket.Bucket{
			Owner:  bucket.Owner{Level: bucket.Operation, Name: g.excess.Operation, Part: p.name},
			Limits: g.limits, Amounts: t.amountsOf(g.counted, p.requests, p.amounts),
		}
		if g.across {
			rules.Across = append(rules.Across, b)
		} else {
			buckets = append(buckets, b)
		}
	}
	return buckets
}

// of returns what the calls of a rule ask for in computed units.
func (t *tally) of(rule int) []int64 {
	if t.amounts == nil || t.amounts[rule] == nil {
		return t.sizesOfNothing()
	}
	return t.amounts[rule]
}

// sizesOfNothing is what no call asks for.
func (t *tally) sizesOfNothing() []int64 {
	clear(t.sizes)
	return t.sizes
}

// amountsOf returns the amounts that limits count, nil if they are those of every operation. A rule for a document
// counts no calls.
func (t *tally) amountsOf(c counted, requests int64, sizes []int64) bucket.Amounts {
	if t.calls == nil {
		// What was computed of the whole operation is known to whoever asks, if to anybody.
		c.units = nil
	}
	if !c.requests && len(c.units) == 0 {
		return nil
	}
	amounts := make(bucket.Amounts, 0, 1+len(c.units))
	if c.requests {
		amounts = append(amounts, bucket.Amount{Unit: bucket.Requests, N: requests})
	}
	for _, at := range c.units {
		amounts = append(amounts, bucket.Amount{Unit: t.rules.units[at], N: sizes[at]})
	}
	return amounts
}
