package throttle

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"
)

// voices are what tenants say of the servers by how their operations go. A signal of all tenants must not be what one of them says, nor what two say: their operations
// may be slow, or fail, because of what they ask for. So of a tenant at most half of what the signal bears counts as late or as failed, and one at least. Where the
// servers are overloaded everybody is slow, and the bound does not hide it.
//
// Tenants share voices by a hash that nobody can foresee: two in one voice are heard as one.
type voices struct {
	seed maphash.Seed
	all  [voiceSlots]voice
	took Latency
	// ended is how many have ended in this window.
	ended atomic.Uint64
	// target is that of the latency, and bears the share of failures that is borne, zero where nobody looks.
	target time.Duration
	bears  float64
	// near is the first bucket of the latency that has the share come back slower, and late the first one above the target.
	near, late int

	// What follows, and the numbers of each voice that are no atomics, are under mu. failed is how many failures of this window count.
	mu     sync.Mutex
	failed uint64
	// swept is the last second that has nothing of the one before it in its place.
	swept int64
}

const (
	voiceSlots   = 1024
	runningSlots = 64
)

// voice is what was heard of a tenant.
type voice struct {
	// heard is how many of those that ended in this window count as near the target and as late, and failed how many as failures.
	heard  [2]uint64
	failed uint64
	// last is the second after the one in which an operation has begun last, zero if none has.
	last atomic.Int64
	// running is how many run by the second in which they began. What never ends leaves it after a minute.
	running [runningSlots]atomic.Int32
}

func newVoices(seed maphash.Seed, target time.Duration, bears float64) *voices {
	v := &voices{seed: seed, target: target, bears: bears, near: latencyBuckets, late: latencyBuckets, swept: runningSlots - 1}
	if target <= 0 {
		return v
	}
	of := func(bucket int) float64 { return pressure(latencyOf(bucket).Seconds(), target.Seconds(), true) }
	for v.late > 0 && of(v.late-1) > 1 {
		v.late--
	}
	for v.near = v.late; v.near > 0 && of(v.near-1) > calm-recovery/easing; {
		v.near--
	}
	return v
}

// classOf is 0 of what is near the target, 1 of what is late, and false of what is neither.
func (v *voices) classOf(took time.Duration) (class int, bounded bool) {
	bucket := latencyBucket(took)
	if bucket >= v.late {
		return 1, true
	}
	return 0, bucket >= v.near
}

// unheard is what counts in the place of what is beyond the bound.
func (v *voices) unheard() time.Duration { return v.target / 4 }

func (v *voices) of(tenant string) *voice {
	return &v.all[maphash.String(v.seed, tenant)%voiceSlots]
}

// loudest is how many of so many operations count of one voice, where the signal bears a share of them. Three voices are heard, and two are not.
func loudest(operations uint64, bears float64) uint64 {
	return max(1, uint64(float64(operations)*bears/2))
}

// begin says that an operation of the voice runs since a second.
func (v *voice) begin(second int64) {
	if v.last.Load() != second+1 {
		v.last.Store(second + 1)
	}
	v.running[second%runningSlots].Add(1)
}

// silent reports whether nothing has begun for so long that all places are empty.
func (v *voice) silent(second int64) bool {
	last := v.last.Load()
	return last == 0 || second-last > runningSlots+2
}

// end says at a second that one has ended.
func (v *voice) end(began, second int64) {
	if second+2 >= began+runningSlots {
		// Its place is that of another second.
		return
	}
	for counter := &v.running[began%runningSlots]; ; {
		n := counter.Load()
		if n <= 0 || counter.CompareAndSwap(n, n-1) {
			return
		}
	}
}

// hear takes in how an operation of a voice went.
func (v *voices) hear(one *voice, took time.Duration, failed bool) {
	class, bounded := v.classOf(took)
	if !bounded && !failed {
		v.ended.Add(1)
		v.took.Observe(took)
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	// A window may have ended while the operation waited: it counts in the one by which it is judged.
	ended := v.ended.Add(1)
	if bounded {
		if one.heard[class] < loudest(ended, 1-percentile) {
			one.heard[class]++
		} else {
			took = v.unheard()
		}
	}
	v.took.Observe(took)
	if failed && one.failed < loudest(ended, v.bears) {
		one.failed++
		v.failed++
	}
}

// take ends a beat. It returns the percentile of the latency, and the share of failures.
func (v *voices) take(now time.Duration) (p99 time.Duration, failures float64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.sweep(int64(now / time.Second))
	ended := v.ended.Load()
	p99, over := v.took.p99(func(yield func(time.Duration, uint64)) { v.ages(now, ended, yield) })
	// One tenant alone says nothing, nor do two.
	if v.failed > 2 {
		failures = float64(v.failed) / float64(ended)
	}
	if over {
		v.reset()
	}
	return p99, failures
}

// reset begins a window. The mutex is held.
func (v *voices) reset() {
	v.ended.Store(0)
	v.failed = 0
	for i := range v.all {
		v.all[i].heard, v.all[i].failed = [2]uint64{}, 0
	}
}

// ages yields what runs by how old it is at least. Of what is late each voice has its bound, the oldest first.
func (v *voices) ages(now time.Duration, ended uint64, yield func(age time.Duration, n uint64)) {
	second, part := int64(now/time.Second), now%time.Second
	oldest := min(second, runningSlots-3)
	var runs [voiceSlots]uint64
	for i := range v.all {
		for age := int64(1); age <= oldest && !v.all[i].silent(second); age++ {
			runs[i] += uint64(max(0, v.all[i].running[(second-age)%runningSlots].Load()))
		}
		ended += runs[i]
	}
	bound := loudest(ended, 1-percentile)
	for i := range v.all {
		left := [2]uint64{bound - min(bound, v.all[i].heard[0]), bound - min(bound, v.all[i].heard[1])}
		for age := oldest; age >= 1 && runs[i] > 0; age-- {
			n := uint64(max(0, v.all[i].running[(second-age)%runningSlots].Load()))
			// Those that began in that second are at least as old as the second is over.
			took := time.Duration(age-1)*time.Second + part
			class, bounded := v.classOf(took)
			if !bounded {
				yield(took, n)
				continue
			}
			heard := min(n, left[class])
			left[class] -= heard
			yield(took, heard)
			yield(v.unheard(), n-heard)
		}
	}
}

// sweep makes room for the two seconds to come, and for those that no beat has seen. What began in these before is not heard.
func (v *voices) sweep(second int64) {
	for next := max(v.swept, second+2-runningSlots) + 1; next <= second+2; next++ {
		for i := range v.all {
			v.all[i].running[next%runningSlots].Store(0)
		}
	}
	v.swept = max(v.swept, second+2)
}
