package digest

import (
	"context"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/internal/pseudonym"
)

// Collector is an observer of a server that counts each decision and keeps refusals: put it into Config.Observe.Observer of package
// ratelimit, with event.All beside others. Tell it of the policy as well, as an observer of package policy, and it knows who has published
// what has refused. It is made by [New]. What observers do is safe for concurrent use; [Collector.Collect] and [Collector.Kept] are called by one
// goroutine at a time.
type Collector struct {
	cfg                           Config
	seed                          maphash.Seed
	started                       time.Time
	tenantsOfShard, kindsOfTenant int

	shards [shards]shard
	// trial are the candidates of now and of before.
	trial atomic.Pointer[trial]
	// below is the bound of the hashes of tenants that are recorded.
	below atomic.Uint64
	// refusals are those that nobody has collected.
	refusals *event.Channel

	// mu guards policies, those that were applied, the newest last, and modes, which were told last.
	mu       sync.Mutex
	policies []Policy
	modes    *event.ModeSwitched

	// What follows belongs to whoever collects.
	spare  [shards]*slot
	window window
	total  Counts
	kept   kept
	lost   uint64
}

var (
	_ event.Counter     = (*Collector)(nil)
	_ event.Keeper      = (*Collector)(nil)
	_ event.DropCounter = (*Collector)(nil)
)

// trial is a candidate.
type trial struct {
	number     uint64
	id, before string
}

const (
	// waiting is how many refusals wait to be collected. The server tells a hundred a second where nobody says another number.
	waiting = 512
	// maxModes is how many mode switches a digest has.
	maxModes = 16
	// policiesKnown is of how many policies the authors are remembered.
	policiesKnown = 8
)

// New returns a collector. The error has everything that is wrong with the configuration.
func New(cfg Config) (*Collector, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	c := &Collector{
		cfg: cfg, seed: maphash.MakeSeed(), started: time.Now(),
		tenantsOfShard: max(1, cfg.Tenants/shards), kindsOfTenant: max(1, cfg.Records/4),
		refusals: event.NewChannel(waiting), window: newWindow(cfg.Tenants), kept: newKept(cfg.Refusals),
	}
	c.trial.Store(&trial{})
	c.below.Store(everybody)
	for i := range c.shards {
		c.shards[i].now, c.spare[i] = newSlot(), newSlot()
	}
	return c, nil
}

// Count implements [event.Counter]. It takes some hundred nanoseconds, and allocates nothing for a tenant that asks again and again.
func (c *Collector) Count(v event.Verdict) {
	if v.Outcome == "validated" {
		return
	}
	number, user := c.trialOf(v.Candidate), uint64(0)
	if v.User != "" {
		user = pseudonym.User(c.cfg.Key, v.Tenant, v.User)
	}
	detail := c.detailOf(&v)
	s := &c.shards[maphash.String(c.seed, pseudonym.Cut(v.Tenant))%shards]
	s.mu.Lock()
	s.now.count(c, &v, detail, number, user)
	s.mu.Unlock()
}

// trialOf returns the number of a candidate, 0 for none and for the one before the present one, of which operations may be under way.
func (c *Collector) trialOf(id string) uint64 {
	if id == "" {
		return 0
	}
	for {
		was := c.trial.Load()
		switch id {
		case was.id:
			return was.number
		case was.before:
			return 0
		}
		next := &trial{number: was.number + 1, id: pseudonym.Cut(id), before: was.id}
		if len(id) > pseudonym.MaxName {
			return 0
		}
		if c.trial.CompareAndSwap(was, next) {
			return next.number
		}
	}
}

// Observe implements [event.Observer].
func (c *Collector) Observe(ctx context.Context, e event.Event) { c.Keep(ctx, e) }

// Keep implements [event.Keeper]: it keeps refusals that have an id, while there is room.
func (c *Collector) Keep(ctx context.Context, e event.Event) bool {
	switch e := e.(type) {
	case event.Decided:
		return e.RefusalID != "" && c.cfg.Refusals > 0 && c.refusals.Keep(ctx, e)
	case event.PolicyApplied:
		c.applied(&e)
	case event.ModeSwitched:
		c.mu.Lock()
		c.modes = &e
		c.mu.Unlock()
	default:
	}
	return false
}

// Dropped is how many refusals there was no room for.
func (c *Collector) Dropped() uint64 { return c.refusals.Dropped() }

// applied remembers who has published a policy.
func (c *Collector) applied(e *event.PolicyApplied) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.policies = append(c.policies, Policy{
		Revision: e.Revision, Hash: e.Hash, Author: pseudonym.Written(e.Author), Reason: reason(e.Reason), Published: e.Published,
		Applied: e.At, Origin: e.Origin,
	})
	if len(c.policies) > policiesKnown {
		c.policies = append(c.policies[:0], c.policies[1:]...)
	}
}

// policy returns the newest policy of a number, or the newest of all for nil.
func (c *Collector) policy(revision *uint64) (Policy, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := len(c.policies) - 1; i >= 0; i-- {
		if revision == nil || c.policies[i].Revision == *revision {
			return c.policies[i], true
		}
	}
	return Policy{}, false
}

// modesAt returns the mode switches that are in force at a time.
func (c *Collector) modesAt(now time.Time) *Modes {
	c.mu.Lock()
	told := c.modes
	c.mu.Unlock()
	if told == nil {
		return nil
	}
	m := &Modes{State: told.State, Refused: told.Refused, Error: reason(told.Error), Told: told.At}
	for _, one := range told.InForce[:min(len(told.InForce), maxModes)] {
		if now.Before(one.Until) {
			one.Tenant, one.Operation, one.By, one.Reason = pseudonym.Written(one.Tenant), pseudonym.Written(one.Operation), pseudonym.Written(one.By), pseudonym.Written(one.Reason)
			m.InForce = append(m.InForce, one)
		}
	}
	return m
}

// Batch is what came between two calls of [Collector.Collect].
type Batch struct {
	// Digest is the digest as of now. Its Instance and ID are for its owner to set.
	Digest Digest
	// New are refusals that are kept from now on, and Gone the ids of those that are not any more.
	New  []Refusal
	Gone []string
	// Chunk are the operations, nil if there were none.
	Chunk *Chunk
}

// Collect takes what came since it was called last. Requests go on being counted meanwhile.
func (c *Collector) Collect(now time.Time) Batch {
	if current := c.trial.Load(); current.number > c.window.trial {
		c.window.begin(current.number)
		c.total = c.total.withoutCandidate()
	}
	c.window.advance(now)
	var records recordings
	for i := range c.shards {
		s := c.swap(i)
		if s.trial < c.window.trial {
			s.forgetTrial(c.window.trial)
		}
		c.total = c.total.Plus(s.all)
		c.window.add(s)
		records.add(&s.records)
		s.reset(c.tenantsOfShard)
	}
	batch := Batch{Digest: c.digest(now), Chunk: c.chunk(&records)}
	batch.New, batch.Gone = c.keep()
	batch.Digest.Dropped, batch.Digest.Unrecorded = c.Dropped(), c.lost
	return batch
}

// swap has a shard count in its other slot, and returns the one that it has counted in.
func (c *Collector) swap(i int) *slot {
	s := &c.shards[i]
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now, c.spare[i] = c.spare[i], s.now
	return c.spare[i]
}

// digest returns the digest of the window.
func (c *Collector) digest(now time.Time) Digest {
	all := c.window.sum()
	d := Digest{
		Version: Version, At: now, Started: c.started, Total: c.total, Recent: all.all, RecentFrom: all.from,
		Tenants: all.top(c.cfg.Top), Unlisted: all.unlisted, Groups: all.groups,
	}
	if d.Recent.Tried > 0 {
		d.Candidate = c.trial.Load().id
	}
	if p, known := c.policy(nil); known {
		d.Policy = &p
	}
	d.Modes, d.Overrides = c.modesAt(now), c.window.overrides()
	return d
}
