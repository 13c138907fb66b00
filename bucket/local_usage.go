package bucket

import (
	"errors"
	"time"
)

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
