// Package redisusage brings what an instance tells of usage into a Redis once a second, and has a collector read it: package usage.
//
// What is told is written in the minute in which it is told, by the clock of the Redis. Keys have a life each, and those of a set or of a run and a minute
// are in one slot of a cluster:
//
//	rl:NAMESPACE:usage                        when each run of an instance was seen last, a sorted set
//	rl:NAMESPACE:usage:told:{MINUTE:SHARD}    the hours of tenants that were told in a minute, a sixteenth of them, a set
//	rl:NAMESPACE:usage:{RUN}:MINUTE           what a run has told of its decisions in a minute, a hash
//
// Minutes are counted from January 1970.
package redisusage
