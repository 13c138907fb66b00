package simulate

import (
	"fmt"
	"slices"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// NotJudged returns what of the policies a replay of records does not judge as a server does, because nobody knows what is asked of it
// ([tiers.Snapshot.Unrecorded]), and the units that they count and no record has: at most 32 things, sorted.
func NotJudged(known tiers.Recorded, recorded map[bucket.Unit]bool, policies ...*tiers.Snapshot) []string {
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
