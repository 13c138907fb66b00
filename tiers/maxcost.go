package tiers

import (
	"slices"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// MaxCost are the prices in points of the most expensive operation that may run: for each mode the
// smallest that applies. Zero means none, as the zero value does for all modes.
type MaxCost struct {
	Enforce int64
	Warn    int64
	Shadow  int64
	// EnforceFrom is when Warn becomes enforced. It is zero if nobody knows.
	EnforceFrom time.Time

	// sooner are larger maxima in mode warn that become enforced before Warn does, in no order.
	sooner []warnedCost
}

// warnedCost is a maximum cost in mode warn, and when it becomes enforced, zero if nobody knows.
type warnedCost struct {
	points      int64
	enforceFrom time.Time
}

// Exceeded returns the maximum cost that an operation of this price exceeds, and its mode, the
// strictest first, and of those in mode warn the one that becomes enforced first. It returns zero and
// [bucket.Off] if there is none.
func (m *MaxCost) Exceeded(points int64) (int64, bucket.Mode) {
	switch {
	case m.Enforce > 0 && points > m.Enforce:
		return m.Enforce, bucket.Enforce
	case m.Warn > 0 && points > m.Warn:
		return m.warned(points).points, bucket.Warn
	case m.Shadow > 0 && points > m.Shadow:
		return m.Shadow, bucket.Shadow
	default:
		return 0, bucket.Off
	}
}

// EnforcedFrom returns when an operation of this price, that exceeds a maximum cost in mode warn, is refused.
// It returns zero if nobody knows, and if there is no such maximum.
func (m *MaxCost) EnforcedFrom(points int64) time.Time {
	if m.Warn == 0 || points <= m.Warn {
		return time.Time{}
	}
	return m.warned(points).enforceFrom
}

// warned returns the maximum cost that becomes enforced first of those that a price above Warn exceeds.
func (m *MaxCost) warned(points int64) warnedCost {
	first := warnedCost{m.Warn, m.EnforceFrom}
	for _, w := range m.sooner {
		if points > w.points && sooner(w.enforceFrom, first.enforceFrom) {
			first = w
		}
	}
	return first
}

// sooner reports whether enforcement begins earlier on day a than on day b, where zero is a day that nobody
// knows: it comes last.
func sooner(a, b time.Time) bool {
	return !a.IsZero() && (b.IsZero() || a.Before(b))
}

// newMaxCost returns the only maximum cost of a part of a policy. Zero points are none.
func newMaxCost(points int64, s setting) MaxCost {
	switch {
	case points == 0:
		return MaxCost{}
	case s.mode == bucket.Enforce:
		return MaxCost{Enforce: points}
	case s.mode == bucket.Warn:
		return MaxCost{Warn: points, EnforceFrom: s.enforceFrom}
	case s.mode == bucket.Shadow:
		return MaxCost{Shadow: points}
	default:
		return MaxCost{}
	}
}

// lower takes the smaller of both in each mode.
func (m *MaxCost) lower(other *MaxCost) {
	m.Enforce = smallest(m.Enforce, other.Enforce)
	m.Shadow = smallest(m.Shadow, other.Shadow)
	if other.Warn == 0 {
		return
	}
	m.warn(warnedCost{other.Warn, other.EnforceFrom})
	for _, w := range other.sooner {
		m.warn(w)
	}
}

// warn adds a maximum cost in mode warn. It allocates only where two maxima have days of which neither makes
// the other needless.
func (m *MaxCost) warn(w warnedCost) {
	was := warnedCost{m.Warn, m.EnforceFrom}
	if was.points == 0 || w.points < was.points || w.points == was.points && sooner(w.enforceFrom, was.enforceFrom) {
		m.Warn, m.EnforceFrom = w.points, w.enforceFrom
		w = was
	}
	if w.points == m.Warn || !sooner(w.enforceFrom, m.EnforceFrom) {
		return
	}
	for _, s := range m.sooner {
		if s.points <= w.points && !sooner(w.enforceFrom, s.enforceFrom) {
			return
		}
	}
	// The slice may be that of a rule set, which others read.
	m.sooner = append(slices.Clip(m.sooner), w)
}

// smallest returns the smaller of two maximum costs, of which zero is none.
func smallest(a, b int64) int64 {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}
