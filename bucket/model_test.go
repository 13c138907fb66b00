package bucket_test

import (
	"math/big"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// The model says what a store has to answer. It counts tokens in fractions of any size, looks for the
// end of a wait by trying times, and knows nothing of how stores keep their state.

// modelSpent is what one limit has to be paid back.
type modelSpent struct {
	// owed of a token bucket is in tokens.
	owed *big.Rat
	// used, previous and end are those of a window.
	used, previous, end int64
	// entry is set if what is kept is in other terms, and the rest what it counts in those of the limit.
	entry *modelEntry
}

func (s modelSpent) copy() modelSpent {
	s.owed = new(big.Rat).Set(s.owed)
	return s
}

func (s modelSpent) equal(other modelSpent) bool {
	return s.owed.Cmp(other.owed) == 0 && s.used == other.used && s.previous == other.previous && s.end == other.end &&
		s.entry == other.entry
}

func nothingSpent() modelSpent { return modelSpent{owed: new(big.Rat)} }

// modelLimit is the meaning of one limit.
type modelLimit struct {
	bucket.Limit

	// overridden says that an override record has changed it.
	overridden bool
}

func (l modelLimit) token() bool   { return l.Window.Kind == bucket.TokenBucket }
func (l modelLimit) sliding() bool { return l.Window.Kind == bucket.SlidingWindow }
func (l modelLimit) length() int64 { return l.Period.Milliseconds() }

// rate is what comes back each millisecond, and its denominator that of all debts.
func (l modelLimit) rate() *big.Rat { return big.NewRat(l.Refill, l.length()) }

func (l modelLimit) denominator() *big.Int { return l.rate().Denom() }

// around is the window of the calendar that holds the time.
func (l modelLimit) around(now int64) (from, to int64) {
	zone, err := time.LoadLocation(l.Window.Zone)
	if err != nil {
		panic(err)
	}
	t := time.UnixMilli(now).In(zone)
	year, month, day := t.Date()
	var start, end time.Time
	switch l.Window.Kind {
	case bucket.HourWindow:
		start = t.Add(-time.Duration(t.Minute())*time.Minute - time.Duration(t.Second())*time.Second - time.Duration(t.Nanosecond()))
		end = start.Add(time.Hour)
	case bucket.DayWindow:
		start, end = time.Date(year, month, day, 0, 0, 0, 0, zone), time.Date(year, month, day+1, 0, 0, 0, 0, zone)
	case bucket.MonthWindow:
		anchored := func(month time.Month) time.Time {
			last := time.Date(year, month+1, 0, 0, 0, 0, 0, zone).Day()
			return time.Date(year, month, min(max(l.Window.AnchorDay, 1), last), 0, 0, 0, 0, zone)
		}
		if start, end = anchored(month), anchored(month+1); t.Before(start) {
			start, end = anchored(month-1), start
		}
	default:
		anchored := func(year int) time.Time {
			month := time.Month(max(l.Window.AnchorMonth, 1))
			last := time.Date(year, month+1, 0, 0, 0, 0, 0, zone).Day()
			return time.Date(year, month, min(max(l.Window.AnchorDay, 1), last), 0, 0, 0, 0, zone)
		}
		if start, end = anchored(year), anchored(year+1); t.Before(start) {
			start, end = anchored(year-1), start
		}
	}
	return start.UnixMilli(), end.UnixMilli()
}

// level is what counts as spent at the time, in tokens.
func (l modelLimit) level(s modelSpent, now int64) *big.Rat {
	if l.token() {
		return s.owed
	}
	level := new(big.Rat).SetInt64(s.used)
	if l.sliding() {
		covered := max(0, min(s.end-now, l.length()))
		level.Add(level, new(big.Rat).Mul(new(big.Rat).SetInt64(s.previous), big.NewRat(covered, l.length())))
	}
	return level
}

// later is what a window has spent at a later time, if nothing happens.
func (l modelLimit) later(s modelSpent, now int64) modelSpent {
	for s.end != 0 && s.end <= now {
		if !l.sliding() || s.used == 0 {
			return nothingSpent()
		}
		s.previous, s.used, s.end = s.used, 0, s.end+l.length()
	}
	return s
}

// first returns after how many milliseconds the condition holds for a window, which it then does for
// good.
func (l modelLimit) first(s modelSpent, now int64, holds func(level *big.Rat) bool) time.Duration {
	low, high := int64(0), int64(1)
	at := func(after int64) bool { return holds(l.level(l.later(s, now+after), now+after)) }
	for !at(high) {
		high *= 2
	}
	for low < high {
		if middle := (low + high) / 2; at(middle) {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return time.Duration(low) * time.Millisecond
}

// over is by how many tokens the amount is too much.
func (l modelLimit) over(level *big.Rat, amount int64) *big.Rat {
	over := new(big.Rat).Add(level, new(big.Rat).SetInt64(amount))
	return over.Sub(over, new(big.Rat).SetInt64(l.Capacity))
}

// wait is after how many milliseconds the condition holds for an entry in other terms.
func (l modelLimit) wait(e *modelEntry, now int64, holds func(level *big.Rat) bool) time.Duration {
	low, high := int64(0), e.gone()-now
	for low < high {
		middle := (low + high) / 2
		if at := now + middle; holds(l.level(l.read(e, at), at)) {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return time.Duration(low) * time.Millisecond
}

func (l modelLimit) retry(s modelSpent, amount, now int64) time.Duration {
	if s.entry != nil {
		return l.wait(s.entry, now, func(level *big.Rat) bool { return l.over(level, amount).Sign() <= 0 })
	}
	if l.token() {
		over := l.over(s.owed, amount)
		return time.Duration(ceilRat(over.Quo(over, l.rate()))) * time.Millisecond
	}
	return l.first(s, now, func(level *big.Rat) bool { return l.over(level, amount).Sign() <= 0 })
}

func (l modelLimit) reset(s modelSpent, now int64) time.Duration {
	if s.entry != nil {
		return l.wait(s.entry, now, func(level *big.Rat) bool { return level.Sign() == 0 })
	}
	if l.token() {
		return time.Duration(ceilRat(new(big.Rat).Quo(s.owed, l.rate()))) * time.Millisecond
	}
	return l.first(s, now, func(level *big.Rat) bool { return level.Sign() == 0 })
}

// show is what a store has to show of the limit.
func (l modelLimit) show(state *bucket.LimitState, s modelSpent, now int64) {
	left := new(big.Rat).Sub(new(big.Rat).SetInt64(l.Capacity), l.level(s, now))
	state.Remaining = max(0, floorRat(left))
	state.Overdraft = max(0, ceilRat(left.Neg(left)))
	state.ResetAfter, state.WindowEnd, state.Mixed = l.reset(s, now), s.end, s.entry != nil
	if s.entry != nil && !l.token() {
		state.WindowEnd = s.entry.at(now).end
	}
}

// exceed says what the limit answers to an amount that it may not have.
func (l modelLimit) exceed(state *bucket.LimitState, s modelSpent, amount, now int64) {
	state.Never = amount > l.Capacity
	state.Exceeded = state.Never || l.over(l.level(s, now), amount).Sign() > 0
	if state.Exceeded && !state.Never {
		state.RetryAfter = l.retry(s, amount, now)
	}
}

// spend adds tokens, or takes them away.
func (l modelLimit) spend(s modelSpent, tokens *big.Rat, now int64) modelSpent {
	if l.token() {
		s.owed = new(big.Rat).Add(s.owed, tokens)
		return s
	}
	s.used += floorRat(tokens)
	switch {
	case s.used+s.previous == 0:
		s.end = 0
	case s.end == 0 && l.Window.Kind.Calendar():
		_, s.end = l.around(now)
	case s.end == 0:
		s.end = now + l.length()
	}
	return s
}

// take charges an amount that the limit has, or a soft one as much of it as it counts, and says how much: nothing where
// it would owe more than the capacity in other terms.
func (l modelLimit) take(s modelSpent, amount, now int64) (modelSpent, int64) {
	if s.entry != nil && l.level(s, now).Cmp(new(big.Rat).SetInt64(l.Capacity)) > 0 {
		return s, 0
	}
	s.entry = nil
	if l.Soft {
		return l.overdraw(s, amount, now)
	}
	return l.spend(s, new(big.Rat).SetInt64(amount), now), amount
}

// overdraw charges whole tokens, down to twice the capacity.
func (l modelLimit) overdraw(s modelSpent, tokens, now int64) (modelSpent, int64) {
	if s.entry == nil || s.entry.token() && l.level(s, now).Cmp(new(big.Rat).SetInt64(l.Capacity)) <= 0 {
		spent := s.owed
		if !l.token() {
			spent = new(big.Rat).SetInt64(s.used)
		}
		tokens = max(0, min(tokens, floorRat(new(big.Rat).Sub(new(big.Rat).SetInt64(2*l.Capacity), spent))))
		if l.sliding() {
			tokens = max(0, min(tokens, (1<<53)/2/l.length()-s.used))
		}
		if tokens == 0 {
			return s, 0
		}
		s.entry = nil
		return l.spend(s, new(big.Rat).SetInt64(tokens), now), tokens
	}
	e := s.entry.at(now)
	tokens = max(0, min(tokens, 2*l.Capacity-ceilRat(l.counted(s)), e.room()))
	if tokens == 0 {
		return s, 0
	}
	e.add(new(big.Rat).SetInt64(tokens))
	return l.read(e, now), tokens
}

// counted is what a debt counts of the limit, without the window before.
func (l modelLimit) counted(s modelSpent) *big.Rat {
	if l.token() {
		return s.owed
	}
	return new(big.Rat).SetInt64(s.used)
}

// settle corrects a charge.
func (l modelLimit) settle(s modelSpent, charged, actual, takenAt, now int64) modelSpent {
	if actual >= charged {
		s, _ = l.overdraw(s, actual-charged, now)
		return s
	}
	owed := new(big.Rat).SetInt64(charged)
	if l.token() {
		owed = left(owed, l.rate(), takenAt, now)
	}
	if s.entry != nil {
		if !l.token() || !s.entry.token() {
			return s
		}
		// By the refill of the entry as well, in whole tokens.
		owed = smallestRat(owed, new(big.Rat).SetInt64(floorRat(left(new(big.Rat).SetInt64(min(charged, s.entry.most())), s.entry.rate, takenAt, now))))
	}
	if !l.token() {
		from := s.end - l.length()
		if l.Window.Kind.Calendar() {
			from, _ = l.around(now)
		}
		if s.end == 0 || takenAt < from {
			return s
		}
	}
	back := smallestRat(new(big.Rat).SetInt64(charged-actual), owed, l.counted(s))
	if back.Sign() <= 0 {
		return s
	}
	if s.entry == nil {
		return l.spend(s, back.Neg(back), now)
	}
	return l.read(s.entry.grant(floorRat(back), now), now)
}

// left is what a refill has left since a time of what was owed then.
func left(owed, rate *big.Rat, since, now int64) *big.Rat {
	repaid := new(big.Rat).Mul(rate, new(big.Rat).SetInt64(max(0, now-since)))
	if repaid.Sub(owed, repaid); repaid.Sign() < 0 {
		repaid.SetInt64(0)
	}
	return repaid
}

// grant gives tokens back.
func (l modelLimit) grant(s modelSpent, tokens, now int64) modelSpent {
	was := s
	if s.entry != nil {
		if l.token() && s.entry.token() {
			tokens = min(tokens, ceilRat(s.owed))
		}
		if tokens == 0 {
			return s
		}
		return l.read(s.entry.grant(tokens, now), now)
	}
	if rest := tokens - s.used; l.sliding() && rest > 0 && s.end > now {
		s.previous = lessPrevious(s.previous, rest, l.length(), min(s.end-now, l.length()))
	}
	given := smallestRat(new(big.Rat).SetInt64(tokens), l.counted(s))
	if given.Sign() == 0 && s.previous == was.previous {
		return was
	}
	return l.spend(s, given.Neg(given), now)
}

// lessPrevious is what stays of the use of the window before when tokens are given back of what it counts.
func lessPrevious(previous, tokens, length, covered int64) int64 {
	give := new(big.Rat).Mul(new(big.Rat).SetInt64(tokens), big.NewRat(length, covered))
	if give.Cmp(new(big.Rat).SetInt64(previous)) >= 0 {
		return 0
	}
	return previous - floorRat(give)
}

func smallestRat(a *big.Rat, others ...*big.Rat) *big.Rat {
	for _, b := range others {
		if b.Cmp(a) < 0 {
			a = b
		}
	}
	return new(big.Rat).Set(a)
}

func floorRat(r *big.Rat) int64 {
	return new(big.Int).Div(r.Num(), r.Denom()).Int64()
}

func ceilRat(r *big.Rat) int64 {
	return -floorRat(new(big.Rat).Neg(r))
}
