package throttle

import (
	"cmp"
	"hash/maphash"
	"math"
	"slices"
	"sync/atomic"
)

// crowd is the tenants of one place in the order. They share slots by a hash that nobody can foresee: two in one slot count as one.
type crowd struct {
	slots [crowdSlots]slot
	// strangers is what tenants ask for that have not asked of late, smoothed.
	strangers float64
	// trim corrects what is kept by what was: tenants who asked once and come no more leave what they were to have. wanted is the share that
	// was to be kept in the last beat.
	trim, wanted float64
}

const (
	crowdSlots = 2048
	// adapting is how much of a beat counts in what a tenant is known to ask for.
	adapting = 0.3
	// forgotten is the load in points a second below which nothing is known of a tenant.
	forgotten = 0.01
	// whole is a kept share of 1.
	whole = 1 << 32
)

// slot is what is known of a tenant.
type slot struct {
	// offered is what it has asked for in this beat.
	offered atomic.Int64
	// passed is what was not shed of that in this beat, and withdrawn what of it did not run after all.
	passed, withdrawn atomic.Int64
	// idle is the share of what is not shed that does not run, in 1/1024, smoothed.
	idle atomic.Uint32
	// known says that it has asked of late.
	known atomic.Bool
	// cut is the share of its operations that do not run, of whole.
	cut atomic.Uint64
	// turn counts its operations, so that any few in a row have the share that is kept.
	turn atomic.Uint32
	// floor is that of its tier, in 1/1024.
	floor atomic.Uint32
	// load is what it asks for in a beat, smoothed. It belongs to who ends beats.
	load float64
}

// admits takes the next turn of a tenant. keeps is the share of its operations that run.
func (s *slot) admits(keeps uint64) bool {
	// The golden ratio spreads turns evenly.
	const golden = 0x9E3779B9
	return uint64(s.turn.Add(1)*golden) < keeps
}

// runs is the share of what is not shed that runs.
func (s *slot) runs() float64 { return 1 - float64(s.idle.Load())/floorWhole }

// learn ends a beat: it says what share runs.
func (s *slot) learn() {
	passed, withdrawn := drained(&s.passed), drained(&s.withdrawn)
	if passed <= 0 {
		return
	}
	idle := 1 - s.runs()
	idle += adapting * (min(1, float64(withdrawn)/float64(passed)) - idle)
	s.idle.Store(uint32(math.Round(idle * floorWhole)))
}

func newCrowd() *crowd {
	c := new(crowd)
	c.trim, c.wanted = 1, 1
	return c
}

func (c *crowd) of(seed maphash.Seed, tenant string) *slot {
	return &c.slots[maphash.String(seed, tenant)%crowdSlots]
}

// group is the tenants of a crowd that have one floor.
type group struct {
	slots []*slot
	load  float64
	// keeps is the load that is to run.
	keeps float64
}

// share ends a beat: it says of each slot what share of its operations runs in the next one. sheds is the share that is shed of tenants with
// a floor, in 1/1024, and kept the share that ran in the beat that ends. Within a group nobody is shed who asks for less than what the others
// are left with.
func (c *crowd) share(kept float64, sheds func(floor uint32) float64) {
	c.correct(kept)
	groups, fresh := c.gather()
	// Those who were new in one beat are known in the next: what lasts is what comes new in every one.
	lasting := min(c.strangers, fresh)
	c.strangers += adapting * (fresh - c.strangers)
	load, keeps := 0.0, 0.0
	for floor, g := range groups {
		g.keeps = g.load * (1 - sheds(floor))
		load, keeps = load+g.load, keeps+g.keeps
	}
	c.wanted = 1 - sheds(0)
	if load > 0 {
		c.wanted = keeps / load
	}
	// Whoever has not asked of late asks for less than its share, as long as the others can make up for that.
	strangers := 1.0
	if lasting > forgotten {
		strangers = min(1, c.wanted+keeps/lasting)
		extra := lasting * (strangers - c.wanted)
		for _, g := range groups {
			g.keeps = max(0, g.keeps-extra*g.keeps/max(keeps, forgotten))
		}
	}
	cut := whole - portion(strangers*c.trim)
	for i := range c.slots {
		s := &c.slots[i]
		known := s.load > 0
		// Most slots stay as they are, and to look takes less than to write.
		if !known && s.cut.Load() != cut {
			s.cut.Store(cut)
		}
		if s.known.Load() != known {
			s.known.Store(known)
		}
	}
	for _, g := range groups {
		g.keeps *= c.trim
		g.divide()
	}
}

// leastTrim bounds how much is corrected, and tolerance is how much more than wanted may run uncorrected.
const (
	leastTrim = 1.0 / 16
	tolerance = 0.02
)

// correct moves the trim by the share that ran.
func (c *crowd) correct(kept float64) {
	switch {
	case c.wanted >= 1:
		c.trim = 1
	case kept > c.wanted+tolerance:
		c.trim = max(leastTrim, c.trim*max(0.5, c.wanted/kept))
	case kept < c.wanted:
		c.trim = min(1, c.trim*min(2, c.wanted/max(kept, leastTrim)))
	default:
	}
}

// gather ends the beat of each slot. It returns the tenants by their floors, and what those asked for of whom nothing was known.
func (c *crowd) gather() (groups map[uint32]*group, fresh float64) {
	groups = make(map[uint32]*group)
	for i := range c.slots {
		s := &c.slots[i]
		s.learn()
		asked := float64(ended(&s.offered))
		if s.load == 0 {
			fresh += asked
		}
		if s.load += adapting * (asked - s.load); s.load < forgotten {
			s.load = 0
			continue
		}
		floor := s.floor.Load()
		g := groups[floor]
		if g == nil {
			g = &group{}
			groups[floor] = g
		}
		g.slots, g.load = append(g.slots, s), g.load+s.load
	}
	return groups, fresh
}

// divide finds the level above which nobody has more, so that all together have what the group keeps.
func (g *group) divide() {
	slices.SortFunc(g.slots, func(a, b *slot) int { return cmp.Compare(a.load, b.load) })
	left := g.keeps
	for i, s := range g.slots {
		level := left / float64(len(g.slots)-i)
		if s.load > level {
			for _, above := range g.slots[i:] {
				above.cut.Store(whole - portion(level/above.load))
			}
			return
		}
		s.cut.Store(0)
		left -= s.load
	}
}

// portion is a share of whole.
func portion(share float64) uint64 {
	return uint64(math.Round(max(0, min(1, share)) * whole))
}
