package bucket

import (
	"errors"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/internal/state"
)

// admitted is usage that local shares have admitted and the store has not counted: of one tenant, and of as many units and root fields
// as one call may have.
type admitted struct {
	// date is one in the minute in which it is counted.
	date int64
	all  []series
}

// otherSeries is what root fields are counted under that find no room.
const otherSeries = "*"

// admit adds what a take was admitted.
func (a *admitted) admit(take *Take) {
	u := newUsage(take.Tenant, nil)
	u.of(take)
	a.join(u.all)
}

// join adds what others have. A unit that finds no room is not counted.
func (a *admitted) join(all []series) {
	if a.all == nil {
		a.all = []series{{kind: state.CountTenant}}
	}
	for i := range all {
		if of := a.find(all[i].kind, all[i].name); of != nil {
			for j := range all[i].numbers.Charged {
				of.numbers.Charged[j] = state.Exact(of.numbers.Charged[j] + all[i].numbers.Charged[j])
			}
		}
	}
}

// find returns the series of a name, nil if there is no room for it.
func (a *admitted) find(kind byte, name string) *series {
	units, fields := 0, 0
	for i := range a.all {
		switch s := &a.all[i]; {
		case s.kind == kind && s.name == name:
			return s
		case s.kind == state.CountUnit:
			units++
		case s.kind == state.CountField:
			fields++
		}
	}
	switch {
	case kind == state.CountField && fields >= MaxUsageFields-1 && name != otherSeries:
		return a.find(kind, otherSeries)
	case kind == state.CountUnit && units >= MaxUsageUnits-2:
		return nil
	}
	a.all = append(a.all, series{kind: kind, name: name})
	return &a.all[len(a.all)-1]
}

// admit notes what a take was admitted by the local share, to be counted when that is settled. A tenant that has nothing to settle, because
// nobody knows for whom it was admitted, is not counted.
func (s *localShard) admit(take *Take) {
	debt := s.debts[take.Tenant]
	if take.Usage == nil || debt == nil {
		return
	}
	if debt.usage == nil {
		debt.usage = &admitted{}
	}
	debt.usage.admit(take)
}

// count gives the batch what is to be counted with it.
func (b *localBatch) count(debt *localDebt, now int64) {
	if debt.usage != nil {
		debt.usage.date = now
		b.receipt.admitted, debt.usage = debt.usage, nil
	}
}

// uncounted gives back what was not counted with the batch.
func (b *localBatch) uncounted(debt *localDebt) {
	if b.receipt.admitted == nil {
		return
	}
	if debt.usage == nil {
		debt.usage = &admitted{}
	}
	debt.usage.join(b.receipt.admitted.all)
}

// counted tells whose usage a settlement has counted, or may have.
func (l *local) counted(r *Receipt, err error) {
	if r.admitted == nil || l.config.Counted == nil {
		return
	}
	if err == nil || !errors.Is(err, ErrInvalid) && !errors.Is(err, ErrUnavailable) && !errors.Is(err, ErrBusy) {
		l.config.Counted(r.tenant, time.UnixMilli(r.admitted.date))
	}
}
