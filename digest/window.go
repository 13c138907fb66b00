package digest

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/internal/pseudonym"
)

const (
	// frames are the parts of a [Window] that are over, beside the one that is counted.
	frames   = 5
	frameFor = Window / (frames + 1)
)

// window counts over the last minute. It belongs to whoever collects.
type window struct {
	// parts are those of the window, the newest last, and tenants their sum, which has every tenant of one of them.
	parts   []*frame
	tenants map[string]*tenant
	trial   uint64
	// uses are the override records of the window.
	uses map[uint64]*use
	// room is how many tenants a part has.
	room int
}

// frame is what was counted in a sixth of a window.
type frame struct {
	from     time.Time
	all      Counts
	tenants  map[string]*tenant
	unlisted int64
	groups   Groups
}

func newFrame(from time.Time) *frame { return &frame{from: from, tenants: make(map[string]*tenant)} }

func newWindow(room int) window {
	return window{room: room, tenants: make(map[string]*tenant), uses: make(map[uint64]*use)}
}

// advance makes the part that is counted at a time the last one, and leaves out what is over.
func (w *window) advance(now time.Time) {
	// A clock that was set back begins another part, as one does whose time is over.
	if n := len(w.parts); n == 0 || now.Before(w.parts[n-1].from) || now.Sub(w.parts[n-1].from) >= frameFor {
		w.parts = append(w.parts, newFrame(now))
	}
	w.forgetUses(now)
	w.parts = slices.DeleteFunc(w.parts, func(f *frame) bool {
		over := now.Before(f.from) || now.Sub(f.from) >= Window
		if over {
			for name, t := range f.tenants {
				w.subtract(name, t)
			}
		}
		return over
	})
}

// subtract takes what a part has of a tenant from the sum.
func (w *window) subtract(name string, t *tenant) {
	sum := w.tenants[name]
	sum.Counts = sum.minus(t.Counts)
	if sum.parts--; sum.parts == 0 {
		delete(w.tenants, name)
	}
}

// begin forgets what was counted of another candidate.
func (w *window) begin(trial uint64) {
	w.trial = trial
	for _, t := range w.tenants {
		t.Counts = t.withoutCandidate()
	}
	for _, f := range w.parts {
		f.all = f.all.withoutCandidate()
		for _, t := range f.tenants {
			t.Counts = t.withoutCandidate()
		}
		f.groups.Tenants.NewlyRefused.reset()
		f.groups.Users.NewlyRefused.reset()
	}
}

// add adds what a slot has counted.
func (w *window) add(s *slot) {
	f := w.parts[len(w.parts)-1]
	f.all = f.all.Plus(s.all)
	f.unlisted += s.unlisted
	f.groups.Tenants.Merge(&s.groups.Tenants)
	f.groups.Users.Merge(&s.groups.Users)
	w.addUses(s.uses)
	for name, t := range s.tenants {
		if t.Decisions > 0 {
			w.addTenant(f, name, t)
		}
	}
}

func (w *window) addTenant(f *frame, name string, t *tenant) {
	part := f.tenants[name]
	if part == nil {
		if len(f.tenants) >= w.room {
			w.prune(f)
		}
		part = &tenant{}
		f.tenants[name] = part
		if w.tenants[name] == nil {
			w.tenants[name] = &tenant{}
		}
		w.tenants[name].parts++
	}
	part.Counts = part.Plus(t.Counts)
	sum := w.tenants[name]
	sum.Counts, sum.tier = sum.Plus(t.Counts), t.tier
}

// prune leaves out the half of a part that asked least, so that those who come later have room.
func (w *window) prune(f *frame) {
	names := slices.SortedFunc(maps.Keys(f.tenants), func(a, b string) int {
		return cmp.Compare(f.tenants[b].Decisions, f.tenants[a].Decisions)
	})
	for _, name := range names[w.room/2:] {
		f.unlisted += f.tenants[name].Decisions
		w.subtract(name, f.tenants[name])
		delete(f.tenants, name)
	}
}

// sum returns the whole window as one part. Its tenants are those of the window.
func (w *window) sum() *frame {
	all := &frame{from: w.parts[0].from, tenants: w.tenants}
	for _, f := range w.parts {
		all.all = all.all.Plus(f.all)
		all.unlisted += f.unlisted
		all.groups.Tenants.Merge(&f.groups.Tenants)
		all.groups.Users.Merge(&f.groups.Users)
	}
	return all
}

// byCounts are the counts by which tenants are chosen.
var byCounts = [...]func(*Counts) int64{
	func(c *Counts) int64 { return c.Decisions },
	func(c *Counts) int64 { return c.Refused },
	func(c *Counts) int64 { return c.WouldRefuse },
	func(c *Counts) int64 { return c.NewlyRefused },
}

// top returns the tenants with most of each count, by name.
func (f *frame) top(most int) []Tenant {
	chosen := make(map[string]bool)
	for _, of := range byCounts {
		var names []string
		for name, t := range f.tenants {
			if of(&t.Counts) > 0 {
				names = append(names, name)
			}
		}
		slices.SortFunc(names, func(a, b string) int {
			return cmp.Or(cmp.Compare(of(&f.tenants[b].Counts), of(&f.tenants[a].Counts)), cmp.Compare(a, b))
		})
		for _, name := range names[:min(most, len(names))] {
			chosen[name] = true
		}
	}
	all := make([]Tenant, 0, len(chosen))
	for name := range chosen {
		t := f.tenants[name]
		all = append(all, Tenant{Name: pseudonym.Written(name), Tier: pseudonym.Written(t.tier), Counts: t.Counts})
	}
	slices.SortFunc(all, func(a, b Tenant) int { return cmp.Compare(a.Name, b.Name) })
	return all
}
