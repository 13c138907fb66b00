package backend

import (
	"crypto/sha256"
	"hash/maphash"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

const (
	// refusalShards is how many locks the tenants of a refusals share.
	refusalShards = 64
	// tenantRefusals is how many refusals of a tenant are remembered: of so many owners, or limits.
	tenantRefusals = 16
	// maxRefusalOwners and maxRefusalNames bound the owners of a take that is remembered, and the bytes of
	// their names.
	maxRefusalOwners = 128
	maxRefusalNames  = 4096
)

// refusalShard holds the refusals of some tenants, all of those of each.
type refusalShard struct {
	// tenants is the length of byTenant, for those who need not look.
	tenants atomic.Int64
	// version counts what dropped refusals. An answer that was asked for under another one may be older
	// than what was given back since.
	version atomic.Uint64

	mu       sync.Mutex
	byTenant map[string]*refusedTenant
	// entries is how many refusals there are, and tenants without one, and most how many there may be.
	entries, most int
}

// refusedTenant is what is known of a tenant that is refused.
type refusedTenant struct {
	// refusals are of different owners or limits, those that came new last at the end.
	refusals []*refusal
	// nextCall is when the next capped call is due: it may come earlier by the burst. A tenant that has used
	// calls up is kept without refusals until then, or whatever drops them would give the calls back.
	nextCall time.Duration
}

// shard returns the shard of a tenant, and the name under which it is kept there.
func (c *refusals) shard(tenant string) (string, *refusalShard) {
	tenant = kept(tenant)
	return tenant, &c.shards[maphash.String(c.seed, tenant)%refusalShards]
}

// maxTenantName is the length in bytes of the longest name of a tenant that is kept as it is.
const maxTenantName = 64

// kept bounds the length of a name that is kept. The two forms never meet, because names that start with ~ are always
// hashed.
func kept(name string) string {
	if len(name) <= maxTenantName && !strings.HasPrefix(name, "~") {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return "~" + string(sum[:])
}

// rememberable reports whether the names of the take are few and short enough to be kept.
func rememberable(take *bucket.Take) bool {
	if len(take.Buckets)+len(take.Owners) > maxRefusalOwners {
		return false
	}
	names := 0
	for i := range take.Buckets {
		names += len(take.Buckets[i].Owner.Name) + len(take.Buckets[i].Owner.Part)
	}
	for i := range take.Owners {
		names += len(take.Owners[i].Name) + len(take.Owners[i].Part)
	}
	return names <= maxRefusalNames
}

// same returns the refusal of the same owners under the same limits, nil if there is none.
func (t *refusedTenant) same(take *bucket.Take) *refusal {
	for _, r := range t.refusals {
		if r.isOf(take) {
			return r
		}
	}
	return nil
}

// find returns a refusal that refuses the take, nil if none does: that of the same owners and limits, or one of others.
func (t *refusedTenant) find(take *bucket.Take, now, age time.Duration) (r *refusal, same bool) {
	if r := t.same(take); r != nil && r.refuses(take, now, age) {
		return r, true
	}
	for _, r := range t.refusals {
		if r.refuses(take, now, age) {
			return r, false
		}
	}
	return nil, false
}

// refused keeps the answer to a take that was refused.
func (s *refusalShard) refused(tenant string, take *bucket.Take, result *bucket.Result, sent, received, age time.Duration) {
	t := s.byTenant[tenant]
	if t == nil {
		t = &refusedTenant{}
		s.makeRoom()
		s.byTenant[strings.Clone(tenant)] = t
		s.entries++
		s.tenants.Store(int64(len(s.byTenant)))
	}
	r := t.same(take)
	switch {
	case r == nil:
		r = newRefusal(take)
		before := t.size()
		if n := len(t.refusals); n >= tenantRefusals || n > 0 && s.entries >= s.most {
			t.refusals = slices.Delete(t.refusals, 0, 1)
		}
		t.refusals = append(t.refusals, r)
		s.entries += t.size() - before
	case sent < r.sent && !r.expired(received, age):
		// The answers of two takes have come the other way round.
		return
	}
	r.hold(result, sent, received)
	r.refused = received
}

// makeRoom forgets any of the tenants while there are too many refusals.
func (s *refusalShard) makeRoom() {
	for name, t := range s.byTenant {
		if s.entries < s.most {
			return
		}
		s.forget(name, t)
	}
}

// remove forgets refusals of a tenant, which stays, if need be without one.
func (s *refusalShard) remove(t *refusedTenant, which func(*refusal) bool) {
	s.entries -= t.size()
	t.refusals = slices.DeleteFunc(t.refusals, which)
	s.entries += t.size()
}

// leave forgets a tenant without refusals, unless it has used calls up.
func (s *refusalShard) leave(tenant string, t *refusedTenant, now time.Duration) {
	if len(t.refusals) == 0 && t.nextCall <= now {
		s.forget(tenant, t)
	}
}

func (s *refusalShard) forget(tenant string, t *refusedTenant) {
	s.entries -= t.size()
	delete(s.byTenant, tenant)
	s.tenants.Store(int64(len(s.byTenant)))
}

// size is as how many entries the tenant counts.
func (t *refusedTenant) size() int { return max(1, len(t.refusals)) }

// drop forgets what is known of the tenant, who may have been given budget. If it only may owe on other terms, the store is
// asked again as long as it can answer.
func (c *refusals) drop(tenant string, doubt bool) {
	tenant, s := c.shard(tenant)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version.Add(1)
	if t := s.byTenant[tenant]; t != nil {
		s.remove(t, func(r *refusal) bool {
			r.doubted = true
			return !doubt
		})
		s.leave(tenant, t, c.clock())
	}
}
