package directory

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/internal/follow"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// Directory is a tiers.Source with what is known of single tenants beside its policy. It is made by [Open] and safe for
// concurrent use. [Directory.Close] stops it.
//
// A tiers.ModeSwitch or a tiers.Rollout stands around it and not inside.
type Directory struct {
	cfg    Config
	policy tiers.Source
	source Source
	told   *teller
	cache  *cache
	// epoch is what entries of the cache have that hold. It is another one after each gap.
	epoch atomic.Uint32
	// unknown is what a tenant has of whom nobody knows anything. It is nil if the policy decides.
	unknown *tiers.Record

	// mu guards what follows, and what is written into the cache. It is never held while the source is asked.
	mu      sync.Mutex
	flights map[string]*flight
	// misses is how many questions about tenants without a record there may be, as of refilled.
	misses   float64
	refilled time.Time
	// failures counts questions in a row that were not answered. away says that requests do not wait for any.
	failures int
	away     bool
	// changed counts what was written into the cache, and saved is what the disk has of that.
	changed, saved uint64
	// mark belongs to whoever asks what has changed.
	mark Mark
	// keeps asks that.
	keeps *follow.Follower[*Page]

	life  context.Context
	stop  context.CancelFunc
	ended sync.WaitGroup
}

var (
	_ tiers.Preparer = (*Directory)(nil)
	_ tiers.Checker  = (*Directory)(nil)
)

// Open puts a directory around the policy of a source. It reads [Config.LastGood] and asks the records' source where to begin, and
// waits [Config.Patience] for the answer: a source that does not answer keeps no server from starting. The error has everything
// that is wrong with the configuration.
//
// The context bounds the start and nothing after it.
func Open(ctx context.Context, policy tiers.Source, source Source, cfg Config) (*Directory, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(policy, source); err != nil {
		return nil, err
	}
	d := &Directory{
		cfg: cfg, policy: policy, source: source, cache: newCache(cfg.MaxBytes), flights: make(map[string]*flight),
		misses: float64(cfg.MissesPerSecond), refilled: time.Now(),
	}
	d.epoch.Store(1)
	d.keeps = follow.New(d.follows())
	if cfg.WhileUnknown != "" {
		d.unknown = tiers.AssignedTo(cfg.WhileUnknown)
		if err := forward(policy, d.hasUnknown); err != nil {
			return nil, err
		}
	}
	var err error
	if d.told, err = newTeller(&cfg.Observe, d.Status, d.keeps.State); err != nil {
		return nil, err
	}
	if err := d.restore(); err != nil {
		cfg.Observe.Logger.WarnContext(ctx, "directory: the last good records could not be read",
			slog.String("path", cfg.LastGood), slog.String("error", shortened(err)))
	}
	d.life, d.stop = context.WithCancel(context.WithoutCancel(ctx))
	first, cancel := context.WithTimeout(ctx, cfg.Patience)
	_ = d.keeps.Ask(first) // What is known of it is told by Judge.
	cancel()
	d.ended.Go(func() { d.keeps.Run(d.life) })
	if cfg.LastGood != "" {
		d.ended.Go(func() { follow.Keep(d.life, saveEvery, nil, d.saveChanged) })
	}
	return d, nil
}

// forward gives a check to a source, or asks it about the current policy of one that is no checker.
func forward(source tiers.Source, check func(*tiers.Snapshot) error) error {
	if checker, ok := source.(tiers.Checker); ok {
		return checker.Check(check)
	}
	return check(source.Snapshot())
}

func (d *Directory) hasUnknown(s *tiers.Snapshot) error {
	if s.HasTier(d.cfg.WhileUnknown) {
		return nil
	}
	return fmt.Errorf("directory: the policy has no tier %.80q, which Config.WhileUnknown names", d.cfg.WhileUnknown)
}

// Snapshot returns the current policy of the source of policies.
func (d *Directory) Snapshot() *tiers.Snapshot { return d.policy.Snapshot() }

// Check implements tiers.Checker: the source of policies does the checking.
func (d *Directory) Check(check func(*tiers.Snapshot) error) error { return forward(d.policy, check) }

// Prepare implements tiers.Preparer. What is in the cache takes no lock and allocates nothing. Where the tenant is not in it, the
// source is asked, once for all who wait, for [Config.MissDeadline] at most. It is not asked about tenants that the policy lists,
// and about anonymous subjects only if their tenants have a record in the cache.
func (d *Directory) Prepare(ctx context.Context, subject tiers.Subject) *tiers.Record {
	e := d.cache.find(subject.Tenant)
	if e != nil && e.epoch.Load() == d.epoch.Load() {
		if !e.visited.Load() {
			e.visited.Store(true)
		}
		return e.record()
	}
	known := e != nil && e.kind != nil
	if subject.Anonymous && !known || subject.Tenant == "" || len(subject.Tenant) > tiers.MaxLongName ||
		d.policy.Snapshot().Lists(subject.Tenant) {
		return nil
	}
	return d.miss(ctx, subject.Tenant)
}

// Status is what a directory knows of its source, and how much is in its cache.
type Status struct {
	// Asked is when the source has last said what has changed. It is zero if it never has.
	Asked time.Time
	// Away says that the source does not answer: requests do not wait for it.
	Away bool
	// Mark is through which change the cache is in step with the source.
	Mark Mark
	// Known is how many tenants with a record are in the cache, Absent how many without, and Bytes about how much memory
	// they take.
	Known, Absent int
	Bytes         int64
}

// Status returns what the directory knows at this moment.
func (d *Directory) Status() Status {
	asked := d.keeps.State().Asked
	d.mu.Lock()
	defer d.mu.Unlock()
	return Status{
		Asked: asked, Away: d.away, Mark: d.mark, Known: d.cache.known.count, Absent: d.cache.absent.count,
		Bytes: d.cache.known.bytes + d.cache.absent.bytes,
	}
}

// Close stops asking, waits until that has ended, and writes [Config.LastGood]. What is in the cache holds on. It always returns
// nil.
func (d *Directory) Close() error {
	// Nobody asks any more afterwards.
	d.mu.Lock()
	d.stop()
	d.mu.Unlock()
	d.ended.Wait()
	d.told.close()
	return nil
}

// shortened is the text of an error, cut.
func shortened(err error) string {
	text := err.Error()
	return text[:min(len(text), 512)]
}

// hintGap is the shortest time between two questions because of hints: where records are written all the time, all instances ask.
const hintGap = 100 * time.Millisecond

// follows says how the changes of the source are followed.
func (d *Directory) follows() follow.Config[*Page] {
	cfg := follow.Config[*Page]{
		Source: "Source", Read: d.read, Judge: d.judge, Interval: d.cfg.Interval, Patience: flightTimeout, Gap: hintGap,
	}
	if hinter, ok := d.source.(Hinter); ok {
		cfg.Subscribe = hinter.Hints
	}
	return cfg
}

// read asks what has changed, page by page. It applies all pages but the last one, which it returns.
func (d *Directory) read(ctx context.Context) (*Page, error) {
	for {
		d.mu.Lock()
		since := d.mark
		d.mu.Unlock()
		page, err := d.source.Changes(ctx, since)
		if err == nil {
			err = page.check(since)
		}
		if err != nil {
			return nil, err
		}
		if !page.More {
			return &page, nil
		}
		d.apply(&page)
	}
}

// judge applies the last page, or notes that there is none.
func (d *Directory) judge(ctx context.Context, answer follow.Answer[*Page]) error {
	if answer.Err == nil {
		d.apply(answer.Value)
	}
	d.mu.Lock()
	was := d.away
	if answer.Err == nil {
		d.failures, d.away = 0, false
	} else {
		d.failures = max(d.failures, maxFailures-1)
		d.failed()
	}
	is := d.away
	d.mu.Unlock()
	d.told.answered(ctx, was, is, answer.Err)
	return answer.Err
}
