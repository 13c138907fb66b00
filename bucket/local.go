package bucket

import (
	"errors"
	"hash/maphash"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/internal/fleet"
	"github.com/gqlgen-ratelimit/ratelimit/internal/state"
)

const (
	localShards = 64
	// knownLeast and knownShare are for how long what is left of a limit is believed by default: so long,
	// or that part of the time in which the limit comes back, and at most so long: others take as fast from a
	// limit a month as from one a minute.
	knownLeast = time.Second
	knownMost  = 5 * time.Second
	knownShare = 60
	// maxLocalName is the length in bytes of the longest name of a tenant or owner that is remembered.
	maxLocalName = 512
	// offsetDrift is by how many milliseconds the time of the store may seem to have moved before it has.
	offsetDrift = 10
	// offsetEvery is after how many replies in a shard the time of the store is looked at.
	offsetEvery = 64
)

// local judges takes in this process while the store cannot answer. Limits that fail local ([FailLocal]) it judges by
// this instance's share of what the store has last said is left, and of the refill; limits that fail bounded
// ([FailBounded]) by its share of a multiple of the limit, which starts full. What it admits it remembers,
// to settle it with the store once that is back.
//
// The caller tells it of each answer of the store ([local.Learn]), asks it where there was none
// ([local.Take]), and settles ([local.Settle]) when there are answers again. It starts no goroutine, its memory
// is bounded, and it is safe for concurrent use.
//
// A share is Percent, or OpenMultiple times, the capacity and refill of the limit, divided by the number of instances,
// in exact integers: capacities are rounded down, and a share of nothing refuses. Its time is that of the store, as far
// as it was told. A process that ends loses what it has not settled.
type local struct {
	store  Store
	fleet  counter
	config fleet.Config
	seed   maphash.Seed
	shards [localShards]localShard
	room   localRoom
	// offset is the time of the store less that of the clock, in milliseconds, if told is set.
	offset atomic.Int64
	told   atomic.Bool
	// away is since when the store has not answered, in its own time, or zero while it does; failed is when it
	// was found so last, and absence counts how often it has gone.
	away    atomic.Int64
	failed  atomic.Int64
	absence atomic.Int64
	// owing is how many tenants have something to settle, blocking how many owners a record blocks, and ruled of how
	// many it is known that records change their limits.
	owing, blocking, ruled atomic.Int64

	beat   heartbeat
	shares shares
}

// localShard holds the owners of some tenants, all of those of each.
type localShard struct {
	mu     sync.Mutex
	owners map[localKey]*localOwner
	groups map[localGroupKey]*localGroup
	// debts are the tenants that have something to settle.
	debts   map[string]*localDebt
	learned int
	// swept is when stand-ins were last looked for that are not needed.
	swept int64
	// blocked are the owners that a record blocks, as the store has said last, and the record.
	blocked map[localKey]*Override
	// blocks is the length of blocked, for those who need not look.
	blocks atomic.Int64
}

type localKey struct {
	tenant string
	owner  Owner
}

// localOwner is what is known of one owner, and what it has taken here.
type localOwner struct {
	key localKey
	// group are those that it shares room with, and next and before its neighbours there.
	group        *localGroup
	next, before *localOwner
	// taking says that a take is under way that has found the owner, which must not be forgotten before it ends.
	taking bool
	// policy are the limits that the store was asked with last, and limits what override records made of them.
	policy, limits *Limits
	// known is what the store has said is left, as of a time of the store.
	known []knownLimit
	at    int64
	// share is what the owner is judged by here, in an absence of the store, last at the time used. It is nil
	// if the owner has not been judged since the store was last heard of it.
	share   *share
	absence int64
	used    int64
	ledger  state.Owner
	// begun are the limits that have what they spent in the ledger: those that fail local since the share began, and
	// those that fail bounded since they were first judged here.
	begun []begunLimit
	// taken is what was admitted and is not settled, and owes says that the tenant's debt names the owner.
	taken []localSpend
	owes  bool
	// debtAt is its place among the owners of the debt, if it owes.
	debtAt int
}

// begunLimit is a limit that was judged here. bounded says that it fails bounded: what it spent stays in the ledger until it
// has come back, whatever the store answers meanwhile. A share that started full after each answer would be no bound.
type begunLimit struct {
	id      uint16
	bounded bool
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
	if config.Instance == ([8]byte{}) {
		config.Instance = fleet.NewInstance()
	}
	if config.OpenMultiple == 0 {
		config.OpenMultiple = fleet.DefaultOpenMultiple
	}
	if config.Percent == 0 {
		config.Percent = fleet.DefaultPercent
	}
	if config.MaxOwners == 0 {
		config.MaxOwners = fleet.DefaultOwners
	}
	if config.Clock == nil {
		config.Clock = time.Now
	}
	l := &local{store: store, config: config, seed: maphash.MakeSeed(), beat: heartbeat{instance: config.Instance}}
	l.fleet, _ = store.(counter)
	l.shares.made = make(map[shareKey]*share)
	l.room.seed, l.room.most = l.seed, int64(config.MaxOwners)
	for i := range l.shards {
		l.shards[i].owners = make(map[localKey]*localOwner)
		l.shards[i].groups = make(map[localGroupKey]*localGroup)
		l.shards[i].debts = make(map[string]*localDebt)
	}
	return l, nil
}

func (l *local) shard(tenant string) *localShard {
	return &l.shards[maphash.String(l.seed, tenant)%localShards]
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

// absenceGap is for how long the store is believed to be away when nobody has asked it: what came back in a
// longer time others may have taken from the store.
const absenceGap = 10 * time.Second

// present notes that the store has answered.
func (l *local) present() {
	if l.away.Load() != 0 {
		l.away.Store(0)
	}
}

// late returns the same as [local.missed] for a call that has not left this process, which says nothing of the store: if
// that was there when it was last asked, the absence is as short as can be, and another one each time.
func (l *local) late(now int64) (since, absence int64) {
	if since = l.away.Load(); since != 0 {
		return since, l.absence.Load()
	}
	return now, l.absence.Add(1)
}

// missed notes that the store has not answered, and returns since when it does not and which absence that is.
func (l *local) missed(now int64) (since, absence int64) {
	last := l.failed.Swap(now)
	since = l.away.Load()
	if since == 0 || now-last > absenceGap.Milliseconds() {
		if l.away.CompareAndSwap(since, now) {
			l.absence.Add(1)
		}
		since = now
	}
	return since, l.absence.Load()
}

// Learn takes in what the store has answered to a take. It costs next to nothing if no limit of it fails
// local. What was answered in the place of the store is no answer of it. owes says that the tenant has something to be
// settled, and beat that a heartbeat is due.
func (l *local) Learn(take *Take, result *Result) (owes, beat bool) {
	l.present()
	local, shared := judgedHere(take.Buckets)
	switch {
	case local || shared && (l.ruled.Load() > 0 || anyOverridden(result.Limits)):
		l.learn(take, result)
	case l.blocking.Load() > 0 || result.Verdict == Blocked:
		l.shard(take.Tenant).block(l, take, result)
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

// learn takes in what the store has answered to a take of limits that are judged here in an absence.
func (l *local) learn(take *Take, result *Result) {
	s := l.shard(take.Tenant)
	s.block(l, take, result)
	s.mu.Lock()
	defer s.mu.Unlock()
	now := result.now
	if now == 0 {
		now = l.now()
	} else if s.learned++; s.learned%offsetEvery == 1 {
		l.heard(now)
	}
	states := result.Limits
	for i := range take.Buckets {
		b, n := &take.Buckets[i], 0
		for n < len(states) && states[n].Owner == b.Owner {
			n++
		}
		key := localKey{take.Tenant, b.Owner}
		// Of limits that fail bounded it matters only which records change them.
		if n > 0 && (b.Limits.local || b.Limits.shared && (anyOverridden(states[:n]) || s.owners[key] != nil)) {
			governed := b.Limits
			if len(result.Receipt.buckets) == len(take.Buckets) {
				governed = result.Receipt.buckets[i].Limits
			}
			s.learn(l, key, b.Limits, governed, states[:n], now)
		}
		states = states[n:]
	}
}

// judgedHere says whether any limit fails local, and whether any is judged here at all in an absence.
func judgedHere(buckets []Bucket) (local, shared bool) {
	for i := range buckets {
		local = local || buckets[i].Limits.local
		shared = shared || buckets[i].Limits.shared
	}
	return local, shared
}

func anyOverridden(states []LimitState) bool {
	for i := range states {
		if states[i].Overridden {
			return true
		}
	}
	return false
}

// learn takes in what is left of an owner.
func (s *localShard) learn(l *local, key localKey, policy, governed *Limits, states []LimitState, now int64) {
	o := s.owner(l, key, false)
	if o == nil || o.newer(now) {
		return
	}
	if governed == policy {
		governed = o.governed(policy, states)
	}
	o.govern(l, policy, governed)
	o.learn(states, now)
	if !o.owes {
		o.share = nil
	}
}

// lateness is by how much an answer may come later than one that the store has given after it.
const lateness = 10 * time.Second

// newer reports whether what is known is of a later time. Where it is of a much later one the clock of the store
// was set back.
func (o *localOwner) newer(now int64) bool {
	return now < o.at && o.at-now <= lateness.Milliseconds()
}

// learn takes in what is left as of the time. Of two answers of one millisecond nobody knows which was the later,
// so that the one counts that has left less.
func (o *localOwner) learn(states []LimitState, now int64) {
	if now != o.at {
		o.known = o.known[:0]
	}
	o.at = now
	rules := o.limits.rules
	for k := range states {
		shown := &states[k]
		if shown.Limit.FailMode != FailLocal {
			continue
		}
		var is *state.Rule
		if k < len(rules) && rules[k].limit == shown.Limit {
			is = rules[k].Rule
		} else {
			fresh := newRule(shown.Limit, stateID(shown.Limit.Unit, shown.Limit.Name))
			is = &fresh
		}
		spent, end := shown.Limit.Capacity-shown.Remaining+shown.Overdraft, shown.WindowEnd
		if is.Tag == state.TokenBucket && shown.ResetAfter > milliseconds(is.Wait(state.Product(spent, is.P))) {
			// A policy has charged it whose refill is slower.
			end = now + shown.ResetAfter.Milliseconds()
		}
		if known := o.find(is.ID); known != nil {
			known.spent, known.end = max(known.spent, spent), max(known.end, end)
			continue
		}
		o.known = append(o.known, knownLimit{id: is.ID, spent: spent, end: end})
	}
}

// govern sets the limits that the owner is under, and what override records make of them.
func (o *localOwner) govern(l *local, policy, limits *Limits) {
	switch was, is := o.policy != o.limits, policy != limits; {
	case is && !was:
		l.ruled.Add(1)
	case was && !is:
		l.ruled.Add(-1)
	}
	o.policy, o.limits = policy, limits
}
