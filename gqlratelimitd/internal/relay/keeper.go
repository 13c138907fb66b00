package relay

import (
	"context"
	"log/slog"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
)

// leaseName is the lease of those who relay.
const leaseName = "relay"

// beats is how often the lease is kept within its time.
const beats = 3

// keeper waits for the lease and keeps it. It compares beats and times of its own process only.
type keeper struct {
	relay *Relay
	lease store.Lease
	// since is when this beat was seen first.
	since time.Time
}

// wait waits until this daemon has the lease, and reports whether it has.
func (k *keeper) wait(ctx context.Context) bool {
	r := k.relay
	k.since = time.Now()
	for ctx.Err() == nil {
		begun := time.Now()
		taken, err := k.try(ctx)
		r.report(ctx, err)
		if taken {
			k.since = begun
			return true
		}
		pause(ctx, jittered(r.cfg.Lease/beats), nil)
	}
	return false
}

// try takes the lease if nobody has it, or who has it has not beaten for its time.
func (k *keeper) try(ctx context.Context) (bool, error) {
	r := k.relay
	var there store.Lease
	err := r.cfg.Store.Read(ctx, func(v *store.View) (err error) {
		there, err = v.Lease(leaseName)
		return err
	})
	if err != nil {
		return false, err
	}
	if there != k.lease {
		k.lease, k.since = there, time.Now()
	}
	r.leads(false, there.Holder)
	if there.Holder != "" && time.Since(k.since) < r.cfg.Lease {
		return false, nil
	}
	return k.take(ctx, r.cfg.Holder)
}

// take takes, keeps or gives back the lease, and reports whether that was done.
func (k *keeper) take(ctx context.Context, holder string) (taken bool, _ error) {
	err := k.relay.cfg.Store.Change(ctx, func(tx *store.Tx) error {
		next, err := tx.TakeLease(leaseName, holder, k.lease)
		taken = err == nil && next.Holder == holder && next.Beat == k.lease.Beat+1
		if taken {
			return nil
		}
		return err
	})
	if err != nil || !taken {
		return false, err
	}
	k.lease = store.Lease{Holder: holder, Beat: k.lease.Beat + 1}
	return true, nil
}

// lead runs what only one daemon does, until the lease or the context ends. It gives the lease back.
func (k *keeper) lead(ctx context.Context, run func(context.Context)) {
	r := k.relay
	r.leads(true, r.cfg.Holder)
	r.cfg.Logger.InfoContext(ctx, "relay: this daemon relays", slog.String("holder", r.cfg.Holder))
	leading, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		run(leading)
	}()
	k.keep(leading)
	stop()
	<-ended
	r.leads(false, "")
	// Who comes next need not wait for the time of the lease. If it is lost already, it is somebody else's.
	free, cancel := context.WithTimeout(context.WithoutCancel(ctx), callPatience)
	defer cancel()
	_, _ = k.take(free, "")
	k.lease = store.Lease{}
}

// keep keeps the lease, and returns once it is lost, or the context ends.
func (k *keeper) keep(ctx context.Context) {
	r := k.relay
	// Who waits for it begins to count after the beat, and this daemon before it.
	for {
		pause(ctx, r.cfg.Lease/(2*beats), nil)
		if ctx.Err() != nil {
			return
		}
		begun := time.Now()
		until, cancel := context.WithDeadline(ctx, k.since.Add(r.cfg.Lease))
		kept, err := k.take(until, r.cfg.Holder)
		cancel()
		switch {
		case kept:
			k.since = begun
		case err == nil, ctx.Err() == nil && time.Since(k.since) >= r.cfg.Lease:
			r.cfg.Logger.WarnContext(ctx, "relay: the lease is lost: another daemon relays, or the database is away")
			return
		}
	}
}
