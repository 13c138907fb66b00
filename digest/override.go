package digest

import (
	"cmp"
	"encoding/json"
	"hash/maphash"
	"slices"
	"strings"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/internal/pseudonym"
)

const (
	// maxUses is how many override records are remembered within a window, and usesOfShard how many within a second of a part of the tenants.
	maxUses     = 512
	usesOfShard = maxUses / shards
	// overridesRoom is how many bytes of a digest they have.
	overridesRoom = 8 << 10
)

// use is an override record under which something was decided.
type use struct {
	tenant, level, limit, actor string
	setAt, held, changed        time.Time
}

// use notes that a decision was made under a record, while there is room.
func (s *slot) use(c *Collector, v *event.Verdict, o *event.OverrideUse) {
	var h maphash.Hash
	h.SetSeed(c.seed)
	for _, text := range [...]string{pseudonym.Cut(v.Tenant), o.Level, pseudonym.Cut(o.Owner), pseudonym.Cut(o.Part), pseudonym.Cut(o.Limit), pseudonym.Cut(o.Actor)} {
		_, _ = h.WriteString(text)
		_ = h.WriteByte(0)
	}
	for ms, shift := o.SetAt.UnixMilli(), 0; shift < 64; shift += 8 {
		_ = h.WriteByte(byte(ms >> shift))
	}
	id := h.Sum64()
	is := s.uses[id]
	if is == nil {
		if len(s.uses) >= usesOfShard {
			return
		}
		// The texts may be small parts of large ones.
		is = &use{
			tenant: strings.Clone(pseudonym.Cut(v.Tenant)), level: o.Level, limit: strings.Clone(pseudonym.Cut(o.Limit)), actor: strings.Clone(pseudonym.Cut(o.Actor)), setAt: o.SetAt,
		}
		s.uses[id] = is
	}
	is.held = later(is.held, v.At)
	if o.Changed {
		is.changed = later(is.changed, v.At)
	}
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// addUses adds what a slot has noted.
func (w *window) addUses(uses map[uint64]*use) {
	for id, u := range uses {
		is := w.uses[id]
		if is == nil {
			if len(w.uses) >= maxUses {
				continue
			}
			w.uses[id] = u
			continue
		}
		is.held, is.changed = later(is.held, u.held), later(is.changed, u.changed)
	}
}

// forgetUses leaves out records under which nothing was decided within the window.
func (w *window) forgetUses(now time.Time) {
	for id, u := range w.uses {
		if now.Sub(u.held) >= Window {
			delete(w.uses, id)
		}
	}
}

// overrides returns as many records as there is room for. Which ones is by chance, as maps are walked: so all of them come in turn.
func (w *window) overrides() (listed []Override) {
	room := overridesRoom
	for _, u := range w.uses {
		o := Override{
			Tenant: pseudonym.Written(u.tenant), Level: u.level, Limit: pseudonym.Written(u.limit), Actor: pseudonym.Written(u.actor),
			SetAt: u.setAt.UTC(), Held: u.held.UTC(), Changed: u.changed,
		}
		if !o.Changed.IsZero() {
			o.Changed = o.Changed.UTC()
		}
		// It has no value that JSON has not.
		text, _ := json.Marshal(&o)
		if room -= len(text) + 1; room < 0 {
			break
		}
		listed = append(listed, o)
	}
	slices.SortFunc(listed, func(a, b Override) int {
		return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Level, b.Level), cmp.Compare(a.Limit, b.Limit), a.SetAt.Compare(b.SetAt), cmp.Compare(a.Actor, b.Actor))
	})
	return listed
}
