package event

import (
	"context"
	"time"
)

// Verdict is what one decision about an operation came to, in few words: an observer that counts is told of each one. Its texts
// and its slice are those of the request: whoever keeps one copies it, and cuts what is long.
type Verdict struct {
	// At is when, by the clock of the replica.
	At time.Time
	// Tenant, Team and User are who pays, as they came. They are empty if nobody knows, or if there is none.
	Tenant, Team, User string
	// SubjectTier is the tier that the subject carried, empty if none, and Tier the one whose rules applied.
	SubjectTier, Tier string
	// Outcome is what it came to, in the word that metrics carry.
	Outcome string
	// Refused says that the operation did not run, and WouldRefuse that it ran and would not have if everything were enforced.
	Refused, WouldRefuse bool
	// Because is what refused, or would have, as an outcome in the word that metrics carry. It is empty if nothing did. Level and Limit are the limit
	// that it is about, empty if it is about none.
	Because, Level, Limit string
	// Candidate is the id of the candidate policy that was judged beside, empty if none was, and CandidateRefuses says what
	// that would have done.
	Candidate        string
	CandidateRefuses bool
	// HideOwners says that the policy does not tell clients the names of teams, users and operation rules.
	HideOwners bool

	// RootFields are the coordinates of the root fields, sorted. It must not be changed.
	RootFields []string
	// Document is the id of the document, where the policy has rules for documents.
	Document string
	// Cost is the price in points, and Charged what of it was charged.
	Cost, Charged int64
	// Units are the amounts in other units than points that were asked of limits, the first of them; those that are not used
	// have no unit.
	Units [MaxUnits]Amount

	// Detail says more about the operation, nil where nobody knows.
	Detail Detail
}

// Detail is what judging an operation again takes beside its price. Its methods read the request, and work for what they return: whoever counts calls
// them before Count returns, for the operations that it keeps.
type Detail interface {
	// Parts returns the calls of each of the root fields, in the order of [Verdict.RootFields]. It is nil of an operation that makes
	// one call.
	Parts() []Part
	// Carried returns what of requests the policy looks at for custom limits, each in the order of its name, whether or not this one has it.
	Carried() []Carried
}

// Part are the calls of one root field.
type Part struct {
	// Calls is how many there are, none for a field that the variables leave out.
	Calls int64
}

// Carried is a parameter of custom limits, named by its place in the request, such as header:X-Lang. Value is empty where the request has none. It is
// what the client sent, or what its token says: a secret, perhaps.
type Carried struct{ Parameter, Value string }

// MaxUnits is how many amounts a [Verdict] has.
const MaxUnits = 4

// Counter is an [Observer] that is told of every decision, and not of a sample. It is called in the request as Observe is,
// once for each operation, so that it must not block and should allocate nothing.
type Counter interface {
	Observer
	// Count is told what a decision came to, before the client is.
	Count(v Verdict)
}

// CounterOf returns an observer that counts, if this one does: nil if it does not, or if it is [All] of some of which none does.
func CounterOf(o Observer) Counter {
	switch found := each[Counter](o); len(found) {
	case 0:
		return nil
	case 1:
		return found[0]
	default:
		return counters(found)
	}
}

// counters are told in turn.
type counters []Counter

// Observe tells nobody: they are observers of their own.
func (counters) Observe(context.Context, Event) {}

// Count tells each.
func (c counters) Count(v Verdict) {
	for _, counter := range c {
		counter.Count(v)
	}
}

// each returns those of the observers that are of a kind, whether alone or in [All].
func each[T Observer](o Observer) (found []T) {
	if several, ok := o.(all); ok {
		for _, observer := range several {
			found = append(found, each[T](observer)...)
		}
		return found
	}
	if one, ok := o.(T); ok {
		found = append(found, one)
	}
	return found
}
