// Package redisswitch brings mode switches to every instance within a second: for an emergency, in which limits must not refuse any
// more, everywhere, for one tenant, or for one operation.
//
// One key of a Redis, that of the budgets for example, holds them all. [Switches] sets, ends and lists them, and [Draft] changes them
// under a condition; whoever may write there may do so. A [Follower] in each instance lays them over the policy of a tiers.ModeSwitch,
// whatever feed that policy comes from. Each switch has an end, which the instance keeps by itself: while the Redis is away what is known
// holds until then, and no longer.
//
//	rl:NAMESPACE:modes  the switches as JSON
//
// The channel of hints is rl:NAMESPACE:modes:hint.
package redisswitch
