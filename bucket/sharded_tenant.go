package bucket

import (
	"context"
	"sync"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/internal/fleet"
	"github.com/gqlgen-ratelimit/ratelimit/internal/lease"
	"github.com/gqlgen-ratelimit/ratelimit/internal/state"
)

// shardedTenant is what this process knows of a tenant that is shared.
type shardedTenant struct {
	store *Sharded
	name  string

	mu sync.Mutex
	// limits are those of the take last.
	limits *Limits
	// holder is how the shard was called when it answered last, number that of its exchange, and said what its clock said, in Unix milliseconds; heard is when that
	// was by the clock of this process.
	holder       [8]byte
	number, said int64
	heard, used  int64
	// lead is when this process is to exchange next because it did so last, zero if it did not, and quiet since when nobody asks for anything, zero if somebody does.
	lead, quiet int64
	// due says that a shard has told this process to exchange.
	due    bool
	barren barren
	usage  leasedUsage
	// doubts are receipts of which nobody knows whether the shard has put back what was not needed. It has, or does so when it is asked again: what was used less is to be noted
	// in any case, and once.
	doubts unfinished[struct{}]
	// forgotten says that the store has another one of this name, or none.
	forgotten bool
	// tell is when home is told of usage next, and counting is held by who does.
	tell     int64
	counting sync.Mutex
}

// says begins what a call tells the shard. The lock is held.
func (t *shardedTenant) says(now int64) state.ShardCall {
	says := state.ShardCall{Instance: t.store.instance, Name: newHolder(), Holder: t.holder, Number: t.number, Length: lease.Length / lease.Millisecond}
	if t.said > 0 {
		// The clock of this process may run faster than that of the shard, by a thousandth.
		says.Least = t.said + max(0, now-t.heard)/lease.Millisecond*(lease.Millisecond-1)/lease.Millisecond
	}
	return says
}

// learn notes what a shard has answered that holds something.
func (t *shardedTenant) learn(holder [8]byte, number, said int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.holder == holder && number < t.number {
		return
	}
	t.holder, t.number, t.said, t.heard = holder, number, said, t.store.now()
}

// storeTime is the time of the shard, as far as it is known. The lock is held.
func (t *shardedTenant) storeTime(now int64) int64 {
	if t.said == 0 {
		return time.Now().UnixMilli()
	}
	return t.said + max(0, now-t.heard)/lease.Millisecond
}

// isDue reports whether there is something to say to the shard and to home.
func (t *shardedTenant) isDue(now int64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.due || t.lead > 0 && now >= t.lead || now >= t.tell && (len(t.usage.minutes) > 0 || t.usage.sent != nil)
}

// idle reports whether nothing is lost when it is forgotten.
func (t *shardedTenant) idle(now int64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.unused(now)
}

// unused is idle. The lock is held.
func (t *shardedTenant) unused(now int64) bool {
	return now-t.used > shardForgotten && t.lead == 0 && !t.due && len(t.usage.minutes) == 0 && t.usage.sent == nil
}

// note adds what was used to what home is to count. Who began before the tenant was forgotten adds it to its successor, and who began before [Sharded.Shutdown] has home
// count it: nobody does so later.
func (t *shardedTenant) note(ctx context.Context, add func(*leasedUsage)) {
	t.mu.Lock()
	for t.forgotten {
		next := t.store.tenant(t.name)
		if next == nil {
			break
		}
		t.mu.Unlock()
		t = next
		t.mu.Lock()
	}
	add(&t.usage)
	alone := t.forgotten || t.store.ended.Load()
	t.mu.Unlock()
	if !alone {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastCount)
	defer cancel()
	if !t.leave(ctx, make(chan struct{}, 1)) {
		t.store.stats.uncounted.Add(1)
	}
}

// serve exchanges if that is due, and has home count what was admitted.
func (t *shardedTenant) serve(ctx context.Context) {
	t.mu.Lock()
	now := t.store.now()
	due, leading, tells := t.due, t.lead > 0 && now >= t.lead, now >= t.tell
	if t.due = false; leading {
		t.lead = now + resendMost
	}
	if tells {
		t.tell = now + fleet.BeatEvery.Microseconds()
	}
	t.mu.Unlock()
	switch {
	case due:
		t.exchange(ctx, state.ShardOffer)
	case leading:
		t.exchange(ctx, state.ShardBeat)
	}
	if tells {
		t.count(ctx)
	}
}

// fetch exchanges for a take, which waits no longer than its context lasts. It reports whether the shard has something new.
func (t *shardedTenant) fetch(ctx context.Context) bool {
	fetched := make(chan bool, 1)
	if !t.store.begin(func() { fetched <- t.exchange(ctx, state.ShardOffer) }) {
		return false
	}
	select {
	case is := <-fetched:
		return is
	case <-ctx.Done():
		return false
	}
}

// exchange stores a message in the shard, sends it home, and puts in what home answers. It reports whether the shard has something new. It is not left in the middle when
// the context ends: what it has begun others find only after a while.
func (t *shardedTenant) exchange(ctx context.Context, kind int64) bool {
	ctx = context.WithoutCancel(ctx)
	t.mu.Lock()
	limits, says := t.limits, t.says(t.store.now())
	t.mu.Unlock()
	says.Clock = t.store.now() / lease.Millisecond
	call := ShardCall{tenant: t.name, kind: kind, says: says, limits: limitsOfShard(limits, nil), n: limits.Len()}
	offer, err := t.store.shard.Shard(ctx, call)
	if err != nil {
		return false
	}
	if offer.Status != state.ShardDone {
		t.mu.Lock()
		t.lead = 0
		t.mu.Unlock()
		return false
	}
	answer, err := t.home(ctx, limits, &offer)
	if err != nil {
		t.store.stats.failed.Add(1)
		return false
	}
	t.mu.Lock()
	call.says = t.says(t.store.now())
	t.mu.Unlock()
	if call.says.Holder != offer.Holder {
		call.says.Least = 0
	}
	// The lease is counted from when the message was stored, which was before it was sent.
	call.says.Holder, call.says.Number, call.says.Clock = offer.Holder, offer.Number, offer.now
	call.kind, call.answer = state.ShardPut, answer.AppendShardAnswer(nil)
	put, err := t.store.shard.Shard(ctx, call)
	if err != nil || put.Status != state.ShardDone {
		return false
	}
	t.exchanged(&offer, &put)
	if answer.Status != state.Exchanged {
		return false
	}
	t.learn(offer.Holder, offer.Number, put.now)
	return true
}

// exchanged notes that this process has exchanged last, and is to do so next.
func (t *shardedTenant) exchanged(offer, put *ShardAnswer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.store.now()
	t.lead = now + put.Beat*lease.Millisecond
	switch {
	case offer.Asked:
		t.quiet = 0
	case t.quiet == 0:
		t.quiet = now
	case now-t.quiet >= coldFor:
		t.lead, t.quiet = 0, 0
	}
}

// home sends a message that the shard has stored. An answer without anything given says that home decides from now on.
func (t *shardedTenant) home(ctx context.Context, limits *Limits, offer *ShardAnswer) (state.ExchangeAnswer, error) {
	policy := []Bucket{{Limits: limits}}
	e := Exchange{
		tenant: t.name, buckets: policy, under: policy, clock: offer.Ticks, length: lease.Length / lease.Millisecond, places: []int{0},
		message: lease.Message{Holder: offer.Holder, Number: offer.Number, Heard: offer.Ticks, Beat: offer.Beat, Limits: offer.Offers},
	}
	homes := state.ExchangeAnswer{Status: state.NoHolding}
	if offer.Number == 1 {
		// Who leaves before he has come is given nothing, and told of override records. Nobody has this name: another instance may have sent the same message, so that
		// the shard would leave that has come.
		asked := e
		asked.message.Holder, asked.message.Leaving = newHolder(), true
		if x, err := t.store.home.Exchange(ctx, asked); err != nil || x.records != nil || len(x.answers) == 0 || x.isFarFrom(offer.now) {
			return homes, err
		}
	}
	t.store.stats.exchanges.Add(1)
	x, err := t.store.home.Exchange(ctx, e)
	if err != nil || x.records != nil || len(x.answers) == 0 || x.isFarFrom(offer.now) {
		return homes, err
	}
	return x.answers[0], nil
}

// mostApart is by how much the clocks of a shard and of home may differ, in milliseconds: home is told what a shard has charged with the time of the shard, and does
// nothing about what is a minute old.
const mostApart = 10_000

// isFarFrom reports whether the clock of the store is so far from that of another one that they cannot share a tenant.
func (e *Exchanged) isFarFrom(now int64) bool { return max(e.now-now, now-e.now) > mostApart }

// limitsOfShard are the limits as a call of a shard has them, with the amounts in tokens, of nothing if there are none.
func limitsOfShard(limits *Limits, amounts []int64) []byte {
	packed := make([]byte, 0, 32*limits.Len())
	for i := range limits.rules {
		n := int64(0)
		if amounts != nil {
			n = amounts[i]
		}
		packed = limits.rules[i].AppendShard(packed, n)
	}
	return packed
}

// count has home count what was admitted here. One does so at a time.
func (t *shardedTenant) count(ctx context.Context) {
	t.counting.Lock()
	defer t.counting.Unlock()
	teller := usageTeller{
		tenant: t.name, store: t.store.home, mu: &t.mu, usage: &t.usage, storeTime: func() int64 { return t.storeTime(t.store.now()) },
		lost: &t.store.stats.uncounted, told: t.store.tellCounted,
	}
	teller.tell(ctx)
}

// leave has home count what was admitted here, with some patience. It returns false if that is not done when the context ends. As many tenants as there are slots
// are told at once, and one that waits has none.
func (t *shardedTenant) leave(ctx context.Context, slots chan struct{}) bool {
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-ctx.Done():
			return t.counted()
		case <-pause.C:
		}
		select {
		case slots <- struct{}{}:
			t.count(ctx)
			<-slots
		case <-ctx.Done():
		}
		if t.counted() {
			return true
		}
		pause.Reset(lookEvery)
	}
}

// counted reports whether home has counted everything.
func (t *shardedTenant) counted() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.usage.minutes) == 0 && t.usage.sent == nil
}
