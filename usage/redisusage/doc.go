// Package redisusage brings the refusals of an instance into a Redis once a second, and has a collector read them and what the store of budgets has
// counted: package usage.
//
// There is one hash for each hour, with a life of two days:
//
//	rl:NAMESPACE:refused:HOUR    how many operations each run of an instance has refused in the hour, by limit and tenant
//
// Hours are counted from January 1970.
package redisusage
