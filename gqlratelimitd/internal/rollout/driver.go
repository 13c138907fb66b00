package rollout

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/digest"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// ErrConflict says that somebody else has changed the state, or published a revision, meanwhile.
var ErrConflict = errors.New("rollout: somebody else was first")

// Store keeps the newest roll-out, and publishes revisions.
type Store interface {
	// Load returns the newest roll-out, nil if there never was one, and the number and document of the newest revision, as of one moment.
	Load(ctx context.Context) (state *State, newest uint64, document []byte, err error)
	// Save saves the state in the place of the one whose version is one less, 0 for none, and publishes what is to be published, if that is not
	// nil, with [Actor] as its author, all in one transaction. It returns [ErrConflict] if another version or revision is there.
	Save(ctx context.Context, next *State, publish *Publication) error
}

// Config says how a [Driver] works. Store and Digests are required.
type Config struct {
	Store Store
	// Digests returns those of the instances: redisdigest.Reader.Digests.
	Digests func(context.Context) ([]digest.Digest, error)
	// Parse is how instances read documents.
	Parse tiers.ParseConfig
	// Interval is how often the driver looks, at most [digest.Window] so that it misses nothing. Zero means 10 seconds.
	Interval time.Duration
	// Now is the clock. Nil means time.Now.
	Now func() time.Time
	// Failed hears of what goes wrong while it looks. It does not block. Nil hears nothing.
	Failed func(error)
}

// Driver drives the roll-out of a store. It is made by [New], starts nothing, and is safe for concurrent use, also of several processes.
type Driver struct{ cfg Config }

// New returns a driver. The error has everything that is wrong with the configuration.
func New(cfg Config) (*Driver, error) {
	var errs []error
	if cfg.Store == nil {
		errs = append(errs, errors.New("rollout: Config.Store is nil"))
	}
	if cfg.Digests == nil {
		errs = append(errs, errors.New("rollout: Config.Digests is nil"))
	}
	if cfg.Interval < 0 || cfg.Interval > digest.Window {
		errs = append(errs, fmt.Errorf("rollout: Config.Interval is %s; 0 is the default, and at most %s fit", cfg.Interval, digest.Window))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if cfg.Interval == 0 {
		cfg.Interval = 10 * time.Second
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Driver{cfg}, nil
}

// Run drives until the context ends.
func (d *Driver) Run(ctx context.Context) {
	ticker := time.NewTicker(d.cfg.Interval)
	defer ticker.Stop()
	for {
		if err := d.Look(ctx); err != nil && ctx.Err() == nil && d.cfg.Failed != nil {
			d.cfg.Failed(err)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// Look looks once. Without digests a roll-out that runs is not advanced to its next step, and a revision of somebody else ends it all the same.
func (d *Driver) Look(ctx context.Context) error {
	state, newest, _, err := d.cfg.Store.Load(ctx)
	if err != nil || !state.Active() {
		return err
	}
	var measured *Shares
	var unread error
	if state.Phase == Running {
		// Those that can be read are good beside an error.
		digests, err := d.cfg.Digests(ctx)
		unread, measured = err, state.Measure(digests)
	}
	next, publication, changed, err := state.Advance(d.cfg.Now(), newest, measured)
	if err == nil && changed {
		err = d.save(ctx, state, next, publication)
	}
	if errors.Is(err, ErrConflict) {
		// The next look sees what it was.
		err = nil
	}
	return errors.Join(err, unread)
}

// StartInput is a roll-out that is to begin.
type StartInput struct {
	// ID names the candidate, one that was not used before, and Seed decides the order of tenants.
	ID, Seed string
	// Document is the new policy.
	Document []byte
	Plan     Plan
	Reason   string
	// Expected is the newest revision that its author has seen.
	Expected uint64
}

// Start begins a roll-out. The error is [ErrNotNow] if one has not ended, [ErrConflict] if the newest revision is another one, or says what is
// wrong with the input.
func (d *Driver) Start(ctx context.Context, in StartInput) (*State, error) {
	was, newest, document, err := d.cfg.Store.Load(ctx)
	switch {
	case err != nil:
		return nil, err
	case was.Active() && was.Revision == newest:
		return nil, fmt.Errorf("%w: roll-out %s is %s", ErrNotNow, was.ID, was.Phase)
	case newest == 0 || newest != in.Expected:
		return nil, ErrConflict
	case was != nil && was.ID == in.ID:
		return nil, fmt.Errorf("%w: roll-out %s has been: its candidate has spent budgets; use another id", ErrNotNow, in.ID)
	}
	next, publication, err := Begin(State{ID: in.ID, Seed: in.Seed, Plan: in.Plan, Old: document, New: in.Document, Reason: in.Reason},
		newest, d.cfg.Parse, d.cfg.Now())
	if err != nil {
		return nil, err
	}
	return next, d.save(ctx, was, next, publication)
}

// Halt stops the roll-out where it is, and says why. The error is [ErrNotNow] or [ErrConflict].
func (d *Driver) Halt(ctx context.Context, why string) (*State, error) {
	return d.change(ctx, func(s *State) (*State, *Publication, error) {
		next, err := s.Halt(d.cfg.Now(), why)
		return next, nil, err
	})
}

// Resume has a halted roll-out go on. The error is [ErrNotNow] or [ErrConflict].
func (d *Driver) Resume(ctx context.Context) (*State, error) {
	return d.change(ctx, func(s *State) (*State, *Publication, error) {
		next, err := s.Resume(d.cfg.Now())
		return next, nil, err
	})
}

// Abort goes back to the old policy, in a revision of its own. The error is [ErrNotNow] or [ErrConflict].
func (d *Driver) Abort(ctx context.Context, why string) (*State, error) {
	return d.change(ctx, func(s *State) (*State, *Publication, error) { return s.Abort(why) })
}

func (d *Driver) change(ctx context.Context, by func(*State) (*State, *Publication, error)) (*State, error) {
	was, newest, _, err := d.cfg.Store.Load(ctx)
	switch {
	case err != nil:
		return nil, err
	case was == nil:
		return nil, fmt.Errorf("%w: there is no roll-out", ErrNotNow)
	case was.Active() && was.Revision != newest:
		return nil, fmt.Errorf("%w: revision %d was published meanwhile, which ends the roll-out", ErrConflict, newest)
	}
	next, publication, err := by(was)
	if err != nil {
		return nil, err
	}
	return next, d.save(ctx, was, next, publication)
}

func (d *Driver) save(ctx context.Context, was, next *State, publication *Publication) error {
	next.Version = 1
	if was != nil {
		next.Version = was.Version + 1
	}
	return d.cfg.Store.Save(ctx, next, publication)
}
