package throttle

import (
	"cmp"
	"hash/maphash"
	"maps"
	"math"
	"slices"
	"sync/atomic"
)

// crowd is the tenants of one place in the order. They share slots by a hash that nobody can foresee: two in one slot count as one.
type crowd struct {
	slots [crowdSlots]slot
	// cut is the share of the operations of strangers that do not run, of whole, by the floor of their tier, and turn counts these operations.
	cut  [floorWhole + 1]atomic.Uint64
	turn atomic.Uint32

	// What follows belongs to who ends beats. groups are the tenants by their floors.
	groups map[uint32]*group
	// trim corrects what is kept by what was: tenants who asked once and come no more leave what they were to have. wanted is the share that
	// was to be kept in the last beat.
	trim, wanted float64
}

const (
	crowdSlots = 2048
	// adapting is how much of a beat counts in what a tenant is known to ask for, and forgetting how much of one in which it asks for less: who comes in bursts is known
	// when the next one comes.
	adapting   = 0.3
	forgetting = 0.1
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
	// known says that it has asked in two beats of late, and asker who has asked last, as long as it has not.
	known atomic.Bool
	asker atomic.Uint32
	// cut is the share of its operations that do not run, of whole.
	cut atomic.Uint64
	// turn counts its operations, so that any few in a row have the share that is kept.
	turn atomic.Uint32
	// floor is that of its tier, in 1/1024.
	floor atomic.Uint32
	// load is what it asks for in a beat, smoothed, and before who had asked last when a beat ended. They belong to who ends beats.
	load   float64
	before uint32
}

// admits takes the next turn. keeps is the share of the operations that run.
func admits(turn *atomic.Uint32, keeps uint64) bool {
	// The golden ratio spreads turns evenly.
	const golden = 0x9E3779B9
	return uint64(turn.Add(1)*golden) < keeps
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
	c.groups, c.trim, c.wanted = make(map[uint32]*group), 1, 1
	return c
}

// of returns the slot of a tenant, and a part of its hash that does not say which slot it is.
func (c *crowd) of(seed maphash.Seed, tenant string) (s *slot, asker uint32) {
	hash := maphash.String(seed, tenant)
	return &c.slots[hash%crowdSlots], uint32(hash >> 32)
}

// turnOf returns what the turn of an operation is taken from, and the share that does not run, of whole. Strangers take turns with each other.
func (c *crowd) turnOf(s *slot, asker, floor uint32) (turn *atomic.Uint32, cut uint64) {
	if s.known.Load() {
		return &s.turn, s.cut.Load()
	}
	s.asker.Store(asker)
	return &c.turn, c.cut[floor].Load()
}

// group is the tenants of a crowd that have one floor.
type group struct {
	slots []*slot
	load  float64
	// strangers is how many come in a beat, and fresh what they ask for. Both are smoothed.
	strangers, fresh float64
	// keeps is the load that is to run.
	keeps float64
}

// share ends a beat: it says of each slot what share of its operations runs in the next one. sheds is the share that is shed of tenants with
// a floor, in 1/1024, and kept the share that ran in the beat that ends, no number if nothing was asked for. Nobody is shed who asks for less than the others are
// left with.
func (c *crowd) share(kept float64, sheds func(floor uint32) float64) {
	c.correct(kept)
	c.gather()
	load, keeps := 0.0, 0.0
	for floor, g := range c.groups {
		load, keeps = load+g.asks(), keeps+g.asks()*(1-sheds(floor))
	}
	c.wanted = 1 - sheds(0)
	if load > 0 {
		c.wanted = keeps / load
	}
	c.spread(keeps)
	for floor, g := range c.groups {
		g.keeps *= c.trim
		c.cut[floor].Store(whole - portion(g.divide()))
		if g.asks() == 0 {
			delete(c.groups, floor)
		}
	}
}

// spread says what of the load that runs each group has: what is below the level that all have in common, and its floor at least.
func (c *crowd) spread(keeps float64) {
	open := maps.Clone(c.groups)
	for spread := false; !spread; {
		var all []asking
		for _, g := range open {
			all = append(all, g.asking()...)
		}
		level := levelOf(all, keeps)
		spread = true
		for floor, g := range open {
			g.keeps = below(level, g.asking())
			if least := g.asks() * float64(floor) / floorWhole; g.keeps < least {
				g.keeps, spread = least, false
				keeps -= least
				delete(open, floor)
			}
		}
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
		c.trim = min(1, c.trim*min(2, c.wanted/kept))
	default:
	}
}

// gather ends the beat of each slot, and finds the tenants of each group.
func (c *crowd) gather() {
	for _, g := range c.groups {
		g.slots, g.load = nil, 0
		g.strangers, g.fresh = (1-adapting)*g.strangers, (1-adapting)*g.fresh
		if g.fresh < forgotten {
			g.strangers, g.fresh = 0, 0
		}
	}
	for i := range c.slots {
		s := &c.slots[i]
		s.learn()
		asked := float64(ended(&s.offered))
		if asked == 0 && s.load == 0 {
			continue
		}
		g := c.group(s.floor.Load())
		known := s.known.Load()
		if asked > 0 && !known {
			asker := s.asker.Load()
			known = s.load > 0 && s.before == asker
			s.before = asker
			if !known {
				g.strangers += adapting
				g.fresh += adapting * asked
			}
		}
		adapts := adapting
		if asked < s.load {
			adapts = forgetting
		}
		if s.load += adapts * (asked - s.load); s.load < forgotten {
			s.load, known = 0, false
			s.known.Store(false)
		}
		if known {
			g.slots, g.load = append(g.slots, s), g.load+s.load
		}
	}
}

// group returns that of a floor.
func (c *crowd) group(floor uint32) *group {
	g := c.groups[floor]
	if g == nil {
		g = &group{}
		c.groups[floor] = g
	}
	return g
}

// asks is what the group asks for.
func (g *group) asks() float64 { return g.load + g.fresh }

// known are the tenants of the group who are no strangers.
func (g *group) known() []asking {
	var all []asking
	for _, s := range g.slots {
		all = append(all, asking{s.load, 1})
	}
	return all
}

// asking are all tenants of the group.
func (g *group) asking() []asking {
	all := g.known()
	if g.fresh > 0 {
		all = append(all, asking{g.fresh / g.strangers, g.strangers})
	}
	return all
}

// divide says who runs what so that all together have what the group keeps, and returns the share of strangers. They have no more than as many tenants who are known
// would have, and no more than half where the known ask for the rest.
func (g *group) divide() (strangers float64) {
	left := g.keeps
	strangers = 1
	if g.fresh > 0 {
		all := g.asking()
		theirs := below(levelOf(all, left), all[len(all)-1:])
		theirs = min(theirs, max(left/2, left-g.load))
		left -= theirs
		strangers = theirs / g.fresh
	}
	level := levelOf(g.known(), left)
	for _, s := range g.slots {
		s.cut.Store(whole - portion(level/s.load))
		s.known.Store(true)
	}
	return strangers
}

// asking is how many tenants ask for a load each.
type asking struct{ load, tenants float64 }

// below is what tenants ask for that is below a level.
func below(level float64, all []asking) (load float64) {
	for _, a := range all {
		load += a.tenants * min(level, a.load)
	}
	return load
}

// levelOf returns the level above which nobody has more, so that all together have what is left.
func levelOf(all []asking, left float64) float64 {
	all = slices.SortedFunc(slices.Values(all), func(a, b asking) int { return cmp.Compare(a.load, b.load) })
	tenants := 0.0
	for _, a := range all {
		tenants += a.tenants
	}
	for _, a := range all {
		if level := left / tenants; a.load > level {
			return level
		}
		left -= a.load * a.tenants
		tenants -= a.tenants
	}
	return math.Inf(1)
}

// portion is a share of whole.
func portion(share float64) uint64 {
	return uint64(math.Round(max(0, min(1, share)) * whole))
}
