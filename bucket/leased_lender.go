package bucket

import (
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/internal/lease"
)

// lender is a [LeaseStore] that leases of other buckets than those that it takes from, for a time of its own.
type lender interface {
	// lent returns the limits of the bucket that it leases of, for those of the policy, or nil if there is none.
	lent(*Limits) *Limits
	// leaseLength is how long a lease is, in microseconds.
	leaseLength() int64
}

// leased returns the limits that are leased for those of the policy, nil if none are.
func (l *Leased) leased(limits *Limits) *Limits {
	if l.lends == nil {
		return limits
	}
	return l.lends.lent(limits)
}

// barren says that a store has less than amounts of the limits until a time, if nobody gives back. The zero value says nothing.
type barren struct {
	amounts []int64
	until   int64
}

// lackingOfBoth is lacking where the store takes from other buckets than those that it leases of: it is asked unless it has just refused as much.
func (t *leasedTenant) lackingOfBoth(take *Take, d *debit, now int64) debited {
	b, less := &d.buckets[d.at], len(t.barren.amounts) != t.limits.Len() || now >= t.barren.until
	for i := range t.limits.rules {
		t.amounts[i] = b.asked(take.Amounts, t.limits.rules[i].limit.Unit)
		less = less || t.amounts[i] < t.barren.amounts[i]
	}
	if less {
		return elsewhere
	}
	return missing
}

// learnBarren notes what the limits of the tenant have refused, and for how long they will: no longer than a beat, because something may come back.
func (t *leasedTenant) learnBarren(result *Result, now int64) {
	if result.Verdict != Limited {
		return
	}
	t.barren = barren{}
	wait, amounts := time.Duration(0), make([]int64, 0, t.limits.Len())
	for i := range result.Limits {
		s := &result.Limits[i]
		if s.Owner != t.policy.Owner {
			continue
		}
		amounts = append(amounts, s.Asked)
		if s.Exceeded && s.Limit.Mode == Enforce {
			wait = max(wait, s.RetryAfter)
		}
	}
	if wait > 0 {
		t.barren = barren{amounts: amounts, until: now + min(wait.Microseconds(), lease.Beat)}
	}
}
