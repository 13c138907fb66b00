package throttle

import (
	"hash/maphash"
	"math"
	"sync/atomic"
	"time"
)

// voices are what tenants say of the servers by how their operations go. A signal of all tenants must not be what one of them says: its operations may be slow, or fail,
// because of what they ask for. So a tenant is heard up to a bound: of its operations loudest times the share that the signal bears, and one at least, count
// as slow or as failed. Where the servers are overloaded everybody is slow, and the bound does not hide it.
//
// Its operations are those that it asks for. Of what runs a tenant that is not shed has a larger share the more is shed of others, and would keep them shed.
//
// Tenants share voices by a hash that nobody can foresee: two in one voice are heard as one.
type voices struct {
	seed maphash.Seed
	all  [voiceSlots]voice
	// shed is what was shed in this beat and would have run, in 1/floorWhole of an operation.
	shed atomic.Uint64
	// kept is the share of what was asked for that has run in the last beat with operations, as bits of a float64.
	kept atomic.Uint64
}

const (
	voiceSlots = 2048
	loudest    = 10
)

// What runs counts by its age for as long as its generation does: between 48 and 64 seconds.
const (
	generations       = 4
	generationSeconds = runningSlots / generations
)

// generationOf is the generation of what begins in a second.
func generationOf(second int64) int64 { return second / generationSeconds }

// voice is what was heard of a tenant since the window of the latency began.
type voice struct {
	// asked is what it asked for, in 1/floorWhole of an operation: what has begun, and what was shed and would have run.
	asked atomic.Uint64
	// slow and failed are how many of those that ended count as such.
	slow, failed atomic.Int32
	// aging is how many of its operations run that count by their age, by their generation.
	aging [generations]atomic.Int32
	// most says that it asked for half of all in the window before.
	most atomic.Bool
}

func (v *voices) of(tenant string) *voice {
	return &v.all[maphash.String(v.seed, tenant)%voiceSlots]
}

// sheds counts an operation that was shed, and would have run by a share.
func (v *voices) sheds(tenant string, runs float64) {
	n := uint64(runs * floorWhole)
	v.of(tenant).asked.Add(n)
	v.shed.Add(n)
}

// ran ends a beat in which so many operations have begun.
func (v *voices) ran(begun uint64) {
	shed := v.shed.Swap(0)
	if begun > 0 {
		ran := float64(begun) * floorWhole
		v.kept.Store(math.Float64bits(ran / (ran + float64(shed))))
	}
}

// reset begins a window.
func (v *voices) reset() {
	total := uint64(0)
	for i := range v.all {
		total += v.all[i].asked.Load()
	}
	for i := range v.all {
		one := &v.all[i]
		asked := one.asked.Load()
		if most := asked > 0 && 2*asked >= total; most != one.most.Load() {
			one.most.Store(most)
		}
		if asked > 0 {
			one.asked.Store(0)
		}
		if one.slow.Load() > 0 {
			one.slow.Store(0)
		}
		if one.failed.Load() > 0 {
			one.failed.Store(0)
		}
	}
}

// forget has nothing of a generation count by its age any more, so that another one can have its place.
func (v *voices) forget(generation int64) {
	for i := range v.all {
		if aging := &v.all[i].aging[generation%generations]; aging.Load() > 0 {
			aging.Store(0)
		}
	}
}

// bound is how many operations of a voice are heard, where the signal bears a share of them. One alone says nothing, so that who asks for most of what there is, however
// little that is, is heard twice.
func (v *voices) bound(one *voice, bears float64) int64 {
	least := 1.0
	if one.most.Load() {
		least = 2
	}
	asked := float64(one.asked.Load()) / floorWhole
	return int64(max(least, loudest*bears*asked*math.Float64frombits(v.kept.Load())))
}

// runs is how many operations of a voice count by their age.
func (v *voice) runs() (n int64) {
	for i := range v.aging {
		n += int64(v.aging[i].Load())
	}
	return n
}

// begin reports whether the operation counts by its age while it runs.
func (v *voices) begin(one *voice, generation int64) bool {
	one.asked.Add(floorWhole)
	aging := &one.aging[generation%generations]
	aging.Add(1)
	if one.runs()+int64(one.slow.Load()) <= v.bound(one, 1-percentile) {
		return true
	}
	lower(aging)
	return false
}

// end is what an operation counts that took so long: less than the target if enough of the tenant are above it.
func (v *voices) end(one *voice, took, target time.Duration) time.Duration {
	if target <= 0 || took <= target {
		return took
	}
	if int64(one.slow.Add(1))+one.runs() <= v.bound(one, 1-percentile) {
		return took
	}
	one.slow.Add(-1)
	return target / 2
}

// fails reports whether a failure counts. bears is the share of failures that the servers bear, zero if nobody looks at it.
func (v *voices) fails(one *voice, bears float64) bool {
	if bears <= 0 || int64(one.failed.Add(1)) <= v.bound(one, bears) {
		return true
	}
	one.failed.Add(-1)
	return false
}

// lower takes one from a counter that may have been set to zero meanwhile.
func lower(counter *atomic.Int32) {
	for n := counter.Load(); n > 0; n = counter.Load() {
		if counter.CompareAndSwap(n, n-1) {
			return
		}
	}
}
