package backend

import (
	"slices"
	"strings"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// refusal is what the store said when it refused a take of these owners under these limits, or admitted one soon after: of
// each limit up to which amount it has, and until when.
type refusal struct {
	buckets []bucket.Bucket
	owners  []bucket.Owner
	answer  bucket.Result
	// blocks is whom an override record blocks, so that nothing was judged. It is nil if none does.
	blocks *bucket.Owner
	// sent and received are when the store was asked and when it had answered, refused when it last refused.
	sent, received, refused time.Duration
	// renewing says that a take is on its way to find out what holds now, and doubted that it counts as too old.
	renewing, doubted bool
}

// newRefusal returns a refusal without an answer. The caller uses the slices again, and its names may be small parts of
// large texts.
func newRefusal(take *bucket.Take) *refusal {
	r := &refusal{buckets: slices.Clone(take.Buckets), owners: slices.Clone(take.Owners)}
	for i := range r.buckets {
		r.buckets[i].Owner, r.buckets[i].Amounts = keptOwner(r.buckets[i].Owner), nil
	}
	for i := range r.owners {
		r.owners[i] = keptOwner(r.owners[i])
	}
	return r
}

// keptOwner is the owner with texts of its own.
func keptOwner(o bucket.Owner) bucket.Owner {
	o.Name, o.Part = strings.Clone(o.Name), strings.Clone(o.Part)
	return o
}

// isOf reports whether the take is of the same owners under the same limits.
func (r *refusal) isOf(take *bucket.Take) bool {
	return slices.EqualFunc(r.buckets, take.Buckets, func(a, b bucket.Bucket) bool { return a.Owner == b.Owner && a.Limits == b.Limits }) &&
		slices.Equal(r.owners, take.Owners)
}

// hold replaces the answer by one to a take of the same owners and limits.
func (r *refusal) hold(result *bucket.Result, sent, received time.Duration) {
	r.answer, r.blocks = *result, nil
	r.answer.Repeat, r.answer.Answer, r.answer.Receipt, r.answer.Candidate = false, nil, bucket.Receipt{}, nil
	r.answer.Limits = slices.Clone(result.Limits)
	for i := range r.answer.Limits {
		l := &r.answer.Limits[i]
		if at := slices.IndexFunc(r.buckets, func(b bucket.Bucket) bool { return b.Owner == l.Owner }); at >= 0 {
			l.Owner = r.buckets[at].Owner
		}
		if result.Verdict == bucket.Admitted {
			// A soft limit was charged since it has said what it lacks.
			l.Exceeded, l.RetryAfter = false, 0
		}
	}
	if by := result.BlockedBy(); by != nil {
		r.blocks = &by.Owner
	}
	r.sent, r.received, r.renewing, r.doubted = sent, received, false, false
}

// expired reports whether the answer is too old, or of a clock that was set back since.
func (r *refusal) expired(now, age time.Duration) bool {
	return now < r.received || age != forever && (r.doubted || now-r.received >= age)
}

// refuses reports whether the store cannot admit the take, which may be of other owners: as late as it can be by the clock
// of the store, whose milliseconds may end within those of this one.
func (r *refusal) refuses(take *bucket.Take, now, age time.Duration) bool {
	latest := (now - r.sent + time.Millisecond - 1).Truncate(time.Millisecond)
	if r.expired(now, age) || latest >= r.answer.HoldsFor {
		return false
	}
	if r.blocks != nil {
		return belongsTo(take, r.blocks)
	}
	for i := range r.answer.Limits {
		l := &r.answer.Limits[i]
		if n, shared := r.asked(take, l); shared && enforces(l) && leastWait(l, n) > latest {
			return true
		}
	}
	return false
}

// belongsTo reports whether the owner, or a part of it, is one of the take.
func belongsTo(take *bucket.Take, owner *bucket.Owner) bool {
	is := func(o bucket.Owner) bool {
		return o == *owner || owner.Part == "" && o.Level == owner.Level && o.Name == owner.Name
	}
	return slices.ContainsFunc(take.Owners, is) ||
		slices.ContainsFunc(take.Buckets, func(b bucket.Bucket) bool { return is(b.Owner) })
}

// asked returns what the take asks of a limit of the answer. It returns false if the take has not that owner under those
// limits.
func (r *refusal) asked(take *bucket.Take, l *bucket.LimitState) (n int64, shared bool) {
	for i := range take.Buckets {
		b := &take.Buckets[i]
		if b.Owner != l.Owner || !slices.ContainsFunc(r.buckets, func(known bucket.Bucket) bool {
			return known.Owner == b.Owner && known.Limits == b.Limits
		}) {
			continue
		}
		if at := slices.IndexFunc(b.Amounts, func(a bucket.Amount) bool { return a.Unit == l.Limit.Unit }); at >= 0 {
			return b.Amounts[at].N, true
		}
		return take.Amounts.Of(l.Limit.Unit), true
	}
	return 0, false
}

// changedBy reports whether the charge of a take changes how fast what is owed here comes back: that of an owner under other
// limits, or in the terms of others.
func (r *refusal) changedBy(take *bucket.Take) bool {
	return slices.ContainsFunc(r.buckets, func(known bucket.Bucket) bool {
		mixed := slices.ContainsFunc(r.answer.Limits, func(l bucket.LimitState) bool { return l.Owner == known.Owner && l.Mixed })
		return slices.ContainsFunc(take.Buckets, func(b bucket.Bucket) bool {
			return b.Owner == known.Owner && (b.Limits != known.Limits || mixed)
		})
	})
}

// completes reports whether the answer says all that the store would say to a take of the same owners. A claim may be a replay,
// and a candidate needs judging, but for whom a record blocks.
func (r *refusal) completes(take *bucket.Take) bool {
	return r.blocks != nil || take.Claim == nil && take.Candidate == nil
}

// result is what the store would say to the take now, of the limits that it shares with the answer: at the earliest, so
// that nobody comes back before it can. A claim comes again after so long, to be looked up.
func (r *refusal) result(take *bucket.Take, now, again time.Duration) bucket.Result {
	result, elapsed := r.answer, (now - r.received).Truncate(time.Millisecond)
	if r.blocks != nil {
		return result
	}
	result.Verdict, result.RetryAfter, result.Limits = bucket.Limited, 0, take.States[:0]
	for i := range r.answer.Limits {
		n, shared := r.asked(take, &r.answer.Limits[i])
		if !shared {
			continue
		}
		l := later(r.answer.Limits[i], n, elapsed)
		if take.Claim != nil {
			l.RetryAfter = min(l.RetryAfter, again)
		}
		if enforces(&l) {
			result.RetryAfter = max(result.RetryAfter, l.RetryAfter)
			if l.Never {
				result.Verdict = bucket.Never
			}
		}
		result.Limits = append(result.Limits, l)
	}
	if result.Verdict == bucket.Never {
		result.RetryAfter = 0
	}
	return result
}
