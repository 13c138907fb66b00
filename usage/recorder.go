package usage

import (
	"context"
	"hash/maphash"
	"math"
	"sync/atomic"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/digest"
	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/internal/pseudonym"
)

// Recorder is an observer of a server that counts its decisions, and notes whose usage its store has counted: put it into
// Config.Observe.Observer of package ratelimit, with event.All beside others. It is made by [NewRecorder]. What observers do is safe for concurrent
// use, waits for nobody, and allocates nothing for tenants that ask again and again. [Recorder.Collect] and [Recorder.Stored] are called by one
// goroutine at a time, once a second.
type Recorder struct {
	cfg    RecorderConfig
	seed   maphash.Seed
	shards [shards]shard

	// What follows belongs to whoever collects.
	spare  [shards]*slot
	ledger ledger
	tells  tells

	// other, lost and untold are those of [Losses].
	other, lost, untold atomic.Uint64
}

var (
	_ event.Counter      = (*Recorder)(nil)
	_ event.Keeper       = (*Recorder)(nil)
	_ event.UsageCounter = (*Recorder)(nil)
)

// Losses say what a [Recorder] had no room for. Each only grows.
type Losses struct {
	// Other are decisions of which something is counted under [Other], some of them once for each name.
	Other uint64
	// Lost are decisions that were forgotten before they were stored, because that has failed for long.
	Lost uint64
	// Untold are times at which a tenant was not noted as counted. Whoever looks through the store finds it.
	Untold uint64
}

// NewRecorder returns a recorder. The error has everything that is wrong with the configuration.
func NewRecorder(cfg RecorderConfig) (*Recorder, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	r := &Recorder{cfg: cfg, seed: maphash.MakeSeed(), ledger: newLedger(&cfg), tells: newTells(cfg.Counted)}
	for i := range r.shards {
		r.shards[i].now, r.spare[i] = newSlot(&cfg), newSlot(&cfg)
	}
	return r, nil
}

// Losses returns what there was no room for so far. It is safe for concurrent use.
func (r *Recorder) Losses() Losses {
	return Losses{Other: r.other.Load(), Lost: r.lost.Load(), Untold: r.untold.Load()}
}

func (r *Recorder) shard(tenant string) *shard {
	return &r.shards[maphash.String(r.seed, pseudonym.Cut(tenant))%shards]
}

// Count implements [event.Counter].
func (r *Recorder) Count(v event.Verdict) {
	if v.Outcome == "validated" || r.cfg.Tenants == None {
		return
	}
	n := Numbers{Admitted: 1}
	switch {
	case v.Refused:
		n = Numbers{Refused: 1}
	case v.Outcome == "replayed", v.Outcome == "repeated", v.Outcome == "exempt":
	default:
		n.Points = max(0, v.Cost)
	}
	if v.WouldRefuse {
		n.WouldRefuse = 1
	}
	var room [MaxName]byte
	operation, names := appendOperation(room[:0], v.RootFields), namesOf(&r.cfg, &v)
	s := r.shard(v.Tenant)
	s.mu.Lock()
	counted := s.now.count(&v, operation, &names, n)
	s.mu.Unlock()
	if !counted {
		r.other.Add(1)
	}
}

// CountUsage implements [event.UsageCounter].
func (r *Recorder) CountUsage(c event.UsageCounted) {
	if c.Store != r.cfg.Store {
		return
	}
	s := r.shard(c.Tenant)
	s.mu.Lock()
	noted := len(c.Tenant) <= maxTenant && s.now.note(&c)
	s.mu.Unlock()
	if !noted {
		r.untold.Add(1)
	}
}

// Observe implements [event.Observer].
func (r *Recorder) Observe(ctx context.Context, e event.Event) { r.Keep(ctx, e) }

// Keep implements [event.Keeper]: it counts thresholds that were reached, and keeps no event.
func (r *Recorder) Keep(_ context.Context, e event.Event) bool {
	switch e := e.(type) {
	case event.ThresholdCrossed:
		r.reached(&e.Budget, e.At, int(math.Round(100*e.Threshold)))
	case event.LimitReached:
		const whole = 100
		r.reached(&e.Budget, e.At, whole)
	default:
	}
	return false
}

func (r *Recorder) reached(b *event.Budget, at time.Time, threshold int) {
	if r.cfg.Tenants == None {
		return
	}
	of := crossing{level: b.Level, owner: pseudonym.Written(b.Owner), limit: pseudonym.Written(b.Limit), threshold: threshold}
	if b.Level == "user" {
		of.owner = r.user(b.Tenant, b.Owner)
	}
	s := r.shard(b.Tenant)
	s.mu.Lock()
	s.now.reached(b.Tenant, at, of)
	s.mu.Unlock()
}

// user returns the name of a user as it is written.
func (r *Recorder) user(tenant, user string) string {
	switch {
	case user == "" || r.cfg.Users == digest.Omitted:
		return ""
	case r.cfg.Users == digest.Hashed:
		return pseudonym.Text(pseudonym.User(r.cfg.Key, tenant, user))
	default:
		return pseudonym.Written(user)
	}
}

// Collect returns what has to be told: what came since it was called last, and what was returned before and not [Recorder.Stored]. Requests go on
// being counted meanwhile. told is the minute in which it is told, by [Source.Now]: the zero time says that nothing can be told now, so that nothing is
// returned.
func (r *Recorder) Collect(now, told time.Time) Batch {
	for i := range r.shards {
		s := r.swap(i)
		for k := range s.used {
			r.other.Add(r.ledger.take(&s.pages[k]))
		}
		r.untold.Add(r.tells.take(s.counted))
		s.reset()
	}
	r.lost.Add(r.ledger.forget(minuteOf(now)))
	var batch Batch
	if told.IsZero() {
		return batch
	}
	r.ledger.tell(&batch)
	r.tells.tell(&batch, minuteOf(told))
	return batch
}

// Stored says that what [Recorder.Collect] has returned last stands where a collector reads it.
func (r *Recorder) Stored() {
	r.ledger.stored()
	r.tells.stored()
}

// swap has a shard count in its other slot, and returns the one that it has counted in.
func (r *Recorder) swap(i int) *slot {
	s := &r.shards[i]
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now, r.spare[i] = r.spare[i], s.now
	return r.spare[i]
}

// minuteOf returns the number of the minute of a time, since January 1970.
func minuteOf(t time.Time) int64 {
	const seconds = 60
	return t.Unix() / seconds
}

// timeOf returns when a minute began.
func timeOf(minute int64) time.Time { return time.Unix(minute*60, 0).UTC() }
