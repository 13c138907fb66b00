package bucket

import (
	"context"
	"fmt"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket/internal/deadline"
	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
	"github.com/gqlgen-ratelimit/ratelimit/internal/luatest"
	"github.com/gqlgen-ratelimit/ratelimit/internal/state"
)

// SetTestClock makes the store run scripts that take the time, in Unix milliseconds, from now.
func (r *Redis) SetTestClock(now func() int64) error {
	for _, script := range r.scripts.All() {
		if err := luatest.SetClock(script); err != nil {
			return err
		}
	}
	r.testClock = now
	return nil
}

// BucketKey returns the key of a bucket.
func (r *Redis) BucketKey(tenant string, owner Owner) string {
	return newKeyspace(r.namespace, tenant).key(bucketAddress(&owner, ""))
}

// ReadOverrides reads override records as they are stored, and returns how many there are.
func ReadOverrides(text string) (int, error) {
	set, err := readOverrides(text)
	if set == nil {
		return 0, err
	}
	return len(set.records), err
}

// KnownOverrides returns of how many tenants the store knows the override records.
func (r *Redis) KnownOverrides() int { return len(r.known.sets) }

// RecordKey returns the key of the record of a claim.
func (r *Redis) RecordKey(tenant string, claim *idempotency.Claim) string {
	return newKeyspace(r.namespace, tenant).key(recordAddress(claim))
}

// CandidateKey returns the key of a bucket under a candidate policy.
func (r *Redis) CandidateKey(tenant, id string, owner Owner) string {
	return newKeyspace(r.namespace, tenant).key(bucketAddress(&owner, id))
}

// OverridesKey returns the key of the override records of a tenant.
func (r *Redis) OverridesKey(tenant string) string {
	return newKeyspace(r.namespace, tenant).key(address{kind: overridesKey})
}

// LearnOffset makes the store believe that the clock of the server is off by some milliseconds from
// what it last learned.
func (r *Redis) LearnOffset(milliseconds int64) {
	for i := range r.offsets.groups {
		r.offsets.groups[i].low.Add(milliseconds)
	}
}

// Offset is an estimate of the clock of one node.
type Offset struct{ offsets }

// NewOffset returns an estimate that knows nothing, and when it starts.
func NewOffset() (*Offset, time.Time) {
	o := &Offset{newOffsets(false, time.Now)}
	return o, o.start
}

// Learn is offsets.learn.
func (o *Offset) Learn(sent, received time.Time, now int64) { o.learn(0, sent, received, now, false) }

// ApplyBefore is offsets.applyBefore.
func (o *Offset) ApplyBefore(deadline time.Time) int64 { return o.applyBefore(0, deadline) }

// Entries returns how many entries the store holds.
func (m *Memory) Entries() int {
	n := 0
	for i := range m.shards {
		m.shards[i].mu.Lock()
		for kind := range m.shards[i].pools {
			n += m.shards[i].pools[kind].n
		}
		m.shards[i].mu.Unlock()
	}
	return n
}

// Index is the index of a shard.
type Index struct{ index }

// Insert is index.insert.
func (x *Index) Insert(tag uint64, at uint32) bool { return x.insert(tag, placeOf(bucketPool, 0, at)) }

// Remove is index.remove.
func (x *Index) Remove(tag uint64, at uint32) { x.remove(tag, placeOf(bucketPool, 0, at)) }

// Move is index.move.
func (x *Index) Move(tag uint64, from, to uint32) {
	x.move(tag, placeOf(bucketPool, 0, from), placeOf(bucketPool, 0, to))
}

// Has reports whether the place is found under the tag.
func (x *Index) Has(tag uint64, at uint32) bool {
	g := x.leaf(tag)
	if g == nil {
		return false
	}
	_, ok := g.find(tag<<placeBits | uint64(placeOf(bucketPool, 0, at)))
	return ok
}

// Size returns how many places the index has, in how many leaves.
func (x *Index) Size() (places, leaves int) {
	seen := map[*leaf]bool{}
	for _, g := range x.directory {
		if !seen[g] {
			seen[g] = true
			places += int(g.n)
		}
	}
	return places, len(seen)
}

// TagBits is the length of a tag.
const TagBits = tagBits

// HashOnly makes keys meet by using the first bits of their tags only.
func (m *Memory) HashOnly(bits int) { m.hashed = ^uint64(1<<(64-bits) - 1) }

// ShardOf returns which shard the tenant is in.
func (m *Memory) ShardOf(tenant string) uint64 {
	return m.tenant(memoryName(tenant)).hash % memoryShards
}

// ForgetExpired removes every entry that has expired.
func (m *Memory) ForgetExpired() {
	for i := range m.shards {
		s := &m.shards[i]
		s.mu.Lock()
		now := s.now()
		for kind := range s.pools {
			for _, key := range s.keys(poolKind(kind)) {
				s.find(&key, now)
			}
		}
		s.mu.Unlock()
	}
}

var (
	// Segment encodes a name for a key.
	Segment = segment
	// CRC16 is the checksum of Redis Cluster.
	CRC16 = crc16
	// NewCommand makes a command that is never sent twice.
	NewCommand = newCommand
)

// Meaning says what the error of a command means for the charge that had left or not.
func Meaning(err error, left bool) error {
	call := deadline.Begin(context.Background(), deadline.Bounds{Silence: time.Minute})
	defer call.End()
	w := newWaiter(call, []any{"unlink", "key"}, 1)
	w.carrier = call
	if left {
		_, _ = w.MarshalBinary()
	}
	return classify(w.meaning(err, deadline.NewNode()))
}

// RuleOf returns the arithmetic of the first limit.
func RuleOf(l *Limits) *state.Rule { return &l.compiled.All[0] }

// WindowAround returns the window of the first limit, one of the calendar, that holds the time.
func WindowAround(l *Limits, t time.Time) (from, to time.Time) {
	window := l.rules[0].Windows.Around(t.UnixMilli())
	return time.UnixMilli(window.From), time.UnixMilli(window.To)
}

// SetTestSkew makes the store's estimate of the time of the server wrong by some milliseconds.
func (r *Redis) SetTestSkew(milliseconds int64) { r.testSkew = milliseconds }

// TakenAt is when a receipt was issued, by the clock of the store in Unix milliseconds.
func TakenAt(r Receipt) int64 { return r.takenAt }

// ReadReply reads the reply of a script in every way there is.
func ReadReply(take *Take, text string) (result Result, taken, settled error) {
	r, err := newReply(text)
	if err != nil {
		return Result{}, err, err
	}
	var candidate []Bucket
	if take.Candidate != nil {
		candidate = take.Candidate.Buckets
	}
	result, taken = readTake(take, candidate, r)
	_, settled = r.changes(take.Buckets)
	return result, taken, settled
}

// AlwaysQueue makes every command of the store wait for a batch, also that of a lone caller.
func (r *Redis) AlwaysQueue() { r.pipeline.testAlways = true }

// Waiting returns how many commands wait for a batch.
func (r *Redis) Waiting() int {
	r.pipeline.mu.Lock()
	defer r.pipeline.mu.Unlock()
	n := 0
	for _, l := range r.pipeline.queues {
		for _, b := range l.waiting {
			n += len(b.waiters)
		}
	}
	return n
}

// Local judges takes while a store is away.
type Local = local

// ForgetRecords leaves out which override records there are: each store has drawn a name of its own for them.
func (r *Result) ForgetRecords() { r.records = nil }

// Held returns how many tenants and owners are remembered.
func (l *local) Held() int { return int(l.held.Load()) }

// TakeFast does the take as a fast one, if it can.
func (m *Memory) TakeFast(take Take) (result Result, ok bool) {
	s, tenant, now := m.lock(take.Tenant)
	defer s.mu.Unlock()
	ok = take.isFast() && s.takeFast(tenant, &take, &result, now)
	return result, ok
}

// StoredBytes returns what is kept of an owner, and when it expires.
func (m *Memory) StoredBytes(tenant string, owner Owner) string {
	s, kept, now := m.lock(tenant)
	defer s.mu.Unlock()
	key := s.key(kept, keyKind(owner.Level), owner.Name)
	if _, e := s.find(&key, now); e != nil {
		return fmt.Sprintf("%d %q", e.expires(), s.valueOf(e))
	}
	return ""
}

// SettledTakes is [settledTakes].
type SettledTakes struct{ takes settledTakes }

// Add remembers a take, and returns false if it was there, or nobody knows.
func (s *SettledTakes) Add(take int64) bool { return s.takes.add(take) }

// Pages is how many pages it has made and not forgotten.
func (s *SettledTakes) Pages() (made int) {
	for _, page := range s.takes.pages {
		if page != nil {
			made++
		}
	}
	return made
}

// OfNoLease returns a receipt as if who leased its bucket were somebody else, who remembers takes in another way.
func OfNoLease(r Receipt) Receipt {
	r.leased.takes, r.leased.mark = nil, leasedCharge{}.mark
	return r
}
