package state

import "fmt"

// Claim is what a take asks of an idempotency key.
type Claim struct {
	Attempt, Fingerprint [keySize]byte
	// Lease is for how many milliseconds the attempt holds the claim, and Life how long a new record lives.
	Lease, Life int64
	// RunAgain says that what is done without an answer runs again, charged like the first time.
	RunAgain bool
	// RefuseAbandoned says that nothing runs after an attempt of which nobody knows how far it came.
	RefuseAbandoned bool
	// Sum is a hash of the limits of the live owners.
	Sum uint32
}

// Record is what is stored of an idempotency key. The zero value is none.
type Record struct {
	// State is Running, Done, Answered or Free, or zero.
	State byte
	// Leased is the end of the lease, and Ends that of the record, in Unix milliseconds.
	Leased, Ends         int64
	Attempt, Fingerprint [keySize]byte
	// Rest is the answer of an answered one. Of a running one it tells the first verdict again, see [Record.Hold].
	Rest string
}

// Pack returns the claim as an argument of a take, see take.lua.
func (c *Claim) Pack() []byte {
	b := make([]byte, 0, claimSize)
	b = append(append(b, c.Attempt[:]...), c.Fingerprint[:]...)
	b = AppendUint(AppendUint(b, DateSize, c.Lease), DateSize, c.Life)
	flags := byte(0)
	if c.RefuseAbandoned {
		flags |= refuseAbandoned
	}
	if c.RunAgain {
		flags |= runAgain
	}
	return AppendUint(append(b, flags), SumSize, c.Sum)
}

// Judge returns what the record says of a take: with Admitted it is judged as if there were no key. If that is
// admitted then, or with Repeat, the attempt holds the claim by the record hold, of which nothing but what
// [Record.Hold] says is missing; one without a state is not to be written. The tail is that of the reply.
func (r *Record) Judge(c *Claim, now int64) (outcome Outcome, hold Record, tail string) {
	hold = Record{
		State: Running, Leased: now + c.Lease, Ends: now + c.Life, Attempt: c.Attempt, Fingerprint: c.Fingerprint,
	}
	if r.State == 0 || r.Ends <= now {
		return Admitted, hold, ""
	}
	if r.State != Done {
		// What is charged anew lives anew.
		hold.Ends = r.Ends
	}
	abandoned := Repeat
	if c.RefuseAbandoned {
		abandoned = Unknown
	}
	switch {
	case r.Fingerprint != c.Fingerprint:
		return Reused, hold, ""
	case r.State == Answered:
		return Replayed, hold, r.Rest
	case r.State == Done && !c.RunAgain:
		return NoAnswer, hold, ""
	case r.State == Done:
		return Admitted, hold, ""
	case r.State == Free:
		// An attempt before the one that was released had been abandoned.
		return abandoned, hold, ""
	case r.Attempt == c.Attempt && r.repeated():
		return Repeat, Record{}, ""
	case r.Attempt == c.Attempt:
		return Again, hold, r.Rest
	case r.Leased > now:
		return InFlight, hold, string(AppendUint(nil, DateSize, r.Leased))
	default:
		return abandoned, hold, ""
	}
}

// repeated says that the attempt that holds the claim was not charged.
func (r *Record) repeated() bool { return len(r.Rest) > DateSize && r.Rest[DateSize] == 1 }

// held reports whether a take of which [Record.Judge] has made the record writes it.
func (r *Record) held(outcome Outcome) bool {
	return r.State != 0 && (outcome == Admitted || outcome == Repeat)
}

// Hold sets what tells the first verdict again: when, whether it was Repeat, a hash of the limits that were
// judged, and those that were charged less than asked, packed.
func (r *Record) Hold(outcome Outcome, sum uint32, short string, now int64) {
	b := AppendUint(make([]byte, 0, heldSize+len(short)), DateSize, now)
	repeat := byte(0)
	if outcome == Repeat {
		repeat = 1
	}
	r.Rest = string(append(AppendUint(append(b, repeat), SumSize, sum), short...))
}

// Held returns what [Record.Hold] has set, false if that is not what text is.
func Held(text string) (takenAt int64, sum uint32, short string, ok bool) {
	if len(text) < heldSize {
		return 0, 0, "", false
	}
	return ReadUint(text, DateSize), uint32(ReadUint(text[DateSize+1:], SumSize)), text[heldSize:], true
}

// Holds reports whether the attempt runs under the record.
func (r *Record) Holds(attempt [keySize]byte, now int64) bool {
	return r.State == Running && r.Attempt == attempt && r.Ends > now
}

// End makes the record that of a run that has ended: as Done, Answered, or with zero released. It reports
// whether the record stays. A repeat keeps it: the charge of an earlier attempt, and what that did, must not be
// forgotten.
func (r *Record) End(as byte, answer string, now int64) (stays bool) {
	switch {
	case as != 0:
		r.State, r.Rest = as, answer
	case !r.repeated():
		return false
	default:
		r.State, r.Leased, r.Rest = Free, now, ""
	}
	return true
}

// pack returns the record as it is stored, see take.lua.
func (r *Record) pack() []byte { return r.append(make([]byte, 0, recordSize+len(r.Rest))) }

func (r *Record) append(b []byte) []byte {
	b = append(b, recordVersion, r.State)
	b = AppendUint(AppendUint(b, DateSize, r.Leased), DateSize, r.Ends)
	b = append(append(b, r.Attempt[:]...), r.Fingerprint[:]...)
	return append(b, r.Rest...)
}

// readRecord reads a record as it is stored, nil for none.
func readRecord(text []byte) (r Record, err error) {
	switch {
	case text == nil:
		return Record{}, nil
	case len(text) < recordSize || text[0] != recordVersion:
		return Record{}, fmt.Errorf("%w: a record", errMalformed)
	}
	r.State, r.Leased, r.Ends = text[1], ReadUint(text[2:], DateSize), ReadUint(text[2+DateSize:], DateSize)
	text = text[2+2*DateSize:]
	copy(r.Attempt[:], text)
	copy(r.Fingerprint[:], text[keySize:])
	r.Rest = string(text[2*keySize:])
	return r, nil
}

// RecordState returns the state of a record as it is stored, zero of none.
func RecordState(record []byte) byte {
	if len(record) < recordSize {
		return 0
	}
	return record[1]
}

// AnswerSize returns the size in bytes of the answer in a record as it is stored.
func AnswerSize(record []byte) int {
	if RecordState(record) != Answered {
		return 0
	}
	return len(record) - recordSize
}
