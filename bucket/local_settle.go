package bucket

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"
)

// localDebt is what a tenant has to settle.
type localDebt struct {
	owners []*localOwner
	// usage is what was admitted and is to be counted, nil if nothing is.
	usage *admitted
	// batch is being settled, or was sent without an answer. It is nil otherwise.
	batch *localBatch
	// call is under way, if it is not nil.
	call *localCall
}

// localCall is a call of the store that settles. It has ended, with the error, when done is closed.
type localCall struct {
	done chan struct{}
	err  error
}

// localBatch is one settlement of a tenant.
type localBatch struct {
	receipt Receipt
	owners  []*localOwner
	taken   [][]localSpend
	// sent is when it was sent first, by the clock of the process.
	sent time.Time
	// ambiguous says that it may have been applied, so that it must be sent under no other receipt.
	ambiguous bool
}

// localRetry is for how long a settlement without an answer is sent again. It ends well before the marker does
// that makes it happen once.
const localRetry = maxReceiptAge / 2

// owe notes that an owner has something to settle.
func (s *localShard) owe(l *local, o *localOwner) {
	debt := s.debts[o.key.tenant]
	if debt == nil {
		debt = &localDebt{}
		s.debts[o.key.tenant] = debt
		l.owing.Add(1)
	}
	o.debtAt, o.owes = len(debt.owners), true
	debt.owners = append(debt.owners, o)
}

// Owing returns how many tenants have something to settle.
func (l *local) Owing() int {
	return int(l.owing.Load())
}

// Debtors returns the names of at most so many tenants that have something to settle, in no order. Each call starts
// elsewhere, so that none of many is left out for good.
func (l *local) Debtors(most int) []string {
	if l.Owing() == 0 {
		return nil
	}
	var names []string
	start := rand.IntN(localShards) //nolint:gosec // Any start is good enough.
	for i := range l.shards {
		s := &l.shards[(start+i)%localShards]
		s.mu.Lock()
		for name := range s.debts {
			if len(names) == most {
				break
			}
			names = append(names, name)
		}
		s.mu.Unlock()
	}
	return names
}

// owes reports whether the tenant has something to settle.
func (l *local) owes(tenant string) bool {
	if l.Owing() == 0 {
		return false
	}
	s := l.shard(tenant)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.debts[tenant] != nil
}

// Owes reports whether an owner of the take has something to settle here. Settle it before the store is asked for
// the take: it would admit what was taken here already. The next [local.Settle] that starts afresh has these owners.
func (l *local) Owes(take *Take) bool {
	if l.Owing() == 0 {
		return false
	}
	s := l.shard(take.Tenant)
	s.mu.Lock()
	defer s.mu.Unlock()
	debt := s.debts[take.Tenant]
	if debt == nil {
		return false
	}
	front := 0
	for i := range take.Buckets {
		o := s.owners[localKey{take.Tenant, take.Buckets[i].Owner}]
		if o == nil || !o.owes {
			continue
		}
		other := debt.owners[front]
		debt.owners[front], debt.owners[o.debtAt] = o, other
		other.debtAt, o.debtAt = o.debtAt, front
		front++
	}
	return front > 0
}

// Settle charges the store for what the tenant has taken here, once: what cannot be refused any more, and may
// overdraw a limit to twice its capacity. It is one call of the store, for as many owners as that takes; what
// they have left stays for the next. Nothing to settle is no error. Where another call settles the tenant it waits
// for that one, and returns nothing but its error.
//
// The errors are those of [Store.Settle]. After [ErrAmbiguous] the next call sends the same settlement again,
// for half a minute; after that it is lost, because it might happen twice: the store may have charged it or not.
func (l *local) Settle(ctx context.Context, tenant string) (limits []LimitState, lost bool, err error) {
	s := l.shard(tenant)
	var batch *localBatch
	var call *localCall
	batch, call, lost = s.batch(l, tenant)
	if batch == nil && call != nil {
		select {
		case <-call.done:
			return nil, false, call.err
		case <-ctx.Done():
			return nil, false, checkContext(ctx)
		}
	}
	if batch == nil {
		return nil, lost, nil
	}
	// A store that panics has given no answer.
	var settled Settled
	err = ErrAmbiguous
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.settled(l, tenant, batch, settled, err)
		call.err = err
		close(call.done)
	}()
	settled, err = l.store.Settle(ctx, Settlement{Receipt: batch.receipt})
	l.counted(&batch.receipt, err)
	return settled.Limits, lost || errors.Is(err, ErrInvalid), err
}

// settled takes in what a settlement has led to.
func (s *localShard) settled(l *local, tenant string, batch *localBatch, settled Settled, err error) {
	debt := s.debts[tenant]
	debt.call = nil
	now := l.now()
	switch {
	case errors.Is(err, ErrInvalid):
		debt.batch = nil
	case err != nil && (batch.ambiguous || !errors.Is(err, ErrUnavailable) && !errors.Is(err, ErrBusy)):
		batch.ambiguous = true
		return
	case err != nil:
		batch.putBack(now)
		batch.uncounted(debt)
		debt.batch = nil
		return
	default:
		l.present()
		debt.batch = nil
		batch.learn(settled.Limits, now)
	}
	s.paid(l, tenant, debt)
}

// batch returns what is to be settled now and the call that does, without a batch if that is another one, and whether
// something was lost. All are zero if there is nothing to settle.
func (s *localShard) batch(l *local, tenant string) (_ *localBatch, _ *localCall, lost bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	debt := s.debts[tenant]
	if debt == nil {
		return nil, nil, false
	}
	if debt.call != nil {
		return nil, debt.call, false
	}
	now := l.now()
	if debt.batch != nil && time.Since(debt.batch.sent) >= localRetry {
		debt.batch, lost = nil, true
	}
	if debt.batch == nil {
		takenAt := now
		if !l.told.Load() {
			// A clock that is behind that of the store would make the receipt too old. That it is not repeated
			// too late is seen to here.
			takenAt = maxDate
		}
		debt.batch = newLocalBatch(debt, tenant, takenAt, now)
	} else {
		debt.batch.age(now)
	}
	if debt.batch == nil {
		s.paid(l, tenant, debt)
		return nil, nil, lost
	}
	debt.call = &localCall{done: make(chan struct{})}
	return debt.batch, debt.call, lost
}

// newLocalBatch takes what the owners have taken, of as many as one call may have. It returns nil if that is
// nothing, and nothing is to be counted.
func newLocalBatch(debt *localDebt, tenant string, takenAt, now int64) *localBatch {
	b := &localBatch{sent: time.Now()}
	limits := 0
	amounts := []int64{}
	for _, o := range debt.owners {
		under, taken, left := o.due(now)
		if under == nil {
			o.taken = nil
			continue
		}
		if limits += len(under.rules); limits > MaxLimits || len(b.owners) == MaxLimits {
			break
		}
		of := make([]int64, len(under.rules))
		for i := range taken {
			of[under.place(taken[i].id)] += taken[i].sum(now)
		}
		amounts = append(amounts, of...)
		b.owners, b.taken = append(b.owners, o), append(b.taken, taken)
		b.receipt.buckets = append(b.receipt.buckets, Bucket{Owner: o.key.owner, Limits: under})
		o.taken = left
	}
	if len(b.owners) == 0 && debt.usage == nil {
		return nil
	}
	b.count(debt, now)
	b.receipt.tenant, b.receipt.takenAt, b.receipt.local = tenant, takenAt, amounts
	b.receipt.name(takenAt)
	return b
}

// due returns what the owner settles next, and under which limits: those that it is judged by, or if they have nothing of
// it, those under which it was taken. It is nothing without limits. What other limits were charged is left.
func (o *localOwner) due(now int64) (limits *Limits, taken, left []localSpend) {
	for i := range o.taken {
		if o.taken[i].sum(now) == 0 {
			continue
		}
		left = append(left, o.taken[i])
		if o.limits.place(o.taken[i].id) >= 0 {
			limits = o.limits
		}
	}
	if limits == nil && len(left) > 0 {
		limits = left[0].under
	}
	all := left
	left = nil
	for i := range all {
		if limits.place(all[i].id) >= 0 {
			taken = append(taken, all[i])
		} else {
			left = append(left, all[i])
		}
	}
	return limits, taken, left
}

// place returns the place of the rule of an id, or -1.
func (l *Limits) place(id uint16) int {
	return slices.IndexFunc(l.rules, func(r rule) bool { return r.ID == id })
}

// age takes out of a settlement that is repeated what was taken in windows that have ended: the store would charge
// it to the next ones.
func (b *localBatch) age(now int64) {
	amounts := make([]int64, len(b.receipt.local))
	k := 0
	for i := range b.owners {
		limits := b.receipt.buckets[i].Limits
		for j := range b.taken[i] {
			t := &b.taken[i][j]
			if t.width == 0 {
				amounts[k+limits.place(t.id)] += t.sum(now)
			} else {
				amounts[k+limits.place(t.id)] += t.total()
			}
		}
		k += len(limits.rules)
	}
	b.receipt.local = amounts
}

// putBack gives the owners back what was not settled.
func (b *localBatch) putBack(now int64) {
	for i, o := range b.owners {
		for j := range b.taken[i] {
			o.putBack(&b.taken[i][j], now)
		}
	}
}

func (o *localOwner) putBack(was *localSpend, now int64) {
	for i := range o.taken {
		if o.taken[i].id == was.id && o.taken[i].width == was.width {
			o.taken[i].join(was, now)
			return
		}
	}
	o.taken = append(o.taken, *was)
}

// learn takes in what the store has left after the settlement. Who has taken nothing since is judged by it when
// the store goes the next time. A repeated settlement is answered without states: what was known before still has
// what was settled, so that the share stays what the owner is judged by.
func (b *localBatch) learn(states []LimitState, now int64) {
	for _, o := range b.owners {
		n := 0
		for n < len(states) && states[n].Owner == o.key.owner {
			n++
		}
		if n > 0 {
			o.learn(states[:n], now)
			if len(o.taken) == 0 {
				o.share = nil
			}
		}
		states = states[n:]
	}
}

// paid drops what has nothing left to settle.
func (s *localShard) paid(l *local, tenant string, debt *localDebt) {
	left := debt.owners[:0]
	for _, o := range debt.owners {
		if o.owes = len(o.taken) > 0; o.owes {
			o.debtAt = len(left)
			left = append(left, o)
		}
	}
	clear(debt.owners[len(left):])
	debt.owners = left
	if len(left) == 0 && debt.batch == nil && debt.usage == nil {
		delete(s.debts, tenant)
		l.owing.Add(-1)
	}
}
