// Package redisswitch brings mode switches to every instance within a second: for an emergency, in which limits must not refuse any
// more, everywhere, for one tenant, or for one operation.
//
// A Redis, that of the budgets for example, keeps them under one key. [Switches] sets, ends and lists them; whoever may write there may
// do so. A [Follower] in each instance subscribes to hints, reads, and reads again every second, and puts what it has read into
// a tiers.ModeSwitch. Each switch has an end, which the instance keeps by itself: while the Redis is away what is known holds until then,
// and no longer.
//
//	rl:NAMESPACE:modes  a hash: the switches by their scopes, as JSON, and a stamp that differs after each change
//
// The channel of hints is rl:NAMESPACE:modes:hint.
package redisswitch
