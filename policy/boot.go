package policy

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"time"
)

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
