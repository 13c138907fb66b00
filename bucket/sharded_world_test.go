package bucket_test

import (
	"bytes"
	"context"
	"fmt"
	"math/big"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// shardedWorld is some shards of a home, each with instances, and what they have admitted together, in exact numbers.
type shardedWorld struct {
	*regionsWorld
	shards []*flakyShard
	takers []*taker
	// depth is how many calls of home are under way, within which others do something.
	depth int
	fail  error
	// slow is how many milliseconds pass at most within a call of home, and late in one of how many seconds do, before it or after it.
	slow int64
	late int
	// lost is by how much more may be admitted because a shard forgot what it had done.
	lost int64
	// names are those of all shards so far.
	names map[[8]byte]bool
	// older says that states of shards become older ones, and nothing else fails.
	older bool
	// seen is home when it was last looked at.
	seen homeSeen
}

// homeSeen is what home had left at a time and what it had leased, and what it had stored then. Nothing else makes a difference: a lease that has ended
// is among those that are had until an exchange takes it back, so that no time matters to them.
type homeSeen struct {
	now             int64
	level, holdings []byte
	free, held      int64
}

// flakyShard is a store that is a shard.
type flakyShard struct {
	*flakyStore
	world *shardedWorld
	// home is that of all as this shard sees it.
	home *flakyStore
	// stepped says that its clock has been set back since somebody was given something, or it has begun anew.
	stepped bool
	// image is what its record was, and since what was admitted from it after that.
	image []byte
	since int64
}

// taker is an instance.
type taker struct {
	shard *flakyShard
	store *bucket.Sharded
	ppm   int64
	// paused is until when it does nothing.
	paused time.Duration
}

// busyHome is home as an instance sees it: others go on while it is asked.
type busyHome struct {
	*flakyStore
	w *shardedWorld
}

func (h busyHome) Exchange(ctx context.Context, e bucket.Exchange) (bucket.Exchanged, error) {
	h.w.meanwhile()
	x, err := h.flakyStore.Exchange(ctx, e)
	h.w.meanwhile()
	return x, err
}

// Shard implements bucket.ShardStore. It makes the deliberate mistakes.
func (s *flakyShard) Shard(ctx context.Context, call bucket.ShardCall) (a bucket.ShardAnswer, err error) {
	arrives, returns := s.answers()
	if !arrives {
		return a, bucket.ErrUnavailable
	}
	w, kind := s.world, bucket.ShardKind(&call)
	switch {
	case w.mistake == "the lease is counted from the answer" && kind == bucket.ShardPutKind:
		bucket.SetShardClock(&call, bucket.ShardNow(s.Memory))
	case w.mistake == "the clock of a shard is believed":
		bucket.SetShardLeast(&call, 1)
	}
	before := bucket.ShardRecord(s.Memory, "acme")
	a, err = s.Memory.Shard(ctx, call)
	// Who knows nothing is given nothing of a shard whose clock has been set back, and leaves it to those who know more.
	if bucket.ShardGives(&call, &a) || bucket.ShardName(before) != bucket.ShardName(bucket.ShardRecord(s.Memory, "acme")) {
		s.stepped = false
	}
	switch {
	case w.mistake == "the message is not stored before it is sent" && kind == bucket.ShardOfferKind && before != nil && !bucket.ShardPending(before):
		// What is sent is noted without what it gives back.
		bucket.KeepShardParts(s.Memory, "acme", before)
	case w.mistake == "the number is advanced by two" && kind == bucket.ShardOfferKind && before != nil && !bucket.ShardPending(before):
		bucket.AdvanceShardNumber(s.Memory, "acme")
		a.Number++
	}
	if err == nil {
		if kind == bucket.ShardOfferKind {
			w.names[a.Holder] = true
		}
		w.check()
	}
	if err == nil && !returns {
		return bucket.ShardAnswer{}, bucket.ErrAmbiguous
	}
	return a, err
}

func newShardedWorld(seed uint64, limit bucket.Limit, shards, instances int) *shardedWorld {
	w := &shardedWorld{regionsWorld: newRegionsWorld(seed, limit, 0, 0), names: map[[8]byte]bool{}, late: 30}
	for range shards {
		s := &flakyShard{flakyStore: w.store(), world: w}
		s.ppm, s.home = w.Int64N(1001)-500, &flakyStore{Memory: w.home.Memory, w: w.regionsWorld}
		w.shards = append(w.shards, s)
		for range instances {
			w.takers = append(w.takers, &taker{shard: s, ppm: w.Int64N(1001) - 500})
		}
	}
	return w
}

func (w *shardedWorld) start() (err error) {
	if w.limits, err = bucket.Compile(w.limit); err != nil {
		return err
	}
	for _, i := range w.takers {
		if err := w.begins(i); err != nil {
			return err
		}
	}
	return nil
}

// begins makes it an instance that has just begun: the one before has died.
func (w *shardedWorld) begins(i *taker) (err error) {
	i.store, err = bucket.NewSharded(busyHome{i.shard.home, w}, i.shard, bucket.ShardedConfig{Clock: func() time.Duration { return time.Second + w.now + w.now*time.Duration(i.ppm)/1_000_000 }})
	if err == nil {
		i.store.Allow(true)
	}
	return err
}

// meanwhile has others do something while a message is under way.
func (w *shardedWorld) meanwhile() {
	if w.depth > 2 || w.slow == 0 || w.IntN(3) > 0 {
		return
	}
	w.depth++
	defer func() { w.depth-- }()
	for range w.IntN(4) {
		w.now += time.Duration(w.Int64N(w.slow)) * time.Millisecond
		w.act()
	}
	if w.IntN(w.late) == 0 {
		w.now += time.Duration(w.IntN(4000)) * time.Millisecond
	}
}

// act has an instance take, and others look.
func (w *shardedWorld) act() {
	i := w.takers[w.IntN(len(w.takers))]
	if w.now < i.paused {
		return
	}
	n := []int64{1, 1, 5, 20, 100}[w.IntN(5)]
	result, err := i.store.Take(context.Background(), bucket.Take{
		Tenant: "acme", Buckets: []bucket.Bucket{{Limits: w.limits}}, Amounts: points(n), Lease: bucket.LeaseAlways,
	})
	switch {
	case err != nil || result.Verdict != bucket.Admitted:
	case w.IntN(10) == 0:
		// It was worth nothing, so that there was nothing admitted.
		_, _ = i.store.Settle(context.Background(), bucket.Settlement{Receipt: result.Receipt, Actual: points(0)})
	default:
		w.admit(n)
		i.shard.since += n
	}
	for _, i := range w.takers {
		if w.now >= i.paused && w.IntN(4) == 0 {
			i.store.Tend(context.Background())
		}
	}
}

// run lets so many operations come.
func (w *shardedWorld) run(operations int, troubled bool) error {
	for range operations {
		w.now += time.Duration(w.IntN(8)) * time.Millisecond
		w.act()
		if troubled {
			w.distress()
		}
		if over := new(big.Int).Sub(w.excess, big.NewInt(w.lost*1000)); over.Sign() > 0 && w.fail == nil {
			w.fail = fmt.Errorf("after %v: %v thousandths more than the limit were admitted", w.now, over)
		}
		if w.fail != nil {
			return w.fail
		}
	}
	return nil
}

// distress has something fail, at times.
func (w *shardedWorld) distress() {
	if w.IntN(150) > 0 {
		return
	}
	i, s := w.takers[w.IntN(len(w.takers))], w.shards[w.IntN(len(w.shards))]
	what := w.IntN(8)
	if w.older {
		what = 8
	}
	switch what {
	case 8:
		w.becomesOlder(s)
	case 0:
		_ = w.begins(i)
	case 1:
		i.paused = w.now + time.Duration(w.IntN(9000))*time.Millisecond
	case 2:
		s.home.away = w.now + time.Duration(w.IntN(5000))*time.Millisecond
	case 3:
		s.away = w.now + time.Duration(w.IntN(5000))*time.Millisecond
	case 4:
		bucket.SetShardRecord(s.Memory, "acme", nil)
	case 5:
		w.stepHome([]time.Duration{40 * time.Millisecond, 500 * time.Millisecond, 5 * time.Second, -40 * time.Millisecond, -5 * time.Second}[w.IntN(5)])
	case 6:
		w.stepShard(s, []time.Duration{30 * time.Millisecond, 500 * time.Millisecond, 5 * time.Second, -30 * time.Millisecond, -500 * time.Millisecond, -5 * time.Second}[w.IntN(6)])
	case 7:
		// Nobody asks for a while.
		w.now += time.Duration(w.IntN(6000)) * time.Millisecond
	}
}

// becomesOlder puts the state of a shard in the place of a later one, as a replica does that lags. It may do again what it did since.
func (w *shardedWorld) becomesOlder(s *flakyShard) {
	if s.image = bucket.ShardRecord(s.Memory, "acme"); s.image == nil {
		return
	}
	s.since = 0
	for range w.IntN(20) {
		w.now += time.Duration(w.IntN(4)) * time.Millisecond
		w.act()
	}
	w.lost += s.since
	bucket.SetShardRecord(s.Memory, "acme", s.image)
}

// stepShard has the clock of a shard step. What comes back to it by a step forward it has in the terms of every bucket.
func (w *shardedWorld) stepShard(s *flakyShard, step time.Duration) {
	if s.step += step; step > 0 {
		w.free(new(big.Int).Mul(big.NewInt(w.limit.Refill), big.NewInt(step.Milliseconds())))
	} else {
		s.stepped = true
	}
}

// check looks at whether all parts together are no more than the limit.
func (w *shardedWorld) check() {
	if w.fail != nil || w.older {
		return
	}
	var capacity, rate, level int64
	for _, s := range w.shards {
		if h := bucket.ShardHolds(s.Memory, "acme", bucket.ShardNow(s.Memory)); !s.stepped {
			capacity, rate, level = capacity+h.Capacity, rate+h.Rate, level+h.Level
		}
	}
	_, whole, comes := bucket.LeasingOf(w.limits)
	free, held := w.look()
	if capacity > min(whole, held) || rate > comes || level+free > whole {
		w.fail = fmt.Errorf("after %v: a capacity of %d of %d, %d of it held, a rate of %d of %d, and a level of %d and %d left", w.now, capacity, whole, held, rate, comes, level, free)
	}
}

// look returns what home has left and has leased. Shards are looked at more often than home changes.
func (w *shardedWorld) look() (free, held int64) {
	now, buckets := bucket.ShardNow(w.home.Memory), []bucket.Bucket{{Limits: w.limits}}
	unit, _, _ := bucket.LeasingOf(w.limits)
	level, holdings := bucket.HomeRecords(w.home.Memory, "acme")
	if now != w.seen.now || !bytes.Equal(level, w.seen.level) {
		w.seen.now, w.seen.level, w.seen.free = now, level, 0
		if states, err := w.home.Peek(context.Background(), "acme", buckets); err == nil {
			w.seen.free = states[0].Remaining * unit
		}
	}
	if !bytes.Equal(holdings, w.seen.holdings) {
		w.seen.holdings, w.seen.held = holdings, 0
		if leases, err := w.home.Leases(context.Background(), "acme", buckets); err == nil && len(leases) > 0 {
			// Each is rounded down.
			w.seen.held = (leases[0].Capacity + int64(leases[0].Holders)) * unit
		}
	}
	return w.seen.free, w.seen.held
}
