package collect

import (
	"encoding/binary"
	"hash/maphash"
	"sync"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// maxKnown is of how many hours of tenants it is known what is written, in two generations: some 20 MiB. Those that find no room are
// written whole.
const maxKnown = 200_000

// settling is how many minutes before the one in which they are read most minutes do not change any more.
const settling = 2

// known says what of hours is surely written, so that of an hour that is read every minute the last few minutes are written, and not all of them. It is
// a matter of cost alone, and safe for concurrent use.
type known struct {
	seed maphash.Seed

	mu sync.Mutex
	// newer and older are what was noted, by what it is about. What is not looked at for long enough is dropped.
	newer, older map[uint64]sight
}

// sight is a hash of the first minutes of an hour.
type sight struct {
	minutes int
	hash    uint64
}

func newKnown() *known {
	return &known{seed: maphash.MakeSeed(), newer: make(map[uint64]sight)}
}

// id is what an hour is known by.
func (k *known) id(of bucket.UsageFound) uint64 {
	var h maphash.Hash
	h.SetSeed(k.seed)
	_, _ = h.WriteString(of.Tenant)
	_, _ = h.Write(binary.LittleEndian.AppendUint64([]byte{byte(of.Grade)}, uint64(of.Hour.Unix())))
	return h.Sum64()
}

// look returns the first minute that may not be written yet, and what to note once all from there on is. It was read so many minutes after the hour began.
func (k *known) look(of bucket.UsageFound, read *bucket.UsageHour, now int) (from int, seen sight) {
	seen.minutes = max(0, min(now-settling, int(time.Hour/minute)))
	seen.hash = k.hash(read, seen.minutes)
	id := k.id(of)
	k.mu.Lock()
	there, ok := k.newer[id]
	if !ok {
		there, ok = k.older[id]
	}
	k.mu.Unlock()
	if ok && k.hash(read, there.minutes) == there.hash {
		from = there.minutes
	}
	return from, seen
}

// note notes what is written.
func (k *known) note(of bucket.UsageFound, seen sight) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.newer) >= maxKnown {
		k.newer, k.older = make(map[uint64]sight), k.newer
	}
	k.newer[k.id(of)] = seen
}

// hash is another number for other first minutes.
func (k *known) hash(read *bucket.UsageHour, minutes int) uint64 {
	var h maphash.Hash
	h.SetSeed(k.seed)
	var b []byte
	for i := range read.Counts {
		c := &read.Counts[i]
		begun := false
		for j := range c.Minutes[:minutes] {
			m := &c.Minutes[j]
			if *m == (bucket.UsageMinute{}) {
				continue
			}
			if !begun {
				// A count of which nothing is there yet may come later.
				begun = true
				b = binary.LittleEndian.AppendUint64(b[:0], c.Generation)
				b = append(append(binary.AppendUvarint(b, uint64(len(c.Unit))), c.Unit...), c.Field...)
				b = append(b, 0)
				_, _ = h.Write(b)
			}
			b = append(b[:0], byte(j))
			for _, n := range [...]int64{m.Charged, m.GivenBack, m.Calls} {
				b = binary.LittleEndian.AppendUint64(b, uint64(n))
			}
			_, _ = h.Write(b)
		}
	}
	return h.Sum64()
}
