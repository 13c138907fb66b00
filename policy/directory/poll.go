package directory

import (
	"context"
	"errors"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/internal/guard"
	"github.com/gqlgen-ratelimit/ratelimit/internal/pace"
)

// hintGap is the shortest time between two questions because of hints: where records are written all the time, all instances ask.
const hintGap = 100 * time.Millisecond

// poll asks at each interval what has changed, and when it is woken.
func (d *Directory) poll() {
	// The first question comes anywhere in the interval: instances that start together do not ask together.
	timer := time.NewTimer(pace.Between(0, d.cfg.Interval))
	defer timer.Stop()
	for {
		hinted := false
		select {
		case <-d.life.Done():
			return
		case <-d.woken:
			hinted = true
		case <-timer.C:
		}
		ctx, cancel := context.WithTimeout(d.life, flightTimeout)
		d.ask(ctx)
		cancel()
		if !hinted {
			timer.Reset(pace.Between(d.cfg.Interval*4/5, d.cfg.Interval*6/5))
		} else if !pace.Sleep(d.life, hintGap) {
			return
		}
	}
}

// listen subscribes to the hints of a source that has some.
func (d *Directory) listen(source Hinter) {
	pace.Subscribe(d.life, func(stands func()) bool {
		err := guard.Call("Source.Hints", func() error {
			return source.Hints(d.life, func() {
				stands()
				pace.Sign(d.woken)
			})
		})
		return !errors.Is(err, ErrNoHints)
	})
}

// save keeps the cache on the disk, at intervals and at the end.
func (d *Directory) save() {
	ticker := time.NewTicker(defaultSaveEvery)
	defer ticker.Stop()
	for {
		select {
		case <-d.life.Done():
			d.saveChanged()
			return
		case <-ticker.C:
			d.saveChanged()
		}
	}
}
