package tiers

import (
	"math/bits"
	"slices"
	"strings"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// operationRules are the operation rules of a rule set: those of the tenant in the order of their spelling, and then
// those of its users. A set of them is a bit mask, which is why there are at most maxOperations.
type operationRules struct {
	// exact has the rules that are coordinates or documents, patterns those that are not.
	exact    map[string]uint64
	patterns []pattern
	rules    []operationRule
	// units are those that rules compute and limits count, sorted.
	units []bucket.Unit
	// groups are the limits that have a bucket for each value of an argument.
	groups []group
	// compiled is how many limits and rules they come to.
	compiled int
	// limited are the rules with one bucket for each tenant, counting those of them that count their calls.
	limited, counting uint64
	// personal are the rules with a bucket for each user, and reading those that look at arguments.
	personal, reading uint64
	// instead are the rules that say so, and standing those of them that stand in the place of other limits now: no less strict
	// than the strictest of these, others. documents are the rules that name one.
	instead, standing, documents uint64
	others                       bucket.Mode
}

type pattern struct {
	spelling string
	rule     int
}

// operationRule is one operation rule.
type operationRule struct {
	maxCost MaxCost
	// bucket has the limits that are not divided by an argument, each user's if the rule is personal. Without such
	// limits it has none.
	bucket bucket.Bucket
	counted
	computes []computed
	// groups are its groups.
	groups []int
}

// counted is what limits count of the calls that a rule matches.
type counted struct {
	requests bool
	// units are the places of computed units.
	units []int
}

// computed is a unit that a rule computes: the product of what a call asks for at the paths into its arguments.
type computed struct {
	unit  int
	paths []string
}

// group are the limits of a rule that have a bucket for each value at a path into the arguments.
type group struct {
	division
	counted
	limits *bucket.Limits
	// excess is what an operation with too many values is told.
	excess TooManyValues
}

// apply adds to the rules what an operation may cost, and returns the set of the rules that match.
func (o *operationRules) apply(rules *Rules, selected *Selection) uint64 {
	var matched uint64
	for _, field := range selected.Fields {
		matched |= o.match(field)
	}
	if selected.Document != "" {
		matched |= o.exact[selected.Document]
	}
	for rest := matched; rest != 0; rest &= rest - 1 {
		rules.MaxCost.lower(&o.rules[bits.TrailingZeros64(rest)].maxCost)
	}
	return matched
}

// asks reports whether the calls of the operation decide what it is asked for by rules that match. A rule that matches one
// of them asks for the one request that every operation is.
func (o *operationRules) asks(matched uint64, selected *Selection, user string) bool {
	switch {
	case matched&o.instead != 0, matched&o.personal != 0 && user != "":
		return true
	case matched&o.reading != 0 && selected.arguments() != nil:
		return true
	default:
		return matched&o.counting != 0 && !o.once(matched&o.counting, selected)
	}
}

// once reports whether each rule of a set matches one call.
func (o *operationRules) once(set uint64, selected *Selection) bool {
	var once, twice uint64
	for i := 0; i < selected.calls() && twice == 0; i++ {
		matching := o.match(selected.call(i)) & set
		twice |= once & matching
		once |= matching
	}
	return once == set && twice == 0
}

// match returns the rules that match a coordinate.
func (o *operationRules) match(field string) uint64 {
	matched := o.exact[field]
	for i := range o.patterns {
		if matches(o.patterns[i].spelling, field) {
			matched |= 1 << o.patterns[i].rule
		}
	}
	return matched
}

// appendTo appends the buckets of the set in the order of their spelling.
func (o *operationRules) appendTo(buckets []bucket.Bucket, set uint64) []bucket.Bucket {
	for rest := set; rest != 0; rest &= rest - 1 {
		buckets = append(buckets, o.rules[bits.TrailingZeros64(rest)].bucket)
	}
	return buckets
}

// add enters a rule.
func (o *operationRules) add(spelling string, rule operationRule) {
	at := len(o.rules)
	o.rules = append(o.rules, rule)
	if strings.Contains(spelling, "*") {
		o.patterns = append(o.patterns, pattern{spelling: spelling, rule: at})
	} else {
		o.exact[spelling] |= 1 << at
	}
	if isDocument(spelling) {
		o.documents |= 1 << at
	}
}

// foresee combines the buckets of the tenant with those of the sets that most operations come to: of each rule alone, and
// of each coordinate that a rule names.
func (set *ruleSet) foresee() {
	o := set.operations
	if o == nil {
		return
	}
	set.foreseen = make(map[uint64][]bucket.Bucket)
	add := func(matched uint64) {
		if matched &= o.limited; matched != 0 && set.foreseen[matched] == nil {
			set.foreseen[matched] = set.buckets(nil, [2]owned{}, matched)
		}
	}
	for field := range o.exact {
		add(o.match(field))
	}
	for rule := range o.rules {
		add(1 << rule)
	}
}

// unit returns the place of a computed unit, -1 if no limit counts it.
func (o *operationRules) unit(unit bucket.Unit) int {
	at, found := slices.BinarySearch(o.units, unit)
	if !found {
		return -1
	}
	return at
}

// count returns what limits count of the calls that a rule matches. A document is one request, whatever it calls.
func (o *operationRules) count(spelling string, limits *bucket.Limits) counted {
	var c counted
	if isDocument(spelling) {
		return c
	}
	for _, limit := range limits.All() {
		switch at := o.unit(limit.Unit); {
		case limit.Unit == bucket.Requests:
			c.requests = true
		case at >= 0 && !slices.Contains(c.units, at):
			c.units = append(c.units, at)
		}
	}
	return c
}
