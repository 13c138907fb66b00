package ratelimitclient

import "encoding/json"

// RateLimit is the value of extensions.rateLimit: what the operation cost and what is left. It is
// part of every response, where one has several parts of the first one and of those in which something is refused, except those to
// subjects that the server exempts from limits or has only limits on trial for. A number that the server hides is absent from the
// response, and zero here.
//
// It has two forms. The short one is about the limit that stands at its top, and has nothing that is empty, false or usual. The full
// one has Limits, Tier, Mode and Replayed always. The server sends it with a refusal and a warning, where a limit is shown that counts
// something else than the tightest one does, which is more than half used, where another limit than the one at the top would refuse
// the operation next, and to whoever asks with GraphQL-Cost: full.
type RateLimit struct {
	// Cost is the price of the operation in points.
	Cost int64 `json:"cost"`
	// Charged is how many points were taken: 0 for a refusal and for a replay.
	Charged int64 `json:"charged"`
	// Actual is what the operation came to, in points, priced from this response: Cost is what it could at
	// most have come to. A stream has what its first response came to. It is nil if it is not known, and in the short form
	// where it cannot change what is charged.
	Actual *int64 `json:"actual,omitempty"`
	// Refunded is how many of the points charged are given back, because the operation came to less. What
	// remains is reported as it will be then. Zero means that nothing is, or that a stream does not know yet.
	Refunded int64 `json:"refunded,omitempty"`
	// Limit is the name of the limit that a client should pace itself by, which the next fields are about: the one with the smallest
	// remaining share of those that count points, so that Cost and Remaining can be compared; where none does, of all. In a refusal it is
	// the one that refused. It is one of
	// those that refuse; where none does, of those in mode warn, or else in mode shadow. If no limit was judged, or soft ones
	// alone, it is absent from the response with all that is about it, and empty here.
	Limit string `json:"limit,omitempty"`
	// Level is whose limit it is: team, user or operation. Empty means that it is the tenant's.
	Level string `json:"level,omitempty"`
	// Unit is what the limit counts: points, requests, or a unit of the server's own.
	Unit string `json:"unit,omitempty"`
	// Capacity is the largest amount that can be taken of the limit at once.
	Capacity int64 `json:"capacity"`
	// Remaining is what is left of the limit.
	Remaining int64 `json:"remaining"`
	// ResetAfter is the time in seconds after which the limit is full again if nothing is taken.
	ResetAfter float64 `json:"resetAfter"`
	// Limits is the state of every limit that was judged. Nil means that the answer is short.
	Limits []Limit `json:"limits,omitzero"`
	// Tier is the name of the tier whose rules applied. It is empty if the answer is short.
	Tier string `json:"tier"`
	// Mode is what the rules do to an operation that exceeds a limit: enforce, warn, shadow or off.
	// Further words may come. Empty, as in short answers, means enforce.
	Mode string `json:"mode"`
	// Replayed says that the answer is the stored one of an earlier attempt under the same
	// idempotency key. Nothing ran and nothing was charged.
	Replayed bool `json:"replayed"`
	// RetryAfter is the time in seconds after which a refused operation can pass. Zero means that the
	// operation was not refused, or that waiting does not help.
	RetryAfter float64 `json:"retryAfter,omitempty"`
	// WouldRefuse is the code that the operation would have been refused with if everything were
	// enforced. Empty means that it would have run.
	WouldRefuse string `json:"wouldRefuse,omitempty"`
	// Warning says that operations such as this one will be refused. Nil means that there is nothing to
	// do.
	Warning *Warning `json:"warning,omitempty"`
	// Validated says that the client asked for the price, with GraphQL-Cost: validate. Nothing ran and
	// nothing was charged, and WouldRefuse says with which code the operation would be refused whatever
	// budget is left.
	Validated bool `json:"validated,omitempty"`
	// Breakdown explains Cost. It is nil unless the client has asked for it and may.
	Breakdown *Breakdown `json:"breakdown,omitempty"`
	// StoreUnavailable says that the server could not ask its store, so that the numbers above are
	// not known.
	StoreUnavailable bool `json:"storeUnavailable,omitempty"`
	// Approximate says that servers hold parts of the limit above, so that others may have used some of Remaining.
	Approximate bool `json:"approximate,omitempty"`
	// KeyIgnored says, for a person, why the idempotency key was ignored. Empty means that it was not.
	KeyIgnored string `json:"idempotencyKeyIgnored,omitempty"`
}

// Warning says what an operation that ran would have been refused with if it were enforced already.
type Warning struct {
	// Code is one of the Code constants.
	Code string `json:"code"`
	// Message is that of the refusal, written for a person.
	Message string `json:"message"`
	// Limit is the name of the limit that would have refused. It is empty if it is not a limit.
	Limit string `json:"limit,omitempty"`
	// Level is whose limit it is: tenant, team, user or operation.
	Level string `json:"level,omitempty"`
	// Owner tells owners of one level apart. It is empty at the level of the tenant.
	Owner string `json:"owner,omitempty"`
	// Unit is what the limit counts.
	Unit string `json:"unit,omitempty"`
	// Cost and MaxCost are what the operation costs and what one may cost in points, where that is the
	// reason. They are zero otherwise.
	Cost    int64 `json:"cost,omitempty"`
	MaxCost int64 `json:"maxCost,omitempty"`
	// EnforcedFrom is the day, such as 2026-12-01, from whose start in UTC on such operations are
	// refused. It is empty if the day is not set.
	EnforcedFrom string `json:"enforcedFrom,omitempty"`
}

// Limit is the state of one limit after the decision.
type Limit struct {
	// Name is the limit's name in the policy: second, minute, hour, day, or another.
	Name string `json:"name"`
	// Level is whose limit it is: tenant, team, user or operation.
	Level string `json:"level"`
	// Owner tells owners of one level apart, such as the operation that a rule names. It is empty at
	// the level of the tenant.
	Owner string `json:"owner,omitempty"`
	// Unit is what the limit counts: points, requests, or a unit of the server's own.
	Unit string `json:"unit"`
	// Capacity is the largest amount that can be taken at once.
	Capacity int64 `json:"capacity"`
	// Remaining is what is left.
	Remaining int64 `json:"remaining"`
	// ResetAfter is the time in seconds after which the limit is full again if nothing is taken.
	ResetAfter float64 `json:"resetAfter"`
	// Exceeded says that the limit did not have what the operation needs.
	Exceeded bool `json:"exceeded,omitempty"`
	// Mode is what the limit does to an operation that exceeds it, where that is not to refuse it: warn,
	// shadow or off. Empty means that it is enforced. Further words may come.
	Mode string `json:"mode,omitempty"`
	// Soft says that the limit only reports: it refuses nothing.
	Soft bool `json:"soft,omitempty"`
	// Approximate says that servers hold parts of the limit, so that others may have used some of Remaining.
	Approximate bool `json:"approximate,omitempty"`
	// Overdraft is by how much more than the capacity is spent.
	Overdraft int64 `json:"overdraft,omitempty"`
}

// UnmarshalJSON reads the value of extensions.rateLimit in either form. Amounts that exceed an int64 become the
// largest or smallest int64, because a client that has decoded them into floating point numbers on
// the way may hand on such ones. More than 256 limits are an error, and what would command a terminal in the message of a
// warning is escaped.
func (r *RateLimit) UnmarshalJSON(data []byte) error {
	type plain RateLimit
	wire := struct {
		*plain

		Cost      amount  `json:"cost"`
		Charged   amount  `json:"charged"`
		Actual    *amount `json:"actual"`
		Refunded  amount  `json:"refunded"`
		Capacity  amount  `json:"capacity"`
		Remaining amount  `json:"remaining"`

		Limits json.RawMessage `json:"limits,omitzero"`
	}{
		(*plain)(r), amount(r.Cost), amount(r.Charged), (*amount)(r.Actual), amount(r.Refunded), amount(r.Capacity), amount(r.Remaining),
		nil,
	}
	if err := json.Unmarshal(data, &wire); err != nil {
		return err
	}
	r.Cost, r.Charged, r.Actual = int64(wire.Cost), int64(wire.Charged), (*int64)(wire.Actual)
	r.Refunded = int64(wire.Refunded)
	r.Capacity, r.Remaining = int64(wire.Capacity), int64(wire.Remaining)
	if r.Warning != nil {
		r.Warning.Message = printable(r.Warning.Message)
	}
	return readList(&r.Limits, wire.Limits, maxLimits)
}

// UnmarshalJSON reads one element of extensions.rateLimit.limits, with amounts as
// [RateLimit.UnmarshalJSON] reads them.
func (l *Limit) UnmarshalJSON(data []byte) error {
	type plain Limit
	wire := struct {
		*plain

		Capacity  amount `json:"capacity"`
		Remaining amount `json:"remaining"`
	}{(*plain)(l), amount(l.Capacity), amount(l.Remaining)}
	if err := json.Unmarshal(data, &wire); err != nil {
		return err
	}
	l.Capacity, l.Remaining = int64(wire.Capacity), int64(wire.Remaining)
	return nil
}
