package ratelimit

import (
	"slices"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// judged returns the buckets to ask the store about, nil if no limit in them is judged.
func judged(rules *tiers.Rules) []bucket.Bucket {
	if rules.Unlimited || !haveLimits(rules.Buckets) {
		return nil
	}
	return rules.Buckets
}

// haveLimits reports whether any limit in the buckets is judged.
func haveLimits(buckets []bucket.Bucket) bool {
	for i := range buckets {
		if buckets[i].Limits.Len() > 0 {
			return true
		}
	}
	return false
}

// enforces reports whether a limit can refuse what counts in one of the units, any if none is given.
func enforces(rules *tiers.Rules, units ...bucket.Unit) bool {
	return slices.ContainsFunc(judged(rules), func(b bucket.Bucket) bool {
		return slices.ContainsFunc(b.Limits.All(), func(l bucket.Limit) bool {
			return l.Mode == bucket.Enforce && !l.Soft && (len(units) == 0 || slices.Contains(units, l.Unit))
		})
	})
}

// counts reports whether a limit counts the unit.
func counts(buckets []bucket.Bucket, unit bucket.Unit) bool {
	for i := range buckets {
		if buckets[i].Limits.Counts(unit) {
			return true
		}
	}
	return false
}

// overridden says whether an override record was in force.
func overridden(result *bucket.Result) bool {
	for i := range result.Limits {
		if result.Limits[i].Overridden {
			return true
		}
	}
	return result.Verdict == bucket.Blocked
}

// unasked returns the buckets without what the operation itself was asked of them.
func unasked(buckets []bucket.Bucket) []bucket.Bucket {
	if !slices.ContainsFunc(buckets, func(b bucket.Bucket) bool { return b.Amounts != nil }) {
		return buckets
	}
	buckets = slices.Clone(buckets)
	for i := range buckets {
		buckets[i].Amounts = nil
	}
	return buckets
}

// asking returns the buckets of a candidate with what it computes from arguments in the place of what the live policy
// does, which is what the take asks for.
func asking(buckets []bucket.Bucket, computes, live bucket.Amounts) []bucket.Bucket {
	if len(computes) == 0 && len(live) == 0 {
		return buckets
	}
	instead := slices.Clone(computes)
	for _, a := range live {
		if !names(instead, a.Unit) {
			instead = append(instead, bucket.Amount{Unit: a.Unit})
		}
	}
	buckets = slices.Clone(buckets)
	for i := range buckets {
		asked := slices.Clone(buckets[i].Amounts)
		for _, a := range instead {
			if !names(asked, a.Unit) {
				asked = append(asked, a)
			}
		}
		buckets[i].Amounts = asked
	}
	return buckets
}

// names reports whether there is an amount of the unit.
func names(amounts bucket.Amounts, unit bucket.Unit) bool {
	return slices.ContainsFunc(amounts, func(a bucket.Amount) bool { return a.Unit == unit })
}

// members returns the owners that the operation belongs to, whether or not they have budgets: an override
// record may block any of them. The room is used if it is large enough.
func (op *operation) members(room []bucket.Owner) []bucket.Owner {
	d := &op.decision
	members := append(room[:0], bucket.Owner{})
	if d.Subject.Team != "" {
		members = append(members, bucket.Owner{Level: bucket.Team, Name: d.Subject.Team})
	}
	if d.Subject.User != "" {
		members = append(members, bucket.Owner{Level: bucket.User, Name: d.Subject.User})
	}
	for _, field := range d.RootFields {
		members = append(members, bucket.Owner{Level: bucket.Operation, Name: field})
	}
	return members
}
