package ratelimitclient

// Budget is the object type RateLimit of ratelimit-field.graphqls, which the field rateLimit of the query type
// returns: servers answer with it, and clients that generate code from a schema can bind it. Each field is
// nil where the server does not say, because no limit was judged or because it hides the number. Numbers
// that exceed an Int of GraphQL are the largest one; extensions.rateLimit has them exactly.
type Budget struct {
	// Cost is the price of the whole operation in points: 0 if it selects rateLimit alone.
	Cost *int `json:"cost"`
	// Unit is what the limit counts, and Limit its capacity.
	Unit  *string `json:"unit"`
	Limit *int    `json:"limit"`
	// Remaining is what is left of it, and Used what is not.
	Remaining *int `json:"remaining"`
	Used      *int `json:"used"`
	// ResetAt is when the limit is full again if nothing is taken, by the clock of the server, in UTC and
	// rounded up to a second, such as 2026-12-01T09:30:00Z.
	ResetAt *string `json:"resetAt"`
	// ResetAfter is the same in seconds from now, which needs no clock.
	ResetAfter *float64 `json:"resetAfter"`
}
