package ratelimit

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// backend is one of the stores, with what is known of its absence.
type backend struct {
	bucket.Store

	// name is that of the store in policies, empty for the default one.
	name    string
	absence absence
	// local judges while the store is away. It is set when the configuration is known to be right.
	local *bucket.Local
	clock awayClock
	// settler settles what the store has charged. It is nil until srv.Use.
	settler *settler
	// named are the attributes of what is counted by store alone.
	named metric.MeasurementOption
}

func newBackend(name string, store bucket.Store) *backend {
	b := &backend{Store: store, name: name}
	b.named = metric.WithAttributeSet(attribute.NewSet(b.attributes()...))
	return b
}

// newBackends returns the stores by the names that policies call them.
func newBackends(cfg *Config) map[string]*backend {
	backends := map[string]*backend{"": newBackend("", cfg.Store)}
	for name, store := range cfg.Stores {
		backends[name] = newBackend(name, store)
	}
	return backends
}

// backend returns the store of that name. All calls of an operation go to the one that its rules named when
// it began, whatever the policy says later.
func (e *Extension) backend(name string) *backend {
	if b := e.backends[name]; b != nil {
		return b
	}
	return e.missing
}

// warnOfClients logs what is dangerous in the clients of the stores. Nothing is connected for that.
func (e *Extension) warnOfClients() {
	for _, name := range slices.Sorted(maps.Keys(e.backends)) {
		b := e.backends[name]
		for _, hazard := range bucket.HazardsOf(b.Store) {
			e.cfg.Logger.Warn("ratelimit: the client of the store is dangerous for a limiter", b.logged(
				slog.String("code", hazard.Code), slog.String("seen", hazard.Seen),
				slog.String("why", hazard.Why), slog.String("remedy", hazard.Remedy))...)
		}
	}
}

// validateStores reports stores that are nil or have no name.
func (c *Config) validateStores(fail func(format string, args ...any)) {
	for _, name := range slices.Sorted(maps.Keys(c.Stores)) {
		switch {
		case name == "":
			fail("Stores has a store without a name: the default store is Config.Store")
		case c.Stores[name] == nil:
			fail("Stores[%q] is nil: set bucket.NewMemory or bucket.NewRedis", name)
		}
	}
}

// checkStores says which stores a policy names that the configuration does not have.
func (c *Config) checkStores(s *tiers.Snapshot) error {
	var missing []string
	for _, name := range s.Stores() {
		if c.Stores[name] == nil {
			missing = append(missing, name)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("ratelimit: the policy names stores that Config.Stores does not have: %s", strings.Join(missing, ", "))
}

// requireStores lets no later policy hold whose stores are not there, if the source can be told.
func (c *Config) requireStores() error {
	if source, ok := c.Policy.(tiers.Checker); ok {
		return source.Check(c.checkStores)
	}
	return nil
}

// logged adds the name of the store to what the logger is told, if it has one.
func (b *backend) logged(attributes ...any) []any {
	if b.name != "" {
		attributes = append(attributes, slog.String("store", b.name))
	}
	return attributes
}
