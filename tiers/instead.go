package tiers

import (
	"slices"
	"strings"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// operationUnits are those that belong to an operation as a whole, and to no call of it: no rule takes them from the limits
// that hold for all operations.
var operationUnits = []bucket.Unit{
	bucket.Records, bucket.AnswerBytes, bucket.Replays, bucket.ResponseBytes, bucket.Events,
}

// general asks the buckets of the tenant, its team and its user for what no rule takes from them: the calls that no rule with
// instead matches, at the price that they have as an operation of their own. Without such calls a bucket is asked for what
// belongs to the operation alone, and left out if it counts nothing of that.
func (t *tally) general(rules *Rules, buckets []bucket.Bucket) []bucket.Bucket {
	o := t.rules
	// A field that the variables leave out is selected, and no call: who calls nothing pays as always.
	if t.matched&o.standing == 0 || t.rest == t.made && t.matched&o.standing&o.documents == 0 {
		return buckets
	}
	rules.standing, rules.documents = o, t.matched&o.documents
	asked := make(bucket.Amounts, 0, 2+len(o.units))
	requests := min(t.rest, 1)
	switch {
	case t.rest == 0:
		buckets = slices.DeleteFunc(buckets, func(b bucket.Bucket) bool {
			return !slices.ContainsFunc(operationUnits, b.Limits.Counts)
		})
		asked = append(asked, bucket.Amount{Unit: bucket.Points})
	case t.prices != nil:
		rules.Split = true
		asked = append(asked, bucket.Amount{Unit: bucket.Points, N: t.price(func(matching uint64) bool { return matching&o.standing == 0 })})
	default:
		rules.Split = true
	}
	asked = append(asked, bucket.Amount{Unit: bucket.Requests, N: requests})
	for at, unit := range o.units {
		if t.calls != nil {
			asked = append(asked, bucket.Amount{Unit: unit, N: t.restTotal[at]})
		}
	}
	for i := range buckets {
		// Who has amounts already is asked for nothing that a call takes: a custom limit stands in its place.
		if buckets[i].Amounts == nil {
			buckets[i].Amounts = asked
		}
	}
	return buckets
}

// price returns what the operation would cost if it called the fields alone that rules match as asked.
func (t *tally) price(includes func(matching uint64) bool) int64 {
	price := t.prices.Price(func(field string) bool { return includes(t.known[field]) })
	return min(max(0, price), maxAmount)
}

// priced adds to the amounts of a rule with instead what its calls cost, unless they are all that the operation makes.
func (t *tally) priced(rules *Rules, rule int, amounts bucket.Amounts) bucket.Amounts {
	switch {
	case !t.rules.rules[rule].points:
		return amounts
	case t.requests[rule] == 0:
		return append(amounts, bucket.Amount{Unit: bucket.Points})
	case t.requests[rule] == t.made:
		return amounts
	}
	if rules.Split = true; t.prices == nil {
		return amounts
	}
	return append(amounts, bucket.Amount{
		Unit: bucket.Points, N: t.price(func(matching uint64) bool { return matching>>rule&1 == 1 }),
	})
}

// PaysByCall reports whether it depends on the calls of an operation what it pays to the tenant, its team and its user: before
// an operation is read, nobody knows whether it pays them anything.
func (r *Rules) PaysByCall() bool { return r.byCall }

// Asked returns the amount of a unit that an owner is asked for by itself, because a rule stands in the place of limits. It
// returns false where the owner is asked for what the operation asks of all.
func (r *Rules) Asked(owner bucket.Owner, unit bucket.Unit) (n int64, own bool) {
	if r.standing == nil && !r.keyed && r.called == nil {
		return 0, false
	}
	for i := range r.Buckets {
		b := &r.Buckets[i]
		if b.Owner != owner {
			continue
		}
		for _, amount := range b.Amounts {
			if amount.Unit == unit {
				return amount.N, true
			}
		}
	}
	return 0, false
}

// Paying returns those of the buckets that pay for what a call of a root field, such as Mutation.order, takes while it runs.
// Where no rule stands in the place of limits these are all. The slice must not be changed.
func (r *Rules) Paying(field string) []bucket.Bucket {
	o := r.standing
	if o == nil && !r.keyed {
		return r.Buckets
	}
	if o == nil {
		o = &operationRules{}
	}
	matching := o.match(field) | r.documents
	return slices.DeleteFunc(slices.Clone(r.Buckets), func(b bucket.Bucket) bool {
		if b.Owner.Level != bucket.Operation || namesKey(b.Owner.Name) {
			return matching&o.standing != 0 || r.keyed && b.Owner.Level != bucket.Operation
		}
		rule := o.spelled(b.Owner.Name)
		return rule&o.instead != 0 && rule&matching == 0
	})
}

// namesKey reports whether the name of an owner at the level of operations is the key of a custom limit.
func namesKey(name string) bool { return strings.Contains(name, ":") && !isDocument(name) }

// spelled returns the rules of the tenant of a spelling: one, or none.
func (o *operationRules) spelled(spelling string) uint64 {
	rules := o.exact[spelling]
	for i := range o.patterns {
		if o.patterns[i].spelling == spelling {
			rules |= 1 << o.patterns[i].rule
		}
	}
	return rules
}
