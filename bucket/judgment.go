package bucket

import (
	"slices"

	"github.com/gqlgen-ratelimit/ratelimit/internal/state"
)

// observes reports whether the take asks for the judgment behind the verdict.
func (t *Take) observes(verdict Verdict) bool {
	switch verdict {
	case Limited, Never, Blocked:
		return t.Observe || t.ObserveAdmitted
	case Admitted:
		return t.ObserveAdmitted
	default:
		return false
	}
}

// newJudgment copies what changes, or belongs to the caller.
func newJudgment(buckets []Bucket, spends *spentArray, now int64) *Judgment {
	j := &Judgment{
		buckets: slices.Clone(buckets), spends: slices.Clone(spends[:countLimits(buckets)]), now: now, until: maxDate,
	}
	for i := range j.buckets {
		j.buckets[i].Amounts = nil
	}
	return j
}

// observed keeps what the verdict was reached by, if the take asks for it.
func (r *Result) observed(take *Take, spends *spentArray, now int64) {
	if take.observes(r.Verdict) {
		r.Judgment = newJudgment(take.Buckets, spends, now)
	}
}

// under sets the override records, if there is a judgment, and until when they hold.
func (r *Result) under(records *overrideSet, until int64) {
	if r.Judgment != nil {
		r.Judgment.records, r.Judgment.until = records, until
	}
}

// blockedResult is the answer to a take that an override record blocks.
func blockedResult(take *Take, by *Override, now int64) Result {
	result := Result{Verdict: Blocked, blockedBy: by, now: now}
	if take.observes(Blocked) {
		result.Judgment = &Judgment{blocked: by, now: now}
	}
	return result
}

// age sets what is spent so many milliseconds after the judgment if nothing was charged or given back
// since. It returns that time.
func (j *Judgment) age(elapsed int64, spends *spentArray) int64 {
	now := j.now + elapsed
	k := 0
	for i := range j.buckets {
		rules := j.buckets[i].Limits.rules
		for r := range rules {
			spends[k] = rules[r].later(j.spends[k], elapsed, now)
			k++
		}
	}
	return now
}

// later returns what is left of what was spent, some milliseconds before now.
func (r *rule) later(s state.Spent, elapsed, now int64) state.Spent {
	if s.Other != nil {
		return r.Read(s.Other, now)
	}
	e := r.Entry(&s, nil, now-elapsed)
	return r.Read(&e, now)
}

// Refuses reports whether a take from the same owners, or from more, cannot be admitted so many milliseconds later, by
// the clock of the store, if nothing was given back since.
func (j *Judgment) Refuses(take *Take, elapsed int64) bool {
	if j.now+elapsed >= j.until {
		return false
	}
	if j.blocked != nil {
		return true
	}
	var spends spentArray
	now := j.age(elapsed, &spends)
	verdict := judge(j.askedBy(take), &spends, take.Amounts, now)
	return verdict != Admitted
}

// askedBy returns the buckets of the judgment with what the take asks of them.
func (j *Judgment) askedBy(take *Take) []Bucket {
	if !slices.ContainsFunc(take.Buckets, func(b Bucket) bool { return b.Amounts != nil }) {
		return j.buckets
	}
	buckets := slices.Clone(j.buckets)
	for i := range buckets {
		if at := slices.IndexFunc(take.Buckets, func(b Bucket) bool { return b.Owner == buckets[i].Owner }); at >= 0 {
			buckets[i].Amounts = take.Buckets[at].Amounts
		}
	}
	return buckets
}

// Answer is what the store would say to the take so many milliseconds later. The take must be one that the judgment
// refuses.
func (j *Judgment) Answer(take *Take, elapsed int64) Result {
	if j.blocked != nil {
		return Result{Verdict: Blocked, blockedBy: j.blocked}
	}
	var spends spentArray
	now := j.age(elapsed, &spends)
	asked := Take{Buckets: j.askedBy(take), Amounts: take.Amounts, States: take.States}
	verdict := judge(asked.Buckets, &spends, take.Amounts, now)
	known := countLimits(asked.Buckets)
	for i := range j.others {
		// What these have spent is not known, but what they can never hold is.
		if v := judge(j.others[i:i+1], &spentArray{}, take.Amounts, now); v == Never {
			verdict, asked.Buckets = Never, append(asked.Buckets[:len(asked.Buckets):len(asked.Buckets)], j.others[i])
		}
	}
	result := Result{Verdict: verdict}
	result.fill(&asked, &spends, now, state.Shortfall{}, true)
	if len(result.Limits) > known {
		never := slices.DeleteFunc(result.Limits[known:], func(l LimitState) bool { return !l.Never })
		result.Limits = result.Limits[:known+len(never)]
	}
	return result
}

// Part returns what the judgment tells of another take so many milliseconds later: of the owners that both have, under
// the same limits, what is spent; of all others what override records make of their limits, and whether one blocks.
// It is nil if that is nothing. The asked buckets are those of the take that was judged.
func (j *Judgment) Part(asked []Bucket, take *Take, elapsed int64) *Judgment {
	if j.now+elapsed >= j.until {
		return nil
	}
	part, buckets := &Judgment{now: j.now, records: j.records, until: j.until}, take.Buckets
	if j.records != nil {
		g := j.records.govern(take.Buckets, len(take.Buckets), take.Owners, j.now+elapsed)
		if buckets = g.buckets; g.blocked != nil {
			part.blocked = g.blocked
			return part
		}
	}
	k := 0
	for i := range j.buckets {
		n := k + len(j.buckets[i].Limits.rules)
		if slices.ContainsFunc(take.Buckets, func(b Bucket) bool { return b.is(&asked[i]) }) {
			part.buckets = append(part.buckets, j.buckets[i])
			part.spends = append(part.spends, j.spends[k:n]...)
		}
		k = n
	}
	if part.buckets == nil {
		return nil
	}
	for i := range buckets {
		if !slices.ContainsFunc(asked, func(b Bucket) bool { return b.is(&take.Buckets[i]) }) {
			part.others = append(part.others, buckets[i])
		}
	}
	return part
}

// Mixed reports whether the owner owes something in the terms of other limits than those that it was judged by. The next
// charge changes it into its own.
func (j *Judgment) Mixed(owner Owner) bool {
	k := 0
	for i := range j.buckets {
		for range j.buckets[i].Limits.rules {
			if j.buckets[i].Owner == owner && j.spends[k].Other != nil {
				return true
			}
			k++
		}
	}
	return false
}

// Blocks reports whether an override record blocks the take, so that nothing was judged.
func (j *Judgment) Blocks() bool { return j.blocked != nil }

// Before reports whether the store reached the judgment before the other one.
func (j *Judgment) Before(other *Judgment) bool { return j.now < other.now }

// KeepNames replaces the names of owners by equal ones in the buckets of the take that was judged: those of the
// judgment may be small parts of large texts.
func (j *Judgment) KeepNames(buckets []Bucket) {
	for i := range j.buckets {
		j.buckets[i].Owner = buckets[i].Owner
	}
}
