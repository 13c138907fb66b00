package bucket

import (
	"errors"
	"fmt"

	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
)

// The outcomes of scripts beside the verdicts, see package lua.
const (
	outcomeLate    = 0
	outcomeApplied = 1
	outcomeNot     = 2
	outcomeRepeat  = 8
	outcomeAgain   = 9
)

// The sizes of what is packed.
const (
	dateSize = 6
	debtSize = 7
)

// errReply says that a script answered something else than its header says: another program writes
// the keys, or a proxy the replies. The script ran, so that nothing is known of the charge.
var errReply = errors.New("malformed reply of a script")

// exact clamps an amount to the integers that Lua holds exactly. Such an amount is above every
// capacity anyway.
func exact(n int64) uint64 {
	return uint64(min(n, maxExact-1))
}

// packAmounts packs the amount of each limit of all buckets.
func packAmounts(buckets []Bucket, limits int, amounts Amounts) []byte {
	b := make([]byte, 0, limits*debtSize)
	for i := range buckets {
		rules := buckets[i].Limits.rules
		for j := range rules {
			b = appendUint(b, debtSize, exact(amounts.Of(rules[j].limit.Unit)))
		}
	}
	return b
}

// packSettlement packs what each limit was charged and what it is worth.
func packSettlement(s *Settlement) []byte {
	var b []byte
	k := 0
	for i := range s.Receipt.buckets {
		rules := s.Receipt.buckets[i].Limits.rules
		for j := range rules {
			charged, actual := s.settleAmounts(k, &rules[j])
			b = appendUint(b, debtSize, exact(charged))
			b = appendUint(b, debtSize, exact(actual))
			k++
		}
	}
	return b
}

func packClaim(claim *idempotency.Claim) []byte {
	lease, ttl := leaseAndTTL(claim)
	b := make([]byte, 0, len(claim.Attempt)+len(claim.Fingerprint)+2*dateSize+1)
	b = append(b, claim.Attempt[:]...)
	b = append(b, claim.Fingerprint[:]...)
	b = appendUint(b, dateSize, uint64(lease))
	b = appendUint(b, dateSize, uint64(ttl))
	return append(b, byte(claim.FreeRepeats))
}

func packEnd(end *ClaimSettlement) string {
	state := byte(0)
	switch {
	case end.Outcome == idempotency.Released:
	case end.Answer == nil:
		state = byte(doneWithoutAnswer)
	default:
		state = byte(doneWithAnswer)
	}
	return string(end.Claim.Attempt[:]) + string(state)
}

// reply is what a script answered.
type reply struct {
	outcome int
	// now is the time of Redis in Unix milliseconds.
	now  int64
	rest string
}

func newReply(text string) (reply, error) {
	if len(text) < 1+dateSize {
		return reply{}, fmt.Errorf("%w: %w", ErrAmbiguous, errReply)
	}
	return reply{outcome: int(text[0]), now: readUint(text[1:], dateSize), rest: text[1+dateSize:]}, nil
}

// check returns an error if a settlement or renewal has neither of its outcomes.
func (r *reply) check() error {
	if r.outcome != outcomeApplied && r.outcome != outcomeNot {
		return fmt.Errorf("%w: %w", ErrAmbiguous, errReply)
	}
	return nil
}

// states returns the limits with the debts of the reply.
func (r *reply) states(buckets []Bucket) ([]LimitState, error) {
	limits := countLimits(buckets)
	if len(r.rest) != limits*debtSize {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, errReply)
	}
	var debts debtArray
	for k := range limits {
		debts[k] = readUint(r.rest[k*debtSize:], debtSize)
	}
	return changed(buckets, &debts, &debts), nil
}

// changes returns the limits with the debts before and after in the reply.
func (r *reply) changes(buckets []Bucket) ([]LimitState, error) {
	limits := countLimits(buckets)
	if len(r.rest) != 2*limits*debtSize {
		return nil, fmt.Errorf("%w: %w", ErrAmbiguous, errReply)
	}
	var before, after debtArray
	for k := range limits {
		before[k] = readUint(r.rest[2*k*debtSize:], debtSize)
		after[k] = readUint(r.rest[(2*k+1)*debtSize:], debtSize)
	}
	return changed(buckets, &before, &after), nil
}

// readTake turns the reply of take.lua into a result.
func readTake(take *Take, limits int, r reply) (Result, error) {
	if len(r.rest) < dateSize+limits*debtSize {
		return Result{}, fmt.Errorf("%w: %w", ErrAmbiguous, errReply)
	}
	date, tail := readUint(r.rest, dateSize), r.rest[dateSize:]
	var debts debtArray
	for k := range limits {
		debts[k] = readUint(tail[k*debtSize:], debtSize)
	}
	tail = tail[limits*debtSize:]
	var result Result
	switch r.outcome {
	case int(Admitted), int(Limited), int(Never):
		_, uncharged := judge(take.Buckets, &debts, take.Amounts)
		result.Verdict = Verdict(r.outcome)
		result.fill(take, &debts, uncharged, result.Verdict == Admitted, true)
		if result.Verdict == Admitted && result.charged() {
			result.Receipt = newReceipt(take, r.now, uncharged)
		}
		return result, nil
	}
	result.fill(take, &debts, 0, false, false)
	switch r.outcome {
	case outcomeRepeat:
		result.Verdict, result.Repeat = Admitted, true
	case outcomeAgain:
		var uncharged uint64
		for k := range min(len(tail), limits) {
			uncharged |= uint64(tail[k]&1) << k
		}
		result.again(take, date, false, uncharged)
	case int(Replayed):
		result.Verdict, result.Answer = Replayed, []byte(tail)
	case int(InFlight):
		result.Verdict = InFlight
		result.RetryAfter = min(milliseconds(date-r.now), maxInFlightRetry)
	case int(KeyReused), int(AnswerUnavailable):
		result.Verdict = Verdict(r.outcome)
	default:
		return Result{}, fmt.Errorf("%w: %w", ErrAmbiguous, errReply)
	}
	return result, nil
}

func countLimits(buckets []Bucket) int {
	limits := 0
	for i := range buckets {
		limits += len(buckets[i].Limits.rules)
	}
	return limits
}

// readUint reads the first size bytes, big endian.
func readUint(s string, size int) int64 {
	var n int64
	for i := range size {
		n = n<<8 | int64(s[i])
	}
	return n
}
