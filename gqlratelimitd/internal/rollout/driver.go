package rollout

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/digest"
)

// ErrConflict says that somebody else has changed the state, or published a revision, meanwhile.
var ErrConflict = errors.New("rollout: somebody else was first")

// Store keeps the newest roll-out, and publishes revisions.
type Store interface {
	// Load returns the newest roll-out, and the newest revision, as of one moment.
	Load(ctx context.Context) (Situation, error)
	// Save saves the state in the place of the one whose version is one less, 0 for none, and publishes what is to be published, if that is not
	// nil, with [Actor] as its author, all in one transaction. It returns [ErrConflict] if another version or revision is there.
	Save(ctx context.Context, next *State, publish *Publication) error
}

// Config says how a [Driver] works. Store and Digests are required.
type Config struct {
	Store Store
	// Digests returns those of the instances: redisdigest.Reader.Digests.
	Digests func(context.Context) ([]digest.Digest, error)
	// Interval is how often the driver looks, at most [digest.Window] so that it misses nothing. Zero means 10 seconds.
	Interval time.Duration
	// Now is the clock. Nil means time.Now.
	Now func() time.Time
	// Moved hears of each state with another step or phase that this driver has saved. It does not block. Nil hears nothing.
	Moved func(*State)
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

// Look looks once. While no digests can be read a roll-out that runs stays where it is, and a revision of somebody else ends it all the same.
// Of several who look at once one is first, and what the others would have done is not done.
func (d *Driver) Look(ctx context.Context) error {
	there, err := d.cfg.Store.Load(ctx)
	if err != nil || !there.State.Active() {
		return err
	}
	var measured *Shares
	var unread error
	if there.State.Phase == Running {
		// Those that can be read are good beside an error.
		digests, err := d.cfg.Digests(ctx)
		if err != nil && len(digests) == 0 && there.State.Revision == there.Newest {
			return err
		}
		unread, measured = err, there.State.Measure(digests)
	}
	next, publication, err := there.Advance(d.cfg.Now(), measured)
	if err == nil && next != nil {
		err = d.cfg.Store.Save(ctx, next, publication)
		if moved := next.Step != there.State.Step || next.Phase != there.State.Phase; err == nil && moved && d.cfg.Moved != nil {
			d.cfg.Moved(next)
		}
	}
	if errors.Is(err, ErrConflict) {
		// The next look sees what it was.
		err = nil
	}
	return errors.Join(err, unread)
}
