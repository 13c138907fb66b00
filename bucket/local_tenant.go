package bucket

import (
	"hash/maphash"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync/atomic"
)

const (
	// forgottenSlots is for how many tenants it is remembered when something of them was forgotten. Of two tenants in
	// one slot the later counts, for both.
	forgottenSlots = 1 << 14
	// forgetSample is among how many tenants or owners the one to be forgotten is chosen.
	forgetSample = 8
)

// forgotten has, by a hash of the tenant, when something was forgotten last that shares of it had spent: what is not known
// may have been spent until then, and starts with nothing. It takes no memory until something is forgotten. It is safe for
// concurrent use.
type forgotten struct {
	seed maphash.Seed
	at   atomic.Pointer[forgottenTimes]
}

type forgottenTimes [forgottenSlots]atomic.Int64

func (f *forgotten) slot(at *forgottenTimes, key string) *atomic.Int64 {
	return &at[maphash.String(f.seed, key)%forgottenSlots]
}

// note notes that something was forgotten at the time.
func (f *forgotten) note(key string, at int64) {
	if f.at.Load() == nil {
		f.at.CompareAndSwap(nil, new(forgottenTimes))
	}
	slot := f.slot(f.at.Load(), key)
	for was := slot.Load(); was < at && !slot.CompareAndSwap(was, at); was = slot.Load() {
	}
}

// last is when something was forgotten last, or zero.
func (f *forgotten) last(key string) int64 {
	at := f.at.Load()
	if at == nil {
		return 0
	}
	return f.slot(at, key).Load()
}

// tenant returns what is known of a tenant, and makes room for one that is not. It returns nil if there is none, or the
// name is too long.
func (s *localShard) tenant(l *local, key, name string) *localTenant {
	t := s.tenants[key]
	if t == nil {
		if len(name) > maxLocalName || !s.room(l, nil) {
			return nil
		}
		t = &localTenant{
			key: strings.Clone(key), name: strings.Clone(name), heard: l.now(),
			owners: make(map[Owner]*localOwner), owing: make(map[*localOwner]struct{}),
		}
		s.tenants[t.key] = t
	}
	t.turn = s.turn
	return t
}

// owner returns what is known of an owner, and makes room for one that is not. It returns nil if there is none.
func (s *localShard) owner(l *local, t *localTenant, owner Owner) *localOwner {
	o := t.owners[owner]
	if o == nil {
		if len(owner.Name)+len(owner.Part) > maxLocalName || !s.room(l, t) {
			return nil
		}
		// A name may be part of a much longer text, which must not stay in memory with it.
		owner.Name, owner.Part = strings.Clone(owner.Name), strings.Clone(owner.Part)
		// Unique is enough: it is no secret.
		as := Owner{Level: Operation, Part: strconv.FormatUint(rand.Uint64(), 36)} //nolint:gosec // See above.
		o = &localOwner{owner: owner, as: as}
		t.owners[owner] = o
	}
	o.turn = s.turn
	return o
}

// room takes room for one owner more of a tenant, or for a new tenant, which is nil. A tenant has as many owners as there
// is room left, so that somebody new finds room beside any of them. Where there is none left, one with few owners
// displaces another tenant, and others displace their own owners.
func (s *localShard) room(l *local, t *localTenant) bool {
	for range 2 {
		few := t == nil || len(t.owners) < MaxLimits
		if left := int64(l.config.MaxOwners) - l.held.Load(); left > 0 && (few || int64(len(t.owners)) < left) {
			l.held.Add(1)
			return true
		}
		if few && s.forgetTenant(l) {
			continue
		}
		if t == nil || !s.forgetOwner(l, t) {
			return false
		}
	}
	return false
}

// forgetTenant removes the tenant of a sample, as the map yields them, that was heard of longest ago. One that has
// something to settle stays.
func (s *localShard) forgetTenant(l *local) bool {
	var oldest *localTenant
	looked := 0
	for _, t := range s.tenants {
		if t.turn != s.turn && !t.owes() && (oldest == nil || t.heard < oldest.heard) {
			oldest = t
		}
		if looked++; looked == forgetSample {
			break
		}
	}
	if oldest == nil {
		return false
	}
	for _, o := range oldest.owners {
		oldest.remove(l, o)
	}
	delete(s.tenants, oldest.key)
	l.held.Add(-1)
	return true
}

// forgetOwner removes the owner of a sample of the tenant that was heard of longest ago.
func (s *localShard) forgetOwner(l *local, t *localTenant) bool {
	var oldest *localOwner
	looked := 0
	for _, o := range t.owners {
		if _, owes := t.owing[o]; o.turn != s.turn && !owes && (oldest == nil || max(o.at, o.used) < max(oldest.at, oldest.used)) {
			oldest = o
		}
		if looked++; looked == forgetSample {
			break
		}
	}
	if oldest != nil {
		t.remove(l, oldest)
	}
	return oldest != nil
}

// remove forgets an owner. One that was judged in the absence that lasts would have its share again.
func (t *localTenant) remove(l *local, o *localOwner) {
	if away := l.away.Load(); o.share != nil && away != 0 && o.used >= away {
		l.owners.note(t.key, l.now())
	}
	delete(t.owners, o.owner)
	l.held.Add(-1)
}
