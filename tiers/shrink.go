package tiers

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// shrinkSteps are the parts by which limits shrink: few, so that those who share limits share them while they are smaller.
const shrinkSteps = 64

// shrinkable is the longest period of a limit that shrinks. What is longer is sold.
const shrinkable = time.Minute

// maxShrunk is how many limits are kept as they are while they are smaller.
const maxShrunk = 4096

// shrunken are the limits of a snapshot as they are while they are smaller.
type shrunken struct {
	byStep sync.Map
	kept   atomic.Int64
}

// shrunkLimits names the limits of an owner at a step.
type shrunkLimits struct {
	limits *bucket.Limits
	step   int
}

// Shrunk returns the rules with a share taken from their limits that come back within a minute and refuse: from what they hold and from what comes
// back, in steps of 1/64, to no less than 1. Limits of more than a minute, those in another mode than enforce, soft ones, and what all
// tenants share stay. It allocates the buckets.
func (r *Rules) Shrunk(share float64) Rules {
	rules := *r
	// What is no number takes nothing.
	step := int(math.Round(max(0, min(1, share)) * shrinkSteps))
	if step <= 0 || r.days == nil || len(r.Buckets) == 0 {
		return rules
	}
	rules.Buckets = make([]bucket.Bucket, len(r.Buckets))
	for i, b := range r.Buckets {
		b.Limits = r.days.shrunk(b.Limits, min(step, shrinkSteps-1))
		rules.Buckets[i] = b
	}
	return rules
}

// shrunk returns limits at a step, those of before for equal ones.
func (s *Snapshot) shrunk(limits *bucket.Limits, step int) *bucket.Limits {
	key := shrunkLimits{limits, step}
	if known, found := s.smaller.byStep.Load(key); found {
		same, _ := known.(*bucket.Limits)
		return same
	}
	if s.smaller.kept.Add(1) > maxShrunk {
		s.smaller.kept.Store(0)
		s.smaller.byStep.Clear()
	}
	made, days := shrink(limits, step), make(map[string]time.Time)
	for _, l := range limits.All() {
		if day := s.enforcedFrom(limits, l.Name); !day.IsZero() {
			days[l.Name] = day
		}
	}
	if made != limits {
		s.enforce(made, days)
	}
	s.smaller.byStep.Store(key, made)
	return made
}

// shrink makes limits smaller. It returns them as they are if none shrinks, or if a store cannot count what comes of it.
func shrink(limits *bucket.Limits, step int) *bucket.Limits {
	less := factor{shrinkSteps - int64(step), shrinkSteps}
	all, changed := make([]bucket.Limit, 0, limits.Len()), false
	for _, l := range limits.All() {
		if l.Mode == bucket.Enforce && !l.Soft && rank(&l) <= shrinkable {
			l.Capacity, l.Refill, changed = less.number(l.Capacity), less.number(l.Refill), true
		}
		all = append(all, l)
	}
	if !changed {
		return limits
	}
	made, err := bucket.Compile(all...)
	if err != nil {
		return limits
	}
	return made
}
