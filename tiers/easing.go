package tiers

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// Easing is a mode that nothing of a scope is stricter than, until a time. [ModeSwitch.Ease] puts it in force.
type Easing struct {
	// Tenant and Operation are the scope: all tenants where Tenant is empty, and all operations where Operation is. An operation is
	// spelled as in an operation rule: Mutation.createOrder, Query.search* or the id of a document. Only an operation of which each
	// root field is in scope is eased: nobody adds a field to an operation to have it eased.
	Tenant, Operation string
	// AtMost is the strictest mode: warn, shadow or off, as [ModeSwitch.AtMost] says.
	AtMost bucket.Mode
	// Until is when it ends by itself. It is required.
	Until time.Time
}

// Check returns everything that is wrong with the easing.
func (e *Easing) Check() error {
	var errs []error
	if len(e.Tenant) > MaxLongName || !utf8.ValidString(e.Tenant) || strings.ContainsRune(e.Tenant, 0) {
		errs = append(errs, fmt.Errorf("tiers: an easing of a tenant of %d bytes: at most %d of UTF-8 without a zero fit", len(e.Tenant), MaxLongName))
	}
	if e.Operation != "" {
		if problem := problemOfPattern(e.Operation); problem != "" {
			errs = append(errs, fmt.Errorf("tiers: an easing of the operation %s: %s", echo(e.Operation), problem))
		}
	}
	if e.AtMost != bucket.Warn && e.AtMost != bucket.Shadow && e.AtMost != bucket.Off {
		errs = append(errs, errors.New("tiers: an easing has to say what is the strictest mode: warn, shadow or off"))
	}
	if e.Until.IsZero() {
		errs = append(errs, errors.New("tiers: an easing has to say when it ends"))
	}
	return errors.Join(errs...)
}

// easings are those in force at a time. They never change.
type easings struct {
	all []Easing
	// next is when the first of them ends.
	next time.Time
	// everywhere is the mode of all decisions, and tenants those of single tenants.
	everywhere bucket.Mode
	tenants    map[string]bucket.Mode
	// operations are those of all tenants, and ofTenants those of single ones.
	operations *easedOperations
	ofTenants  map[string]*easedOperations
	documents  bool
}

// easedOperations are the modes of operations.
type easedOperations struct {
	// exact are coordinates and ids of documents.
	exact    map[string]bucket.Mode
	patterns []easedPattern
}

type easedPattern struct {
	pattern string
	mode    bucket.Mode
}

// newEasings returns those that have not ended, nil if there are none.
func newEasings(all []Easing, now time.Time) *easings {
	e := &easings{tenants: make(map[string]bucket.Mode), ofTenants: make(map[string]*easedOperations)}
	for _, one := range all {
		if !now.Before(one.Until) {
			continue
		}
		e.all = append(e.all, one)
		if e.next.IsZero() || one.Until.Before(e.next) {
			e.next = one.Until
		}
		e.add(&one)
	}
	if len(e.all) == 0 {
		return nil
	}
	return e
}

func (e *easings) add(one *Easing) {
	switch {
	case one.Operation != "":
		operations := &e.operations
		if one.Tenant != "" {
			own := e.ofTenants[one.Tenant]
			operations = &own
			defer func() { e.ofTenants[one.Tenant] = own }()
		}
		if *operations == nil {
			*operations = &easedOperations{exact: make(map[string]bucket.Mode)}
		}
		(*operations).add(one.Operation, one.AtMost)
		e.documents = e.documents || isDocument(one.Operation)
	case one.Tenant != "":
		e.tenants[one.Tenant] = max(e.tenants[one.Tenant], one.AtMost)
	default:
		e.everywhere = max(e.everywhere, one.AtMost)
	}
}

func (o *easedOperations) add(spelling string, mode bucket.Mode) {
	if strings.Contains(spelling, "*") {
		o.patterns = append(o.patterns, easedPattern{spelling, mode})
		return
	}
	o.exact[spelling] = max(o.exact[spelling], mode)
}

// mode returns that of a coordinate. Nil has none.
func (o *easedOperations) mode(coordinate string) bucket.Mode {
	if o == nil {
		return bucket.Enforce
	}
	mode := o.exact[coordinate]
	for _, p := range o.patterns {
		if p.mode > mode && matches(p.pattern, coordinate) {
			mode = p.mode
		}
	}
	return mode
}

// simple says that what single tenants and operations do makes no difference.
func (e *easings) simple() bool {
	return len(e.tenants) == 0 && e.operations == nil && len(e.ofTenants) == 0
}

// readsOperations says whether it matters what the tenant asks for.
func (e *easings) readsOperations(tenant string) bool {
	return e.operations != nil || e.ofTenants[tenant] != nil
}

// of returns the mode of what a tenant asks for.
func (e *easings) of(tenant string, selected *Selection) bucket.Mode {
	mode := e.tenants[tenant]
	own := e.ofTenants[tenant]
	if e.operations == nil && own == nil {
		return mode
	}
	if selected.Document != "" {
		mode = max(mode, e.operations.mode(selected.Document), own.mode(selected.Document))
	}
	if len(selected.Fields) == 0 {
		return mode
	}
	strictest := bucket.Off
	for _, field := range selected.Fields {
		if strictest = min(strictest, max(e.operations.mode(field), own.mode(field))); strictest == bucket.Enforce {
			break
		}
	}
	return max(mode, strictest)
}

// eased makes a snapshot a view of others: of the base, and of those of its family that are easier.
type eased struct {
	base *Snapshot
	by   *easings
}

// easedBy returns a view of the snapshot. It is compiled no more than that.
func (s *Snapshot) easedBy(by *easings) *Snapshot {
	return &Snapshot{
		family: s.family, phase: s.phase, early: s.early, strictest: s.strictest, serial: serials.Add(1), tiers: s.tiers, fallback: s.fallback,
		eased: &eased{s, by},
	}
}

// of returns the snapshot that judges what a tenant asks for.
func (e *eased) of(tenant string, selected *Selection) *Snapshot {
	return e.base.AtMost(e.by.of(tenant, selected))
}

// plain returns the snapshot, or the one that it is a view of.
func (s *Snapshot) plain() *Snapshot {
	if s.eased != nil {
		return s.eased.base
	}
	return s
}

// again returns a view of another base, or this one.
func (s *Snapshot) again(base *Snapshot) *Snapshot {
	if base == s.eased.base {
		return s
	}
	return base.easedBy(s.eased.by)
}
