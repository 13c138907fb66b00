package bucket

import (
	"context"
	"errors"
	"hash/maphash"
)

// divides reports whether each bucket of the take may be decided by itself: there is nothing that only one step for all of them could decide or count.
func (t *Take) divides() bool {
	return t.Claim == nil && t.Candidate == nil && t.Usage == nil && len(t.Buckets) > 0
}

// eachTake is a take whose buckets are leased one by one.
type eachTake struct {
	*Take

	store *Leased
	// leased says of each bucket who leases it, nil where nobody does, and states what is told of its limits.
	leased []*leasedTenant
	states [][]LimitState
	// held are the receipts of what was taken here, and rest are the buckets that the store decides about.
	held []Receipt
	rest []Bucket
	into Result
}

// takeEach decides a take of which each bucket may be leased. What is leased is taken first, bucket by bucket, and held; then the store is asked for the rest
// in one call. Whoever refuses, what is held is declined: as if it had never been taken.
func (l *Leased) takeEach(ctx context.Context, asked Take) (Result, error) {
	// A copy of its own: that of the usual take stays off the heap.
	take := &asked
	if err := take.Check(); err != nil {
		return Result{}, err
	}
	e := eachTake{Take: take, store: l, leased: make([]*leasedTenant, len(take.Buckets)), states: make([][]LimitState, len(take.Buckets))}
	some := false
	for i := range take.Buckets {
		e.leased[i] = l.busyBucket(take, i)
		some = some || e.leased[i] != nil
	}
	if !some {
		return l.LeaseStore.Take(ctx, *take)
	}
	for i := range take.Buckets {
		if !e.takeHere(ctx, i) {
			e.decline()
			return e.answer(), nil
		}
	}
	if len(e.rest) > 0 {
		if err := e.takeRest(ctx); err != nil {
			return Result{}, err
		}
	}
	return e.answer(), nil
}

// busyBucket returns who leases a bucket of the take, and counts the take where nobody does: the bucket is leased once it is busy. That of the tenant is
// from the first take on if the take says so, and any other one from a few takes a second on, since what is leased costs a call a second as well.
func (l *Leased) busyBucket(take *Take, at int) *leasedTenant {
	b := &take.Buckets[at]
	hash := l.hash(take.Tenant)
	t := l.find(hash, take.Tenant, &b.Owner)
	if t != nil || b.Limits.Len() == 0 || !l.allowed.Load() {
		return t
	}
	busy := false
	switch {
	case b.Owner.Level == Tenant || take.Lease == LeaseOff:
		busy = l.isBusy(hash, take.Lease)
	case b.Owner.Part != "":
		// A value of an argument is one of many, and its budget small: a lease of each would cost a call a second.
	default:
		busy = l.heats(hash^maphash.String(l.seed, b.Owner.Name), hotShared)
	}
	if busy && take.divisible(b) {
		l.begin(take, at)
	}
	return nil
}

// takeHere takes from what is leased of a bucket, or leaves it to the store. It returns false if the take is refused.
func (e *eachTake) takeHere(ctx context.Context, at int) (ok bool) {
	t := e.leased[at]
	if t == nil {
		e.rest = append(e.rest, e.Buckets[at])
		return true
	}
	one := *e.Take
	one.Buckets, one.States, one.Declinable = e.Buckets[at:at+1:at+1], nil, true
	d := debit{at: 0}
	var result Result
	if was, _ := t.decide(ctx, &one, &d, &result); was == elsewhere {
		e.rest = append(e.rest, e.Buckets[at])
		return true
	}
	e.states[at] = result.Limits
	e.join(&result)
	if result.Verdict != Admitted {
		return false
	}
	if !result.Receipt.IsZero() {
		e.held = append(e.held, result.Receipt)
	}
	return true
}

// join takes in what was answered for some of the buckets.
func (e *eachTake) join(r *Result) {
	e.into.Verdict, e.into.RetryAfter, e.into.blockedBy = r.Verdict, max(e.into.RetryAfter, r.RetryAfter), r.blockedBy
	e.into.unused = append(e.into.unused, r.unused...)
	e.into.records, e.into.now = r.records, max(e.into.now, r.now)
}

// takeRest asks the store for what is not leased. What nobody knows to be charged is not declined: it may have been.
func (e *eachTake) takeRest(ctx context.Context) error {
	e.store.stats.mixed.Add(1)
	rest := *e.Take
	rest.Buckets, rest.States = e.rest, nil
	result, err := e.store.LeaseStore.Take(ctx, rest)
	if err != nil {
		if errors.Is(err, ErrAmbiguous) {
			e.keep()
		} else {
			e.decline()
		}
		return err
	}
	for i, t := range e.leased {
		if t != nil {
			t.learn(&result)
		}
		for j := range result.Limits {
			if result.Limits[j].Owner == e.Buckets[i].Owner {
				e.states[i] = append(e.states[i], result.Limits[j])
			}
		}
	}
	e.join(&result)
	if result.Verdict != Admitted {
		e.decline()
		return nil
	}
	if !result.Receipt.IsZero() {
		e.held = append(e.held, result.Receipt)
	}
	return nil
}

// decline gives back what is held, as if it had never been taken.
func (e *eachTake) decline() {
	for i := range e.held {
		e.store.declineOne(e.held[i])
	}
	e.held = nil
	for i := range e.states {
		for j := range e.states[i] {
			s := &e.states[i][j]
			s.Remaining, s.Charged = s.Remaining+s.Charged, 0
		}
	}
}

func (e *eachTake) keep() {
	for i := range e.held {
		e.store.keepOne(e.held[i])
	}
}

// answer puts the answers together, in the order of the buckets.
func (e *eachTake) answer() Result {
	r := e.into
	states := e.States[:0]
	for _, of := range e.states {
		states = append(states, of...)
	}
	r.Limits, r.Receipt = states, joined(e.held)
	if r.Verdict == Admitted && !e.Declinable {
		e.keep()
	}
	return r
}

// joined returns the receipt of all that was charged by several, the zero one for none.
func joined(all []Receipt) Receipt {
	if len(all) == 0 {
		return Receipt{}
	}
	r := all[0]
	r.others = all[1:]
	return r
}

// each are the receipts that this one is made of.
func (r *Receipt) each() []Receipt {
	first := *r
	first.others = nil
	return append([]Receipt{first}, r.others...)
}
