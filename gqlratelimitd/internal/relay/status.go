package relay

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
)

// maxRefusals is how many refusals are remembered, and maxError how many bytes of an error.
const (
	maxRefusals = 100
	maxError    = 512
)

// Status is what a relay knows of its work. Besides Holder, all of it is of the daemon that leads, and zero in others.
type Status struct {
	// Leads says that this daemon relays, and Holder which one does: empty if that is not known or none.
	Leads  bool   `json:"leads"`
	Holder string `json:"holder,omitempty"`
	// Waiting is how many things have changed that Redis has not been given, and Lag for how long the oldest of them waits.
	Waiting int64         `json:"waiting"`
	Lag     time.Duration `json:"-"`
	// Failure is why nothing can be relayed just now, and FailingSince since when. They are zero while all is well.
	Failure      string    `json:"failure,omitempty"`
	FailingSince time.Time `json:"failingSince,omitzero"`
	// Swept is when everything was compared last, zero before the first time.
	Swept time.Time `json:"swept,omitzero"`
	// Refused is what Redis has not as the database has it, and will not have before somebody changes it.
	Refused []Refusal `json:"refused"`
	// Unmanaged is how many override records Redis has that nobody has set here, and Unnamed how many keys of such records do not
	// say whose they are, as of Swept: the name of the tenant stands in them as a hash, and the database does not know it.
	Unmanaged int64 `json:"unmanaged"`
	Unnamed   int   `json:"unnamed"`
}

// Refusal is why one thing is not relayed.
type Refusal struct {
	// Kind and Name say what it is, in the words of messages.
	Kind string `json:"kind"`
	Name string `json:"name,omitempty"`
	// Error is why.
	Error string    `json:"error"`
	Since time.Time `json:"since"`
}

// Status returns what the relay knows at this moment.
func (r *Relay) Status() Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.status
	s.Refused = slices.Clone(s.Refused)
	return s
}

// leads notes who relays.
func (r *Relay) leads(leads bool, holder string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if leads != r.status.Leads {
		r.status = Status{Leads: leads}
	}
	r.status.Holder = holder
}

// report notes how a step has ended, and how much waits.
func (r *Relay) report(ctx context.Context, failure error) {
	if ctx.Err() != nil {
		return
	}
	now := r.cfg.Now()
	var waiting, unmanaged int64
	var since time.Time
	counts := time.Since(r.counted) >= r.cfg.Interval
	var err error
	if counts {
		r.counted = time.Now()
		err = r.cfg.Store.Read(ctx, func(v *store.View) (err error) {
			if waiting, since, err = v.Waiting(); err != nil {
				return err
			}
			unmanaged, err = v.CountUnmanaged()
			return err
		})
	}
	if failure == nil {
		failure = err
	}
	r.mu.Lock()
	s := &r.status
	was := s.Failure
	s.Failure = ""
	if failure != nil {
		s.Failure = shortened(failure)
		if was == "" {
			s.FailingSince = now
		}
	} else {
		s.FailingSince = time.Time{}
	}
	if counts && err == nil && s.Leads {
		s.Waiting, s.Lag, s.Unmanaged = waiting, 0, unmanaged
		if waiting > 0 {
			// The clock of who has written it may be another one.
			s.Lag = max(0, now.Sub(since))
		}
	}
	r.mu.Unlock()
	if failure != nil {
		r.told.failed(ctx)
	}
	switch {
	case failure != nil && was == "":
		r.cfg.Logger.WarnContext(ctx, "relay: nothing can be relayed", slog.String("error", shortened(failure)))
	case failure == nil && was != "":
		r.cfg.Logger.InfoContext(ctx, "relay: it goes on")
	}
}

// refuse notes that something is refused, or with nil that it is not any more.
func (r *Relay) refuse(ctx context.Context, kind, name string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	refused := &r.status.Refused
	at := slices.IndexFunc(*refused, func(x Refusal) bool { return x.Kind == kind && x.Name == name })
	switch {
	case err == nil && at >= 0:
		*refused = slices.Delete(*refused, at, at+1)
	case err == nil:
	case at >= 0:
		(*refused)[at].Error = shortened(err)
	case len(*refused) < maxRefusals:
		*refused = append(*refused, Refusal{Kind: kind, Name: name, Error: shortened(err), Since: r.cfg.Now()})
		r.cfg.Logger.WarnContext(ctx, "relay: refused", slog.String("kind", kind), slog.String("name", printable(name)), slog.String("error", shortened(err)))
	}
}

// sweptAll notes that everything was compared.
func (r *Relay) sweptAll(_ context.Context, unnamed int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status.Swept, r.status.Unnamed = r.cfg.Now(), unnamed
}

// shortened is the text of an error, cut.
func shortened(err error) string { return printable(err.Error()[:min(len(err.Error()), maxError)]) }
