package tiers

import (
	"slices"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// operationUnits are those that belong to an operation as a whole, and to no call of it. The tenant always pays them.
var operationUnits = []bucket.Unit{
	bucket.Records, bucket.AnswerBytes, bucket.Replays, bucket.ResponseBytes, bucket.Events,
}

// standing reports whether a rule stands in the place of the limits that hold for all operations: one that says instead and
// matches every call. An operation that mixes calls pays to the rule and to those limits.
//
// An operation whose variables leave out all calls pays as always, but under a rule for its document.
func (t *tally) standing() bool {
	o := t.rules
	return t.matched&o.standing&o.documents != 0 || t.calling && t.common&o.standing != 0
}

// spare takes from the buckets of the tenant, its team and its user all that calls are charged for. A bucket stays if it counts
// what belongs to the operation alone.
func (r *Rules) spare(buckets []bucket.Bucket) []bucket.Bucket {
	buckets = slices.DeleteFunc(buckets, func(b bucket.Bucket) bool {
		return !slices.ContainsFunc(operationUnits, b.Limits.Counts)
	})
	for i := range buckets {
		buckets[i].Amounts = nothingOf(buckets[i].Limits)
	}
	r.spared = len(buckets)
	return buckets
}

// nothingOf are no amounts of what calls take, in all units that the limits count.
func nothingOf(limits *bucket.Limits) bucket.Amounts {
	var nothing bucket.Amounts
	for _, l := range limits.All() {
		if !slices.Contains(operationUnits, l.Unit) && !slices.Contains(nothing, bucket.Amount{Unit: l.Unit}) {
			nothing = append(nothing, bucket.Amount{Unit: l.Unit})
		}
	}
	return nothing
}

// PaysByCall reports whether it depends on the calls of an operation what it pays to the tenant, its team and its user: before
// an operation is read, nobody knows whether it pays them anything.
func (r *Rules) PaysByCall() bool { return r.byCall }

// Spares reports whether an owner pays nothing of a unit, because a rule stands in the place of its limits.
func (r *Rules) Spares(owner bucket.Owner, unit bucket.Unit) bool {
	return !slices.Contains(operationUnits, unit) &&
		slices.ContainsFunc(r.Buckets[:r.spared], func(b bucket.Bucket) bool { return b.Owner == owner })
}

// Paying returns those of the buckets that pay for what a resolver charges. Where no rule stands in the place of limits these
// are all. The slice must not be changed.
func (r *Rules) Paying() []bucket.Bucket { return r.Buckets[r.spared:] }
