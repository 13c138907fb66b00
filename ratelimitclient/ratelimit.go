package ratelimitclient

import "encoding/json"

// RateLimit is the value of extensions.rateLimit: what the operation cost and what is left. It is
// part of every response, of the first one where a response has several parts, except those to
// subjects that the server exempts from limits.
type RateLimit struct {
	// Cost is the price of the operation in points.
	Cost int64 `json:"cost"`
	// Charged is how many points were taken: 0 for a refusal and for a replay.
	Charged int64 `json:"charged"`
	// Limit is the capacity of the limit with the smallest remaining share, in its unit. If Limits is
	// empty, no limit was judged: then this and the next two are absent from the response, and zero here.
	Limit int64 `json:"limit"`
	// Remaining is what is left of that limit.
	Remaining int64 `json:"remaining"`
	// ResetAfter is the time in seconds after which that limit is full again if nothing is taken.
	ResetAfter float64 `json:"resetAfter"`
	// Limits is the state of every limit that was judged.
	Limits []Limit `json:"limits"`
	// Tier is the name of the tier whose rules applied.
	Tier string `json:"tier"`
	// Mode is what the rules do to an operation that exceeds a limit: enforce, shadow or off. Further
	// words may come.
	Mode string `json:"mode"`
	// Replayed says that the answer is the stored one of an earlier attempt under the same
	// idempotency key. Nothing ran and nothing was charged.
	Replayed bool `json:"replayed"`
	// RetryAfter is the time in seconds after which a refused operation can pass. Zero means that the
	// operation was not refused, or that waiting does not help.
	RetryAfter float64 `json:"retryAfter,omitempty"`
	// WouldRefuse is the code that the operation would have been refused with if a limit in shadow
	// mode were enforced. Empty means that it would have run.
	WouldRefuse string `json:"wouldRefuse,omitempty"`
	// StoreUnavailable says that the server could not ask its store, so that the numbers above are
	// not known.
	StoreUnavailable bool `json:"storeUnavailable,omitempty"`
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
	// Limit is the capacity: the largest amount that can be taken at once.
	Limit int64 `json:"limit"`
	// Remaining is what is left.
	Remaining int64 `json:"remaining"`
	// ResetAfter is the time in seconds after which the limit is full again if nothing is taken.
	ResetAfter float64 `json:"resetAfter"`
	// Exceeded says that the limit did not have what the operation needs.
	Exceeded bool `json:"exceeded,omitempty"`
}

// UnmarshalJSON reads the value of extensions.rateLimit. Amounts that exceed an int64 become the
// largest or smallest int64, because a client that has decoded them into floating point numbers on
// the way may hand on such ones.
func (r *RateLimit) UnmarshalJSON(data []byte) error {
	type plain RateLimit
	wire := struct {
		*plain

		Cost      amount `json:"cost"`
		Charged   amount `json:"charged"`
		Limit     amount `json:"limit"`
		Remaining amount `json:"remaining"`
	}{(*plain)(r), amount(r.Cost), amount(r.Charged), amount(r.Limit), amount(r.Remaining)}
	if err := json.Unmarshal(data, &wire); err != nil {
		return err
	}
	r.Cost, r.Charged = int64(wire.Cost), int64(wire.Charged)
	r.Limit, r.Remaining = int64(wire.Limit), int64(wire.Remaining)
	return nil
}

// UnmarshalJSON reads one element of extensions.rateLimit.limits, with amounts as
// [RateLimit.UnmarshalJSON] reads them.
func (l *Limit) UnmarshalJSON(data []byte) error {
	type plain Limit
	wire := struct {
		*plain

		Limit     amount `json:"limit"`
		Remaining amount `json:"remaining"`
	}{(*plain)(l), amount(l.Limit), amount(l.Remaining)}
	if err := json.Unmarshal(data, &wire); err != nil {
		return err
	}
	l.Limit, l.Remaining = int64(wire.Limit), int64(wire.Remaining)
	return nil
}
