package bucket

import (
	"math/bits"
	"sync"
	"time"
)

// maxShares is how many shares are remembered. Policies that were replaced must not add up.
const maxShares = 1024

// shares remembers what was worked out. The zero value lacks its map. It is safe for concurrent use.
type shares struct {
	mu   sync.Mutex
	made map[shareKey]*share
}

type shareKey struct {
	limits    *Limits
	instances int
}

// share is what one instance judges an owner by.
type share struct {
	// bounded are the shares of the limits that fail bounded, and local of those that fail local.
	bounded, local part
	// none are limits that refuse and whose share is nothing.
	none []*Limit
}

// part is a share of some of the rules of the whole, which stand there in the places of.
type part struct {
	whole, limits *Limits
	of            []int
}

// share returns the share of one of so many instances.
func (l *local) share(limits *Limits, instances int) *share {
	l.shares.mu.Lock()
	defer l.shares.mu.Unlock()
	key := shareKey{limits, instances}
	if made := l.shares.made[key]; made != nil {
		return made
	}
	if len(l.shares.made) >= maxShares {
		clear(l.shares.made)
	}
	made := l.newShare(limits, int64(instances))
	l.shares.made[key] = made
	return made
}

// newShare works out the share of one of so many instances, of which nobody knows how many there are if that is zero:
// then nothing is a safe share of a limit that fails local, and of one that fails bounded each instance has the whole.
func (l *local) newShare(whole *Limits, instances int64) *share {
	s := &share{}
	s.bounded = s.part(whole, FailBounded, func(limit Limit) (Limit, bool) {
		if instances == 0 {
			return limit, true
		}
		return multipleOf(limit, int64(l.config.BoundedMultiple), instances)
	})
	s.local = s.part(whole, FailLocal, func(limit Limit) (Limit, bool) {
		if instances == 0 {
			return limit, false
		}
		return shareOf(limit, int64(l.config.Percent), 100*instances)
	})
	return s
}

// part works out the shares of the limits of one fail mode.
func (s *share) part(whole *Limits, mode FailMode, of func(Limit) (Limit, bool)) part {
	p := part{whole: whole}
	var limits []Limit
	for j := range whole.rules {
		limit := whole.rules[j].limit
		if limit.FailMode != mode {
			continue
		}
		if made, ok := of(*limit); ok {
			limits, p.of = append(limits, made), append(p.of, j)
		} else if limit.Mode == Enforce && !limit.Soft {
			s.none = append(s.none, limit)
		}
	}
	var err error
	if p.limits, err = Compile(limits...); err != nil {
		// Each fits by itself, and their names were found to differ when the whole was compiled.
		p.limits, p.of = &Limits{}, nil
		for j := range whole.rules {
			s.none = append(s.none, whole.rules[j].limit)
		}
	}
	return p
}

// multipleOf returns the share of one of so many instances in a multiple of a limit. Where the multiple is larger than a
// limit can be it is the limit itself, which is less.
func multipleOf(limit Limit, multiple, instances int64) (Limit, bool) {
	part, ok := shareOf(limit, multiple, instances)
	if ok && len(mistakesOf(part)) == 0 {
		return part, true
	}
	return limit, multiple >= instances
}

// shareOf returns a part of a limit, of which the capacity is rounded down. The refill is exact where it can
// be counted exactly, and rounded down otherwise. It returns false if nothing is left.
func shareOf(limit Limit, part, of int64) (Limit, bool) {
	refill, period := limit.Refill, limit.Period
	limit.Capacity = portion(limit.Capacity, part, of)
	if limit.Window.Kind != TokenBucket {
		limit.Refill = limit.Capacity
		return limit, limit.Capacity > 0
	}
	// Both products fit: a refill is below 2^53, and a period below 2^39 ms.
	r, p := refill*part, period.Milliseconds()*of
	g := gcd(r, p)
	limit.Refill = r / g
	if p /= g; p <= maxPeriod.Milliseconds() {
		limit.Period = time.Duration(p) * time.Millisecond
		if len(mistakesOf(limit)) == 0 {
			return limit, true
		}
	}
	limit.Refill, limit.Period = portion(refill, part, of), period
	return limit, limit.Capacity > 0 && limit.Refill > 0 && len(mistakesOf(limit)) == 0
}

// portion returns n × part / of, rounded down, where that fits.
func portion(n, part, of int64) int64 {
	hi, lo := bits.Mul64(uint64(n), uint64(part))
	quotient, _ := bits.Div64(hi, lo, uint64(of))
	return int64(quotient)
}

// refillTime is the longest time in milliseconds in which so many tokens come back to the token bucket. They are at most
// twice its capacity, so that it fits.
func (l *Limit) refillTime(tokens int64) int64 {
	return portion(max(0, tokens), l.Period.Milliseconds(), max(1, l.Refill)) + 1
}

// lacks reports whether a take with the amounts asks the bucket for something of which the share is nothing.
func (s *share) lacks(b *Bucket, amounts Amounts) bool {
	for _, limit := range s.none {
		if b.asked(amounts, limit.Unit) > 0 {
			return true
		}
	}
	return false
}
