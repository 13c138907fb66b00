package throttle

import (
	"hash/maphash"
	"math"
	"sync/atomic"
	"time"
)

// Start is an operation that runs, for [Throttle.End]. Its zero value ends nothing.
type Start struct {
	since time.Duration
	by    *voice
	// aging says that its age counts while it runs.
	aging bool
}

// flow counts what goes in and what comes out.
type flow struct {
	epoch                       time.Time
	admitted, completed, failed atomic.Uint64
	took                        Latency
	// running is how many run by the second in which they began. What never ends leaves it with its generation.
	running [runningSlots]atomic.Int32
	// swept is the last generation that has nothing of the one before it in its place.
	swept  int64
	voices voices
	// target is that of the latency, and bears the share of failures that is borne, zero where nobody looks.
	target time.Duration
	bears  float64
}

const runningSlots = 64

func newFlow(epoch time.Time, seed maphash.Seed, target time.Duration, bears float64) *flow {
	f := &flow{epoch: epoch, voices: voices{seed: seed}, target: target, bears: bears}
	f.voices.kept.Store(math.Float64bits(1))
	return f
}

func (f *flow) begin(tenant string, now time.Time) Start {
	s := Start{since: now.Sub(f.epoch), by: f.voices.of(tenant)}
	f.admitted.Add(1)
	second := int64(s.since / time.Second)
	if s.aging = f.voices.begin(s.by, generationOf(second)); s.aging {
		f.running[second%runningSlots].Add(1)
	}
	return s
}

func (f *flow) end(s Start, now time.Time, failed bool) {
	if s.by == nil {
		return
	}
	ended := now.Sub(f.epoch)
	if began, second := int64(s.since/time.Second), int64(ended/time.Second); s.aging && generationOf(second+2) < generationOf(began)+generations {
		lower(&s.by.aging[generationOf(began)%generations])
		lower(&f.running[began%runningSlots])
	}
	took := ended - s.since
	f.completed.Add(1)
	f.took.Observe(f.voices.end(s.by, took, f.target))
	if failed && f.voices.fails(s.by, f.bears) {
		f.failed.Add(1)
	}
}

// beat is what went in and out of an instance since the last one.
type beat struct {
	admitted, completed, failed uint64
	p99                         time.Duration
}

// take ends a beat.
func (f *flow) take(now time.Time) beat {
	second := int64(now.Sub(f.epoch) / time.Second)
	// The next second may be of another generation.
	next := generationOf(second + 1)
	for generation := max(f.swept+1, next-generations+1); generation <= next; generation++ {
		f.forget(generation)
	}
	f.swept = next
	b := beat{admitted: f.admitted.Swap(0), completed: f.completed.Swap(0), failed: f.failed.Swap(0)}
	f.voices.ran(b.admitted)
	var over bool
	b.p99, over = f.took.p99(func(yield func(time.Duration, uint32)) {
		for age := int64(1); age < runningSlots-2 && age <= second; age++ {
			if n := f.running[(second-age)%runningSlots].Load(); n > 0 {
				// Those that began in that second are at least as old as the second is over.
				yield(time.Duration(age-1)*time.Second+now.Sub(f.epoch)%time.Second, uint32(n))
			}
		}
	})
	if over {
		f.voices.reset()
	}
	return b
}

// forget makes room for a generation.
func (f *flow) forget(generation int64) {
	f.voices.forget(generation)
	for second := generation * generationSeconds; generationOf(second) == generation; second++ {
		f.running[second%runningSlots].Store(0)
	}
}
