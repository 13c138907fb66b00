package backend

import (
	"cmp"
	"hash/maphash"
	"sync"
)

// bulkheadShards is how many locks the tenants of a Bulkhead share.
const bulkheadShards = 64

// bulkhead bounds how many calls of one tenant are under way in a store at once, so that a tenant whose calls are
// slow does not take the connections, and with them the deadlines, of all others. It allocates nothing for a call. A nil
// bulkhead bounds nothing.
type bulkhead struct {
	most   int
	seed   maphash.Seed
	shards [bulkheadShards]bulkheadShard
}

// bulkheadShard counts the calls that are under way by the hash of their tenant. Two tenants of one hash
// share a bound, which for a million tenants happens to one pair in 30 million processes.
type bulkheadShard struct {
	mu    sync.Mutex
	calls map[uint64]int
}

// newBulkhead returns a bulkhead of so many calls of a tenant at once, zero for the default.
func newBulkhead(most int) *bulkhead {
	b := &bulkhead{most: cmp.Or(most, DefaultMaxConcurrent), seed: maphash.MakeSeed()}
	for i := range b.shards {
		b.shards[i].calls = map[uint64]int{}
	}
	return b
}

// enter counts a call of the tenant and returns its place. It reports false, and counts nothing, if there is none.
func (b *bulkhead) enter(tenant string, always bool) (uint64, bool) {
	if b == nil {
		return 0, true
	}
	hash := maphash.String(b.seed, tenant)
	s := &b.shards[hash%bulkheadShards]
	s.mu.Lock()
	defer s.mu.Unlock()
	if !always && s.calls[hash] >= b.most {
		return hash, false
	}
	s.calls[hash]++
	return hash, true
}

// leave gives a place back.
func (b *bulkhead) leave(hash uint64) {
	if b == nil {
		return
	}
	s := &b.shards[hash%bulkheadShards]
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calls[hash]--; s.calls[hash] == 0 {
		delete(s.calls, hash)
	}
}
