package throttle

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"
)

// voices are what tenants say of the servers by how their operations go. A signal of all tenants must not be what few of them say: their operations may be slow, or
// fail, because of what they ask for. So it takes three voices, and a tenth of those that were heard in the last ten seconds: of fewer nothing counts that is late
// or failed, and of one it never counts for more than its part of what the signal bears. Where the servers are overloaded everybody is slow, and the rule does not
// hide it.
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
	// lately is how many have ended, fading, and need how many voices a signal takes.
	lately float64
	need   int
	// swept is the last second that has nothing of the one before it in its place.
	swept int64
}

const (
	voiceSlots   = 1024
	runningSlots = 64
	// leastVoices is the least number of voices that a signal takes. It takes one of every oneIn voices that were heard.
	leastVoices = 3
	oneIn       = 10
	// heardFor is for how many seconds a voice is one of those that were heard, and fades what a beat leaves of what they said. After ten beats a tenth is left, and
	// silence is less than that.
	heardFor = 10
	fades    = 0.8
	silence  = 0.1
)

// What a voice can say of an operation: that it was near the target or late, that it was late, and that it failed.
const (
	saysNear = iota
	saysLate
	saysFailed
	sayings
)

// voice is what was heard of a tenant.
type voice struct {
	// heard is how many of those that ended in this window count as near the target and as late, and failed how many as failures.
	heard  [2]uint64
	failed uint64
	// said is how many of those that ended said what, fading.
	said said
	// last is the second after the one in which an operation has begun last, zero if none has.
	last atomic.Int64
	// running is how many run by the second in which they began. What never ends leaves it after a minute.
	running [runningSlots]atomic.Int32
}

func newVoices(seed maphash.Seed, target time.Duration, bears float64) *voices {
	v := &voices{seed: seed, target: target, bears: bears, near: latencyBuckets, late: latencyBuckets, need: leastVoices, swept: runningSlots - 1}
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

// part is how many of so many operations one voice says at most, where the signal bears a share of them. All but one of the voices that it takes say together no more
// than it bears.
func (v *voices) part(operations, bears float64) float64 {
	return operations * bears / float64(v.need-1)
}

// loudest is the part of a voice in whole operations, and one at least.
func (v *voices) loudest(operations uint64, bears float64) uint64 {
	return max(1, uint64(v.part(float64(operations), bears)))
}

// begin says that an operation of the voice runs since a second.
func (v *voice) begin(second int64) {
	if v.last.Load() != second+1 {
		v.last.Store(second + 1)
	}
	v.running[second%runningSlots].Add(1)
}

// silent reports whether nothing has begun for so many seconds.
func (v *voice) silent(second, seconds int64) bool {
	last := v.last.Load()
	return last == 0 || second-last > seconds
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
		one.said.add(class, 1)
		if one.heard[class] < v.loudest(ended, 1-percentile) {
			one.heard[class]++
		} else {
			took = v.unheard()
		}
	}
	v.took.Observe(took)
	if !failed {
		return
	}
	one.said[saysFailed]++
	if one.failed < v.loudest(ended, v.bears) {
		one.failed++
		v.failed++
	}
}

// said is how many operations a voice says what of.
type said [sayings]float64

// add takes in operations of a class. What is late is near as well.
func (s *said) add(class int, operations float64) {
	for saying := saysNear; saying <= class; saying++ {
		s[saying] += operations
	}
}

// fade ends a beat.
func (s *said) fade() {
	for saying := range s {
		if s[saying] *= fades; s[saying] < silence {
			s[saying] = 0
		}
	}
}

// take ends a beat, in which so many operations have ended. It returns the percentile of the latency, and the share of failures, without what too few voices say.
func (v *voices) take(now time.Duration, completed uint64) (p99 time.Duration, failures float64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.sweep(int64(now / time.Second))
	v.lately = fades*v.lately + float64(completed)
	running, broad := v.survey(now)
	counts := latencyBuckets
	switch {
	case !broad[saysNear]:
		counts = v.near
	case !broad[saysLate]:
		counts = v.late
	default:
	}
	ended := v.ended.Load()
	p99, over := v.took.p99(func(yield func(time.Duration, uint64)) { v.ages(now, ended+running, yield) }, counts)
	if broad[saysFailed] {
		failures = float64(v.failed) / float64(max(ended, 1))
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

// survey returns how many operations run, and reports of what is said whether as many voices say it as a signal takes. A voice counts whole if it says its part of
// what the signal bears, and less if it says less. What ended fades. The mutex is held.
func (v *voices) survey(now time.Duration) (running uint64, broad [sayings]bool) {
	second := int64(now / time.Second)
	var heard []said
	for i := range v.all {
		one := &v.all[i]
		says, ran := one.said, running
		one.ages(now, func(age time.Duration, n uint64) {
			running += n
			if class, bounded := v.classOf(age); bounded {
				says.add(class, float64(n))
			}
		})
		if running > ran || says != (said{}) || !one.silent(second, heardFor) {
			heard = append(heard, says)
		}
		if one.said != (said{}) {
			one.said.fade()
		}
	}
	v.need = max(leastVoices, (len(heard)+oneIn-1)/oneIn)
	operations := v.lately + float64(running)
	for saying, bears := range [sayings]float64{1 - percentile, 1 - percentile, v.bears} {
		part, voices := v.part(operations, bears), 0.0
		for _, says := range heard {
			if says[saying] > 0 {
				voices += min(1, says[saying]/part)
			}
		}
		broad[saying] = voices > float64(v.need-1)
	}
	return running, broad
}

// ages yields what runs by how old it is at least. Of what is near the target or late each voice has its bound in so many operations, the oldest first.
func (v *voices) ages(now time.Duration, operations uint64, yield func(age time.Duration, n uint64)) {
	bound := v.loudest(operations, 1-percentile)
	for i := range v.all {
		one := &v.all[i]
		left := [2]uint64{bound - min(bound, one.heard[0]), bound - min(bound, one.heard[1])}
		one.ages(now, func(age time.Duration, n uint64) {
			class, bounded := v.classOf(age)
			if !bounded {
				yield(age, n)
				return
			}
			heard := min(n, left[class])
			left[class] -= heard
			yield(age, heard)
			yield(v.unheard(), n-heard)
		})
	}
}

// ages yields what runs of a voice by how old it is at least, the oldest first.
func (v *voice) ages(now time.Duration, yield func(age time.Duration, n uint64)) {
	second, part := int64(now/time.Second), now%time.Second
	if v.silent(second, runningSlots+2) {
		// All places are empty.
		return
	}
	for age := min(second, runningSlots-3); age >= 1; age-- {
		if n := v.running[(second-age)%runningSlots].Load(); n > 0 {
			// Those that began in that second are at least as old as the second is over.
			yield(time.Duration(age-1)*time.Second+part, uint64(n))
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
