package bucket

import (
	"sync"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/internal/state"
)

const (
	// memoryShards is how many locks the tenants of a Memory share.
	memoryShards = 64
	// sweepStep is how many entries are looked at for each new one, to remove those that have expired.
	// More than one, so that entries leave faster than they can come.
	sweepStep = 2
	// sweepEvery is after how many calls as many are looked at even if there is no new one. Not after
	// each, because an entry that was not used for a while is not in the cache of the processor.
	sweepEvery = 8
	// answerUnit is how many bytes of an answer count as one more entry.
	answerUnit = 256
)

// shard holds the entries of some tenants, all of those of each.
type shard struct {
	mu sync.Mutex
	// index holds the entries by the hash of their key: a map of numbers takes half the time of one of
	// keys. Of two entries of one hash the older makes room.
	index map[uint64]*entry
	pools [poolKinds]pool
	store *Memory
	read  reading
	// calls counts the calls, and due the entries to be looked at by the next one.
	calls, due int
}

// sweep looks at a few entries and removes those that have expired.
func (s *shard) sweep(now int64) {
	s.calls++
	if s.calls%sweepEvery == 0 {
		s.due += sweepStep
	}
	if s.due == 0 {
		return
	}
	due := s.due
	s.due = 0
	for kind := range s.pools {
		p := &s.pools[kind]
		for range due {
			if len(p.list) == 0 {
				break
			}
			if p.cursor >= len(p.list) {
				p.cursor = 0
			}
			if e := p.list[p.cursor]; e.expires <= now {
				s.remove(e)
				// Where one has expired, more have.
				s.due = sweepStep
			} else {
				p.cursor++
			}
		}
	}
}

// value returns what is kept under a key of the tenant, nil if nothing is.
func (s *shard) value(tenant tenantKey, a *address, now int64) []byte {
	key := s.keyOf(tenant, a)
	if e := s.find(&key, now); e != nil {
		return e.value
	}
	return nil
}

// write keeps something else under a key of the tenant.
func (s *shard) write(tenant tenantKey, a *address, w *state.Write, now int64) {
	key := s.keyOf(tenant, a)
	s.replace(&key, w, now)
}

func (s *shard) replace(key *entryKey, w *state.Write, now int64) {
	if w.Value == nil {
		if e := s.lookup(key); e != nil {
			s.remove(e)
		}
		return
	}
	e := s.obtain(key, now)
	if e.value = w.Value; w.Expiry != 0 {
		e.expires = w.Expiry
	}
	weight := int64(1)
	switch key.kind {
	case recordKey:
		weight += int64(state.AnswerSize(w.Value)+answerUnit-1) / answerUnit
	case overridesKey:
		weight = state.CountOverrides(w.Value)
	case fleetKey:
		weight = 0
	default:
	}
	s.weigh(e, weight)
}

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
