package bucket

import (
	"context"
	"sync/atomic"

	"github.com/gqlgen-ratelimit/ratelimit/internal/state"
)

// Settle implements [Store]. What was charged here and turned out to be worth less comes back here, if it is still held; more is charged by the store.
func (l *Leased) Settle(ctx context.Context, settlement Settlement) (Settled, error) {
	if len(settlement.Receipt.others) == 0 {
		return l.settleOne(ctx, settlement)
	}
	// Each is settled once, whatever is tried again. A claim decides first whether anything is settled.
	var settled Settled
	for i, receipt := range settlement.Receipt.each() {
		one := settlement
		if one.Receipt = receipt; i > 0 {
			one.Claim = nil
		}
		is, err := l.settleOne(ctx, one)
		if err != nil || i == 0 && one.Claim != nil && !is.Applied {
			return is, err
		}
		settled.Applied = settled.Applied || is.Applied
		settled.Limits = append(settled.Limits, is.Limits...)
	}
	return settled, nil
}

// settleOne is Settle of what was charged in one piece.
func (l *Leased) settleOne(ctx context.Context, settlement Settlement) (Settled, error) {
	if settlement.Receipt.leased.place == 0 {
		return l.LeaseStore.Settle(ctx, settlement)
	}
	if err := settlement.check(); err != nil {
		return Settled{}, err
	}
	own, once, settled, err := settlement.settleRest(ctx, l.LeaseStore, &l.stats.unsettled)
	if err != nil || !settled.Applied && !once {
		return settled, err
	}
	id := settlement.Receipt.id
	after, tried := l.takeUnsent(id)
	if settled.Applied = true; !tried {
		settled.Applied, after = l.giveBack(&own, settlement.Receipt.leased, once)
	}
	for i, late := range after {
		if _, err := l.LeaseStore.Settle(ctx, *late); err != nil {
			l.addUnsent(id, after[i:])
			return Settled{}, err
		}
	}
	return settled, nil
}

// addUnsent remembers what the store has not done of a receipt.
func (l *Leased) addUnsent(id [16]byte, rest []*Settlement) {
	l.unsentLock.Lock()
	defer l.unsentLock.Unlock()
	l.unsent.add(id, rest, l.now())
	l.anyUnsent.Store(true)
}

// takeUnsent forgets that, and returns it, and whether it was remembered.
func (l *Leased) takeUnsent(id [16]byte) (rest []*Settlement, is bool) {
	if !l.anyUnsent.Load() {
		return nil, false
	}
	l.unsentLock.Lock()
	defer l.unsentLock.Unlock()
	return l.unsent.take(id)
}

// settleRest has a store settle what it has charged, and charge what the bucket that was charged elsewhere was worth more. It returns the settlement of that bucket for what it
// was worth less, and whether nobody else knows if this was settled before. Unsettled counts what was not charged on.
func (s *Settlement) settleRest(ctx context.Context, store Store, unsettled *atomic.Uint64) (own Settlement, once bool, settled Settled, err error) {
	rest, own := s.parts()
	// What is charged on is charged once, whatever is tried again. A claim decides first whether anything is settled.
	more := own.more()
	if more != nil && rest.Claim == nil {
		if _, err := store.Settle(ctx, *more); err != nil {
			return own, false, Settled{}, err
		}
	}
	settled.Applied = true
	if once = !rest.charges(); !once {
		if settled, err = store.Settle(ctx, rest); err != nil || !settled.Applied && rest.Claim != nil {
			return own, once, settled, err
		}
		// Without a claim it was settled before, and the answer to that may have been lost. What was charged elsewhere is settled once by itself.
		once = !settled.Applied
	}
	if more != nil && rest.Claim != nil {
		if _, err := store.Settle(ctx, *more); err != nil {
			unsettled.Add(1)
		}
	}
	return own, once, settled, nil
}

// giveBack gives back what was charged here and not needed, and corrects what was counted. once says that nobody else knows whether this was settled
// before. It returns what the store has to do where this is no longer held here: it gives back what is of windows, and counts.
func (l *Leased) giveBack(own *Settlement, charge leasedCharge, once bool) (applied bool, store []*Settlement) {
	if !charge.takes.add(charge.number) {
		return !once, nil
	}
	t := l.lockedOf(own.Receipt.tenant, own.Receipt.buckets[0].Owner)
	if t != nil {
		defer t.mu.Unlock()
	}
	counted, b := own.corrections(), &own.Receipt.buckets[0]
	switch {
	case counted == nil:
	case t != nil && !t.ended:
		t.usage.join(counted.all, counted.date)
	default:
		store = append(store, own.counts(counted))
	}
	held := t != nil && t.limits == b.Limits && t.holder.Mark().Same(charge.mark) && t.holder.Alive(l.now())
	// What is held may be on its way back to the store when it is ended, and nothing is added to it then.
	if !held || t.ended {
		if back := own.windows(); back != nil {
			store = append(store, back)
		}
	}
	if !held {
		return true, store
	}
	now := l.now()
	amounts := make([]int64, len(b.Limits.rules))
	for j := range amounts {
		r := &b.Limits.rules[j]
		charged, actual := own.settleAmounts(j, b, r)
		if actual >= charged || t.ended && r.Tag != state.TokenBucket {
			continue
		}
		// Of a window that has ended since, or of a charge that has come back with time, the rule gives back less, or nothing.
		owes := state.Spent{Debt: state.Product(charged, r.Unit()), End: t.holder.Level(j, now).Window}
		is := r.Settle(owes, charged, actual, own.Receipt.takenAt, t.storeTime(now))
		amounts[j] = (owes.Debt - is.Debt) / r.Unit()
	}
	t.holder.PutBack(now, charge.mark, amounts)
	return true, store
}

// The settlements of one receipt by the store have names of their own.
const (
	moreOfReceipt = iota
	windowsOfReceipt
	countsOfReceipt
)

// as is the settlement of a part of what the receipt is about, which the store settles once by itself.
func (s *Settlement) as(part int) *Settlement {
	other := *s
	other.Receipt.counted, other.Claim = false, nil
	other.Receipt.id[part] ^= 0xff
	return &other
}

// more returns what was worth more than was charged, for the store, to which it is a new charge: nil if nothing was.
func (s *Settlement) more() *Settlement {
	b, comes := &s.Receipt.buckets[0], false
	amounts := make([]int64, len(b.Limits.rules))
	for j := range b.Limits.rules {
		if charged, actual := s.settleAmounts(j, b, &b.Limits.rules[j]); actual > charged {
			amounts[j], comes = actual-charged, true
		}
	}
	if !comes {
		return nil
	}
	more := s.as(moreOfReceipt)
	more.Receipt.local = amounts
	return more
}

// counts is the settlement that corrects what was counted in this process.
func (s *Settlement) counts(u *usage) *Settlement {
	counts := s.as(countsOfReceipt)
	counts.Receipt.buckets, counts.Receipt.local = nil, nil
	counts.Receipt.admitted = &admitted{date: u.date, all: u.all}
	return counts
}

// windows is the settlement of what was charged to windows: what is leased of these counts as used, wherever it was spent. It is nil if nothing comes
// back.
func (s *Settlement) windows() *Settlement {
	b, comes := &s.Receipt.buckets[0], false
	amounts := make([]int64, len(b.Limits.rules))
	for j := range b.Limits.rules {
		r := &b.Limits.rules[j]
		if charged, actual := s.settleAmounts(j, b, r); r.Tag != state.TokenBucket && actual < charged {
			amounts[j], comes = actual-charged, true
		}
	}
	if !comes {
		return nil
	}
	back := s.as(windowsOfReceipt)
	back.Receipt.local = amounts
	return back
}
