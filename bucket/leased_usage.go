package bucket

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/gqlgen-ratelimit/ratelimit/internal/state"
)

// leasedUsage is what takes were admitted here that the store has not counted, by minutes. The zero value is nothing.
type leasedUsage struct {
	minutes []*admitted
	// sent is the settlement under way that counts, which is tried again until the store has answered. since is when it was tried first, by the clock of the store.
	sent  *Settlement
	since int64
	// after is when it is tried again, by the clock of the store.
	after int64
	// doubtful says that it may have been counted already.
	doubtful bool
}

// in returns what was admitted in the minute of a date.
func (u *leasedUsage) in(date int64) *admitted {
	minute := date - date%state.CountMinute
	for _, m := range u.minutes {
		if m.date == minute {
			return m
		}
	}
	m := &admitted{date: minute, all: []series{{kind: state.CountTenant}}}
	u.minutes = append(u.minutes, m)
	return m
}

// admit counts a take. It allocates nothing for names that it knows.
func (u *leasedUsage) admit(take *Take, now int64) {
	m := u.in(now)
	for i := range take.Amounts {
		n := state.Exact(take.Amounts[i].N)
		switch unit := take.Amounts[i].Unit; {
		case unit == Points:
			m.all[0].numbers.Charged[0] = state.Exact(m.all[0].numbers.Charged[0] + n)
		case unit == Requests:
			m.all[0].numbers.Charged[1] = state.Exact(m.all[0].numbers.Charged[1] + n)
		case n > 0:
			if s := m.find(state.CountUnit, countName(string(unit))); s != nil {
				s.numbers.Charged[0] = state.Exact(s.numbers.Charged[0] + n)
			}
		}
	}
	for i := range take.Usage.Fields {
		f := &take.Usage.Fields[i]
		if s := m.find(state.CountField, countName(f.Name)); s != nil {
			s.numbers.Charged[0] = state.Exact(s.numbers.Charged[0] + f.Points)
			s.numbers.Charged[1] = state.Exact(s.numbers.Charged[1] + f.Calls)
		}
	}
}

// join counts what others have counted, in the minute of a date.
func (u *leasedUsage) join(all []series, date int64) { u.in(date).join(all) }

// countAgainAfter is how long after a failure what was admitted is told again, in milliseconds.
const countAgainAfter = 1000

// due returns what is to be sent now to be counted, nil if nothing is.
func (u *leasedUsage) due(tenant string, now int64) *Settlement {
	if now < u.after {
		return nil
	}
	if u.sent == nil && len(u.minutes) > 0 {
		s := &Settlement{}
		s.Receipt.tenant, s.Receipt.takenAt, s.Receipt.admitted = tenant, now, u.minutes[0]
		s.Receipt.name(now)
		u.sent, u.since, u.minutes, u.doubtful = s, now, u.minutes[1:], false
	}
	return u.sent
}

// answered takes in what became of what is sent. It reports whether it is lost: nobody knows whether it was counted, and the store forgets it soon.
func (u *leasedUsage) answered(err error, now int64) (lost bool) {
	if err != nil {
		u.after = now + countAgainAfter
	}
	u.doubtful = u.doubtful || errors.Is(err, ErrAmbiguous)
	switch {
	case err == nil:
		u.sent = nil
	case now-u.since < (maxReceiptAge / 2).Milliseconds():
	case u.doubtful:
		u.sent, lost = nil, true
	default:
		// It was not counted: it is counted with the next.
		u.in(u.sent.Receipt.admitted.date).join(u.sent.Receipt.admitted.all)
		u.sent = nil
	}
	return lost
}

// usageTeller has a store count what was admitted in this process.
type usageTeller struct {
	tenant string
	store  Store
	// mu guards usage, and storeTime, the time of the store, is called under it.
	mu        *sync.Mutex
	usage     *leasedUsage
	storeTime func() int64
	// lost counts settlements of which nobody knows whether they were counted.
	lost *atomic.Uint64
}

// tell tells all, until there is nothing left or the store does not answer.
func (u *usageTeller) tell(ctx context.Context) {
	for {
		u.mu.Lock()
		s := u.usage.due(u.tenant, u.storeTime())
		u.mu.Unlock()
		if s == nil {
			return
		}
		_, err := u.store.Settle(ctx, *s)
		u.mu.Lock()
		lost := u.usage.answered(err, u.storeTime())
		u.mu.Unlock()
		if lost {
			u.lost.Add(1)
		}
		if err != nil {
			return
		}
	}
}

// count has the store count what was admitted here, unless somebody does so already: the answer to what one has sent is not that to what another one sends meanwhile.
func (t *leasedTenant) count(ctx context.Context) {
	if !t.counting.TryLock() {
		return
	}
	defer t.counting.Unlock()
	teller := usageTeller{
		tenant: t.name, store: t.store.LeaseStore, mu: &t.mu, usage: &t.usage, storeTime: func() int64 { return t.storeTime(t.store.now()) },
		lost: &t.store.stats.uncounted,
	}
	teller.tell(ctx)
}
