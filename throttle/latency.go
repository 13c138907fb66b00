package throttle

import (
	"math"
	"math/bits"
	"sync/atomic"
	"time"
)

// Latency measures how long something takes, of what is reported with [Latency.Observe]. It is safe for concurrent use.
type Latency struct {
	// counts are by durations, each an eighth of a power of two wide.
	counts [latencyBuckets]atomic.Uint32

	// What follows belongs to who reads.
	window [latencyBuckets]uint32
	beats  int
}

const (
	// latencyBuckets go from a microsecond to about an hour.
	latencyParts   = 8
	latencyBuckets = 32 * latencyParts
	// enough is how many durations the 99th percentile is found among, and longestWindow for how many beats they are collected.
	enough        = 100
	longestWindow = 5
	percentile    = 0.99
)

// Observe notes how long it took. It takes no memory.
func (l *Latency) Observe(took time.Duration) { l.counts[latencyBucket(took)].Add(1) }

// latencyBucket is the number of the bucket of a duration.
func latencyBucket(took time.Duration) int {
	n := uint64(max(took.Microseconds(), 1))
	power := bits.Len64(n) - 1
	// The three bits below the highest one.
	part := (n << (63 - power)) >> 60 & (latencyParts - 1)
	return min(power*latencyParts+int(part), latencyBuckets-1)
}

// latencyOf is the upper end of a bucket.
func latencyOf(bucket int) time.Duration {
	power, part := bucket/latencyParts, bucket%latencyParts
	return time.Duration(math.Ldexp(1+float64(part+1)/latencyParts, power) * float64(time.Microsecond))
}

// p99 ends a beat and returns the 99th percentile of it, of the operations that have ended and of those that have not, by their
// ages so far: of as many beats, at most five, as have a hundred, and whether that was the last one of these. Of the buckets so many count, the shortest durations
// first. It returns zero if there were no operations. Two operations alone say nothing.
func (l *Latency) p99(running func(yield func(age time.Duration, n uint64)), counts int) (p99 time.Duration, over bool) {
	total := uint64(0)
	for i := range l.counts {
		l.window[i] += l.counts[i].Swap(0)
		total += uint64(l.window[i])
	}
	if total > 0 {
		l.beats++
	}
	all := l.window
	if running != nil {
		running(func(age time.Duration, n uint64) {
			all[latencyBucket(age)] += uint32(n)
			total += n
		})
	}
	if over = total >= enough || l.beats >= longestWindow; over {
		l.window, l.beats = [latencyBuckets]uint32{}, 0
	}
	for _, n := range all[counts:] {
		total -= uint64(n)
	}
	if total == 0 {
		return 0, over
	}
	above := max(2, uint64(float64(total)*(1-percentile)))
	for i := counts - 1; ; i-- {
		n := uint64(all[i])
		if n > above || i == 0 {
			return latencyOf(i), over
		}
		above -= n
	}
}
