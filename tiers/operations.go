package tiers

import (
	"math/bits"
	"strings"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// operationRules are the operation rules of a rule set in the order of their spelling. A set of them
// is a bit mask, which is why there are at most maxOperations.
type operationRules struct {
	// exact has the rules that are coordinates, patterns those that are not.
	exact    map[string]int
	patterns []pattern
	maxCosts []MaxCost
	// buckets are those of the rules. A rule without limits, whose bit is not in limited, has none.
	buckets []bucket.Bucket
	limited uint64
	// tenant is the bucket of the tenant, or none.
	tenant []bucket.Bucket
	// combined are the buckets of the sets that were foreseen: those of each rule alone, and of each
	// coordinate that a rule names.
	combined map[uint64][]bucket.Bucket
}

type pattern struct {
	spelling string
	rule     int
}

// apply adds to the rules what an operation may cost, and returns the set of those that charge it.
func (o *operationRules) apply(rules *Rules, selected *Selection) uint64 {
	var matched uint64
	for _, field := range selected.Fields {
		matched |= o.match(field)
	}
	if rule, found := o.exact[selected.Document]; found {
		matched |= 1 << rule
	}
	for rest := matched; rest != 0; rest &= rest - 1 {
		rules.MaxCost.lower(&o.maxCosts[bits.TrailingZeros64(rest)])
	}
	return matched & o.limited
}

// withTenant returns the buckets of the tenant and of the set.
func (o *operationRules) withTenant(set uint64) []bucket.Bucket {
	if foreseen, found := o.combined[set]; found {
		return foreseen
	}
	return o.combine(set)
}

// match returns the rules that match a coordinate.
func (o *operationRules) match(field string) uint64 {
	var matched uint64
	if rule, found := o.exact[field]; found {
		matched = 1 << rule
	}
	for i := range o.patterns {
		if matches(o.patterns[i].spelling, field) {
			matched |= 1 << o.patterns[i].rule
		}
	}
	return matched
}

func (o *operationRules) combine(set uint64) []bucket.Bucket {
	buckets := make([]bucket.Bucket, 0, len(o.tenant)+bits.OnesCount64(set))
	return o.appendTo(append(buckets, o.tenant...), set)
}

// appendTo appends the buckets of the set in the order of their spelling.
func (o *operationRules) appendTo(buckets []bucket.Bucket, set uint64) []bucket.Bucket {
	for rest := set; rest != 0; rest &= rest - 1 {
		buckets = append(buckets, o.buckets[bits.TrailingZeros64(rest)])
	}
	return buckets
}

// add enters a rule. Rules come in the order of their spelling.
func (o *operationRules) add(rule int, spelling string) {
	if strings.Contains(spelling, "*") {
		o.patterns = append(o.patterns, pattern{spelling: spelling, rule: rule})
	} else {
		o.exact[spelling] = rule
	}
}

// foresee combines the sets that most operations come to.
func (o *operationRules) foresee() {
	o.combined = make(map[uint64][]bucket.Bucket)
	add := func(matched uint64) {
		if matched &= o.limited; matched != 0 && o.combined[matched] == nil {
			o.combined[matched] = o.combine(matched)
		}
	}
	for field := range o.exact {
		add(o.match(field))
	}
	for rule := range o.buckets {
		add(1 << rule)
	}
}
