package throttle

import (
	"hash/maphash"
	"io/fs"
	"runtime"
	"time"
)

// ReadProcessor returns what reads the processor time of a process, as its files say.
func ReadProcessor(root fs.FS, clock func() time.Time, processors float64) func() (float64, bool) {
	p := &processor{root: root, clock: clock, processors: processors}
	return p.read
}

// ReadMemory returns what reads the memory of this process, with a limit of the runtime in bytes, zero for none.
func ReadMemory(root fs.FS, limit float64) func() (float64, bool) {
	m := &memory{root: root, limit: limit}
	return m.read
}

// P99 ends a beat of a latency.
func (l *Latency) P99() time.Duration {
	p99, _ := l.p99(nil, latencyBuckets)
	return p99
}

// Apart returns the first tenants of a name with a number that no two of share a slot, nor with others.
func (t *Throttle) Apart(n int, name func(i int) string, others ...string) []string {
	taken := map[uint64]bool{}
	at := func(tenant string) uint64 { return maphash.String(t.seed, tenant) % crowdSlots }
	for _, other := range others {
		taken[at(other)] = true
	}
	var found []string
	for i := 0; len(found) < n; i++ {
		if tenant := name(i); !taken[at(tenant)] {
			taken[at(tenant)] = true
			found = append(found, tenant)
		}
	}
	return found
}

// EndWindow has operations end while none is judged, until so many have ended since the last beat, and ends the window then.
func (t *Throttle) EndWindow(operations uint64, end func()) {
	v := t.flow.voices
	v.mu.Lock()
	defer v.mu.Unlock()
	end()
	for t.flow.completed.Load() < operations {
		runtime.Gosched()
	}
	v.took.p99(nil, latencyBuckets)
	v.reset()
}

// EndBeat ends a beat, and returns the 99th percentile of the latency and the share of failures.
func (t *Throttle) EndBeat() (p99 time.Duration, failures float64) {
	b := t.flow.take(t.cfg.Clock())
	return b.p99, b.failures
}
