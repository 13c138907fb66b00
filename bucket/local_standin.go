package bucket

import (
	"hash/maphash"
	"slices"
	"strings"
)

const (
	// standInSlots is how many stand-ins one rule may have, and maxStandIns how many there are at most.
	standInSlots = 1024
	maxStandIns  = 4 * standInSlots
	// standInSweep is after how many milliseconds those that are not needed are looked for again.
	standInSweep = 1000
)

// A stand-in is an owner in the place of values that all tenants share and that find no room: many values of a rule have
// one, so that each of them has at most what the stand-in has. What it admits is not settled, because nobody knows for
// whom.

// standsIn reports whether the owner is a stand-in.
func (o *localOwner) standsIn() bool {
	return o.next == nil
}

func (l *local) standInSlot(part string) uint64 {
	return maphash.String(l.seed, part) % standInSlots
}

// judged returns what an owner is judged by, with a stand-in for a value that all tenants share where there is no room.
// Limits that fail local admit nothing that cannot be settled, so that they have none. It returns nil if there is
// nothing to judge it by.
func (s *localShard) judged(l *local, key localKey, limits *Limits, now int64) *localOwner {
	if o := s.owner(l, key, true); o != nil {
		return o
	}
	of := key.group()
	if of.rule == "" || limits.local || len(of.rule) > maxLocalName {
		return nil
	}
	slot := l.standInSlot(key.owner.Part)
	if g := s.groups[of]; g != nil && g.standIns[slot] != nil {
		return g.standIns[slot]
	}
	if l.room.standIns.Load() >= maxStandIns && !s.sweep(l, now) {
		return nil
	}
	of.rule = strings.Clone(of.rule)
	g := s.group(l, of)
	if g.standIns == nil {
		g.standIns = make(map[uint64]*localOwner)
	}
	o := &localOwner{key: localKey{owner: Owner{Level: key.owner.Level, Name: of.rule}}, group: g}
	g.standIns[slot] = o
	l.room.standIns.Add(1)
	return o
}

// sweep removes the stand-ins of which nothing is spent, and reports whether there were any.
func (s *localShard) sweep(l *local, now int64) bool {
	if now >= s.swept && now-s.swept < standInSweep {
		return false
	}
	s.swept = now
	removed := false
	for _, g := range s.groups {
		for slot, o := range g.standIns {
			if o.taking || o.hasSpent(now) {
				continue
			}
			o.govern(l, nil, nil)
			delete(g.standIns, slot)
			l.room.standIns.Add(-1)
			removed = true
		}
		s.drop(l, g)
	}
	return removed
}

// inherit makes what a stand-in has spent the owner's: some of it may have been spent in its name.
func (o *localOwner) inherit(from *localOwner) {
	o.ledger = from.ledger
	o.ledger.Entries = slices.Clone(from.ledger.Entries)
	o.begun = slices.Clone(from.begun)
}
