package bucket

import "github.com/gqlgen-ratelimit/ratelimit/idempotency"

// record is what a store keeps of an idempotency key. The scripts keep the same, packed.
type record struct {
	state       recordState
	leaseUntil  int64
	expires     int64
	attempt     idempotency.AttemptID
	fingerprint idempotency.Fingerprint
	// repeats counts the runs that were free because no answer was stored.
	repeats int
	// takenAt, repeat, limits and short tell the first verdict again to the attempt that holds the claim. limits is
	// a hash of those that were judged.
	takenAt int64
	repeat  bool
	limits  uint32
	short   shortfall
	answer  []byte
}

type recordState uint8

const (
	inFlight recordState = iota + 1
	doneWithoutAnswer
	doneWithAnswer
	// free: an earlier attempt was charged, and a repeat of it was released. Nobody holds the claim.
	free
)

// ruling is what the record of a key says of a take.
type ruling uint8

const (
	// rulingCharge: judge the take as if there were no key; what is admitted holds the claim.
	rulingCharge ruling = iota
	// rulingRepeat: run again uncharged, and hold the claim.
	rulingRepeat
	// rulingFreeRepeat: the same, and one free run fewer is left.
	rulingFreeRepeat
	// rulingAgain: tell the first verdict again.
	rulingAgain
	rulingReplay
	rulingInFlight
	rulingReused
	rulingUnavailable
	rulingUnknown
)

// ruleOn returns what the record, nil if there is none, says of a claim.
func (r *record) ruleOn(claim *idempotency.Claim, now int64) ruling {
	switch {
	case r == nil:
		return rulingCharge
	case r.fingerprint != claim.Fingerprint:
		return rulingReused
	case r.state == doneWithAnswer:
		return rulingReplay
	case r.state == doneWithoutAnswer && claim.FreeRepeats == 0:
		return rulingUnavailable
	case r.state == doneWithoutAnswer && r.repeats < claim.FreeRepeats:
		return rulingFreeRepeat
	case r.state == doneWithoutAnswer:
		return rulingCharge
	case r.state == free:
		// An attempt before the one that was released had been abandoned.
		return rulingAbandoned(claim)
	case r.attempt == claim.Attempt:
		return rulingAgain
	case r.leaseUntil > now:
		return rulingInFlight
	default:
		return rulingAbandoned(claim)
	}
}

// rulingAbandoned says what follows an attempt of which nobody knows how far it came.
func rulingAbandoned(claim *idempotency.Claim) ruling {
	if claim.RefuseAbandoned {
		return rulingUnknown
	}
	return rulingRepeat
}

// hold makes the record that of an attempt that runs from now on. A record that exists keeps its end
// and its count of free runs.
func (r *record) hold(take *Take, now int64, repeat bool, short shortfall) {
	claim := take.Claim
	lease, ttl := leaseAndTTL(claim)
	if r.expires == 0 {
		r.expires = now + ttl
	}
	r.state, r.leaseUntil = inFlight, now+lease
	r.attempt, r.fingerprint = claim.Attempt, claim.Fingerprint
	r.takenAt, r.repeat, r.limits, r.short = now, repeat, sumOf(take.Buckets), short
	r.answer = nil
}

// heldBy reports whether the attempt runs under the record.
func (r *record) heldBy(claim *idempotency.Claim) bool {
	return r != nil && r.state == inFlight && r.attempt == claim.Attempt
}

// release ends a run that did nothing, and reports whether the record is to be removed. A repeat keeps
// it: the charge of an earlier attempt, and what that did, must not be forgotten.
func (r *record) release(now int64) (remove bool) {
	if !r.repeat {
		return true
	}
	r.state, r.leaseUntil = free, now
	return false
}

// done ends the run. An answer that is not nil is kept for replays.
func (r *record) done(answer []byte) {
	r.state = doneWithoutAnswer
	if answer != nil {
		r.state = doneWithAnswer
		r.answer = append([]byte{}, answer...)
	}
}

// running says whether an attempt holds the claim.
func (r *record) running() bool { return r != nil && r.state == inFlight }
