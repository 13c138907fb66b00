package bucket

import (
	"errors"
	"fmt"

	"github.com/gqlgen-ratelimit/ratelimit/internal/state"
)

// errReply says that a script answered something else than its header says: another program writes
// the keys, or a proxy the replies. The script ran, so that nothing is known of the charge.
var errReply = errors.New("malformed reply of a script")

// reply is what a script answered.
type reply struct {
	outcome state.Outcome
	// now is the time of the store in Unix milliseconds.
	now  int64
	rest string
}

func newReply(text string) (reply, error) {
	if len(text) < 1+state.DateSize {
		return reply{}, fmt.Errorf("%w: %w", ErrAmbiguous, errReply)
	}
	return reply{outcome: state.Outcome(text[0]), now: state.ReadUint(text[1:], state.DateSize), rest: text[1+state.DateSize:]}, nil
}

// notRun reports whether the script did nothing because the caller did not know the time or the override
// records.
func (r *reply) notRun() bool {
	return r.outcome == state.Late || r.outcome == state.OtherWindow || r.outcome == state.OtherOverrides
}

// check returns an error if a settlement or renewal has neither of its outcomes.
func (r *reply) check() error {
	if r.outcome != state.Applied && r.outcome != state.NotApplied {
		return fmt.Errorf("%w: %w", ErrAmbiguous, errReply)
	}
	return nil
}

// readStates reads what the owners have spent by now and returns the rest of the reply.
func readStates(buckets []Bucket, text string, spends *spentArray, now int64) (rest string, err error) {
	k := 0
	for i := range buckets {
		l := buckets[i].Limits.compiled
		var ok bool
		if text, ok = l.ReadStates(text, spends[k:], now); !ok {
			return "", errReply
		}
		k += len(l.All)
	}
	return text, nil
}

// changes returns the limits of a reply that shows them before and after.
func (r *reply) changes(buckets []Bucket) ([]LimitState, error) {
	var before, after spentArray
	rest, err := readStates(buckets, r.rest, &before, r.now)
	if err == nil {
		rest, err = readStates(buckets, rest, &after, r.now)
	}
	if err != nil || rest != "" || r.outcome != state.Applied {
		return nil, fmt.Errorf("%w: %w", ErrAmbiguous, errReply)
	}
	return changed(buckets, &before, &after, r.now), nil
}

// readTake turns the reply of take.lua into a result. The candidate's buckets are as overrides make them.
func readTake(take *Take, candidate []Bucket, r reply) (Result, error) {
	limits := countLimits(take.Buckets)
	ambiguous := fmt.Errorf("%w: %w", ErrAmbiguous, errReply)
	short, text, ok := state.ReadShort(r.rest, limits)
	if !ok {
		return Result{}, ambiguous
	}
	trial, text, ok := readTrial(candidate, text)
	if !ok {
		return Result{}, ambiguous
	}
	var result Result
	var spends spentArray
	tail, err := readStates(take.Buckets, text, &spends, r.now)
	if err != nil {
		return Result{}, ambiguous
	}
	if trial.verdict != 0 {
		if tail, err = readStates(candidate, tail, &trial.spends, r.now); err != nil {
			return Result{}, ambiguous
		}
		result.Candidate = trial.result(candidate, take.Amounts, r.now)
		if contradicted(trial.verdict, result.Candidate.Limits) {
			return Result{}, ambiguous
		}
	}
	if result.Verdict, ok = verdictOf(r.outcome); ok && r.outcome <= state.Never {
		if tail != "" {
			return Result{}, ambiguous
		}
		result.judged(take, &spends, short, r.now)
		if contradicted(result.Verdict, result.Limits) {
			return Result{}, ambiguous
		}
		return result, nil
	}
	result.fill(take, &spends, r.now, state.Shortfall{}, false)
	if !result.keyed(take, r.outcome, tail) {
		return Result{}, ambiguous
	}
	return result, nil
}

// contradicted reports whether a verdict refuses the take, and no limit that may refuse one does by the states that came with it. Who asked
// could not say which limit it was.
func contradicted(verdict Verdict, states []LimitState) bool {
	if verdict != Limited && verdict != Never {
		return false
	}
	for i := range states {
		s := &states[i]
		if s.Exceeded && s.Limit.Mode == Enforce && !s.Limit.Soft && (s.Never || verdict == Limited) {
			return false
		}
	}
	return true
}

// trial is what a reply says of a candidate.
type trial struct {
	verdict Verdict
	short   state.Shortfall
	spends  spentArray
}

// readTrial reads the verdict on the candidate, if there is one, and returns what follows it.
func readTrial(candidate []Bucket, text string) (t trial, rest string, ok bool) {
	if len(candidate) == 0 {
		return trial{}, text, true
	}
	if text == "" || state.Outcome(text[0]) > state.Never {
		return trial{}, "", false
	}
	// Zero says that it was not judged.
	t.verdict, _ = verdictOf(state.Outcome(text[0]))
	t.short, rest, ok = state.ReadShort(text[1:], countLimits(candidate))
	return t, rest, ok
}

// result is what a candidate comes to, whose buckets are as overrides make them.
func (t *trial) result(buckets []Bucket, amounts Amounts, now int64) *CandidateResult {
	result := Result{Verdict: t.verdict}
	result.fill(&Take{Buckets: buckets, Amounts: amounts}, &t.spends, now, t.short, true)
	return &CandidateResult{Verdict: result.Verdict, RetryAfter: result.RetryAfter, Limits: result.Limits}
}
