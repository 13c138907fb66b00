package bucket

import (
	"bytes"
	"math/rand/v2"

	"github.com/gqlgen-ratelimit/ratelimit/internal/state"
)

// evictionSample is among how many entries the one to make room is chosen.
const evictionSample = 8

// evictable is an entry that may make room.
type evictable struct {
	entry
	at      place
	running bool
}

// sampling is what one that makes room is chosen from.
type sampling struct {
	all []evictable
	// each is the share of the pool that stands behind each of them, by the measure that is short.
	each float64
	// latest is the entry that is to stay, nil if there is none, and stays its share.
	latest entry
	stays  float64
	now    int64
}

// evict removes an entry, other than the latest, from a sample: one that has expired, or one of the tenant that takes most of the
// measure which is short, and of these the one that expires first, which of budgets is the nearest to full and of records the
// oldest. Records of operations that are running go last. It reports whether there was any.
func (s *shard) evict(kind poolKind, bytes bool) bool {
	var room [evictionSample]evictable
	sample := s.sample(kind, bytes, room[:0])
	if len(sample.all) == 0 {
		return false
	}
	first := &sample.all[0]
	for i := range sample.all[1:] {
		if e := &sample.all[1+i]; sample.goesBefore(e, first) {
			first = e
		}
	}
	s.drop(first.at)
	return true
}

// stratum is entries of a pool that weigh about as much each, without the latest of the pool.
type stratum struct {
	n      uint32
	weight int64
}

// strata returns those of a pool by one measure, first of the slabs, then of the larges, and what they and the latest weigh.
func (s *shard) strata(p *pool, bytes bool) (all [slabs + largeSizes]stratum, others, stays int64) {
	for class := range p.slabs {
		slab := &p.slabs[class]
		all[class] = stratum{slab.n, slab.used.of(bytes)}
	}
	for size := 0; p.large != nil && size < largeSizes; size++ {
		larges := &p.large[size]
		all[slabs+size] = stratum{uint32(len(larges.all)), larges.used.of(bytes)}
	}
	if p.latest != 0 {
		e := s.at(p.latest)
		within, apart := s.weigh(p.latest, e)
		all[p.latest.class()].leave(within.of(bytes))
		if e.isLarge() {
			size, _ := e.large()
			all[slabs+size].leave(apart.of(bytes))
		}
		stays = within.of(bytes) + apart.of(bytes)
	}
	for i := range all {
		others += all[i].weight
	}
	return all, others, stays
}

func (s *stratum) leave(weight int64) {
	s.n--
	s.weight -= weight
}

// sample adds entries other than the latest to a sample, each as often as it weighs by the measure: whoever takes most has most of the
// sample, be it in many entries or in few. They lie at equal distances, because entries that came one after the other lie beside each
// other, and so do those whose names have the same length: neighbours would be a crowd of few tenants each.
func (s *shard) sample(kind poolKind, bytes bool, room []evictable) sampling {
	p, sample := &s.pools[kind], sampling{all: room, now: s.now()}
	if p.slabs == nil {
		return sample
	}
	strata, others, stays := s.strata(p, bytes)
	if others <= 0 {
		return sample
	}
	if p.latest != 0 {
		sample.latest, sample.stays = s.at(p.latest), float64(stays)
	}
	sample.each = float64(others) / evictionSample
	next := rand.Float64() * sample.each //nolint:gosec // Any start is good enough.
	for i, before := 0, 0.0; i < len(strata); i++ {
		n, weight := strata[i].n, float64(strata[i].weight)
		for ; n > 0 && next < before+weight && len(sample.all) < evictionSample; next += sample.each {
			at := p.other(kind, i, min(n-1, uint32((next-before)/weight*float64(n))))
			e := s.at(at)
			running := e.kind() == recordKey && state.RecordState(s.valueOf(e)) == state.Running
			sample.all = append(sample.all, evictable{e, at, running})
		}
		before += weight
	}
	return sample
}

// other returns the place of an entry by its number in a stratum, in which the latest is not counted.
func (p *pool) other(kind poolKind, stratum int, number uint32) place {
	if stratum < slabs {
		at := placeOf(kind, stratum, number)
		if p.latest != 0 && p.latest.class() == stratum && number >= p.latest.slot() {
			at = placeOf(kind, stratum, number+1)
		}
		return at
	}
	all := p.large[stratum-slabs].all
	if last := len(all) - 1; all[number].at == p.latest {
		// The last one is not among those that are counted if the latest is.
		number = uint32(last)
	}
	return all[number].at
}

// drop removes an entry, and counts it if it is a budget that is not full.
func (s *shard) drop(at place) {
	if now := s.now(); at.pool() == bucketPool && s.at(at).expires() > now {
		s.store.evicted.Add(1)
		if s.store.dropped != nil {
			s.store.dropped(string(s.at(at).tenant()), now)
		}
	}
	s.remove(at)
}

func (s *sampling) goesBefore(e, other *evictable) bool {
	if gone := e.expires() <= s.now; gone != (other.expires() <= s.now) {
		return gone
	}
	if e.running != other.running {
		return other.running
	}
	if most, less := s.takenBy(e.tenant()), s.takenBy(other.tenant()); most != less {
		return most > less
	}
	return e.expires() < other.expires()
}

// takenBy is how much a tenant takes, as far as the sample tells.
func (s *sampling) takenBy(tenant []byte) (taken float64) {
	if s.latest != nil && bytes.Equal(s.latest.tenant(), tenant) {
		taken = s.stays
	}
	for i := range s.all {
		if bytes.Equal(s.all[i].tenant(), tenant) {
			taken += s.each
		}
	}
	return taken
}
