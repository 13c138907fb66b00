package bucket

import (
	"cmp"
	"math"
	"slices"

	"github.com/gqlgen-ratelimit/ratelimit/internal/state"
)

// LeaseHeld is what a [Leased] holds of all limits of one unit.
type LeaseHeld struct {
	Unit Unit
	// Capacity is how many tokens of these limits it holds a part for: others cannot have them before they are given back. Level is how many of them it has now. Of a
	// window both are what it has.
	Capacity, Level int64
	// Free is how many the store had left for all when it was asked last.
	Free int64
}

// Held returns what it holds now, by unit in the order of their names. It looks at every tenant that is leased, so it is for whoever scrapes metrics
// and not for each operation. It is safe for concurrent use.
func (l *Leased) Held() []LeaseHeld {
	now, byUnit := l.now(), map[Unit]LeaseHeld{}
	l.each(func(t *leasedTenant) { t.addHeld(byUnit, now) })
	all := make([]LeaseHeld, 0, len(byUnit))
	for unit, held := range byUnit {
		held.Unit = unit
		all = append(all, held)
	}
	slices.SortFunc(all, func(one, other LeaseHeld) int { return cmp.Compare(one.Unit, other.Unit) })
	return all
}

// addHeld adds what is held of the limits of the tenant.
func (t *leasedTenant) addHeld(byUnit map[Unit]LeaseHeld, now int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.holder.Alive(now) {
		return
	}
	for i := range t.limits.rules {
		r := &t.limits.rules[i]
		level, capacity := t.holder.Level(i, now), t.holder.Capacity(i, now)
		if r.Tag != state.TokenBucket {
			capacity = level.Tokens
		}
		held := byUnit[r.limit.Unit]
		held.Capacity += min(capacity, math.MaxInt64-held.Capacity)
		held.Level += min(max(0, level.Tokens), math.MaxInt64-held.Level)
		held.Free += min(max(0, level.Left), math.MaxInt64-held.Free)
		byUnit[r.limit.Unit] = held
	}
}
