// Package refusals says which tenants are refused a large share of what they ask for, as metrics, of all tenants of all instances: those of an
// instance name few, and have a share of the rest. It reads the activity that the instances report.
//
// Names are labels, of which a Prometheus keeps each for as long as it keeps anything. So there are few at once, and few new ones in an hour, whoever
// comes under whatever name; how many tenants are left without one is a number.
package refusals

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/observe/report"
)

// What has a name.
const (
	// Names is how many tenants have a name at once.
	Names = 20
	// NewNames is how many get one within an hour that had none in the hour before.
	NewNames = 60
	// NameShare and [NameFloor] are what a tenant has to be above, so that the numbers of an alert can be smaller than those of [Share].
	NameShare = 0.1
	// NameFloor is how many decisions there are within a minute at least.
	NameFloor = 30
)

// What is counted. The alert rules have the same numbers.
const (
	// Share is the share of its decisions within a minute that a tenant is counted above.
	Share = 0.3
	// Floor is how many of them there are at least.
	Floor = 60
)

const (
	// keptFor is for how long a name is not new again, and freshFor for how long nobody reads anew.
	keptFor  = time.Hour
	freshFor = 10 * time.Second
	// readFor is how long the activity of all instances, and the database, may take.
	readFor = 2 * time.Second
	// maxLooked is of how many tenants it is looked up whether they are blocked.
	maxLooked = 200
)

// watch is what is known at the moment.
type watch struct {
	cfg Config

	mu sync.Mutex
	// named is when each tenant had a name last, of the last hour.
	named map[string]time.Time
	// begun are the times at which one got a name that had none, of the last hour.
	begun []time.Time
	// read is when it was read last, last what was found, and failed why nothing was.
	read   time.Time
	last   refused
	failed error
}

// refused is who is refused much.
type refused struct {
	named []report.Tenant
	// above is how many tenants are above [Share] and [Floor], and unnamed how many of them have no name.
	above, unnamed int
}

// now returns who is refused much, as of some seconds ago at most.
func (w *watch) now(ctx context.Context) (refused, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.cfg.Now()
	if since := now.Sub(w.read); !w.read.IsZero() && since >= 0 && since < freshFor {
		return w.last, w.failed
	}
	w.last, w.failed = w.look(ctx, now)
	// What has failed is not tried again so soon either: a Redis that hangs would keep every scrape waiting, on which other alerts depend.
	w.read = w.cfg.Now()
	return w.last, w.failed
}

// look reads what tenants have asked for, and finds out who is refused much.
func (w *watch) look(ctx context.Context, now time.Time) (refused, error) {
	ctx, cancel := context.WithTimeout(ctx, readFor)
	defer cancel()
	tenants, err := w.cfg.Tenants(ctx)
	if err != nil {
		return refused{}, err
	}
	found, err := w.withoutBlocked(ctx, worst(tenants))
	if err != nil {
		return refused{}, err
	}
	return w.name(found, now), nil
}

// above reports whether a tenant is above what alerts look at.
func above(t *report.Tenant) bool { return t.Decisions >= Floor && t.RefusedShare() > Share }

// worst returns the tenants that may have a name: those that are counted first, and of these those that are refused most.
func worst(all []report.Tenant) []report.Tenant {
	found := slices.DeleteFunc(slices.Clone(all), func(t report.Tenant) bool { return t.Decisions < NameFloor || t.RefusedShare() <= NameShare })
	slices.SortFunc(found, func(a, b report.Tenant) int {
		if above(&a) != above(&b) {
			if above(&a) {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(b.Refused, a.Refused), cmp.Compare(a.Name, b.Name))
	})
	return found
}

// withoutBlocked leaves out whom an operator has blocked: of those nobody has to be told.
func (w *watch) withoutBlocked(ctx context.Context, found []report.Tenant) ([]report.Tenant, error) {
	var names []string
	for i := range found[:min(maxLooked, len(found))] {
		names = append(names, found[i].Name)
	}
	if len(names) == 0 {
		return found, nil
	}
	blocked, err := w.cfg.Blocked(ctx, names)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(found, func(t report.Tenant) bool { return blocked[t.Name] }), nil
}

// name gives names to the first of those that were found, as long as there are any.
func (w *watch) name(found []report.Tenant, now time.Time) (r refused) {
	gone := func(at time.Time) bool { return now.Sub(at) >= keptFor || now.Before(at) }
	w.begun = slices.DeleteFunc(w.begun, gone)
	for name, at := range w.named {
		if gone(at) {
			delete(w.named, name)
		}
	}
	for i := range found {
		t := &found[i]
		_, known := w.named[t.Name]
		has := len(r.named) < Names && (known || len(w.begun) < NewNames)
		if has {
			if !known {
				w.begun = append(w.begun, now)
			}
			w.named[t.Name] = now
			r.named = append(r.named, *t)
		}
		if above(t) {
			r.above++
			if !has {
				r.unnamed++
			}
		}
	}
	return r
}
