package state

import (
	"fmt"
	"slices"
)

// A tenant that moves leaves one store and arrives in another one. What stands in the place of its override records in the store that it has
// left says so: every script that judges looks there, and does nothing.

// MovedLife is for how many milliseconds a store remembers that a tenant has left it: 30 days.
const MovedLife = 30 * 24 * 3600 * 1000

// Moved is what stands in the place of override records where the tenant has left the store by a generation. The records stay behind it.
func Moved(generation int64, records []byte) []byte {
	b := AppendUint([]byte{MovedVersion}, GenerationSize-1, generation)
	return append(b, records[min(GenerationSize, len(records)):]...)
}

// ReadMoved returns by which generation the tenant has left the store, by what stands in the place of its override records.
func ReadMoved(records []byte) (generation int64, moved bool) {
	if len(records) < GenerationSize || records[0] != MovedVersion {
		return 0, false
	}
	return ReadUint(records[1:], GenerationSize-1), true
}

// RecordsOf returns the override records that stand behind what [Moved] has written, under a new generation, and when the last one expires: nil
// if none of them holds.
func RecordsOf(moved []byte, next string, now int64) (records []byte, expiry int64, err error) {
	left := overrides{text: []byte(next)}
	if err := left.keep(string(moved), "", now); err != nil {
		return nil, 0, err
	}
	w := left.write(now)
	return w.Value, w.Expiry, nil
}

// LeasedError says that instances may still spend what they hold of a limit. Who holds it is told nothing new, so that it ends.
type LeasedError struct {
	// Wait is for how many milliseconds more.
	Wait int64
}

// Error says for how long.
func (e *LeasedError) Error() string {
	return fmt.Sprintf("instances hold parts of the budget for %d ms more", e.Wait)
}

// Merge returns the state of an owner who arrives: what here says is stored, with what from says was stored at the time was, by the clock of the store
// that was left. Of each limit the larger debt stays. So the state can arrive any number of times and in any order, and nothing ever gets less: what is
// merged again changes nothing. What is dated is dated by this clock. It reports whether that is more than here, and when it counts nothing any more.
//
// An entry in other terms than the one here is worth the larger of both. Where one of them is a window it stays one until the later end.
func Merge(here, from []byte, was, now int64) (value []byte, expiry int64, more bool, err error) {
	o, err := ReadOwner(here)
	if err != nil {
		return nil, 0, false, err
	}
	left, err := ReadOwner(from)
	if err != nil {
		return nil, 0, false, err
	}
	for i := range left.Entries {
		e, _ := left.Entries[i].farAhead(was)
		if h := e.Held; h != nil {
			if end := h.Until + leaseMargin; was <= end {
				return nil, 0, false, &LeasedError{Wait: end - was + 1}
			}
			e = e.whole(was)
		}
		if !e.counts(was) {
			continue
		}
		e = e.At(was)
		e = e.dated(was, now)
		more = o.merge(&e, now) || more
	}
	if !more {
		return here, 0, false, nil
	}
	o.refresh(now)
	for i := range o.Entries {
		expiry = max(expiry, o.Entries[i].Gone())
	}
	if expiry <= now {
		return nil, 0, here != nil, nil
	}
	// The state says nothing of the expiry of its key, so that the next charge sets it.
	o.is = deadline{}
	return o.appendStored(nil, &Rules{}, now), expiry, true, nil
}

// dated returns the entry, which is as it is at the time was, as it is now by another clock.
func (e *Entry) dated(was, now int64) Entry {
	is := *e
	switch {
	case e.Tag == TokenBucket:
		is.Date = now
	case !e.Tag.Calendar():
		is.End += now - was
	}
	return is
}

// merge takes an entry in, which is as it is now, and reports whether that is more than there was.
func (o *Owner) merge(e *Entry, now int64) bool {
	at := slices.IndexFunc(o.Entries, func(other Entry) bool { return other.ID == e.ID })
	if at < 0 || !o.Entries[at].counts(now) {
		if at >= 0 {
			o.Entries = slices.Delete(o.Entries, at, at+1)
		}
		o.Entries = append(o.Entries, *e)
		return true
	}
	here := &o.Entries[at]
	is := here.At(now)
	merged := is
	switch {
	case is.Held != nil:
		// It was leased here after it had arrived.
		if merged.Debt = max(is.Debt, min(convertUp(e.Debt, max(1, e.P), is.P)-is.Held.Capacity, MaxExact)); e.Tag != TokenBucket {
			merged = is
		}
	case is.Tag == e.Tag && is.P == e.P && is.R == e.R && (is.Tag == TokenBucket || is.Length == e.Length):
		merged.Debt, merged.Previous, merged.End = max(is.Debt, e.Debt), max(is.Previous, e.Previous), max(is.End, e.End)
	default:
		merged = larger(is, *e, now)
	}
	if merged == is {
		return false
	}
	*here = merged
	return true
}

// larger returns of two entries of one limit in different terms the one that lasts, with as many tokens as the larger one counts.
func larger(a, b Entry, now int64) Entry {
	tokens := max(a.tokens(now), b.tokens(now))
	lasts, other := a, b
	if aWindow, bWindow := a.Tag != TokenBucket, b.Tag != TokenBucket; aWindow != bWindow && bWindow || aWindow == bWindow && b.Gone() > a.Gone() {
		lasts, other = b, a
	}
	switch lasts.Tag {
	case TokenBucket:
		// By the slower refill.
		if float64(other.R)/float64(other.P) < float64(lasts.R)/float64(lasts.P) && Product(tokens, other.P) < MaxExact {
			lasts.Terms = other.Terms
		}
		lasts.Debt = max(lasts.Debt, min(Product(tokens, lasts.P), MaxExact-1))
		if lasts.Terms == other.Terms {
			lasts.Debt = min(Product(tokens, lasts.P), MaxExact-1)
		}
	default:
		most := int64(MaxExact - 1)
		if lasts.Tag == SlidingWindow {
			most = mostSliding(lasts.Length)
		}
		lasts.Debt = max(lasts.Debt, min(tokens, most-lasts.Previous))
		if other.Tag != TokenBucket {
			lasts.End = max(lasts.End, other.End)
		}
	}
	return lasts
}

// MergeRecord returns the record of an idempotency key that arrives, if there is none here: nil and false otherwise, or where it has ended.
func MergeRecord(here, from []byte, was, now int64) (value []byte, expiry int64, more bool, err error) {
	if from == nil || here != nil {
		return here, 0, false, nil
	}
	r, err := readRecord(from)
	if err != nil || r.Ends <= was {
		return nil, 0, false, err
	}
	r.Ends += now - was
	r.Leased = max(0, r.Leased+now-was)
	if r.State == Running && len(r.Rest) >= DateSize {
		taken := max(0, ReadUint(r.Rest, DateSize)+now-was)
		r.Rest = string(AppendUint(nil, DateSize, taken)) + r.Rest[DateSize:]
	}
	return r.pack(), r.Ends, true, nil
}

// Empty returns the state of an owner whose store was lost at a time: every token bucket that is full again within a while was empty then, and with
// all also other token buckets and windows. It is nil if nothing is known to be spent by now.
func (l *Rules) Empty(lost, within int64, all bool, now int64) []byte {
	var o Owner
	for i := range l.All {
		r := &l.All[i]
		e := Entry{ID: r.ID, Terms: r.Terms(lost), Debt: r.Full, Date: lost}
		switch {
		case r.Tag == TokenBucket && r.byR.ceil(r.Full) > within && !all, r.Tag != TokenBucket && !all:
			continue
		case r.Tag == TokenBucket:
		case r.Windows != nil:
			e.Debt, e.Date, e.End = r.Capacity, 0, r.Windows.Around(lost).To
		default:
			e.Debt, e.Date, e.End = r.Capacity, 0, lost+r.R
		}
		if e.counts(now) {
			o.Entries = append(o.Entries, e)
		}
	}
	if len(o.Entries) == 0 {
		return nil
	}
	return o.appendStored(nil, &Rules{}, now)
}
