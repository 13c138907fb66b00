// Package redisthrottle keeps the shed share of a fleet in Redis, for package throttle: one key, one script call a second and instance.
//
//	rl:NAMESPACE:throttle  a hash: the report of each instance, and the share
//
// The share moves by the clock of Redis. Whoever may write there can have the fleet shed up to the floors of its tiers.
package redisthrottle
