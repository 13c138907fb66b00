// Package lease has one daemon of a database do what one does at a time: who holds a lease counts its beat on, and whoever sees it stand
// still for its time takes it. Nobody compares clocks of two machines.
//
// For a moment two may believe that they hold it, because one of them stood still: what is done under a lease does no harm if two do it.
package lease

import (
	"context"
	"log/slog"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
	"github.com/gqlgen-ratelimit/ratelimit/internal/pace"
)

// beats is how often a lease is kept within its time.
const beats = 3

// freePatience is for how long it may take to give a lease back.
const freePatience = 2 * time.Second

// Config says which lease it is. Each field is needed but Tried.
type Config struct {
	// Store is where it is kept.
	Store *store.DB
	// Name is that of the lease, and what is logged begins with it. Holder is what this daemon is called, another one for each.
	Name, Holder string
	// Life is after which time without a beat another daemon takes over.
	Life time.Duration
	// Logger is told when this daemon gets the lease, and when it loses it.
	Logger *slog.Logger
	// Leads is told whether this daemon has it, and who does, as far as that is known.
	Leads func(leads bool, holder string)
	// Tried is told of each try to get it, and why it failed, nil if it did not.
	Tried func(ctx context.Context, failure error)
}

// keeper waits for the lease and keeps it. It compares beats and times of its own process only.
type keeper struct {
	cfg   Config
	lease store.Lease
	// since is when this beat was seen first.
	since time.Time
}

// Keep waits for the lease and calls lead once it is held, again and again until the context ends. The context of lead ends with the lease; what
// lead does ends before another daemon is given it, unless that has taken it. The lease is given back in the end.
func Keep(ctx context.Context, cfg Config, lead func(context.Context)) {
	if cfg.Tried == nil {
		cfg.Tried = func(context.Context, error) {}
	}
	k := keeper{cfg: cfg}
	for k.wait(ctx) {
		k.lead(ctx, lead)
	}
}

// wait waits until this daemon has the lease, and reports whether it has.
func (k *keeper) wait(ctx context.Context) bool {
	k.since = time.Now()
	for ctx.Err() == nil {
		begun := time.Now()
		taken, err := k.try(ctx)
		k.cfg.Tried(ctx, err)
		if taken {
			k.since = begun
			return true
		}
		pace.Wait(ctx, pace.Jittered(k.cfg.Life/beats), nil)
	}
	return false
}

// try takes the lease if nobody has it, or who has it has not beaten for its time.
func (k *keeper) try(ctx context.Context) (bool, error) {
	var there store.Lease
	err := k.cfg.Store.Read(ctx, func(v *store.View) (err error) {
		there, err = v.Lease(k.cfg.Name)
		return err
	})
	if err != nil {
		return false, err
	}
	if there != k.lease {
		k.lease, k.since = there, time.Now()
	}
	k.cfg.Leads(false, there.Holder)
	if there.Holder != "" && time.Since(k.since) < k.cfg.Life {
		return false, nil
	}
	return k.take(ctx, k.cfg.Holder)
}

// take takes, keeps or gives back the lease, and reports whether that was done.
func (k *keeper) take(ctx context.Context, holder string) (taken bool, _ error) {
	err := k.cfg.Store.Change(ctx, func(tx *store.Tx) error {
		next, err := tx.TakeLease(k.cfg.Name, holder, k.lease)
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
	k.cfg.Leads(true, k.cfg.Holder)
	k.cfg.Logger.InfoContext(ctx, k.cfg.Name+": this daemon has the lease", slog.String("holder", k.cfg.Holder))
	leading, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		run(leading)
	}()
	k.keep(leading)
	stop()
	<-ended
	k.cfg.Leads(false, "")
	// Who comes next need not wait for the time of the lease. If it is lost already, it is somebody else's.
	free, cancel := context.WithTimeout(context.WithoutCancel(ctx), freePatience)
	defer cancel()
	_, _ = k.take(free, "")
	k.lease = store.Lease{}
}

// keep keeps the lease, and returns once it is lost, or the context ends.
func (k *keeper) keep(ctx context.Context) {
	// Who waits for it begins to count after the beat, and this daemon before it.
	for {
		pace.Wait(ctx, k.cfg.Life/(2*beats), nil)
		if ctx.Err() != nil {
			return
		}
		begun := time.Now()
		until, cancel := context.WithDeadline(ctx, k.since.Add(k.cfg.Life))
		kept, err := k.take(until, k.cfg.Holder)
		cancel()
		switch {
		case kept:
			k.since = begun
		case err == nil, ctx.Err() == nil && time.Since(k.since) >= k.cfg.Life:
			k.cfg.Logger.WarnContext(ctx, k.cfg.Name+": the lease is lost: another daemon has it, or the database is away")
			return
		}
	}
}
