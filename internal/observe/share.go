package observe

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// maxFacts is how many facts of a kind are told a second. What comes beyond is told when it happens again.
	maxFacts = 250
	// factsForFirst is how many of them only tenants get that have none yet in the second.
	factsForFirst = 50
)

// factShares divide the facts of each kind that are told in a second among tenants.
type factShares struct {
	seed  maphash.Seed
	began time.Time
	kinds [factKinds]factShare
}

// factShare counts the facts of a kind that were told in a second, of maxFacts tenants at most.
type factShare struct {
	// spent is the number of the second after the last in which all were told: then nobody need wait for the lock.
	spent  atomic.Int64
	mu     sync.Mutex
	second int64
	told   int
	// of has the hashes of tenants, because names from outside may be long. For two that are equal the smaller share has to do.
	of map[uint64]int
}

func newFactShares() *factShares {
	s := &factShares{seed: maphash.MakeSeed(), began: time.Now()}
	for kind := range s.kinds {
		s.kinds[kind].of = make(map[uint64]int)
	}
	return s
}

// fits reports whether another fact of the tenant is told now, and counts it then.
//
// The first of a tenant in a second is told as long as there is one. Further ones are, as long as the tenant had fewer than are
// left to all: one alone gets a hundred, the next half as many, and so on. So a few tenants cannot leave none, however many users they
// have; some sixty can.
func (s *factShares) fits(kind factKind, tenant string, now time.Time) bool {
	// Since the beginning, because that is no clock that somebody sets.
	second := int64(now.Sub(s.began) / time.Second)
	k := &s.kinds[kind]
	if k.spent.Load() > second {
		return false
	}
	id := maphash.String(s.seed, tenant)
	k.mu.Lock()
	defer k.mu.Unlock()
	if second > k.second {
		k.second, k.told = second, 0
		clear(k.of)
	}
	had := k.of[id]
	if k.told >= maxFacts || had > 0 && had >= maxFacts-factsForFirst-k.told {
		return false
	}
	k.of[id]++
	k.told++
	if k.told == maxFacts {
		k.spent.Store(k.second + 1)
	}
	return true
}
