package ratelimit

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/bucket/redisclient"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

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

// warnOfClients logs what is dangerous in the clients of the stores. Nothing is connected for that.
func (c *Config) warnOfClients() {
	stores := maps.Clone(c.Stores)
	if stores == nil {
		stores = map[string]bucket.Store{}
	}
	stores[""] = c.Store
	for _, name := range slices.Sorted(maps.Keys(stores)) {
		for _, hazard := range redisclient.HazardsOf(stores[name]) {
			logOf(c.Logger, name).Warn("ratelimit: the client of the store is dangerous for a limiter",
				slog.String("code", hazard.Code), slog.String("seen", hazard.Seen),
				slog.String("why", hazard.Why), slog.String("remedy", hazard.Remedy))
		}
	}
}

// logOf adds the name of the store to what is logged, if it has one.
func logOf(log *slog.Logger, store string) *slog.Logger {
	if store == "" {
		return log
	}
	return log.With(slog.String("store", store))
}
