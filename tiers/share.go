package tiers

import "github.com/gqlgen-ratelimit/ratelimit/bucket"

// Part is what some of the calls of an operation pay by themselves, because rules stand in the place of limits.
type Part struct {
	// Owners pay for these calls and for no others.
	Owners []bucket.Owner
	// Asked is what each of them was asked for, in points, and Came what the calls come to at other prices.
	Asked, Came int64
}

// nobody are the calls of owners in whose place a custom limit stands.
const nobody = ^uint64(0)

// Parts returns what the calls of an operation come to for those who pay for some of them alone, at prices that are known once it
// has run. Each such owner is in one part. Who is in none pays for the operation as a whole, which all do unless [Rules.Split].
func (r *Rules) Parts(prices Prices) []Part {
	if r.called == nil {
		return nil
	}
	var parts []Part
	places := make(map[uint64]int, 2)
	for i := range r.Buckets {
		owner := r.Buckets[i].Owner
		asked, own := r.Asked(owner, bucket.Points)
		if !own {
			continue
		}
		calls := r.callsOf(owner)
		at, known := places[calls]
		if !known {
			at = len(parts)
			places[calls], parts = at, append(parts, Part{Asked: asked, Came: r.came(calls, prices)})
		}
		parts[at].Owners = append(parts[at].Owners, owner)
	}
	return parts
}

// callsOf returns which calls an owner pays for: those that a set of rules matches, none for those that no rule takes.
func (r *Rules) callsOf(owner bucket.Owner) uint64 {
	switch {
	case owner.Level == bucket.Operation && !namesKey(owner.Name):
		return r.operations.spelled(owner.Name)
	case r.keyed && owner.Level != bucket.Operation:
		return nobody
	default:
		return 0
	}
}

// came returns what calls come to at the prices, 0 where there are none of them.
func (r *Rules) came(calls uint64, prices Prices) int64 {
	pays := func(field string) bool {
		matching := r.called[field]
		return matching&calls != 0 || calls == 0 && matching&r.operations.standing == 0
	}
	for field := range r.called {
		if calls != nobody && pays(field) {
			return min(max(0, prices.Price(pays)), maxAmount)
		}
	}
	return 0
}
