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
	// recentRefusals is how many refusals of a tenant are searched for one that tells of other owners.
	recentRefusals = 8
	// sampledTenants is among how many tenants the one with most is looked for that makes room.
	sampledTenants = 8
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
	byShape map[uint64]*refusal
	// recent are the latest that came new, the next one in the place of oldest.
	recent [recentRefusals]*refusal
	oldest int
	// nextCall is when the next capped call is due: it may come earlier by the burst. A tenant that has used
	// calls up is kept without refusals until then, or whatever drops them would give the calls back.
	nextCall time.Duration
}

// refusal is what the store knew when it refused a take of these owners, or when it admitted one soon after.
type refusal struct {
	shape    uint64
	judgment *bucket.Judgment
	// buckets and owners are those of the take, as it was asked.
	buckets []bucket.Bucket
	owners  []bucket.Owner
	// sent and received are when the store was asked and when it had answered, refused when it last refused.
	sent, received, refused time.Duration
	// renewing says that a take is on its way to find out what holds now, and doubted that it counts as too old.
	renewing, doubted bool
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

// budget is a bucket without what is asked of it.
type budget struct {
	owner  bucket.Owner
	limits *bucket.Limits
}

func sameBudget(a, b bucket.Bucket) bool { return a.Owner == b.Owner && a.Limits == b.Limits }

// shape returns a number for the owners and limits of a take.
func (c *refusals) shape(take *bucket.Take) uint64 {
	shape := uint64(len(take.Buckets))
	for i := range take.Buckets {
		shape = shape*31 + maphash.Comparable(c.seed, budget{take.Buckets[i].Owner, take.Buckets[i].Limits})
	}
	for i := range take.Owners {
		shape = shape*31 + maphash.Comparable(c.seed, take.Owners[i])
	}
	return shape
}

// knows reports whether anything is known of the tenant.
func (s *refusalShard) knows(tenant string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byTenant[tenant] != nil
}

// find returns the refusal of the same owners under the same limits, nil if there is none.
func (s *refusalShard) find(t *refusedTenant, shape uint64, take *bucket.Take) *refusal {
	r := t.byShape[shape]
	if r == nil || !slices.EqualFunc(r.buckets, take.Buckets, sameBudget) || !slices.Equal(r.owners, take.Owners) {
		return nil
	}
	return r
}

// expired reports whether the refusal is too old, or of a clock that was set back since.
func (r *refusal) expired(now, age time.Duration) bool {
	return now < r.received || age != forever && (r.doubted || now-r.received >= age)
}

// elapsed returns how many milliseconds have passed at most and at least, by the clock of the store, since
// it answered.
func (r *refusal) elapsed(now time.Duration) (latest, earliest int64) {
	latest = (now - r.sent).Milliseconds()
	if now-r.sent > time.Duration(latest)*time.Millisecond {
		latest++
	}
	return latest, (now - r.received).Milliseconds()
}

// evidence returns what is known of owners of the take from takes of other owners, if that refuses it, and
// how many milliseconds ago it held.
func (t *refusedTenant) evidence(take *bucket.Take, now, age time.Duration) (*bucket.Judgment, int64) {
	for _, r := range t.recent {
		if r == nil || r.expired(now, age) {
			continue
		}
		latest, earliest := r.elapsed(now)
		if part := r.judgment.Part(r.buckets, take, latest); part != nil && part.Refuses(take, latest) {
			return part, earliest
		}
	}
	return nil, 0
}

// remember keeps the judgment of a take. One that was admitted changes only what is known already.
func (c *refusals) remember(s *refusalShard, tenant string, take *bucket.Take, result *bucket.Result, version uint64, sent time.Duration) {
	if !rememberable(take) {
		return
	}
	received, shape := c.clock(), c.shape(take)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.version.Load() != version {
		return
	}
	t := s.byTenant[tenant]
	var r *refusal
	if t != nil {
		r = s.find(t, shape, take)
	}
	if result.Verdict == bucket.Admitted {
		switch {
		case r == nil:
		case received-r.refused >= c.age:
			s.remove(t, r)
			s.leave(tenant, t, received)
		case !result.Judgment.Before(r.judgment):
			r.hold(result.Judgment, sent, received)
		}
		return
	}
	if r == nil {
		r = s.add(tenant, shape, take)
	} else if result.Judgment.Before(r.judgment) && !r.expired(received, c.age) {
		// The answers of two takes have come the other way round.
		return
	}
	r.hold(result.Judgment, sent, received)
	r.refused = received
}

// hold replaces the judgment, which is about the owners that the refusal has.
func (r *refusal) hold(j *bucket.Judgment, sent, received time.Duration) {
	j.KeepNames(r.buckets)
	r.judgment, r.sent, r.received, r.renewing, r.doubted = j, sent, received, false, false
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

// add makes room and an entry without a judgment.
func (s *refusalShard) add(tenant string, shape uint64, take *bucket.Take) *refusal {
	for s.entries >= s.most && len(s.byTenant) > 0 {
		s.makeRoom()
	}
	t := s.byTenant[tenant]
	if t == nil {
		t = &refusedTenant{byShape: map[uint64]*refusal{}}
		if s.byTenant == nil {
			s.byTenant = map[string]*refusedTenant{}
		}
		s.byTenant[strings.Clone(tenant)] = t
		s.tenants.Store(int64(len(s.byTenant)))
		s.entries++
	}
	// The caller uses the slices again, and its names may be small parts of large texts.
	r := &refusal{shape: shape, buckets: slices.Clone(take.Buckets), owners: slices.Clone(take.Owners)}
	for i := range r.buckets {
		r.buckets[i].Owner, r.buckets[i].Amounts = keptOwner(r.buckets[i].Owner), nil
	}
	for i := range r.owners {
		r.owners[i] = keptOwner(r.owners[i])
	}
	if t.byShape[shape] == nil && len(t.byShape) > 0 {
		s.entries++
	}
	t.byShape[shape] = r
	t.recent[t.oldest] = r
	t.oldest = (t.oldest + 1) % recentRefusals
	return r
}

// keptOwner is the owner with texts of its own.
func keptOwner(o bucket.Owner) bucket.Owner {
	o.Name, o.Part = strings.Clone(o.Name), strings.Clone(o.Part)
	return o
}

// makeRoom forgets a refusal of the tenant with most among a few.
func (s *refusalShard) makeRoom() {
	var name string
	var most *refusedTenant
	sampled := 0
	// A map begins its round at any place.
	for n, t := range s.byTenant {
		if most == nil || len(t.byShape) > len(most.byShape) {
			name, most = n, t
		}
		if sampled++; sampled == sampledTenants {
			break
		}
	}
	if len(most.byShape) < 2 {
		s.forget(name, most)
		return
	}
	for _, r := range most.byShape {
		s.remove(most, r)
		return
	}
}

// remove forgets a refusal of a tenant, which stays, if need be without one.
func (s *refusalShard) remove(t *refusedTenant, r *refusal) {
	before := t.size()
	delete(t.byShape, r.shape)
	s.entries += t.size() - before
	for i := range t.recent {
		if t.recent[i] == r {
			t.recent[i] = nil
		}
	}
}

// dropOthers forgets what is known of the owners of a take under other limits, or of debts in the terms of others: it was
// charged, so that what they owe comes back as fast as its limits say.
func (s *refusalShard) dropOthers(tenant string, take *bucket.Take) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.byTenant[tenant]
	if t == nil {
		return
	}
	for _, r := range t.byShape {
		if slices.ContainsFunc(r.buckets, func(known bucket.Bucket) bool {
			return slices.ContainsFunc(take.Buckets, func(b bucket.Bucket) bool {
				return b.Owner == known.Owner && (b.Limits != known.Limits || r.judgment.Mixed(b.Owner))
			})
		}) {
			s.remove(t, r)
		}
	}
}

// dropExpired forgets what is known of the owners of a take that was admitted since it was refused, if it is too old to
// be known any better.
func (c *refusals) dropExpired(s *refusalShard, tenant string, take *bucket.Take) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.byTenant[tenant]
	if t == nil {
		return
	}
	now := c.clock()
	if r := s.find(t, c.shape(take), take); r != nil && r.expired(now, c.age) {
		s.remove(t, r)
		s.leave(tenant, t, now)
	}
}

// leave forgets a tenant without refusals, unless it has used calls up.
func (s *refusalShard) leave(tenant string, t *refusedTenant, now time.Duration) {
	if len(t.byShape) == 0 && t.nextCall <= now {
		s.forget(tenant, t)
	}
}

func (s *refusalShard) forget(tenant string, t *refusedTenant) {
	s.entries -= t.size()
	delete(s.byTenant, tenant)
	s.tenants.Store(int64(len(s.byTenant)))
}

// size is as how many entries the tenant counts.
func (t *refusedTenant) size() int { return max(1, len(t.byShape)) }

// giveBack returns a capped call to the tenant.
func (s *refusalShard) giveBack(tenant string, every time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.byTenant[tenant]; t != nil {
		t.nextCall -= every
	}
}

// doubt has the store asked again about what is known of the tenant, as long as it can answer.
func (c *refusals) doubt(tenant string) {
	tenant, s := c.shard(tenant)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version.Add(1)
	if t := s.byTenant[tenant]; t != nil {
		for _, r := range t.byShape {
			r.doubted = true
		}
	}
}

// drop forgets what is known of the tenant: it may have been given budget.
func (c *refusals) drop(tenant string) {
	tenant, s := c.shard(tenant)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version.Add(1)
	if t := s.byTenant[tenant]; t != nil {
		s.entries += 1 - t.size()
		clear(t.byShape)
		t.recent = [recentRefusals]*refusal{}
		s.leave(tenant, t, c.clock())
	}
}
