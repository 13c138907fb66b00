package bucket

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"
)

// localRetry is for how long a settlement without an answer is sent again. It ends well before the marker does
// that makes it happen once.
const localRetry = maxReceiptAge / 2

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

// owe notes that an owner has something to settle.
func (s *localShard) owe(l *local, t *localTenant, o *localOwner) {
	t.owing[o] = struct{}{}
	if s.debtors[t.key] == nil {
		s.debtors[t.key] = t
		l.owing.Add(1)
	}
}

// owes reports whether there is something to settle.
func (t *localTenant) owes() bool {
	return len(t.owing) > 0 || t.batch != nil || t.usage != nil
}

// admit notes what a take was admitted by the local share, to be counted when that is settled. A tenant that has nothing
// to settle, because there was no room for its owners, is not counted.
func (t *localTenant) admit(take *Take) {
	if take.Usage == nil || !t.owes() {
		return
	}
	if t.usage == nil {
		t.usage = &admitted{}
	}
	t.usage.admit(take)
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
		for _, t := range s.debtors {
			if len(names) == most {
				break
			}
			names = append(names, t.name)
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
	s, key := l.shard(tenant)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.debtors[key] != nil
}

// Owes reports whether an owner of the take has something to settle here. Settle it before the store is asked for
// the take: it would admit what was taken here already. The next [local.Settle] that starts afresh has these owners.
func (l *local) Owes(take *Take) bool {
	if l.Owing() == 0 {
		return false
	}
	s, key := l.shard(take.Tenant)
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.debtors[key]
	if t == nil {
		return false
	}
	t.first = t.first[:0]
	for i := range take.Buckets {
		o := t.owners[take.Buckets[i].Owner]
		if _, owes := t.owing[o]; owes {
			t.first = append(t.first, o)
		}
	}
	return len(t.first) > 0
}

// Settle charges the store for what the tenant has taken here, once: what cannot be refused any more, and may
// overdraw a limit to twice its capacity. It is one call of the store, for as many owners as that takes; what
// they have left stays for the next. Nothing to settle is no error. Where another call settles the tenant it waits
// for that one, and returns nothing but its error.
//
// The errors are those of [Store.Settle]. After [ErrAmbiguous] the next call sends the same settlement again,
// for half a minute; after that it is lost, because it might happen twice: the store may have charged it or not.
func (l *local) Settle(ctx context.Context, tenant string) (limits []LimitState, lost bool, err error) {
	s, key := l.shard(tenant)
	batch, call, lost := s.batch(l, key)
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
		s.settled(l, s.debtors[key], settled, err)
		call.err = err
		close(call.done)
	}()
	settled, err = l.store.Settle(ctx, Settlement{Receipt: batch.receipt})
	return settled.Limits, lost || errors.Is(err, ErrInvalid), err
}

// batch returns what is to be settled now and the call that does, without a batch if that is another one, and whether
// something was lost. All are zero if there is nothing to settle.
func (s *localShard) batch(l *local, key string) (_ *localBatch, _ *localCall, lost bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.debtors[key]
	if t == nil {
		return nil, nil, false
	}
	if t.call != nil {
		return nil, t.call, false
	}
	now := l.now()
	if t.batch != nil && time.Since(t.batch.sent) >= localRetry {
		t.batch, lost = nil, true
	}
	if t.batch != nil {
		// What was taken in windows that have ended the store would charge to the next ones. Where it was applied already the
		// amounts count for nothing.
		t.batch.receipt.local = t.batch.amounts(now)
	} else {
		takenAt := now
		if !l.told.Load() {
			// A clock that is behind that of the store would make the receipt too old. That it is not repeated
			// too late is seen to here.
			takenAt = maxDate
		}
		t.batch = t.newBatch(takenAt, now)
	}
	if t.batch == nil {
		s.paid(l, t)
		return nil, nil, lost
	}
	t.call = &localCall{done: make(chan struct{})}
	return t.batch, t.call, lost
}

// newBatch takes what the owners have taken, of as many as one call may have. It returns nil if that is
// nothing, and nothing is to be counted.
func (t *localTenant) newBatch(takenAt, now int64) *localBatch {
	b, limits := &localBatch{sent: time.Now()}, 0
	add := func(o *localOwner) bool {
		under, taken, left := o.due(now)
		if under == nil {
			o.taken = nil
			return true
		}
		if limits += under.Len(); limits > MaxLimits || len(b.owners) == MaxLimits {
			return false
		}
		b.owners, b.taken, o.taken = append(b.owners, o), append(b.taken, taken), left
		b.receipt.buckets = append(b.receipt.buckets, Bucket{Owner: o.owner, Limits: under})
		return true
	}
	full := slices.ContainsFunc(t.first, func(o *localOwner) bool { return !add(o) })
	for o := range t.owing {
		if full || !slices.Contains(t.first, o) && !add(o) {
			break
		}
	}
	t.first = t.first[:0]
	if len(b.owners) == 0 && t.usage == nil {
		return nil
	}
	if t.usage != nil {
		t.usage.date = now
		b.receipt.admitted, t.usage = t.usage, nil
	}
	b.receipt.tenant, b.receipt.takenAt, b.receipt.local = t.name, takenAt, b.amounts(now)
	b.receipt.name(takenAt)
	return b
}

// amounts are what the batch settles of each limit at the time.
func (b *localBatch) amounts(now int64) []int64 {
	amounts := []int64{}
	for i := range b.owners {
		limits := b.receipt.buckets[i].Limits
		of := make([]int64, limits.Len())
		for j := range b.taken[i] {
			if t := &b.taken[i][j]; t.until > now {
				of[limits.place(t.id)] += t.amount
			}
		}
		amounts = append(amounts, of...)
	}
	return amounts
}

// settled takes in what a settlement of the batch has led to.
func (s *localShard) settled(l *local, t *localTenant, settled Settled, err error) {
	b, now := t.batch, l.now()
	t.call = nil
	switch {
	case errors.Is(err, ErrInvalid):
		t.batch = nil
	case err != nil && (b.ambiguous || !errors.Is(err, ErrUnavailable) && !errors.Is(err, ErrBusy)):
		b.ambiguous = true
		return
	case err != nil:
		t.batch = nil
		t.putBack(b, now)
		return
	default:
		l.present()
		t.batch = nil
		b.learn(settled.Limits, now)
	}
	s.paid(l, t)
}

// putBack gives back what was not settled.
func (t *localTenant) putBack(b *localBatch, now int64) {
	for i, o := range b.owners {
		for j := range b.taken[i] {
			o.owe(b.taken[i][j], now)
		}
	}
	if b.receipt.admitted == nil {
		return
	}
	if t.usage == nil {
		t.usage = &admitted{}
	}
	t.usage.join(b.receipt.admitted.all)
}

// learn takes in what the store has left after the settlement. Who has taken nothing since is judged by it when
// the store goes the next time. A repeated settlement is answered without states: what was known before still has
// what was settled, so that the share stays what the owner is judged by.
func (b *localBatch) learn(states []LimitState, now int64) {
	for _, o := range b.owners {
		n := 0
		for n < len(states) && states[n].Owner == o.owner {
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
func (s *localShard) paid(l *local, t *localTenant) {
	for o := range t.owing {
		if len(o.taken) == 0 {
			delete(t.owing, o)
		}
	}
	if !t.owes() {
		delete(s.debtors, t.key)
		l.owing.Add(-1)
	}
}
