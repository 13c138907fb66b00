package bucket

import (
	"slices"

	"github.com/gqlgen-ratelimit/ratelimit/internal/state"
)

// observe says which verdicts a store adds its judgment to.
type observe uint8

const (
	observeNothing observe = iota
	// observeRefusals is for Limited, Never and Blocked.
	observeRefusals
	// observeAll is for Admitted as well, whose judgment is that after the charge.
	observeAll
)

// wants reports whether the judgment is asked for.
func (o observe) wants(verdict Verdict) bool {
	switch verdict {
	case Limited, Never, Blocked:
		return o != observeNothing
	case Admitted:
		return o == observeAll
	default:
		return false
	}
}

// judgment is what a store knew when it reached a verdict, so that a later take can be judged by it
// without the store. It does not change.
type judgment struct {
	// buckets are those of the take as override records make them, and spends what each of their limits has
	// spent after the verdict, in Unix milliseconds of the store at now.
	buckets []Bucket
	spends  []state.Spent
	now     int64
	// until is when other override records hold, because one expires.
	until int64
	// blocked is the record that blocks the take, so that nothing was judged. It is nil if none does.
	blocked *Override
}

// newJudgment copies what changes, or belongs to the caller.
func newJudgment(buckets []Bucket, spends *spentArray, now int64) *judgment {
	return &judgment{
		buckets: slices.Clone(buckets), spends: slices.Clone(spends[:countLimits(buckets)]), now: now, until: maxDate,
	}
}

// observed keeps what the verdict was reached by, if the take asks for it.
func (r *Result) observed(take *Take, spends *spentArray, now int64) {
	if take.observe.wants(r.Verdict) {
		r.judgment = newJudgment(take.Buckets, spends, now)
	}
}

// until sets when other override records hold, if there is a judgment.
func (r *Result) until(date int64) {
	if r.judgment != nil {
		r.judgment.until = date
	}
}

// blockedResult is the answer to a take that an override record blocks.
func blockedResult(o observe, by *Override, now, until int64) Result {
	result := Result{Verdict: Blocked, blockedBy: by}
	if o.wants(Blocked) {
		result.judgment = &judgment{blocked: by, now: now, until: until}
	}
	return result
}

// age sets what is spent so many milliseconds after the judgment if nothing was charged or given back
// since. It returns that time.
func (j *judgment) age(elapsed int64, spends *spentArray) int64 {
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

// later returns what is left of what was state.Spent, some milliseconds before now.
func (r *rule) later(s state.Spent, elapsed, now int64) state.Spent {
	if s.Other != nil {
		return r.Read(s.Other, now)
	}
	e := r.Entry(&s, nil, now-elapsed)
	return r.Read(&e, now)
}

// refuses reports whether a take of the amounts cannot be admitted so many milliseconds later.
func (j *judgment) refuses(amounts Amounts, elapsed int64) bool {
	if j.now+elapsed >= j.until {
		return false
	}
	if j.blocked != nil {
		return true
	}
	var spends spentArray
	now := j.age(elapsed, &spends)
	verdict, _ := judge(j.buckets, &spends, amounts, now)
	return verdict != Admitted
}

// answer is what the store would say to the take so many milliseconds later. It expects that it refuses.
func (j *judgment) answer(take *Take, elapsed int64) Result {
	if j.blocked != nil {
		return Result{Verdict: Blocked, blockedBy: j.blocked}
	}
	var spends spentArray
	now := j.age(elapsed, &spends)
	asked := Take{Buckets: j.buckets, Amounts: take.Amounts, States: take.States}
	verdict, _ := judge(asked.Buckets, &spends, take.Amounts, now)
	result := Result{Verdict: verdict}
	result.fill(&asked, &spends, now, state.Shortfall{}, true)
	return result
}

// of returns the part of the judgment that is about the owners of the other buckets under the same limits
// as asked, nil if there is none. The asked buckets are those that the judgment is about, in its order.
func (j *judgment) of(asked, buckets []Bucket) *judgment {
	part := &judgment{now: j.now, until: j.until}
	k := 0
	for i := range asked {
		n := k + len(j.buckets[i].Limits.rules)
		if slices.Contains(buckets, asked[i]) {
			part.buckets = append(part.buckets, j.buckets[i])
			part.spends = append(part.spends, j.spends[k:n]...)
		}
		k = n
	}
	if part.buckets == nil {
		return nil
	}
	return part
}
