package bucket

import (
	"hash/maphash"
	"math/rand/v2"
	"strings"
	"sync/atomic"
)

const (
	// forgetSample is among how many owners the one to be forgotten is chosen, and forgetLooks how many are looked at
	// to find so many that may be.
	forgetSample = 8
	forgetLooks  = 64
	// forgetElsewhere is in how many other shards room is looked for.
	forgetElsewhere = 8
	// roomLeast is how many owners each group may have whoever else is remembered: as many as one take.
	roomLeast = MaxLimits
	// forgottenSlots is how many times are remembered of groups that are gone, in each of two rows.
	forgottenSlots = 1 << 14
)

// localGroupKey names the owners that share room: those of a tenant, or the values of one rule that all tenants share,
// whose tenant is nobody. What is tried under one rule is no reason to forget what was tried under another.
type localGroupKey struct {
	tenant, rule string
}

func (k *localKey) group() localGroupKey {
	if k.tenant == "" && k.owner.Part != "" {
		return localGroupKey{rule: k.owner.Name}
	}
	return localGroupKey{tenant: k.tenant}
}

// localGroup is what is remembered of a group.
type localGroup struct {
	key localGroupKey
	// held is how many owners it has, and hand the one of their ring that is looked at next.
	held int64
	hand *localOwner
	// forgotten is when an owner was last forgotten whose spending mattered: who is not known may have been that one,
	// and starts with nothing from then on. Of values that all tenants share none is forgotten before.
	forgotten int64
	standIns  map[uint64]*localOwner
}

// shared reports whether the owners are values that all tenants share.
func (g *localGroup) shared() bool {
	return g.key.tenant == "" && g.key.rule != ""
}

// localRoom bounds how many owners all shards remember together, and divides that among the groups: a group grows while
// it has fewer owners than there is room left. One alone gets half of it all, two a third each, and somebody new
// finds room beside any of them.
type localRoom struct {
	seed                   maphash.Seed
	most                   int64
	held, groups, standIns atomic.Int64
	// forgotten has what [localGroup] says of groups that are gone, by two hashes of their names. Of two groups in
	// one slot the later counts: the one that was not forgotten starts with less than it might in both rows only.
	forgotten [2][forgottenSlots]atomic.Int64
}

// slots returns where a group is in the two rows.
func (r *localRoom) slots(key localGroupKey) (a, b *atomic.Int64) {
	sum := maphash.Comparable(r.seed, key)
	return &r.forgotten[0][sum%forgottenSlots], &r.forgotten[1][sum>>32%forgottenSlots]
}

func (r *localRoom) wasForgotten(key localGroupKey) int64 {
	a, b := r.slots(key)
	return min(a.Load(), b.Load())
}

func (r *localRoom) forget(key localGroupKey, at int64) {
	a, b := r.slots(key)
	for _, slot := range [...]*atomic.Int64{a, b} {
		for was := slot.Load(); was < at && !slot.CompareAndSwap(was, at); was = slot.Load() {
		}
	}
}

// fair is how many owners a group may have where there is no room left.
func (r *localRoom) fair() int64 {
	return max(roomLeast, r.most/max(1, r.groups.Load()))
}

// take takes room for one owner if there is any.
func (r *localRoom) take() bool {
	if r.held.Add(1) <= r.most {
		return true
	}
	r.held.Add(-1)
	return false
}

// owner returns what is known of an owner, and makes room for one that is not. It returns nil if there is no
// room: owners that have something to settle make none.
func (s *localShard) owner(l *local, key localKey, judged bool) *localOwner {
	if o := s.owners[key]; o != nil {
		return o
	}
	if len(key.tenant) > maxLocalName || len(key.owner.Name)+len(key.owner.Part) > maxLocalName {
		return nil
	}
	if !s.makeRoom(l, s.groups[key.group()], judged) {
		return nil
	}
	// A name may be part of a much longer text, which must not stay in memory with it.
	key.tenant, key.owner.Name, key.owner.Part = strings.Clone(key.tenant), strings.Clone(key.owner.Name), strings.Clone(key.owner.Part)
	o := &localOwner{key: key, group: s.group(l, key.group())}
	s.owners[key] = o
	o.group.join(o)
	if other := o.group.standIns[l.standInSlot(key.owner.Part)]; other != nil && other.hasSpent(l.now()) {
		o.inherit(other)
	}
	return o
}

// group returns the group of a name that may be kept, which it makes if there is none.
func (s *localShard) group(l *local, key localGroupKey) *localGroup {
	g := s.groups[key]
	if g == nil {
		g = &localGroup{key: key, forgotten: l.room.wasForgotten(key)}
		s.groups[key] = g
		l.room.groups.Add(1)
	}
	return g
}

// join puts an owner into the ring, as the one that is looked at last.
func (g *localGroup) join(o *localOwner) {
	if g.hand == nil {
		g.hand, o.next, o.before = o, o, o
	} else {
		o.next, o.before = g.hand, g.hand.before
		o.next.before, o.before.next = o, o
	}
	g.held++
}

// makeRoom takes room for one owner more of a group, which is nil if it has none. Where there is none left, a group that
// has no more than its share may displace any owner, and others their own.
func (s *localShard) makeRoom(l *local, g *localGroup, judged bool) bool {
	held := int64(0)
	if g != nil {
		held = g.held
	}
	if held < l.room.most-l.room.held.Load() && l.room.take() {
		return true
	}
	return (held < l.room.fair() && s.forgetAny(l, judged) || held > 0 && s.forgetOf(l, g, judged)) && l.room.take()
}

// mayGo reports whether the owner may be forgotten. One that was judged here makes room only for another to be judged.
// A value that all tenants share makes none while anything of it is spent, or while what the store has said of it
// counts in the absence that lasts: who tries many would empty all others.
func (o *localOwner) mayGo(l *local, judged bool, now int64) bool {
	switch {
	case o.owes || o.taking:
		return false
	case !judged:
		return !o.matters(l, now)
	case o.group.shared():
		return !o.matters(l, now) && (len(o.known) == 0 || l.away.Load()-o.at > max(knownMost, l.config.KnownFor).Milliseconds())
	default:
		return true
	}
}

// matters reports whether the owner would have more if it were forgotten.
func (o *localOwner) matters(l *local, now int64) bool {
	return o.isShare(l) || o.hasSpent(now)
}

// forgetOf removes the owner of a sample of the group that was heard of longest ago.
func (s *localShard) forgetOf(l *local, g *localGroup, judged bool) bool {
	var oldest *localOwner
	now, found := l.now(), 0
	for range min(g.held, forgetLooks) {
		o := g.hand
		g.hand = o.next
		if !o.mayGo(l, judged, now) {
			continue
		}
		if oldest == nil || o.heard() < oldest.heard() {
			oldest = o
		}
		if found++; found == forgetSample {
			break
		}
	}
	if oldest != nil {
		s.remove(l, oldest, now)
	}
	return oldest != nil
}

// forgetAny removes an owner of this shard, or of another that nobody uses at the moment.
func (s *localShard) forgetAny(l *local, judged bool) bool {
	if s.forget(l, judged) {
		return true
	}
	start := rand.IntN(localShards) //nolint:gosec // Any start is good enough.
	for i := range forgetElsewhere {
		other := &l.shards[(start+i)%localShards]
		// Who waited here for another would hold up one that waits for this shard.
		if other == s || !other.mu.TryLock() {
			continue
		}
		made := other.forget(l, judged)
		other.mu.Unlock()
		if made {
			return true
		}
	}
	return false
}

// forget removes the owner of a sample, as the map yields them, that was heard of longest ago. Groups that have
// more than their share give first.
func (s *localShard) forget(l *local, judged bool) bool {
	var oldest *localOwner
	now, fair, looked := l.now(), l.room.fair(), 0
	for _, o := range s.owners {
		if o.mayGo(l, judged, now) {
			rich := o.group.held > fair
			if oldest == nil || rich && oldest.group.held <= fair ||
				rich == (oldest.group.held > fair) && o.heard() < oldest.heard() {
				oldest = o
			}
		}
		if looked++; looked == forgetSample {
			break
		}
	}
	if oldest != nil {
		s.remove(l, oldest, now)
	}
	return oldest != nil
}

// heard is when the owner was heard of last.
func (o *localOwner) heard() int64 {
	return max(o.at, o.used)
}

// remove forgets an owner.
func (s *localShard) remove(l *local, o *localOwner, now int64) {
	g := o.group
	if o.matters(l, now) {
		g.forgotten = max(g.forgotten, now)
	}
	o.govern(l, nil, nil)
	delete(s.owners, o.key)
	if g.hand == o {
		g.hand = o.next
	}
	o.before.next, o.next.before = o.next, o.before
	l.room.held.Add(-1)
	if g.held--; g.held > 0 {
		return
	}
	g.hand = nil
	s.drop(l, g)
}

// drop forgets a group of which nothing is left.
func (s *localShard) drop(l *local, g *localGroup) {
	if g.held > 0 || len(g.standIns) > 0 {
		return
	}
	if g.forgotten > 0 {
		l.room.forget(g.key, g.forgotten)
	}
	delete(s.groups, g.key)
	l.room.groups.Add(-1)
}
