package lease_test

import "math/big"

// account is what was admitted of a limit: of a token bucket how much more than has come back, of a window what was taken in it.
type account struct {
	spent *big.Int
	at    int64
	ends  int64
}

// spentAt returns how much of it has not come back at a time.
func (a *account) spentAt(now, rate int64) int64 {
	return max(0, a.spent.Int64()-rate*max(0, now-a.at))
}

// giveBack takes off what is put back at a time.
func (a *account) giveBack(now, rate, units int64) {
	a.spent.SetInt64(max(0, a.spentAt(now, rate)-units))
	a.at = max(a.at, now)
}

// bucketOfAll is one bucket that sees every operation.
type bucketOfAll struct{ debt, at, used int64 }

// refund puts back one operation of ten after a while, less what has come back of it since.
func (i *instance) refund(amounts []int64) {
	f, holder, mark, at := i.f, i.holder, i.holder.Mark(), i.f.now
	if f.IntN(10) > 0 {
		return
	}
	f.after(f.Int64N(1500), func() {
		if i.holder != holder || i.dead || f.now < i.paused || !holder.Alive(i.clock()) || !holder.Mark().Same(mark) {
			return
		}
		back := make([]int64, len(amounts))
		for k, l := range f.limits {
			if l.Window {
				continue
			}
			back[k] = max(0, amounts[k]*l.Unit-l.Rate*(f.now-at)) / l.Unit
			f.truth[k].giveBack(f.judgedAt(), l.Rate, back[k]*l.Unit)
		}
		holder.PutBack(i.clock(), mark, back)
	})
}
