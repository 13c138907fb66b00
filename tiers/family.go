package tiers

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// family are the snapshots of one policy: one for each time between the days on which enforcement
// begins, and for each mode that an operator permits at most, with and without what holds for a share of the tenants. Those that nobody asks for are not made.
type family struct {
	// policy is without its tenants, which are listed.
	policy Policy
	listed *register
	// days are those on which enforcement begins, in order. Before the first one is phase 0.
	days       []time.Time
	generation uint64
	// lines are those of its document, none for a policy that has none.
	lines    lines
	warnings []Warning
	// carried are the parameters that the policy names.
	carried []Parameter
	// documents says that a rule names a document.
	documents bool
	// stores are the names of the stores that the policy asks for.
	stores []string
	// units are what its limits count, and computed those that operation rules compute.
	units    []bucket.Unit
	computed map[bucket.Unit]bool
	// operations are the operation rules for root fields.
	operations []namedOperation
	// odd are the warnings before it is known where they stand.
	odd []finding

	members []atomic.Pointer[Snapshot]
	// mu guards the making of members, not the lookup.
	mu sync.Mutex
}

// strictnesses is how many modes there are to permit at most.
const strictnesses = int(bucket.Off) + 1

// newFamily expects the policy with a tenant of each kind that is listed.
func newFamily(p Policy, listed *register, days []time.Time) *family {
	f := &family{
		listed: listed, days: days, generation: 1, documents: p.namesDocuments(), stores: p.stores(), units: p.units(),
		computed: p.computes(), members: newMembers(days), operations: p.operations(),
	}
	p.Tenants = nil
	f.policy, f.carried = p.clone(), distinct(slices.Collect(maps.Values(p.Parameters)))
	return f
}

func newMembers(days []time.Time) []atomic.Pointer[Snapshot] {
	return make([]atomic.Pointer[Snapshot], (len(days)+1)*strictnesses*2)
}

// phase returns how many of the days have come.
func (f *family) phase(now time.Time) int {
	phase := 0
	for phase < len(f.days) && !now.Before(f.days[phase]) {
		phase++
	}
	return phase
}

func (f *family) at(now time.Time, strictest bucket.Mode) *Snapshot {
	return f.member(f.phase(now), false, strictest)
}

// member returns a snapshot, whose tiers are compiled when it is asked for first. Others who ask for the same wait for it.
func (f *family) member(phase int, early bool, strictest bucket.Mode) *Snapshot {
	at := (phase*strictnesses + int(strictest)) * 2
	if early {
		at++
	}
	place := &f.members[at]
	if s := place.Load(); s != nil {
		return s
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if s := place.Load(); s != nil {
		return s
	}
	s := f.compile(phase, early, strictest)
	place.Store(s)
	return s
}

// warn turns what is odd into warnings, and says where operation rules stand.
func (f *family) warn(where func(finding) Mistake) {
	for _, odd := range f.odd {
		f.warnings = append(f.warnings, Warning(where(odd)))
	}
	slices.SortStableFunc(f.warnings, func(a, b Warning) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	f.odd = nil
	for i := range f.operations {
		f.operations[i].place = where(f.operations[i].at)
	}
	slices.SortStableFunc(f.operations, func(a, b namedOperation) int {
		return cmp.Or(cmp.Compare(a.place.Line, b.place.Line), cmp.Compare(a.place.Column, b.place.Column))
	})
}
