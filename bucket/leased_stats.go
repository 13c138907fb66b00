package bucket

import (
	"slices"
	"sync/atomic"
)

// leaseCause is why there was an exchange.
type leaseCause uint8

const (
	// causeBeat is that it was time, or that demand has changed; causeMiss that a take needed more, causeRepeat that nobody had answered, and causeRelease that
	// everything is given back.
	causeBeat leaseCause = iota
	causeMiss
	causeRepeat
	causeRelease
	leaseCauses
)

var leaseCauseWords = [leaseCauses]string{causeBeat: "beat", causeMiss: "miss", causeRepeat: "repeat", causeRelease: "release"}

// LeaseCauses are the causes of exchanges, see LeaseStats.Exchanges.
func LeaseCauses() []string { return slices.Clone(leaseCauseWords[:]) }

// leaseCounters are what a [Leased] counts.
type leaseCounters struct {
	admitted, refused, mixed, central, misses, failed, lost, falseRefusals, uncounted, unsettled atomic.Uint64
	exchanges                                                                                    [leaseCauses]atomic.Uint64
}

// LeaseStats are what a [Leased] did since it was made, but for Tenants, which is of now.
type LeaseStats struct {
	// Tenants is of how many something is leased. Each bucket of [Take.LeaseEach] counts as one.
	Tenants int
	// Admitted and Refused are the takes that were decided without the store, Mixed those that asked it for something else than what is leased, and
	// Central those of leased tenants that the store has decided.
	Admitted, Refused, Mixed, Central uint64
	// Misses are takes that had to wait for an exchange, or did not get what they needed.
	Misses uint64
	// Exchanges are calls to the store by their cause: beat, miss, repeat or release. Failed are those of them that got no answer.
	Exchanges map[string]uint64
	Failed    uint64
	// Lost is how often what was held was lost, because the store has forgotten it.
	Lost uint64
	// FalseRefusals are exchanges that found that the store had what was refused here since the one before.
	FalseRefusals uint64
	// Uncounted are minutes of usage of a tenant of which nobody knows whether they were counted, and Unsettled settlements that were worth more and were not
	// charged, because the store was away.
	Uncounted, Unsettled uint64
}

// Stats returns what it did. It looks at every tenant that is leased, so it is for whoever scrapes metrics and not for each operation.
func (l *Leased) Stats() LeaseStats {
	l.each(func(t *leasedTenant) {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.countAdmissions()
	})
	s := &l.stats
	stats := LeaseStats{
		Tenants: int(l.tenants.Load()), Admitted: s.admitted.Load(), Refused: s.refused.Load(), Mixed: s.mixed.Load(), Central: s.central.Load(),
		Misses: s.misses.Load(), Failed: s.failed.Load(), Lost: s.lost.Load(), FalseRefusals: s.falseRefusals.Load(),
		Uncounted: s.uncounted.Load(), Unsettled: s.unsettled.Load(), Exchanges: make(map[string]uint64, leaseCauses),
	}
	for cause, word := range leaseCauseWords {
		stats.Exchanges[word] = s.exchanges[cause].Load()
	}
	return stats
}

// countAdmissions counts those that are not counted yet. The lock is held.
func (t *leasedTenant) countAdmissions() {
	t.store.stats.admitted.Add(t.admissions)
	t.admissions = 0
}
