package ratelimit

// SettlementConfig says how the charge of an operation is corrected after it has run. The zero value keeps
// each charge at its estimate: that bounds the work, where a response tells only what came of it.
//
// Nothing is given back where the response has errors, because these hide calls that were made, where the
// actual cost is not known, for a subscription or a deferred part that the client has left, and under an
// idempotency key for a query, which may be repeated uncharged, and for an answer in parts. What was taken
// with [Charge] stays taken, and so do requests. No limit ever gets more back than it is still owed.
//
// The store is asked after the response, which does not wait for it, under an idempotency key with the end
// of the claim. [Extension.Shutdown] waits for what is under way.
type SettlementConfig struct {
	// Refund gives back what an operation was estimated at and did not come to. It doubles the calls of the
	// store for operations that return less than they may. Set it where the weights of fields say what a
	// call takes whether or not it finds anything: a search that returns nothing costs its weight alone.
	Refund bool
	// ChargeExcess charges on what an operation comes to above its estimate, which happens only where a
	// list is longer than its declared size. It cannot be refused and may overdraw, to twice the capacity.
	ChargeExcess bool
	// FailedShare is the share of the charge, 0 to 1, that is given back when an operation ends in nothing
	// but errors. Zero gives back nothing: errors may come after any amount of work.
	FailedShare float64
	// CanceledShare is the share of the charge, 0 to 1, that is given back when the client leaves before the
	// answer and the operation breaks off. Zero gives back nothing: what ran is paid. Who may break off for
	// nothing can make the server work for nothing.
	CanceledShare float64
	// MaxWaiting is how many settlements may wait for a store, at most 1 000 000, for each store. Those that find no room
	// are dropped: the estimate stays charged. Zero means 4096.
	MaxWaiting int
}

const (
	defaultMaxWaiting = 4096
	mostWaiting       = 1_000_000
)

func (s *SettlementConfig) validate(estimateOnly bool, fail func(format string, args ...any)) {
	if estimateOnly && (s.Refund || s.ChargeExcess) {
		fail("Settlement has Refund or ChargeExcess, which need the actual cost: unset Pricing.EstimateOnly")
	}
	for _, share := range []struct {
		name  string
		value float64
	}{{"FailedShare", s.FailedShare}, {"CanceledShare", s.CanceledShare}} {
		// The condition is that of a share, so that NaN is none.
		if !(share.value >= 0 && share.value <= 1) {
			fail("Settlement.%s is %v, want 0 to 1", share.name, share.value)
		}
	}
	if s.MaxWaiting < 0 || s.MaxWaiting > mostWaiting {
		fail("Settlement.MaxWaiting is %d, want 0 to %d", s.MaxWaiting, mostWaiting)
	}
}
