package placement

import "slices"

// A tenant and a store have a score, and the candidates of a tenant are the stores of the largest ones. A store that comes or goes moves those tenants that it
// has, or is to have, and no others; those of one that goes are spread over all that are left. The scores are part of what instances agree on: they never change.

const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
)

// hash is that of a name: FNV-1a, mixed.
func hash(name string) uint64 {
	h := uint64(fnvOffset)
	for i := range len(name) {
		h = (h ^ uint64(name[i])) * fnvPrime
	}
	return mix(h)
}

// mix spreads each bit over all: the finalizer of SplitMix64.
func mix(h uint64) uint64 {
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}

// drawn is a store that tenants are drawn to.
type drawn struct {
	name string
	hash uint64
}

func draw(names []string) []drawn {
	all := make([]drawn, len(names))
	for i, name := range names {
		all[i] = drawn{name, hash(name)}
	}
	// The order in which a map names them means nothing.
	slices.SortFunc(all, func(a, b drawn) int {
		if a.name < b.name {
			return -1
		}
		return 1
	})
	return all
}

// candidates returns the k stores of the largest scores, the largest first, in room.
func candidates(room []string, all []drawn, tenant string, k int) []string {
	room = room[:0]
	of := hash(tenant)
	var scores [MaxStores]uint64
	for _, d := range all {
		score := mix(of ^ d.hash)
		at := len(room)
		for at > 0 && scores[at-1] < score {
			at--
		}
		if at == k {
			continue
		}
		if len(room) < k {
			room = append(room, "")
		}
		copy(room[at+1:], room[at:])
		copy(scores[at+1:len(room)], scores[at:])
		room[at], scores[at] = d.name, score
	}
	return room
}

// places are where tenants are by one map.
type places struct {
	candidates int
	stores     []drawn
	pins       map[string]string
	// closed are those of the stores that take nobody in.
	closed map[string]bool
}

// home returns the store that a tenant is in, empty if it is in none.
func (p *places) home(tenant string) string {
	if pin, is := p.pins[tenant]; is {
		if p.closed[pin] {
			return ""
		}
		return pin
	}
	var room [MaxStores]string
	for _, name := range candidates(room[:0], p.stores, tenant, p.candidates) {
		if !p.closed[name] {
			return name
		}
	}
	return ""
}

// places returns where tenants are by the map. What drains draws nobody, as if it had gone already; what is lost still does, so that those who have only lost
// candidates are nowhere, and load no other store.
func (m *Map) places() places {
	var names []string
	closed := map[string]bool{}
	for i := range m.Stores {
		store := &m.Stores[i]
		if store.Draining || store.Lost {
			closed[store.Name] = true
		}
		if !store.Draining || store.Lost {
			names = append(names, store.Name)
		}
	}
	return places{candidates: min(m.Candidates, len(names)), stores: draw(names), pins: m.Pins, closed: closed}
}

// Home returns the store that a tenant is in by the map, empty if all that it may be in take nobody in. The map has to be one that [Map.Check] finds good.
func (m *Map) Home(tenant string) string {
	p := m.places()
	return p.home(tenant)
}

// CandidatesOf returns the stores that a tenant may be in by the map, the first choice first.
func (m *Map) CandidatesOf(tenant string) []string {
	p := m.places()
	if pin, is := p.pins[tenant]; is {
		return []string{pin}
	}
	return candidates(nil, p.stores, tenant, p.candidates)
}

// Next returns the map that takes the place of this one with other stores: it has the next generation. The map that is returned has nothing in common with this one.
func (m *Map) Next(stores []Member) *Map {
	next := m.clone()
	next.Generation++
	next.Stores = slices.Clone(stores)
	return next
}
