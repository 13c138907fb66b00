package ratelimit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// checkStores says which stores a policy names that the configuration does not have, or else which of its limits they cannot keep.
func (c *Config) checkStores(s *tiers.Snapshot) error {
	var missing []string
	for _, name := range s.Stores() {
		if c.Stores[name] == nil {
			missing = append(missing, name)
		}
	}
	if len(missing) == 0 {
		_, err := c.checkLimits(s)
		return err
	}
	return fmt.Errorf("ratelimit: the policy names stores that Config.Stores does not have: %s", strings.Join(missing, ", "))
}

// mostOfStores is how many mistakes, and how many warnings, the stores make about a policy at most: of a policy with many tenants one mistake can be
// in each exception.
const mostOfStores = 10

// warningsOfStores returns what stores have to say about a policy that works in them.
func (c *Config) warningsOfStores(s *tiers.Snapshot) []string {
	warnings, _ := c.checkLimits(s)
	return warnings
}

// checkLimits asks the stores that cannot keep all limits about those of a policy.
func (c *Config) checkLimits(s *tiers.Snapshot) (warnings []string, err error) {
	checkers := make(map[string]bucket.LimitsChecker)
	for name, store := range c.stores() {
		if checker, ok := store.(bucket.LimitsChecker); ok {
			checkers[name] = checker
		}
	}
	if len(checkers) == 0 {
		return nil, nil
	}
	var mistakes []string
	for of := range s.TenantLimits() {
		checker := checkers[of.Store]
		if checker == nil {
			continue
		}
		at := of.Place + " in " + storeName(of.Store) + ": "
		warning, err := checker.CheckLimits(of.Limits, of.Lease)
		if err != nil {
			mistakes = appendNew(mistakes, at+err.Error())
			continue
		}
		if warning != "" {
			warnings = appendNew(warnings, at+warning)
		}
		if of.Least == nil {
			continue
		}
		if _, err := checker.CheckLimits(of.Least, of.Lease); err != nil {
			warnings = appendNew(warnings, at+"operations fail while the throttle makes the limits as small as it may, say acts: share: "+err.Error())
		}
	}
	if len(mistakes) > 0 {
		err = fmt.Errorf("ratelimit: the policy has limits that a store cannot keep: %s", strings.Join(mistakes, "; "))
	}
	return warnings, err
}

// appendNew appends a text that is not there, up to mostOfStores.
func appendNew(texts []string, text string) []string {
	if len(texts) >= mostOfStores || slices.Contains(texts, text) {
		return texts
	}
	return append(texts, text)
}

// storeName names a store for people.
func storeName(name string) string {
	if name == "" {
		return "the default store"
	}
	return fmt.Sprintf("store %q", name)
}
