package tiers

import (
	"maps"
	"slices"
)

// Checker is a [Source] that refuses policies which do not pass the checks of those who use it, as it
// refuses those that do not compile. [*ModeSwitch], [*Rollout] and the followers of package policy are checkers.
type Checker interface {
	Source
	// Check adds a check for all policies from now on, and returns what it says of the current one. The
	// check must be safe for concurrent use, and must not call the source.
	Check(check func(*Snapshot) error) error
}

// forward gives the check to a source, or asks it about the current policy of one that is no [Checker].
func forward(source Source, check func(*Snapshot) error) error {
	if checker, ok := source.(Checker); ok {
		return checker.Check(check)
	}
	return check(source.Snapshot())
}

// Stores returns the names of the stores that the policy asks for besides the default one, sorted. The slice
// is the caller's own.
func (s *Snapshot) Stores() []string {
	return slices.Clone(s.family.stores)
}

// stores collects the names of stores.
func (p *Policy) stores() []string {
	named := make(map[string]bool)
	for _, t := range p.Tiers {
		named[t.Store] = true
	}
	for _, x := range p.Tenants {
		named[x.Store] = true
	}
	delete(named, "")
	return slices.Sorted(maps.Keys(named))
}

// store checks the name of a store, which is empty for the default one.
func (c *checker) store(at path, name string) {
	if name != "" {
		c.label(at.to("store"), "the name of a store", name)
	}
}
