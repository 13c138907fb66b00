package bucket

import (
	"encoding/binary"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/internal/lease"
	"github.com/gqlgen-ratelimit/ratelimit/internal/state"
)

// leasedTenant is what this process leases of the bucket of one tenant.
type leasedTenant struct {
	store *Leased
	name  string
	mode  LeaseMode
	// hash is that of the name, and next the one behind it in its list.
	hash uint64
	next atomic.Pointer[leasedTenant]

	mu sync.Mutex
	// policy is the bucket as the policy has it, and limits what override records make of its limits.
	policy Bucket
	limits *Limits
	holder *lease.Holder
	place  int
	// records are the override records as of the last exchange, which hold until a time by the clock of this process, and offset is the time of
	// the store less that of this process, in milliseconds.
	records *overrideSet
	until   int64
	offset  int64
	// flight is closed when the exchange that is under way has ended. It is nil if none is. sent is when its message was sent last, and tries how often.
	flight chan struct{}
	sent   int64
	tries  int
	// queued says that a worker is to exchange.
	queued bool
	// ended says that it is given back, or has nothing that can be leased: takes go to the store. It is not leased again before barred.
	ended  bool
	barred int64
	// takes are those since counted, and quiet since when there are few.
	takes          int
	counted, quiet int64
	refused        []refusedAmount
	usage          leasedUsage
	// counting is held by who has the store count.
	counting sync.Mutex
	// settled are those of its takes that were settled, and number is that of the last take.
	settled *settledTakes
	number  int64
	// admissions are those that [Leased.Stats] has not counted yet: takes of all tenants would wait for one counter.
	admissions uint64
	// amounts is room for those of a take.
	amounts []int64
}

// refusedAmount is the least that was refused here of a limit, and when.
type refusedAmount struct{ amount, at int64 }

// forever is a time that does not come.
const forever = 1 << 62

func newLeasedTenant(l *Leased, name string, mode LeaseMode, b Bucket) *leasedTenant {
	now := l.now()
	t := &leasedTenant{store: l, name: name, mode: mode, policy: b, counted: now, quiet: now, until: forever, settled: &settledTakes{}}
	t.be(b.Limits)
	return t
}

// be makes it hold nothing yet, of these limits.
func (t *leasedTenant) be(limits *Limits) {
	t.limits, t.place = limits, 0
	t.holder = lease.New(leasesOf(limits), newHolder)
	t.amounts, t.refused = make([]int64, limits.Len()), make([]refusedAmount, limits.Len())
}

// newHolder returns the random name of another holder.
func newHolder() (holder [8]byte) {
	// None is of zeros.
	binary.NativeEndian.PutUint64(holder[:], rand.Uint64()|1) //nolint:gosec // Unique is enough: it is no secret.
	return holder
}

// leasesOf are the limits as a holder knows them.
func leasesOf(limits *Limits) []lease.Limit {
	all := make([]lease.Limit, limits.Len())
	for i := range limits.rules {
		r := &limits.rules[i]
		unit, capacity, rate := r.Leasing()
		all[i] = lease.Limit{Window: r.Tag != state.TokenBucket, Unit: unit, Capacity: capacity, Rate: rate, Lenient: r.Lenient}
	}
	return all
}

// under makes it hold what it holds under other limits. It returns false if that is of other units.
func (t *leasedTenant) under(policy, limits *Limits) bool {
	if t.limits != limits && !leasedAlike([]Bucket{{Limits: t.limits}}, []Bucket{{Limits: limits}}) {
		return false
	}
	t.policy.Limits = policy
	if t.limits == limits {
		return true
	}
	t.limits = limits
	t.holder.Under(leasesOf(limits))
	return true
}

// storeTime is the time of the store at one of this process, in Unix milliseconds, as far as it is known.
func (t *leasedTenant) storeTime(now int64) int64 {
	if t.offset == 0 {
		return time.Now().UnixMilli()
	}
	return now/lease.Millisecond + t.offset
}

// barredFor is for how long what could not be leased is not tried again.
const barredFor = 10 * lease.Second

// bar ends it for a while.
func (t *leasedTenant) bar() { t.ended, t.barred = true, t.store.now()+barredFor }

// begun returns the exchange that is under way, or begins one, which is then the caller's to do. It returns nil if nobody may ask now.
func (t *leasedTenant) begun() (flight chan struct{}, mine bool) {
	if t.flight != nil {
		return t.flight, false
	}
	if t.ended || !t.holder.MayAsk(t.store.now()) {
		return nil, false
	}
	t.flight = make(chan struct{})
	return t.flight, true
}

// ends says that the exchange that is under way is over.
func (t *leasedTenant) ends() {
	close(t.flight)
	t.flight = nil
}
