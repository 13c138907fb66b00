package throttle

import (
	"hash/maphash"
	"sync/atomic"
	"time"
)

// Start is an operation that runs, for [Throttle.End]. Its zero value ends nothing.
type Start struct {
	since time.Duration
	by    *voice
}

// flow counts what goes in and what comes out.
type flow struct {
	epoch               time.Time
	admitted, completed atomic.Uint64
	voices              *voices
}

func newFlow(epoch time.Time, seed maphash.Seed, target time.Duration, bears float64) *flow {
	return &flow{epoch: epoch, voices: newVoices(seed, target, bears)}
}

func (f *flow) begin(tenant string, now time.Time) Start {
	s := Start{since: now.Sub(f.epoch), by: f.voices.of(tenant)}
	f.admitted.Add(1)
	s.by.begin(int64(s.since / time.Second))
	return s
}

func (f *flow) end(s Start, now time.Time, failed bool) {
	if s.by == nil {
		return
	}
	ended := now.Sub(f.epoch)
	s.by.end(int64(s.since/time.Second), int64(ended/time.Second))
	f.completed.Add(1)
	f.voices.hear(s.by, ended-s.since, failed)
}

// beat is what went in and out of an instance since the last one.
type beat struct {
	admitted, completed uint64
	p99                 time.Duration
	failures            float64
}

// take ends a beat.
func (f *flow) take(now time.Time) beat {
	b := beat{admitted: f.admitted.Swap(0), completed: f.completed.Swap(0)}
	b.p99, b.failures = f.voices.take(now.Sub(f.epoch), b.completed)
	return b
}
