package bucket

// Decline gives back what was taken here of a take that was [Take.Declinable], as if it had never been taken: the whole of it, however much has come back
// meanwhile, and no more than there would be without it. It returns the receipt of what is left to settle because the store has charged it, or because the lease
// has ended: the zero one if nothing is. A receipt is declined or kept once, by whoever took it, and not settled before: what is declined or settled
// again gives nothing back.
func (l *Leased) Decline(receipt Receipt) (rest Receipt) {
	if len(receipt.others) == 0 {
		return l.declineOne(receipt)
	}
	var left []Receipt
	for _, one := range receipt.each() {
		if one = l.declineOne(one); !one.IsZero() {
			left = append(left, one)
		}
	}
	return joined(left)
}

func (l *Leased) declineOne(receipt Receipt) (rest Receipt) {
	if !receipt.leased.held {
		return receipt
	}
	settlement := Settlement{Receipt: receipt}
	left, own := settlement.parts()
	t := l.holderOf(&receipt)
	if t == nil {
		return receipt
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.holder.Mark().Same(receipt.leased.mark) {
		return receipt
	}
	if !receipt.leased.takes.add(receipt.leased.number) {
		return Receipt{}
	}
	t.holder.Decline(l.now(), receipt.leased.mark, own.charged())
	if left.charges() {
		return left.Receipt
	}
	return Receipt{}
}

// Keep says that a take that was [Take.Declinable] is not declined. It may be settled then.
func (l *Leased) Keep(receipt Receipt) {
	if len(receipt.others) == 0 {
		l.keepOne(receipt)
		return
	}
	for _, one := range receipt.each() {
		l.keepOne(one)
	}
}

func (l *Leased) keepOne(receipt Receipt) {
	if !receipt.leased.held {
		return
	}
	t := l.holderOf(&receipt)
	if t == nil {
		return
	}
	settlement := Settlement{Receipt: receipt}
	_, own := settlement.parts()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.holder.Spend(l.now(), receipt.leased.mark, own.charged())
}

// holderOf returns who leases the bucket that a receipt was charged to here, nil if nobody does any more.
func (l *Leased) holderOf(r *Receipt) *leasedTenant {
	return l.bucketOf(r.tenant, r.buckets[r.leased.place-1].Owner)
}

// charged returns what the only bucket of the receipt was charged of each limit.
func (s *Settlement) charged() []int64 {
	b := &s.Receipt.buckets[0]
	amounts := make([]int64, b.Limits.Len())
	for i := range amounts {
		amounts[i], _ = s.settleAmounts(i, b, &b.Limits.rules[i])
	}
	return amounts
}
