package observe

import (
	"context"
	"slices"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/internal/decision"
	"github.com/gqlgen-ratelimit/ratelimit/internal/recent"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
)

// facts remembers which facts about limits are not new, so that each is told once in its period, and of each kind at
// most maxFacts a second, of which each tenant has a share. Where there is no room to remember one it is not told, and counted.
type facts struct {
	// sent are the facts that were told, by tenant: none takes the room of all others.
	sent     *recent.Set[string, fact]
	refusals *recent.Counter[string]
	shares   *factShares
}

// maxRefused is how many tenants' refusals are counted at once, in 2 MiB at most.
const maxRefused = 1 << 16

// fact identifies an event that was sent.
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
	limitReached factKind = iota
	wouldRefuse
	thresholdCrossed
	candidateDiffers
	factKinds
)

// newFacts returns facts that remember so many.
func newFacts(remembered int) facts {
	return facts{
		sent:     recent.NewSet[string, fact](remembered, time.Now()),
		refusals: recent.NewCounter[string](maxRefused),
		shares:   newFactShares(),
	}
}

// isNew reports whether the fact was not sent within the time for which it holds, and is told now.
func (r *Reporter) isNew(ctx context.Context, key fact, now time.Time, holds time.Duration) bool {
	fits := func() bool { return r.facts.shares.fits(key.kind, key.tenant, now) }
	by := ""
	switch r.facts.sent.Add(key.tenant, key, now, holds, fits) {
	case recent.Added:
		return true
	case recent.Declined:
		by = untoldByRate
	case recent.Full:
		by = untoldByRoom
	case recent.Known:
		return false
	}
	if r.metrics.untoldFacts.Enabled(ctx) {
		r.metrics.untoldFacts.Add(ctx, 1, r.metrics.sets.of(&untoldLabels, by))
	}
	return false
}

func factOf(kind factKind, d *decision.Decision, l *bucket.LimitState) fact {
	key := fact{kind: kind, tenant: d.Subject.Tenant, owner: l.Owner, limit: l.Limit.Name, window: l.WindowEnd}
	if d.Rules != nil && slices.ContainsFunc(d.Rules.Across, func(b bucket.Bucket) bool { return b.Owner == l.Owner }) {
		// It is one budget, whoever asks for it.
		key.tenant = ""
	}
	return key
}

// holds is how long a fact about the limit is remembered: the period of its refill, or as long as its windows
// are at most. Which window it is about is part of the fact, so that it need not be forgotten in time.
func holds(l *bucket.LimitState) time.Duration {
	if l.Limit.Window.Kind == bucket.TokenBucket {
		return l.Limit.Period
	}
	return l.Limit.Length()
}

// limits looks at what the limits of a decision or a charge came to.
func (r *Reporter) limits(ctx context.Context, d *decision.Decision) {
	m := r.metrics
	counted := m.used.Enabled(ctx) || m.exceeded.Enabled(ctx) || m.crossings.Enabled(ctx) || m.refused.Enabled(ctx)
	// What is left of a share says nothing of the limit.
	if r.cfg.Observer == nil && !counted || d.Outcome.Locally() {
		return
	}
	now := time.Now()
	for i := range d.Limits {
		r.crossed(ctx, d, &d.Limits[i], now)
		r.exceeded(ctx, d, &d.Limits[i], now)
	}
	if l := tightest(d); l != nil && m.used.Enabled(ctx) {
		m.used.Record(ctx, usedShare(l), m.limit(d.Tier, l, 0))
	}
	if would := d.WouldRefuse; would != nil && would.Limit == nil && d.Outcome != decision.Validated {
		// No limit says how long, so that once a minute has to do.
		code := would.Outcome.Code()
		if r.isNew(ctx, fact{tenant: d.Subject.Tenant, limit: code, kind: wouldRefuse}, now, time.Minute) {
			budget := event.Budget{Tenant: eventName(d.Subject.Tenant), Tier: d.Tier, Mode: would.Mode.String()}
			r.tell(ctx, event.WouldRefuse{Budget: budget, At: now, Code: code, EnforceFrom: would.EnforceFrom})
		}
	}
	if d.Outcome == decision.Limited {
		r.refused(ctx, d, now)
	}
}

// crossed looks for thresholds that this charge, and no other, has taken the limit over.
func (r *Reporter) crossed(ctx context.Context, d *decision.Decision, l *bucket.LimitState, now time.Time) {
	if l.Charged <= 0 {
		return
	}
	share := usedShare(l)
	before := share - float64(l.Charged)/float64(l.Limit.Capacity)
	for _, threshold := range r.cfg.Thresholds {
		if before >= threshold || share < threshold {
			continue
		}
		crossing := factOf(thresholdCrossed, d, l)
		crossing.threshold = threshold
		if !r.isNew(ctx, crossing, now, holds(l)) {
			continue
		}
		r.metrics.crossings.Add(ctx, 1, r.metrics.limit(d.Tier, l, threshold))
		r.tell(ctx, event.ThresholdCrossed{
			Budget: budgetOf(d, l), At: now, Threshold: threshold, Share: share, Remaining: l.Remaining,
		})
	}
}

// exceeded tells of a limit that refuses, or would, for the first time in a period.
func (r *Reporter) exceeded(ctx context.Context, d *decision.Decision, l *bucket.LimitState, now time.Time) {
	if !l.Exceeded || l.Limit.Soft {
		return
	}
	r.metrics.exceeded.Add(ctx, 1, r.metrics.limit(d.Tier, l, 0))
	if r.cfg.Observer == nil {
		return
	}
	if l.Limit.Mode == bucket.Enforce {
		if r.isNew(ctx, factOf(limitReached, d, l), now, holds(l)) {
			r.tell(ctx, event.LimitReached{Budget: budgetOf(d, l), At: now, RetryAfter: l.RetryAfter})
		}
		return
	}
	if !r.isNew(ctx, factOf(wouldRefuse, d, l), now, holds(l)) {
		return
	}
	would := event.WouldRefuse{
		Budget: budgetOf(d, l), At: now, Code: ratelimitclient.CodeRateLimited, EnforceFrom: d.EnforcedFrom(l),
	}
	if l.Never {
		would.Code = ratelimitclient.CodeCostLimitExceeded
	}
	r.tell(ctx, would)
}

// refused counts a refusal of the tenant.
func (r *Reporter) refused(ctx context.Context, d *decision.Decision, now time.Time) {
	if r.cfg.RepeatedRefusals < 0 {
		return
	}
	n, _ := r.facts.refusals.Count(d.Subject.Tenant, now, r.cfg.RepeatedWithin)
	if n != r.cfg.RepeatedRefusals {
		return
	}
	r.metrics.refused.Add(ctx, 1, r.metrics.sets.of(&tierLabels, d.Tier))
	r.tell(ctx, event.RefusedRepeatedly{
		Tenant: eventName(d.Subject.Tenant), Tier: d.Tier, At: now, Refusals: n, Within: r.cfg.RepeatedWithin,
	})
}

// candidate counts what the candidate would have decided, and tells the observer where it would have
// decided otherwise, once a minute for each tenant and pair of outcomes.
func (r *Reporter) candidate(ctx context.Context, d *decision.Decision) {
	would := d.Candidate
	if would == nil {
		return
	}
	r.metrics.candidates.Add(ctx, 1, r.metrics.sets.of(&candidateLabels, would.ID, string(d.Outcome), string(would.Outcome)))
	if r.cfg.Observer == nil || (d.Refusal == nil) == (would.Outcome == decision.Admitted) {
		return
	}
	now := time.Now()
	pair := would.ID + " " + string(d.Outcome) + " " + string(would.Outcome)
	if r.isNew(ctx, fact{tenant: d.Subject.Tenant, limit: pair, kind: candidateDiffers}, now, time.Minute) {
		r.tell(ctx, event.CandidateDiffers{
			Tenant: eventName(d.Subject.Tenant), Tier: d.Tier, At: now,
			Candidate: would.ID, Live: string(d.Outcome), Would: string(would.Outcome),
		})
	}
}

func budgetOf(d *decision.Decision, l *bucket.LimitState) event.Budget {
	return event.Budget{
		Tenant: eventName(d.Subject.Tenant), Tier: d.Tier, Level: l.Owner.Level.String(), Owner: eventName(l.Owner.Name),
		Part:  eventName(l.Owner.Part),
		Limit: l.Limit.Name, Unit: string(l.Limit.Unit), Capacity: l.Limit.Capacity, Mode: l.Limit.Mode.String(),
	}
}

// usedShare returns the share of the limit that is used, more than 1 if it is overdrawn.
func usedShare(l *bucket.LimitState) float64 {
	return float64(l.Limit.Capacity-l.Remaining+l.Overdraft) / float64(l.Limit.Capacity)
}
