package relay

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
	"github.com/gqlgen-ratelimit/ratelimit/internal/pace"
)

// Bounds of a sweep.
const (
	// overridesPage and tenantsPage are how many tenants are compared at once.
	overridesPage = 32
	tenantsPage   = 64
	// maxHashed is how many keys are remembered that do not say whose they are.
	maxHashed = 10_000
	// leastGap and restFactor bound how often a failure has everything compared: there are as many times between two sweeps as one takes.
	leastGap   = 10 * time.Second
	restFactor = 4
	// triesOfPage is how often a page is tried in which something fails.
	triesOfPage = 3
)

// phase is what is compared. The phases come one after the other.
type phase uint8

const (
	resting phase = iota
	// looking looks for the tenants that have override records in Redis.
	looking
	comparingOverrides
	comparingTenants
)

// sweep is how far everything was compared. The zero value is that of a daemon that has only begun to relay.
type sweep struct {
	// begun says that one has begun since this daemon relays, and due asks for one soon.
	begun, due bool

	phase       phase
	began, next time.Time
	took        time.Duration
	failed      int

	scan scan
	// hashed are keys of override records that do not say whose they are, and that were not compared yet.
	hashed map[string]struct{}
	// tenant is that whose overrides were compared last.
	tenant string
	// after is the change of a tenant that was compared last, and until the newest one when the sweep began: who changes later
	// has a message.
	after, until uint64
}

// wanted reports whether a sweep should begin.
func (s *sweep) wanted(now time.Time) bool {
	if s.phase != resting {
		return false
	}
	return !now.Before(s.next) || s.due && now.Sub(s.began) >= max(leastGap, (1+restFactor)*s.took)
}

// beginSweep brings what every instance waits for, and begins to compare the rest.
func (r *Relay) beginSweep(ctx context.Context) error {
	c, err := r.bringPolicy(ctx)
	if err != nil {
		return err
	}
	r.refuse(ctx, store.PolicyMessage, "", c.refused)
	if err := r.refill(ctx); err != nil {
		return err
	}
	next := sweep{begun: true, phase: looking, began: time.Now(), took: r.sweep.took, hashed: map[string]struct{}{}}
	next.next = next.began.Add(pace.Jittered(r.cfg.Sweep))
	err = r.cfg.Store.Read(ctx, func(v *store.View) error {
		head, err := v.Head()
		next.until = head.Directory
		return err
	})
	if err == nil {
		next.scan, err = r.newScan(ctx)
	}
	if err != nil {
		return err
	}
	r.sweep = next
	return nil
}

// sweepOn compares one page, and reports whether there was one.
func (r *Relay) sweepOn(ctx context.Context) (compared bool, _ error) {
	s := &r.sweep
	if s.wanted(time.Now()) {
		if err := r.beginSweep(ctx); err != nil {
			return false, err
		}
	}
	if s.phase == resting {
		return false, nil
	}
	before := *s
	var last bool
	var err error
	switch s.phase {
	case looking:
		last, err = r.lookForOverrides(ctx)
	case comparingOverrides:
		last, err = r.compareOverrides(ctx)
	default:
		last, err = r.compareTenants(ctx)
	}
	if err != nil {
		if s.failed++; s.failed < triesOfPage || ctx.Err() != nil {
			// Once more from where it was.
			s.scan, s.tenant, s.after = before.scan, before.tenant, before.after
			return false, err
		}
		s.due = true
	}
	s.failed = 0
	if !last {
		return true, err
	}
	if s.phase++; s.phase > comparingTenants {
		s.phase, s.took = resting, time.Since(s.began)
		// A comparison that takes long leaves Redis and the database to others for most of the time.
		if rested := s.began.Add((1 + restFactor) * s.took); rested.After(s.next) {
			s.next = rested
		}
		r.sweptAll(ctx, len(s.hashed))
		s.hashed = nil
	}
	return true, err
}

// compareOverrides compares the overrides of some tenants, and reports whether these were the last ones.
func (r *Relay) compareOverrides(ctx context.Context) (last bool, _ error) {
	s := &r.sweep
	var tenants []string
	err := r.cfg.Store.Read(ctx, func(v *store.View) (err error) {
		tenants, err = v.OverrideTenants(s.tenant, overridesPage)
		return err
	})
	if err != nil || len(tenants) == 0 {
		return err == nil, err
	}
	s.tenant = tenants[len(tenants)-1]
	return false, r.bringAll(ctx, store.OverridesMessage, tenants, r.bringOverrides)
}

// compareTenants compares the records of some tenants.
func (r *Relay) compareTenants(ctx context.Context) (last bool, _ error) {
	s := &r.sweep
	var page []store.Tenant
	err := r.cfg.Store.Read(ctx, func(v *store.View) (err error) {
		page, err = v.TenantChanges(s.after, tenantsPage)
		return err
	})
	if err != nil || len(page) == 0 || page[0].Revision > s.until {
		return err == nil, err
	}
	s.after = page[len(page)-1].Revision
	var differ, overridden []string
	for i := range page {
		if _, found := s.hashed[bucket.OverridesKey(r.namespace, page[i].Name)]; found {
			overridden = append(overridden, page[i].Name)
		}
		there, _, err := r.thereOf(ctx, page[i].Name)
		if err != nil {
			return false, err
		}
		if there == nil || !bytes.Equal(*there, page[i].Record) {
			differ = append(differ, page[i].Name)
		}
	}
	return false, errors.Join(
		r.bringAll(ctx, store.TenantMessage, differ, r.bringTenant),
		r.bringAll(ctx, store.OverridesMessage, overridden, r.bringOverrides),
	)
}

// bringAll brings several things of a kind, and notes it.
func (r *Relay) bringAll(ctx context.Context, kind string, names []string, bring func(context.Context, string) (carried, error)) error {
	var errs []error
	var arrived []store.Message
	var brought []carried
	failures := 0
	for _, name := range names {
		c, err := bring(ctx, name)
		if err != nil {
			errs = append(errs, err)
			if failures++; failures == failuresInARow {
				break
			}
			continue
		}
		failures = 0
		r.refuse(ctx, kind, name, c.refused)
		delete(r.sweep.hashed, bucket.OverridesKey(r.namespace, name))
		if c.note != nil {
			arrived, brought = append(arrived, store.Message{Kind: kind, Name: name}), append(brought, c)
		}
	}
	if len(arrived) > 0 {
		// No message has the sequence 0.
		errs = append(errs, r.cfg.Store.Change(ctx, func(tx *store.Tx) error { return dequeue(tx, arrived, brought) }))
	}
	return errors.Join(errs...)
}
