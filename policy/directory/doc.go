// Package directory knows what holds for single tenants beside a policy: to which tier they are assigned, what is different for
// them, and what they give their own teams and users. These are records of their own, so that a policy with 100 000
// tenants need not be read by every instance whenever one of them changes.
//
// A [Source] has the records; [NewMemory] is one in memory, and package redisdirectory has that of a Redis. [Open] puts a
// [Directory] around a tiers.Source, a policy.Follower for example; the result is the policy of ratelimit.Config. It asks for
// the record of a tenant when the tenant first comes, and keeps it in a cache that is bounded in bytes. It asks the source
// at an interval which records have changed, and asks for those again when their tenants come again. After a gap, it asks for all
// of them again.
//
// A request waits for the source as long as [Config.MissDeadline] and no longer. While the source does not answer, what was known
// last holds, also after a restart ([Config.LastGood]); a tenant that nobody knows is in the tier [Config.WhileUnknown].
//
// Whoever invents names of tenants makes the directory ask no more than [Config.MissesPerSecond] times a second, and fills a
// part of the cache in which no record stands.
package directory
