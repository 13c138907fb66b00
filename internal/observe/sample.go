package observe

import (
	"sync"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/internal/recent"
)

// sample chooses the refusals that are told one by one, so that who does not wait fills no log. It is safe for
// concurrent use, and its memory does not grow.
type sample struct {
	// most is how many are told a second, and ofTenant how many of one tenant: negative for any number, and zero for the
	// first of each second and some more a minute.
	most, ofTenant int
	began          time.Time
	counts         *recent.Counter[refusedIn]

	mu     sync.Mutex
	second int64
	// told is how many were chosen in that second, and untold how many were not since the last that was.
	told   int
	untold int64
}

// refusedIn is a tenant in one stretch of time.
type refusedIn struct {
	tenant  string
	stretch time.Duration
	number  int64
}

const (
	// sampleSlots is how many tenants and stretches are counted at once, in 128 KiB. One that has no room any more is
	// counted anew, under the bound on all.
	sampleSlots = 4096
	// moreAMinute is how many refusals of a tenant are told in a minute besides the first of each second: a client that
	// is refused now and then has the id of each, and one that does not stop makes some seventy lines a minute.
	moreAMinute = 10
)

func newSample(most, ofTenant int) *sample {
	return &sample{most: most, ofTenant: ofTenant, began: time.Now(), counts: recent.NewCounter[refusedIn](sampleSlots)}
}

// choose reports whether a refusal of the tenant is told, and how many were not since the last one that was.
func (s *sample) choose(tenant string, now time.Time, most int) (chosen bool, untold int64) {
	// Since the beginning, because that is no clock that somebody sets.
	since := now.Sub(s.began)
	n := s.count(tenant, now, since, time.Second)
	room := most
	switch {
	case s.ofTenant < 0 || n == 1 || n <= s.ofTenant:
	case s.ofTenant == 0 && s.count(tenant, now, since, time.Minute) <= moreAMinute:
		// The first of each tenant goes before the further ones of others.
		room = most / 2
	default:
		room = 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if second := int64(since / time.Second); second != s.second {
		s.second, s.told = second, 0
	}
	if s.told >= room {
		s.untold++
		return false, 0
	}
	s.told++
	untold, s.untold = s.untold, 0
	return true, untold
}

// count counts a refusal of the tenant in the present stretch.
func (s *sample) count(tenant string, now time.Time, since, stretch time.Duration) int {
	n, _ := s.counts.Count(refusedIn{tenant, stretch, int64(since / stretch)}, now, stretch)
	return n
}
