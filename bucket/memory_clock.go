package bucket

import "time"

// readingAge is how long a reading of the system's clock is used.
const readingAge = 10 * time.Millisecond

// reading is the system's clock, of which the monotonic half alone is read most of the time: that takes
// half as long. A clock that was set is seen after readingAge.
type reading struct {
	at time.Time
	// nanoseconds is at, since 1970.
	nanoseconds int64
}

// now returns Unix milliseconds.
func (r *reading) now() int64 {
	elapsed := time.Since(r.at)
	if elapsed > readingAge || elapsed < 0 {
		r.at, elapsed = time.Now(), 0
		r.nanoseconds = r.at.UnixNano()
	}
	return (r.nanoseconds + int64(elapsed)) / int64(time.Millisecond)
}

// now is the time of the store in Unix milliseconds.
func (s *shard) now() int64 {
	if s.store.clock != nil {
		return dated(s.store.clock())
	}
	return s.read.now()
}

// dated is a date in Unix milliseconds, of those that can be kept.
func dated(t time.Time) int64 {
	return min(max(0, t.UnixMilli()), maxDate-1)
}
