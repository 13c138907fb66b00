package preview

import (
	"fmt"
	"slices"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// notJudged returns what of the policies no record can judge, and the units that they count and no record has, at most 32 things.
func notJudged(known tiers.Recorded, recorded map[bucket.Unit]bool, policies ...*tiers.Snapshot) []string {
	const shown = 32
	var all []string
	for _, policy := range policies {
		all = append(all, policy.Unrecorded(known)...)
		for _, unit := range policy.Counted() {
			if unit != bucket.Points && unit != bucket.Requests && !recorded[unit] {
				all = append(all, fmt.Sprintf("limits in %s", unit))
			}
		}
	}
	slices.Sort(all)
	all = slices.Compact(all)
	return all[:min(shown, len(all))]
}
