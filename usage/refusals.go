package usage

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/internal/pseudonym"
)

const (
	// Other is the name under which is counted what finds no room under its own, of tenants and of limits. What is really called so is counted
	// with it.
	Other = "*"
	// MaxName is how many bytes of a name are kept.
	MaxName = 256

	// maxTenants is of how many tenants an instance counts by name in an hour, and maxLimits how many limits a tenant has.
	maxTenants = 2048
	maxLimits  = 32
	// refusedHours is of how many hours an instance keeps what it has counted: the present one, and the one before until it is stored.
	refusedHours = 2
)

// Refused is how many operations a run of an instance has refused in an hour, of a tenant and by a limit. It only grows.
type Refused struct {
	// Run tells runs of instances apart. It is empty in a [Refusals.Snapshot], which is of one run.
	Run string
	// Tenant and Limit are cut to [MaxName] bytes, or [Other]. The limit is named as in [ByLimit].
	Tenant, Limit string
	// Hour is when it began, by the clock of the instance, in UTC.
	Hour time.Time
	N    int64
}

// Refusals counts what an instance refuses, by tenant and limit. The zero value is ready. It is safe for concurrent use, and allocates nothing for
// a tenant and limit that was counted in the same hour before. report.Reporter has one.
//
// Once a second one goroutine takes a [Refusals.Snapshot], stores it, and says so by [Refusals.Stored].
type Refusals struct {
	mu    sync.Mutex
	hours []*refusedHour
}

// refusedHour is what was counted in an hour.
type refusedHour struct {
	begin   time.Time
	tenants map[string]map[refusedBy]*refusedCount
}

// refusedBy is what has refused.
type refusedBy struct{ level, name string }

// refusedCount is how much was counted, how much of it a snapshot has had, and how much is stored.
type refusedCount struct{ n, reported, stored int64 }

// Count counts a decision that has refused an operation.
func (r *Refusals) Count(v event.Verdict) {
	if !v.Refused || v.Outcome == "validated" {
		return
	}
	if v.Limit == "" {
		r.add(v.At, v.Tenant, refusedBy{name: cmp.Or(v.Because, v.Outcome)})
		return
	}
	r.add(v.At, v.Tenant, refusedBy{level: v.Level, name: v.Limit})
}

// Add counts a refusal of a tenant.
func (r *Refusals) Add(at time.Time, tenant, limit string) { r.add(at, tenant, refusedBy{name: limit}) }

func (r *Refusals) add(at time.Time, tenant string, by refusedBy) {
	by.name = pseudonym.Cut(by.name)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hour(at.UTC().Truncate(time.Hour)).count(pseudonym.Cut(tenant), by).n++
}

// hour returns that of a time. Where there are too many, the oldest goes, whether or not it is stored.
func (r *Refusals) hour(begin time.Time) *refusedHour {
	for _, h := range r.hours {
		if h.begin.Equal(begin) {
			return h
		}
	}
	h := &refusedHour{begin: begin, tenants: make(map[string]map[refusedBy]*refusedCount)}
	r.hours = append(r.hours, h)
	slices.SortFunc(r.hours, func(a, b *refusedHour) int { return a.begin.Compare(b.begin) })
	if len(r.hours) > refusedHours {
		r.hours = slices.Delete(r.hours, 0, 1)
	}
	return h
}

// count returns the count of a tenant and a limit, or that of all that find no room.
func (h *refusedHour) count(tenant string, by refusedBy) *refusedCount {
	limits := h.tenants[tenant]
	if limits == nil && len(h.tenants) >= maxTenants {
		tenant = Other
		limits = h.tenants[tenant]
	}
	if limits == nil {
		limits = make(map[refusedBy]*refusedCount)
		h.tenants[strings.Clone(tenant)] = limits
	}
	found := limits[by]
	if found == nil && len(limits) >= maxLimits {
		by = refusedBy{name: Other}
		found = limits[by]
	}
	if found == nil {
		found = &refusedCount{}
		limits[refusedBy{strings.Clone(by.level), strings.Clone(by.name)}] = found
	}
	return found
}

// Snapshot returns what has grown since it was [Refusals.Stored]. Each number is that of the whole hour.
func (r *Refusals) Snapshot() []Refused {
	r.mu.Lock()
	defer r.mu.Unlock()
	var grown []Refused
	for _, h := range r.hours {
		for tenant, limits := range h.tenants {
			for by, c := range limits {
				if c.n > c.stored {
					c.reported = c.n
					grown = append(grown, Refused{Tenant: tenant, Limit: by.String(), Hour: h.begin, N: c.n})
				}
			}
		}
	}
	return grown
}

// Stored says that a collector can read what [Refusals.Snapshot] has returned last.
func (r *Refusals) Stored() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, h := range r.hours {
		for _, limits := range h.tenants {
			for _, c := range limits {
				c.stored = max(c.stored, c.reported)
			}
		}
	}
}

// String is the name as it is reported.
func (b refusedBy) String() string {
	if b.level == "" {
		return b.name
	}
	return b.level + ":" + b.name
}
