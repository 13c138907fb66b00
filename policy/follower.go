package policy

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/internal/follow"
	"github.com/gqlgen-ratelimit/ratelimit/internal/guard"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// Follower is a tiers.Source that serves the newest valid revision of a feed. It is made by [Follow] and safe for
// concurrent use. [Follower.Close] stops it.
type Follower struct {
	cfg  Config
	feed Feed
	told *teller
	// current is what decisions read.
	current atomic.Pointer[tiers.Snapshot]

	// keeps asks the feed.
	keeps *follow.Follower[*Revision]
	// have is the revision that the feed was asked with. It belongs to whoever asks.
	have Head

	// mu guards what follows. It is never held while the feed is asked.
	mu     sync.Mutex
	checks []func(*tiers.Snapshot) error
	served candidate
	// before is what holds again if the first checks that the follower is given refuse what it has started with, the best first.
	// It is nil once another revision was applied.
	before []candidate
	// confirmed says that this feed has had what is served: it may be given back.
	confirmed bool
	// status is what Status returns, but for what keeps knows.
	status Status
	// anew says that what was refused is judged once more.
	anew bool
	// state is the one that was told.
	state State
	// shown is a copy of status for those who must not wait while a policy is compiled.
	shown atomic.Pointer[Status]

	// unrestored says that the feed could not be given back what it has lost. It belongs to whoever asks.
	unrestored bool
	// saved is the revision on the disk. It belongs to the start, and then to the goroutine that saves.
	saved Head
	// saveDue has room for one sign.
	saveDue chan struct{}

	stop  context.CancelFunc
	ended sync.WaitGroup
}

// candidate is a policy that may be served.
type candidate struct {
	// revision is nil for [Config.First].
	revision *Revision
	snapshot *tiers.Snapshot
	origin   string
}

// Where a policy comes from.
const (
	originFeed     = "feed"
	originLastGood = "last_good"
	originFirst    = "first"
)

func (c *candidate) head() Head {
	if c.revision == nil {
		return Head{}
	}
	return c.revision.Head()
}

var _ tiers.Checker = (*Follower)(nil)

// Follow starts to follow a feed. It returns with a policy: the newest revision of the feed if it answers in time
// ([Config.Patience]) and has a valid one, else what [Config.LastGood] has, else [Config.First]. Where there is none of these,
// the error says of each why; so it does of mistakes in the configuration.
//
// The context bounds the start and nothing after it.
func Follow(ctx context.Context, feed Feed, cfg Config) (*Follower, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(feed); err != nil {
		return nil, err
	}
	f := &Follower{cfg: cfg, feed: feed, told: newTeller(&cfg.Observe), saveDue: make(chan struct{}, 1)}
	f.keeps = follow.New(f.follows())
	if err := errors.Join(f.told.prepare(), f.boot(ctx)); err != nil {
		return nil, err
	}
	if err := f.told.observe(f.Status); err != nil {
		return nil, err
	}
	f.told.start(ctx)
	life, stop := context.WithCancel(context.WithoutCancel(ctx))
	f.stop = stop
	f.ended.Go(func() { f.keeps.Run(life) })
	if cfg.LastGood != "" {
		f.ended.Go(func() { follow.Keep(life, saveAgain, f.saveDue, f.saveServed) })
	}
	return f, nil
}

// Snapshot returns the newest valid policy as it holds now, also after Close.
func (f *Follower) Snapshot() *tiers.Snapshot {
	return f.current.Load().Snapshot()
}

// Status returns what is served, and what is known of the feed.
func (f *Follower) Status() Status {
	return f.statusOf(*f.shown.Load())
}

// statusOf adds what is known of the feed.
func (f *Follower) statusOf(s Status) Status {
	known := f.keeps.State()
	s.State, s.Asked = State(known.Contact), known.Asked
	if known.Err != nil {
		s.Failure = errorText(known.Err, maxReportText)
	}
	return s
}

// Check implements tiers.Checker: from now on a revision that does not pass is refused as one that does not compile
// is. If what the follower has started with does not pass, what it would have started with otherwise takes its place, if
// that does: a new instance does not fail where the others go on. The error is that of the check if there is nothing else.
func (f *Follower) Check(check func(*tiers.Snapshot) error) (err error) {
	f.change(context.Background(), func() {
		f.checks = append(f.checks, check)
		if err = pass(f.served.snapshot, check); err != nil && f.fallBack(err) {
			err = nil
		}
	})
	return err
}

// fallBack takes what the follower has started with back, for what passes all checks, and returns whether there is any.
func (f *Follower) fallBack(because error) bool {
	for i, next := range f.before {
		if f.passes(next.snapshot) == nil {
			refused := f.served.revision
			f.serve(next, f.before[i+1:])
			f.refuse(refused.refuse(ReasonCheck, because))
			return true
		}
	}
	return false
}

// passes returns the first thing that the checks have against a policy.
func (f *Follower) passes(s *tiers.Snapshot) error {
	for _, check := range f.checks {
		if err := pass(s, check); err != nil {
			return err
		}
	}
	return nil
}

// pass calls a check. One that panics has not passed.
func pass(s *tiers.Snapshot, check func(*tiers.Snapshot) error) error {
	return guard.Call("a check of the policy", func() error { return check(s) })
}

// Reload asks the feed now, also after Close, and judges what was refused before once more. It asks twice, for a feed that
// wants to see the same twice. It returns why the newest revision of the feed is not what holds.
func (f *Follower) Reload(ctx context.Context) error {
	f.change(ctx, func() { f.anew = true })
	defer f.change(ctx, func() { f.anew = false })
	if err := f.ask(ctx); err != nil && !errors.Is(err, ErrNotYet) {
		return err
	}
	return f.ask(ctx)
}

// Close stops following and waits until that has ended; what is to be written to the disk is written before. It always
// returns nil.
func (f *Follower) Close() error {
	f.stop()
	f.ended.Wait()
	f.told.close()
	return nil
}

// errNothingToServe says what to do about a start without a policy.
var errNothingToServe = errors.New("policy: there is no policy to start with: make the feed answer with a valid revision, " +
	"or set Config.First, or Config.LastGood to a file that this server has written before")

// boot finds the policy to start with.
func (f *Follower) boot(ctx context.Context) error {
	var fallbacks []candidate
	kept, keptErr := f.lastGood()
	if keptErr == nil && kept != nil {
		fallbacks = append(fallbacks, *kept)
	}
	if f.cfg.First != nil {
		fallbacks = append(fallbacks, candidate{snapshot: f.cfg.First, origin: originFirst})
	}
	if keptErr != nil && !errors.Is(keptErr, fs.ErrNotExist) {
		f.cfg.Observe.Logger.ErrorContext(ctx, "policy: the last good policy on the disk cannot be used",
			slog.String("path", f.cfg.LastGood), slog.String("error", errorText(keptErr, maxToldText)))
	}
	if len(fallbacks) > 0 {
		// What the disk has is newer than a revision that the feed has lost.
		f.served, f.before = fallbacks[0], fallbacks[1:]
	}
	patient, cancel := context.WithTimeout(ctx, f.cfg.Patience)
	defer cancel()
	err := f.ask(patient)
	if f.served.snapshot == nil {
		return errors.Join(err, keptError(keptErr), errNothingToServe)
	}
	if f.current.Load() == nil {
		// The feed had nothing better: what was at hand holds.
		f.change(ctx, func() { f.serve(f.served, f.before) })
	}
	f.change(ctx, func() {
		now, s := time.Now(), f.statusOf(f.status)
		if f.state = s.State; f.state == Never {
			f.told.state("", &s, now)
		}
	})
	return nil
}

func keptError(err error) error {
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return fmt.Errorf("policy: the last good policy: %w", err)
}
