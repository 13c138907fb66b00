package ratelimit

import (
	"context"
	"fmt"
	"hash/maphash"
	"log/slog"
	"sync"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// facts finds what observers are told about the limits of a decision. Its memory is bounded: where many
// owners reach their limits at once, some facts are told more than once in a period.
type facts struct {
	cfg       EventsConfig
	log       *slog.Logger
	telemetry *telemetry
	told      *memory
	refusals  *memory
}

// The sizes of the memories, in slots of 32 bytes.
const (
	toldSlots    = 4096
	refusalSlots = 1024
	replaySlots  = 1024
)

func newFacts(cfg *Config, t *telemetry) *facts {
	return &facts{
		cfg: cfg.Events, log: cfg.Logger, telemetry: t,
		told: newMemory(toldSlots), refusals: newMemory(refusalSlots),
	}
}

// of looks at what the limits of a decision or a charge came to.
func (f *facts) of(ctx context.Context, rules *tiers.Rules, d *Decision) {
	if f.cfg.Observer == nil && !f.telemetry.limits.enabled(ctx) ||
		d.Outcome.locally() {
		// What is left of a share says nothing of the limit.
		return
	}
	now := time.Now()
	for i := range d.Limits {
		f.limit(ctx, rules, d, &d.Limits[i], now)
	}
	f.telemetry.limits.record(ctx, d)
	if would := d.WouldRefuse; would != nil && would.Limit == nil && d.Outcome != Validated {
		// No limit says how long, so that once a minute has to do.
		if f.first(fact{tenant: d.Subject.Tenant, limit: would.Code, kind: wouldRefuseFact}, now, time.Minute) {
			budget := event.Budget{Tenant: eventName(d.Subject.Tenant), Tier: d.Tier, Mode: would.Mode.String()}
			f.tell(ctx, event.WouldRefuse{Budget: budget, At: now, Code: would.Code, EnforceFrom: would.EnforceFrom})
		}
	}
	if d.Outcome == Limited {
		f.refused(ctx, d, now)
	}
}

// limit looks at one limit.
func (f *facts) limit(ctx context.Context, rules *tiers.Rules, d *Decision, l *bucket.LimitState, now time.Time) {
	f.crossed(ctx, d, l, now)
	if !l.Exceeded || l.Limit.Soft {
		return
	}
	f.telemetry.limits.exceed(ctx, d.Tier, l)
	if f.cfg.Observer == nil {
		return
	}
	key := factOf(d, l)
	if l.Limit.Mode == bucket.Enforce {
		key.kind = limitReachedFact
		if f.first(key, now, holds(l)) {
			f.tell(ctx, event.LimitReached{Budget: budgetOf(d, l), At: now, RetryAfter: l.RetryAfter})
		}
		return
	}
	key.kind = wouldRefuseFact
	if !f.first(key, now, holds(l)) {
		return
	}
	would := event.WouldRefuse{
		Budget: budgetOf(d, l), At: now, Code: CodeRateLimited, EnforceFrom: limitEnforcedFrom(rules, l),
	}
	if l.Never {
		would.Code = CodeCostLimitExceeded
	}
	f.tell(ctx, would)
}

// crossed looks for thresholds that this charge, and no other, has taken the limit over.
func (f *facts) crossed(ctx context.Context, d *Decision, l *bucket.LimitState, now time.Time) {
	if l.Charged <= 0 {
		return
	}
	capacity := float64(l.Limit.Capacity)
	share := usedShare(l)
	before := share - float64(l.Charged)/capacity
	for _, threshold := range f.cfg.Thresholds {
		if before >= threshold || share < threshold {
			continue
		}
		key := factOf(d, l)
		key.kind, key.threshold = thresholdFact, threshold
		if !f.first(key, now, holds(l)) {
			continue
		}
		f.telemetry.limits.cross(ctx, d.Tier, l, threshold)
		f.tell(ctx, event.ThresholdCrossed{
			Budget: budgetOf(d, l), At: now, Threshold: threshold, Share: share, Remaining: l.Remaining,
		})
	}
}

// refused counts a refusal of the tenant.
func (f *facts) refused(ctx context.Context, d *Decision, now time.Time) {
	if f.cfg.RepeatedRefusals < 0 {
		return
	}
	count := f.refusals.count(fact{tenant: d.Subject.Tenant}, now, f.cfg.RepeatedWithin)
	if count != f.cfg.RepeatedRefusals {
		return
	}
	f.telemetry.limits.refuseRepeatedly(ctx, d.Tier)
	f.tell(ctx, event.RefusedRepeatedly{
		Tenant: eventName(d.Subject.Tenant), Tier: d.Tier, At: now, Refusals: count, Within: f.cfg.RepeatedWithin,
	})
}

// first returns whether a fact was not told within the time that it holds.
func (f *facts) first(key fact, now time.Time, holds time.Duration) bool {
	return f.told.count(key, now, holds) == 1
}

// tell calls the observer. A panic in it, in gqlgen's hook, would end a whole WebSocket.
func (f *facts) tell(ctx context.Context, e event.Event) {
	if f.cfg.Observer == nil {
		return
	}
	defer func() {
		if cause := recover(); cause != nil {
			f.log.ErrorContext(ctx, "ratelimit: Config.Events.Observer panicked", slog.String("cause", fmt.Sprint(cause)))
		}
	}()
	f.cfg.Observer.Observe(ctx, e)
}

func budgetOf(d *Decision, l *bucket.LimitState) event.Budget {
	return event.Budget{
		Tenant: eventName(d.Subject.Tenant), Tier: d.Tier, Level: l.Owner.Level.String(), Owner: eventName(l.Owner.Name),
		Limit: l.Limit.Name, Unit: string(l.Limit.Unit), Capacity: l.Limit.Capacity, Mode: l.Limit.Mode.String(),
	}
}

// usedShare returns the share of the limit that is used, more than 1 if it is overdrawn.
func usedShare(l *bucket.LimitState) float64 {
	return float64(l.Limit.Capacity-l.Remaining+l.Overdraft) / float64(l.Limit.Capacity)
}

// eventName keeps a name from outside as long as those that a policy can have, so that what waits in a
// channel is bounded.
func eventName(name string) string {
	return cutName(name, tiers.MaxLongName)
}

// holds is how long a fact about the limit is remembered: the period of its refill, or as long as its windows
// are at most. Which window it is about is part of the fact, so that it need not be forgotten in time.
func holds(l *bucket.LimitState) time.Duration {
	if l.Limit.Window.Kind == bucket.TokenBucket {
		return l.Limit.Period
	}
	return l.Limit.Length()
}

// fact is what is remembered of a fact that was told.
type fact struct {
	tenant string
	owner  bucket.Owner
	limit  string
	// window is the end of the window by the clock of the store, whatever that of the replica says. It is
	// zero for token buckets and for a window that no charge has opened.
	window    int64
	kind      factKind
	threshold float64
}

type factKind uint8

const (
	limitReachedFact factKind = iota
	wouldRefuseFact
	thresholdFact
	candidateFact
)

func factOf(d *Decision, l *bucket.LimitState) fact {
	return fact{tenant: d.Subject.Tenant, owner: l.Owner, limit: l.Limit.Name, window: l.WindowEnd}
}

// memory counts facts for a while in a fixed number of slots: what no longer holds makes room, and then
// what was not counted for longest. It is safe for concurrent use.
type memory struct {
	seed maphash.Seed
	mu   sync.Mutex
	sets [][slotsOfSet]slot
}

// slotsOfSet is how many facts whose hashes begin alike are remembered.
const slotsOfSet = 4

// slot counts the facts of one hash until a time. Two facts of one hash pass for the same, which for
// as many as there are slots happens to one in 10^15.
type slot struct {
	hash  uint64
	until int64
	// seen is when the fact was counted last.
	seen int64
	n    int
}

func newMemory(slots int) *memory {
	return &memory{seed: maphash.MakeSeed(), sets: make([][slotsOfSet]slot, slots/slotsOfSet)}
}

// count returns how often the fact was counted since it was for the first time, this call included. That
// is forgotten after the time for which it holds, counted from the first.
func (m *memory) count(key fact, now time.Time, holds time.Duration) int {
	n, _ := m.countUntil(key, now, holds)
	return n
}

// countUntil is count, and returns besides when that is forgotten.
func (m *memory) countUntil(key fact, now time.Time, holds time.Duration) (n int, left time.Duration) {
	hash, at := maphash.Comparable(m.seed, key), now.UnixNano()
	m.mu.Lock()
	defer m.mu.Unlock()
	set := &m.sets[hash%uint64(len(m.sets))]
	free := &set[0]
	for i := range set {
		s := &set[i]
		if s.hash == hash && s.until > at {
			s.n++
			s.seen = at
			return s.n, time.Duration(s.until - at)
		}
		if s.makesRoomBefore(free, at) {
			free = s
		}
	}
	*free = slot{hash: hash, until: now.Add(holds).UnixNano(), seen: at, n: 1}
	return 1, holds
}

// makesRoomBefore says which of two slots is needed less at a time.
func (s *slot) makesRoomBefore(other *slot, at int64) bool {
	if past, otherPast := s.until <= at, other.until <= at; past != otherPast {
		return past
	}
	return s.seen < other.seen
}
