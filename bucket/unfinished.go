package bucket

// mostUnfinished is how many receipts are remembered at once whose settlement was done in part.
const mostUnfinished = 1024

// unfinished are receipts whose settlement was done in part, with what is to be done of it when it is tried again: who has settled once is not asked a second time what was
// needed. The zero value has none. It is for one goroutine at a time.
type unfinished[T any] struct {
	receipts map[[16]byte]unfinishedReceipt[T]
}

type unfinishedReceipt[T any] struct {
	rest T
	// since is when it was remembered, in microseconds of the clock of this process.
	since int64
}

// add remembers what is left to be done of a receipt. Where there is no room it forgets those that are not settled any more, and then forgets the new one.
func (u *unfinished[T]) add(id [16]byte, rest T, now int64) {
	if u.receipts == nil {
		u.receipts = map[[16]byte]unfinishedReceipt[T]{}
	}
	if len(u.receipts) >= mostUnfinished {
		for other, r := range u.receipts {
			if now-r.since > maxReceiptAge.Microseconds() {
				delete(u.receipts, other)
			}
		}
	}
	if len(u.receipts) < mostUnfinished {
		u.receipts[id] = unfinishedReceipt[T]{rest, now}
	}
}

// take forgets a receipt, and returns what is left to be done of it, and whether it was remembered.
func (u *unfinished[T]) take(id [16]byte) (rest T, is bool) {
	r, is := u.receipts[id]
	delete(u.receipts, id)
	return r.rest, is
}
