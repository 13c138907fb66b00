package directory

import (
	"context"
	"math/rand/v2"
	"time"
)

// poll asks at each interval what has changed.
func (d *Directory) poll() {
	// The first question comes anywhere in the interval: instances that start together do not ask together.
	timer := time.NewTimer(rand.N(d.cfg.Interval)) //nolint:gosec // jitter need not be secret
	defer timer.Stop()
	for {
		select {
		case <-d.life.Done():
			return
		case <-timer.C:
		}
		ctx, cancel := context.WithTimeout(d.life, flightTimeout)
		d.ask(ctx)
		cancel()
		timer.Reset(d.cfg.Interval*4/5 + rand.N(d.cfg.Interval*2/5)) //nolint:gosec // jitter need not be secret
	}
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
