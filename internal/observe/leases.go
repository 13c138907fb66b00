package observe

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/metric"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// ObserveLeases has metrics of what stores lease, which each tells by its name. It is called once, before the first operation.
func (r *Reporter) ObserveLeases(stores map[string]*bucket.Leased) error {
	if len(stores) == 0 {
		return nil
	}
	m, sets := r.meter, &r.metrics.sets
	of := func(read func(*bucket.LeaseStats) uint64, of *labels, values ...string) []source {
		return sourcesOf(sets, stores, (*bucket.Leased).Stats, read, of, values...)
	}
	var takes, exchanges []source
	takes = append(takes, of(func(s *bucket.LeaseStats) uint64 { return s.Admitted + s.Refused }, &leaseTakeLabels, "instance")...)
	takes = append(takes, of(func(s *bucket.LeaseStats) uint64 { return s.Mixed }, &leaseTakeLabels, "both")...)
	takes = append(takes, of(func(s *bucket.LeaseStats) uint64 { return s.Central }, &leaseTakeLabels, "store")...)
	for _, cause := range bucket.LeaseCauses() {
		exchanges = append(exchanges, of(func(s *bucket.LeaseStats) uint64 { return s.Exchanges[cause] }, &leaseCauseLabels, cause)...)
	}
	m.gauge("ratelimit.lease.tenants", "{tenant}", "Tenants of whose limits this instance holds parts.",
		of(func(s *bucket.LeaseStats) uint64 { return uint64(s.Tenants) }, &storeLabels)...)
	m.observable("ratelimit.lease.takes", "{take}", "Takes of tenants of whose limits this instance holds parts.", takes...)
	m.observable("ratelimit.lease.exchanges", "{call}", "Calls to the store that gave parts of limits back, and fetched more.", exchanges...)
	for _, c := range []struct {
		name, unit, description string
		read                    func(*bucket.LeaseStats) uint64
	}{
		{"ratelimit.lease.refusals", "{take}", "Takes that were refused here.", func(s *bucket.LeaseStats) uint64 { return s.Refused }},
		{"ratelimit.lease.misses", "{take}", "Takes that found too little here at first.", func(s *bucket.LeaseStats) uint64 { return s.Misses }},
		{"ratelimit.lease.failures", "{call}", "Exchanges that got no answer, and are repeated.", func(s *bucket.LeaseStats) uint64 { return s.Failed }},
		{"ratelimit.lease.lost", "{lease}", "Leases that ended without their level being given back.", func(s *bucket.LeaseStats) uint64 { return s.Lost }},
		{"ratelimit.lease.false_refusals", "{refusal}", "Exchanges that found that the store had what was refused here before.", func(s *bucket.LeaseStats) uint64 { return s.FalseRefusals }},
		{"ratelimit.lease.uncounted", "{minute}", "Minutes of usage of a tenant of which nobody knows whether they were counted.", func(s *bucket.LeaseStats) uint64 { return s.Uncounted }},
		{"ratelimit.lease.unsettled", "{settlement}", "Settlements of more than was charged that the store was not there for.", func(s *bucket.LeaseStats) uint64 { return s.Unsettled }},
	} {
		m.observable(c.name, c.unit, c.description, of(c.read, &storeLabels)...)
	}
	r.observeHeld(stores)
	if err := errors.Join(m.errs...); err != nil {
		return fmt.Errorf("ratelimit: the meter provider: %w", err)
	}
	return nil
}

// sourcesOf reads a number of the statistics of each store, with its name as the first label.
func sourcesOf[Store, Stats any](sets *sets, stores map[string]Store, stats func(Store) Stats, read func(*Stats) uint64, of *labels, values ...string) []source {
	var all []source
	for name, store := range stores {
		all = append(all, source{
			func() uint64 {
				s := stats(store)
				return read(&s)
			},
			sets.of(of, append([]string{name}, values...)...),
		})
	}
	return all
}

// observeHeld has metrics of what is held and of what was left, which are read together.
func (r *Reporter) observeHeld(stores map[string]*bucket.Leased) {
	m, sets := r.meter, &r.metrics.sets
	gauge := func(name, description string) metric.Int64ObservableGauge {
		g, err := m.Int64ObservableGauge(name, metric.WithUnit("{token}"), metric.WithDescription(description))
		m.errs = append(m.errs, err)
		return g
	}
	capacity := gauge("ratelimit.lease.capacity", "Capacity of limits of which this instance holds parts, which no other one has.")
	level := gauge("ratelimit.lease.level", "What this instance has left of its parts of limits.")
	free := gauge("ratelimit.lease.free", "What the store had left for all of the limits of which this instance holds parts, when it was asked last.")
	if errors.Join(m.errs...) != nil {
		return
	}
	_, err := m.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		for name, leased := range stores {
			all := leased.Held()
			if len(all) == 0 {
				all = []bucket.LeaseHeld{{Unit: bucket.Points}}
			}
			for _, held := range all {
				set := sets.of(&leaseHeldLabels, name, string(held.Unit))
				o.ObserveInt64(capacity, held.Capacity, set)
				o.ObserveInt64(level, held.Level, set)
				o.ObserveInt64(free, held.Free, set)
			}
		}
		return nil
	}, capacity, level, free)
	m.errs = append(m.errs, err)
}
