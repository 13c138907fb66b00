package bucket

import (
	"cmp"
	"errors"
	"hash/maphash"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/internal/fleet"
)

const (
	localShards = 64
	// maxLocalName is the length in bytes of the longest name of a tenant or owner that is remembered.
	maxLocalName = 512
	// offsetDrift is by how many milliseconds the time of the store may seem to have moved before it has.
	offsetDrift = 10
	// offsetEvery is after how many replies in a shard the time of the store is looked at.
	offsetEvery = 64
	// lateness is by how much an answer may come later than one that the store has given after it.
	lateness = 10 * time.Second
	// absenceGap is for how long the store is believed to be away when nobody has asked it: what came back in a
	// longer time others may have taken from the store.
	absenceGap = 10 * time.Second
	// entriesPerOwner is how many entries the memory of the shares may have for each owner that is remembered.
	entriesPerOwner = 8
)

// local judges takes in this process while the store cannot answer. Limits that fail local ([FailLocal]) it judges by
// this instance's share of what the store has last said is left, and of the refill; limits that fail bounded
// ([FailBounded]) by its share of a multiple of the limit, which starts full. A [Memory] has what the shares have spent.
// What was admitted is remembered, to settle it with the store once that is back.
//
// The caller tells it of each answer of the store ([local.Learn]), asks it where there was none
// ([local.Take]), and settles ([local.Settle]) when there are answers again. It starts no goroutine, its memory
// is bounded, and it is safe for concurrent use.
//
// A share is Percent, or BoundedMultiple times, the capacity and refill of the limit, divided by the number of instances,
// in exact integers: capacities are rounded down, and a share of nothing refuses. Its time is that of the store, as far
// as it was told. A process that ends loses what it has not settled.
type local struct {
	store  Store
	fleet  counter
	config fleet.Config
	seed   maphash.Seed
	// memory has what the shares have spent: of limits that fail bounded under their owners, and of limits that fail
	// local under names of their own.
	memory *Memory
	shards [localShards]localShard
	// owners says when owners were forgotten that were judged here, and evicted when the memory made room.
	owners, evicted forgotten
	// held is how many tenants and owners are remembered, and owing how many tenants have something to settle.
	held, owing atomic.Int64
	// records are the override records as the store has told them last.
	records knownOverrides
	// offset is the time of the store less that of the clock, in milliseconds, if told is set.
	offset atomic.Int64
	told   atomic.Bool
	// away is since when the store has not answered, in its own time, or zero while it does; failed is when it
	// was found so last.
	away, failed atomic.Int64

	beat   heartbeat
	shares shares
}

// localShard holds some tenants.
type localShard struct {
	mu sync.Mutex
	// tenants are under the names that [memoryName] makes, and debtors are those that have something to settle.
	tenants, debtors map[string]*localTenant
	learned          int
	// turn counts the takes: who was found in the one under way is not forgotten.
	turn uint64
}

// localTenant is what is known of a tenant, and what it has to settle.
type localTenant struct {
	key, name string
	owners    map[Owner]*localOwner
	heard     int64
	turn      uint64

	// owing are the owners that have something to settle, of which first are settled first.
	owing map[*localOwner]struct{}
	first []*localOwner
	// usage is what was admitted and is to be counted, nil if nothing is.
	usage *admitted
	// batch is being settled, or was sent without an answer. It is nil otherwise.
	batch *localBatch
	// call is under way, if it is not nil.
	call *localCall
}

// localOwner is what is known of one owner, and what it has taken here.
type localOwner struct {
	owner Owner
	// known is what the store has said is left of limits that fail local, as of a time of the store.
	known []knownLimit
	at    int64
	// share is the part of the limits that fail local which the owner was judged by last, at the time used. It is nil if
	// the owner has not been judged since the store was last heard of it.
	share *part
	used  int64
	// as is the name under which the memory has what the shares have spent since the time began.
	as    Owner
	began int64
	// taken is what was admitted and is not settled.
	taken []localSpend
	turn  uint64
}

// knownLimit is what the store has said of a limit: what is spent, in tokens, and when its window ends, or when all of
// it is gone if that is later than a token bucket would refill.
type knownLimit struct {
	id         uint16
	spent, end int64
}

// NewLocal is for the other packages of this module, who alone can name its configuration: it returns what judges
// takes while the store is away. The store counts the instances if it can and the configuration does not. The error
// says what is wrong with the configuration.
//
//nolint:revive // Who uses it names it by an interface: it is no part of what the package offers to others.
func NewLocal(store Store, config fleet.Config) (*local, error) {
	if mistakes := config.Mistakes(); len(mistakes) > 0 {
		return nil, errors.New("bucket: local shares: " + strings.Join(mistakes, "; "))
	}
	config = config.WithDefaults()
	l := &local{store: store, config: config, seed: maphash.MakeSeed(), beat: heartbeat{instance: config.Instance}}
	l.fleet, _ = store.(counter)
	l.owners.seed, l.evicted.seed = maphash.MakeSeed(), maphash.MakeSeed()
	l.shares.made = make(map[shareKey]*share)
	l.memory = NewMemory(MemoryConfig{
		Clock:      func() time.Time { return time.UnixMilli(l.now()) },
		MaxEntries: entriesPerOwner * config.MaxOwners,
	})
	l.memory.dropped = l.evicted.note
	for i := range l.shards {
		l.shards[i].tenants = make(map[string]*localTenant)
		l.shards[i].debtors = make(map[string]*localTenant)
	}
	return l, nil
}

// shard returns where a tenant is, and the name that it has there.
func (l *local) shard(tenant string) (*localShard, string) {
	key := memoryName(tenant)
	return &l.shards[maphash.String(l.seed, key)%localShards], key
}

// now is the time of the store as far as it is known, in Unix milliseconds.
func (l *local) now() int64 {
	return l.config.Clock().UnixMilli() + l.offset.Load()
}

// heard takes in the time that the store has told. The clock is read after the reply, so that the estimate is
// never ahead of the store.
func (l *local) heard(now int64) {
	offset := now - l.config.Clock().UnixMilli()
	if drift := offset - l.offset.Load(); !l.told.Load() || drift < -offsetDrift || drift > offsetDrift {
		l.offset.Store(offset)
		l.told.Store(true)
	}
}

// present notes that the store has answered.
func (l *local) present() {
	if l.away.Load() != 0 {
		l.away.Store(0)
	}
}

// missed notes that the store has not answered, and returns since when it does not. A call that has not left this process is
// late and says nothing of the store: if that was there when it was last asked, the absence begins with each such call anew.
func (l *local) missed(now int64, late bool) (since int64) {
	since = l.away.Load()
	if late {
		return cmp.Or(since, now)
	}
	if last := l.failed.Swap(now); since == 0 || now-last > absenceGap.Milliseconds() {
		l.away.CompareAndSwap(since, now)
		since = now
	}
	return since
}

// Learn takes in what the store has answered to a take. It costs next to nothing if no limit of it fails
// local. What was answered in the place of the store is no answer of it. owes says that the tenant has something to be
// settled, and beat that a heartbeat is due.
func (l *local) Learn(take *Take, result *Result) (owes, beat bool) {
	l.present()
	local, shared := judgedHere(take.Buckets)
	if local || result.records != nil || l.records.n.Load() > 0 {
		l.learn(take, result)
	}
	if !shared {
		return false, false
	}
	now := result.now
	if now == 0 {
		now = l.now()
	}
	if beat = l.beatDue(now); beat && result.now != 0 {
		l.heard(now)
	}
	return l.owes(take.Tenant), beat
}

// judgedHere says whether any limit fails local, and whether any is judged here at all in an absence.
func judgedHere(buckets []Bucket) (local, shared bool) {
	for i := range buckets {
		local = local || buckets[i].Limits.local
		shared = shared || buckets[i].Limits.shared
	}
	return local, shared
}

// learn takes in which override records there are, and what is left of limits that fail local.
func (l *local) learn(take *Take, result *Result) {
	s, key := l.shard(take.Tenant)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turn++
	now := result.now
	if now == 0 {
		now = l.now()
	} else {
		if s.learned++; s.learned%offsetEvery == 1 {
			l.heard(now)
		}
		if l.records.get(key) != result.records {
			l.records.learn(key, result.records, time.Now())
		}
	}
	states := result.Limits
	for i := range take.Buckets {
		b, n := &take.Buckets[i], 0
		for n < len(states) && states[n].Owner == b.Owner {
			n++
		}
		if n > 0 && b.Limits.local {
			s.learn(l, key, take.Tenant, b.Owner, states[:n], now)
		}
		states = states[n:]
	}
}

// learn takes in what is left of an owner.
func (s *localShard) learn(l *local, key, tenant string, owner Owner, states []LimitState, now int64) {
	t := s.tenant(l, key, tenant)
	if t == nil {
		return
	}
	o := s.owner(l, t, owner)
	if o == nil || now < o.at && o.at-now <= lateness.Milliseconds() {
		// What is known is of a later time. Where it is of a much later one the clock of the store was set back.
		return
	}
	t.heard = now
	o.learn(states, now)
	if _, owes := t.owing[o]; !owes {
		o.share = nil
	}
}

// learn takes in what is left as of the time. Of two answers of one millisecond nobody knows which was the later,
// so that the one counts that has left less.
func (o *localOwner) learn(states []LimitState, now int64) {
	if now != o.at {
		o.known = o.known[:0]
	}
	o.at = now
	for k := range states {
		shown := &states[k]
		if shown.Limit.FailMode != FailLocal {
			continue
		}
		id := stateID(shown.Limit.Unit, shown.Limit.Name)
		spent, end := shown.Limit.Capacity-shown.Remaining+shown.Overdraft, shown.WindowEnd
		if shown.Limit.Window.Kind == TokenBucket && shown.ResetAfter.Milliseconds() > shown.Limit.refillTime(spent) {
			// A policy has charged it whose refill is slower.
			end = now + shown.ResetAfter.Milliseconds()
		}
		if known := o.find(id); known != nil {
			known.spent, known.end = max(known.spent, spent), max(known.end, end)
			continue
		}
		o.known = append(o.known, knownLimit{id: id, spent: spent, end: end})
	}
}

// find returns what the store has said of a limit, nil if it has said nothing.
func (o *localOwner) find(id uint16) *knownLimit {
	for i := range o.known {
		if o.known[i].id == id {
			return &o.known[i]
		}
	}
	return nil
}

// Blocked returns the answer to a take that a record blocks, as far as the store has said so. It returns false if none
// is known to.
func (l *local) Blocked(take *Take) (Result, bool) {
	now := l.now()
	by := l.govern(memoryName(take.Tenant), take, now).blocked
	return Result{Verdict: Blocked, blockedBy: by, now: now}, by != nil
}

// govern returns what the override records that are known make of the take.
func (l *local) govern(key string, take *Take, now int64) governing {
	records := l.records.get(key)
	if records == nil {
		return ungoverned(take.Buckets)
	}
	return records.govern(take.Buckets, len(take.Buckets), take.Owners, now)
}

// Instances returns how many instances share the store, as far as it is known: zero if nothing is.
func (l *local) Instances() int {
	if l.config.Instances > 0 {
		return l.config.Instances
	}
	return int(l.beat.instances.Load())
}
