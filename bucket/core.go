package bucket

import (
	"bytes"
	"context"
	"fmt"
	"sync/atomic"

	"github.com/gqlgen-ratelimit/ratelimit/bucket/internal/deadline"
	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
	"github.com/gqlgen-ratelimit/ratelimit/internal/fleet"
	"github.com/gqlgen-ratelimit/ratelimit/internal/state"
	"github.com/gqlgen-ratelimit/ratelimit/lua"
)

// core is what the stores have in common: it makes the calls of the scripts, has an engine run them, and reads the
// replies.
type core struct {
	engine engine
	// mistake is what is wrong with the configuration, so that nothing can be done, or nil.
	mistake error
	// usual and administration bound the calls for which a request waits, and others. They are zero if nothing bounds
	// a call but its context.
	usual, administration deadline.Bounds
	// largest is the size in bytes of the largest answer that there can be room for.
	largest int
	scripts lua.Scripts
	known   knownOverrides
	// allLease is what the last heartbeat was answered.
	allLease atomic.Bool
}

// engine runs scripts: [Redis] in Redis, [Memory] their like in Go. Its errors are those of a [Store].
type engine interface {
	// run runs the script of the call once and returns its reply.
	run(ctx context.Context, c *call) (reply, error)
	// read returns what is kept of the tenant under a key, nil if nothing is. The result is the caller's.
	read(ctx context.Context, tenant string, key address) ([]byte, error)
	// remove forgets what is kept of the tenant under the keys.
	remove(ctx context.Context, tenant string, keys []address) error
	// estimate is the time at which the call would run, in Unix milliseconds, as far as it is known.
	estimate(c *call) int64
}

// check returns why nothing can be done in a call.
func (s *core) check(ctx context.Context) error {
	if s.mistake != nil {
		return s.mistake
	}
	return checkContext(ctx)
}

// Take implements [Store]. A take with a claim that got no answer is sent once more if there is time
// left: its attempt id makes that safe.
func (s *core) Take(ctx context.Context, take Take) (Result, error) {
	if err := take.Check(); err != nil {
		return Result{}, err
	}
	buckets := take.all()
	if take.empty() {
		if err := s.check(ctx); err != nil {
			return Result{}, err
		}
		return Result{Verdict: Admitted}, nil
	}
	c := s.newCall(take.Tenant, &s.scripts.Take, len(buckets)+2, len(buckets)+4)
	c.bucketKeys(take.Buckets, "")
	if take.Candidate != nil {
		c.bucketKeys(take.Candidate.Buckets, take.Candidate.ID)
	}
	if take.Claim != nil {
		c.key(recordAddress(take.Claim))
	}
	c.values(buckets, 0, 1, func(_ int, b *Bucket, l *rule) [2]int64 {
		return [2]int64{b.asked(take.Amounts, l.limit.Unit)}
	})
	c.claim = take.Claim
	c.arg([]byte(nil))
	c.rules()
	if take.Usage != nil {
		u := newUsage(take.Tenant, nil)
		u.of(&take)
		c.countsUnder(&u)
	}
	c.overrides()
	c.live = len(take.Buckets)
	c.owners, c.takes, c.again = take.Owners, true, take.Claim != nil
	reply, err := c.do(ctx)
	if err != nil {
		return Result{}, err
	}
	if reply.outcome == state.Blocked {
		return Result{
			Verdict: Blocked, blockedBy: c.governed.blocked, records: c.records, now: reply.now,
			HoldsFor: milliseconds(c.governed.until - reply.now),
		}, nil
	}
	take.Buckets = c.governed.buckets[:c.live:c.live]
	result, err := readTake(&take, c.governed.buckets[c.live:], reply)
	result.unused, result.records = c.governed.unused, c.records
	if result.HoldsFor > 0 {
		result.HoldsFor = milliseconds(c.governed.until - reply.now)
	}
	return result, err
}

// Settle implements [Store].
func (s *core) Settle(ctx context.Context, settlement Settlement) (Settled, error) {
	if err := settlement.check(); err != nil {
		return Settled{}, err
	}
	receipt, end := &settlement.Receipt, settlement.Claim
	if receipt.IsZero() && end == nil {
		return Settled{}, nil
	}
	packedEnd, answer := "", []byte(nil)
	if end != nil {
		kept := *end
		if len(kept.Answer) > s.largest {
			// An answer that no room can hold is not stored.
			kept.Answer = nil
		}
		packedEnd = packEnd(&kept)
		// A command may be read after its caller has gone.
		answer = bytes.Clone(kept.Answer)
	}
	c := s.newCall(settlement.Tenant(), &s.scripts.Settle, len(receipt.buckets)+1, len(receipt.buckets)+6)
	c.bucketKeys(receipt.buckets, "")
	if end != nil {
		c.key(recordAddress(end.Claim))
	} else {
		c.key(settledAddress(receipt))
	}
	c.values(receipt.buckets, receipt.takenAt, 2, func(k int, b *Bucket, l *rule) [2]int64 {
		charged, actual := settlement.settleAmounts(k, b, l)
		return [2]int64{charged, actual - charged}
	})
	c.arg(packedEnd)
	c.arg(answer)
	c.rules()
	if u := settlement.corrections(); u != nil {
		c.countsUnder(u)
		c.countIn(u.date)
	}
	reply, err := c.do(ctx)
	if err != nil {
		return Settled{}, err
	}
	if reply.outcome != state.Applied {
		return Settled{}, reply.check()
	}
	limits, err := reply.changes(receipt.buckets)
	return Settled{Applied: err == nil, Limits: limits}, err
}

// Renew implements [Store].
func (s *core) Renew(ctx context.Context, tenant string, claim *idempotency.Claim) (bool, error) {
	if err := checkRenewal(claim); err != nil {
		return false, err
	}
	lease, _ := leaseAndTTL(claim)
	c := s.newCall(tenant, &s.scripts.Settle, 1, 3)
	c.key(recordAddress(claim))
	c.values(nil, lease, 2, nil)
	c.arg(string(append(claim.Attempt[:], state.Running)))
	c.arg("")
	reply, err := c.do(ctx)
	if err != nil {
		return false, err
	}
	return reply.outcome == state.Applied, reply.check()
}

// Peek implements [Store].
func (s *core) Peek(ctx context.Context, tenant string, buckets []Bucket) ([]LimitState, error) {
	states, _, _, err := s.peek(ctx, tenant, buckets)
	return states, err
}

// peek is [core.Peek]. It also returns the buckets as override records make them, and the time of the store.
func (s *core) peek(ctx context.Context, tenant string, buckets []Bucket) (states []LimitState, governed []Bucket, now int64, err error) {
	if err := checkBuckets(buckets); err != nil {
		return nil, nil, 0, err
	}
	if len(buckets) == 0 {
		return nil, nil, 0, s.check(ctx)
	}
	c := s.adjust(tenant, buckets, nil)
	reply, err := c.do(ctx)
	if err != nil {
		return nil, nil, 0, err
	}
	if states, err = reply.changes(c.governed.buckets); err != nil {
		// It would have changed nothing.
		err = fmt.Errorf("%w: %w", ErrUnavailable, errReply)
	}
	return states, c.governed.buckets, reply.now, err
}

// Grant implements [Store].
func (s *core) Grant(ctx context.Context, tenant string, buckets []Bucket, amounts Amounts) ([]LimitState, error) {
	if err := checkBuckets(buckets); err != nil {
		return nil, err
	}
	if err := checkAmounts(amounts); err != nil {
		return nil, err
	}
	if len(buckets) == 0 {
		return nil, s.check(ctx)
	}
	c := s.adjust(tenant, buckets, amounts)
	reply, err := c.do(ctx)
	if err != nil {
		return nil, err
	}
	return reply.changes(c.governed.buckets)
}

// adjust is the call that gives the amounts back, or reads the states where there are none.
func (s *core) adjust(tenant string, buckets []Bucket, amounts Amounts) *call {
	c := s.newCall(tenant, &s.scripts.Adjust, len(buckets)+1, len(buckets)+1)
	c.bucketKeys(buckets, "")
	c.administers = true
	c.overrides()
	c.values(buckets, 0, 1, func(_ int, _ *Bucket, l *rule) [2]int64 {
		return [2]int64{amounts.Of(l.limit.Unit)}
	})
	c.rules()
	return c
}

// Reset implements [Store].
func (s *core) Reset(ctx context.Context, tenant string, buckets []Bucket) error {
	if err := checkBuckets(buckets); err != nil {
		return err
	}
	if err := s.check(ctx); err != nil || len(buckets) == 0 {
		return err
	}
	keys := make([]address, 0, 2*len(buckets))
	for i := range buckets {
		// What is leased of a bucket that is full again is nobody's: whoever holds it begins anew.
		keys = append(keys, bucketAddress(&buckets[i].Owner, ""), holdingsAddress(&buckets[i].Owner))
	}
	return s.engine.remove(ctx, tenant, keys)
}

// Beat counts this instance among those that share the store, and returns how many there are, and whether it was among
// them before: if not, as after a loss of data, the others may not be yet. It is for the extension, whose instances share
// the limits that fail local while the store is away.
func (s *core) Beat(ctx context.Context, instance [8]byte) (instances int, before bool, err error) {
	c := s.newCall("", &s.scripts.Heartbeat, 1, 2)
	c.key(address{kind: fleetKey})
	c.values(nil, fleet.BeatLife.Milliseconds(), 0, nil)
	c.arg(string(instance[:]))
	reply, err := c.do(ctx)
	if err != nil {
		return 0, false, err
	}
	if reply.outcome != state.Applied || len(reply.rest) != state.BeatSize {
		return 0, false, fmt.Errorf("%w: %w", ErrUnavailable, errReply)
	}
	instances = int(state.ReadUint(reply.rest, state.InstancesSize))
	leasing := int(state.ReadUint(reply.rest[state.InstancesSize+1:], state.InstancesSize))
	s.allLease.Store(leasing == instances && instances <= fleet.MaxInstances)
	return instances, reply.rest[state.InstancesSize] == 1, nil
}

// AllLease reports whether every instance that shares the store can lease, by what the last [core.Beat] was answered: false if there was none.
func (s *core) AllLease() bool { return s.allLease.Load() }
