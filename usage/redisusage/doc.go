// Package redisusage has a collector read in a Redis what the store of budgets has counted, and what instances have refused: package usage.
// Instances write their refusals with report.Reporter.
//
// There is one hash for each hour, with a life of two days:
//
//	rl:NAMESPACE:refused:HOUR    how many operations each run of an instance has refused in the hour, by limit and tenant
//
// Hours are counted from January 1970.
package redisusage
