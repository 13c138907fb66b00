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
	outcomeExpired = 3
	outcomeRepeat  = 8
	outcomeAgain   = 9
	outcomeWindow  = 10
	// outcomeGoverned says that other override records hold than those that were worked in.
	outcomeGoverned = 11
	outcomeBlocked  = 12
	outcomeUnknown  = 13
)

// The sizes of what is packed.
const (
	dateSize   = 6
	debtSize   = 7
	doubleSize = 8
	// shortSize is that of a limit that was charged less than it was asked for.
	shortSize = 1 + debtSize
	// sumSize is that of a hash of limits.
	sumSize = 4
)

// errReply says that a script answered something else than its header says: another program writes
// the keys, or a proxy the replies. The script ran, so that nothing is known of the charge.
var errReply = errors.New("malformed reply of a script")

// exact clamps a number of tokens to those that a double holds exactly. What lies beyond means the
// same: it is more than twice any capacity.
func exact(n int64) int64 {
	return max(-maxExact, min(n, maxExact))
}

// The places of the numbers that all scripts are sent first, see clock.lua.
const (
	numberBefore     = 0
	numberExtra      = doubleSize
	numberGeneration = 2 * doubleSize
	numberFrom       = 3 * doubleSize
	numberUntil      = 4 * doubleSize
	numbersHead      = 5 * doubleSize
)

// calendarNumbers is how many numbers a window of the calendar takes, see state.lua.
const calendarNumbers = 2

// packNumbers packs the numbers of a call under these override records: values returns those of a limit, of which there are as
// many for each. Room is left for the date before which the call applies and for the windows of the
// calendar, which are known when it is sent.
func packNumbers(g *governing, extra int64, each int, values func(k int, rule *rule) [2]int64) []byte {
	size, buckets := numbersHead, g.buckets
	for i := range buckets {
		l := buckets[i].Limits
		size += (l.columns*each + calendarNumbers*len(l.calendars)) * doubleSize
	}
	b := appendDouble(make([]byte, doubleSize, size), extra)
	b = append(b, g.generation[:]...)
	b = appendDouble(appendDouble(b, g.from), g.until)
	k := 0
	for i := range buckets {
		l := buckets[i].Limits
		for j := range l.columns {
			var pair [2]int64
			if j < len(l.rules) && each > 0 {
				pair = values(k, &l.rules[j])
				k++
			}
			for _, value := range pair[:each] {
				b = appendDouble(b, exact(value))
			}
		}
		b = append(b, make([]byte, calendarNumbers*len(l.calendars)*doubleSize)...)
	}
	return b
}

// putWindows fills in the windows of the calendar that hold the time.
func putWindows(numbers []byte, buckets []Bucket, each int, now int64) {
	at := numbersHead
	for i := range buckets {
		l := buckets[i].Limits
		at += l.columns * each * doubleSize
		for _, c := range l.calendars {
			window := c.around(now)
			for _, edge := range [calendarNumbers]int64{window.from, window.to} {
				putDouble(numbers[at:], edge)
				at += doubleSize
			}
		}
	}
}

// packClaim packs a claim of a take from these buckets, see take.lua.
func packClaim(claim *idempotency.Claim, buckets []Bucket) []byte {
	lease, ttl := leaseAndTTL(claim)
	b := make([]byte, 0, len(claim.Attempt)+len(claim.Fingerprint)+2*dateSize+2+sumSize)
	b = append(b, claim.Attempt[:]...)
	b = append(b, claim.Fingerprint[:]...)
	b = appendUint(b, dateSize, uint64(lease))
	b = appendUint(b, dateSize, uint64(ttl))
	rules := byte(0)
	if claim.RefuseAbandoned {
		rules = 1
	}
	if claim.FreeRepeats < 0 {
		rules += 2
	}
	b = append(b, byte(max(0, claim.FreeRepeats)), rules)
	return appendUint(b, sumSize, uint64(sumOf(buckets)))
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

// notRun reports whether the script did nothing because the caller did not know the time or the override
// records.
func (r *reply) notRun() bool {
	return r.outcome == outcomeLate || r.outcome == outcomeWindow || r.outcome == outcomeGoverned
}

// check returns an error if a settlement or renewal has neither of its outcomes.
func (r *reply) check() error {
	if r.outcome != outcomeApplied && r.outcome != outcomeNot {
		return fmt.Errorf("%w: %w", ErrAmbiguous, errReply)
	}
	return nil
}

// spentArray holds what each limit of a call has spent. It has a fixed size so that it can live on the
// stack.
type spentArray [MaxLimits]spent

// readStates reads what the owners have spent by now and returns the rest of the reply.
func readStates(buckets []Bucket, text string, spends *spentArray, now int64) (rest string, err error) {
	k := 0
	for i := range buckets {
		l := buckets[i].Limits
		if text, err = l.readState(text, spends[k:], now); err != nil {
			return "", err
		}
		k += len(l.rules)
	}
	return text, nil
}

// states returns the limits of a reply that shows them.
func (r *reply) states(buckets []Bucket) ([]LimitState, error) {
	var spends spentArray
	rest, err := readStates(buckets, r.rest, &spends, r.now)
	if err != nil || rest != "" || r.outcome != outcomeApplied {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, errReply)
	}
	return changed(buckets, &spends, &spends, r.now), nil
}

// changes returns the limits of a reply that shows them before and after.
func (r *reply) changes(buckets []Bucket) ([]LimitState, error) {
	var before, after spentArray
	rest, err := readStates(buckets, r.rest, &before, r.now)
	if err == nil {
		rest, err = readStates(buckets, rest, &after, r.now)
	}
	if err != nil || rest != "" || r.outcome != outcomeApplied {
		return nil, fmt.Errorf("%w: %w", ErrAmbiguous, errReply)
	}
	return changed(buckets, &before, &after, r.now), nil
}

// readTake turns the reply of take.lua into a result. The candidate's buckets are as overrides make them.
func readTake(take *Take, candidate []Bucket, r reply) (Result, error) {
	limits := countLimits(take.Buckets)
	ambiguous := fmt.Errorf("%w: %w", ErrAmbiguous, errReply)
	short, text, ok := readShort(r.rest, limits)
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
	}
	switch r.outcome {
	case int(Admitted), int(Limited), int(Never):
		if tail != "" {
			return Result{}, ambiguous
		}
		result.Verdict = Verdict(r.outcome)
		result.fill(take, &spends, r.now, short, true)
		result.observed(take, &spends, r.now)
		if result.Verdict == Admitted && result.charged() {
			result.Receipt.issue(take, r.now, short)
		}
		return result, nil
	}
	result.fill(take, &spends, r.now, shortfall{}, false)
	switch {
	case r.outcome == outcomeRepeat:
		result.Verdict, result.Repeat = Admitted, true
	case r.outcome == outcomeAgain && len(tail) >= dateSize+1+sumSize:
		sum := uint32(readUint(tail[dateSize+1:], sumSize))
		if short, ok = readShortfall(tail[dateSize+1+sumSize:], limits); !ok && sum == sumOf(take.Buckets) {
			return Result{}, ambiguous
		}
		result.again(take, readUint(tail, dateSize), sum, short)
	case r.outcome == int(Replayed):
		result.Verdict, result.Answer = Replayed, []byte(tail)
	case r.outcome == int(InFlight) && len(tail) == dateSize:
		result.Verdict = InFlight
		result.RetryAfter = max(0, min(milliseconds(readUint(tail, dateSize)-r.now), maxInFlightRetry))
	default:
		if result.Verdict, ok = r.refusalOfKey(); !ok {
			return Result{}, ambiguous
		}
	}
	return result, nil
}

// refusalOfKey returns the verdict of an outcome that refuses because of the key and has no tail, false if
// it is none.
func (r *reply) refusalOfKey() (Verdict, bool) {
	switch r.outcome {
	case int(KeyReused), int(AnswerUnavailable):
		return Verdict(r.outcome), true
	case outcomeUnknown:
		return OutcomeUnknown, true
	default:
		return 0, false
	}
}

// trial is what a reply says of a candidate.
type trial struct {
	verdict Verdict
	short   shortfall
	spends  spentArray
}

// readTrial reads the verdict on the candidate, if there is one, and returns what follows it.
func readTrial(candidate []Bucket, text string) (t trial, rest string, ok bool) {
	if len(candidate) == 0 {
		return trial{}, text, true
	}
	if text == "" || text[0] > byte(Never) {
		return trial{}, "", false
	}
	t.verdict = Verdict(text[0])
	t.short, rest, ok = readShort(text[1:], countLimits(candidate))
	return t, rest, ok
}

// readShort reads how many limits were charged less than they were asked for, and these, and returns what
// follows.
func readShort(text string, limits int) (short shortfall, rest string, ok bool) {
	if text == "" || len(text) < 1+shortSize*int(text[0]) {
		return shortfall{}, "", false
	}
	n := 1 + shortSize*int(text[0])
	short, ok = readShortfall(text[1:n], limits)
	return short, text[n:], ok
}

// readShortfall reads limits that were charged less than they were asked for.
func readShortfall(text string, limits int) (short shortfall, ok bool) {
	if len(text)%shortSize != 0 {
		return shortfall{}, false
	}
	for ; text != ""; text = text[shortSize:] {
		if int(text[0]) >= limits {
			return shortfall{}, false
		}
		short.add(int(text[0]), readUint(text[1:], debtSize))
	}
	return short, true
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
