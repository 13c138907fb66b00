package bucket

import (
	"context"
	"errors"
)

// Settle implements [Store]. What was charged to the shard and was worth less comes back to it, if it still holds that, less what has come back by itself; more is charged
// to home.
func (s *Sharded) Settle(ctx context.Context, settlement Settlement) (Settled, error) {
	charge := settlement.Receipt.leased
	if charge.place == 0 {
		return s.home.Settle(ctx, settlement)
	}
	if err := settlement.check(); err != nil {
		return Settled{}, err
	}
	own, once, settled, err := settlement.settleRest(ctx, s.home, &s.stats.unsettled)
	if err != nil || !settled.Applied && !once {
		return settled, err
	}
	t := s.tenant(settlement.Receipt.tenant)
	if t == nil {
		// There are as many as there can be. What it settles is told home at once, see [shardedTenant.note].
		t = &shardedTenant{store: s, name: settlement.Receipt.tenant, forgotten: true}
	}
	first, err := t.settle(ctx, &own, charge)
	if once {
		settled.Applied = first
	}
	return settled, err
}

// settle puts back what was not needed, and corrects what was counted. It returns false if that was done before.
func (t *shardedTenant) settle(ctx context.Context, own *Settlement, charge leasedCharge) (first bool, err error) {
	b := &own.Receipt.buckets[0]
	amounts, counted := make([]int64, b.Limits.Len()), own.corrections()
	some := counted != nil
	for i := range amounts {
		if charged, actual := own.settleAmounts(i, b, &b.Limits.rules[i]); actual < charged {
			amounts[i], some = charged-actual, true
		}
	}
	if !some {
		return true, nil
	}
	first, err = t.putBack(ctx, &own.Receipt, b.Limits, charge, amounts)
	t.mu.Lock()
	_, doubtful := t.doubts.take(own.Receipt.id)
	if doubtful && err != nil || errors.Is(err, ErrAmbiguous) {
		t.doubts.add(own.Receipt.id, struct{}{}, t.store.now())
	}
	t.mu.Unlock()
	if first = first || doubtful; err != nil || !first || counted == nil {
		return first, err
	}
	t.note(ctx, func(u *leasedUsage) { u.join(counted.all, counted.date) })
	return true, nil
}
