package observe

import (
	"errors"
	"fmt"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// ObserveShards has metrics of stores that take from shards, which each tells by its name. It is called once, before the first operation.
func (r *Reporter) ObserveShards(stores map[string]*bucket.Sharded) error {
	if len(stores) == 0 {
		return nil
	}
	m := r.meter
	of := func(read func(*bucket.ShardedStats) uint64, of *labels, values ...string) []source {
		return sourcesOf(&r.metrics.sets, stores, (*bucket.Sharded).Stats, read, of, values...)
	}
	takes := of(func(s *bucket.ShardedStats) uint64 { return s.Admitted + s.Refused }, &shardTakeLabels, "shard")
	takes = append(takes, of(func(s *bucket.ShardedStats) uint64 { return s.Mixed }, &shardTakeLabels, "both")...)
	takes = append(takes, of(func(s *bucket.ShardedStats) uint64 { return s.Central }, &shardTakeLabels, "home")...)
	m.observable("ratelimit.shard.takes", "{take}", "Takes of tenants that are shared, and who decided.", takes...)
	for _, c := range []struct {
		name, unit, description string
		read                    func(*bucket.ShardedStats) uint64
	}{
		{"ratelimit.shard.refusals", "{take}", "Takes that the shard refused.", func(s *bucket.ShardedStats) uint64 { return s.Refused }},
		{"ratelimit.shard.exchanges", "{call}", "Calls of this instance to home that gave parts of limits back, and fetched more.", func(s *bucket.ShardedStats) uint64 { return s.Exchanges }},
		{"ratelimit.shard.failures", "{call}", "Exchanges of shards with home that got no answer, and are repeated.", func(s *bucket.ShardedStats) uint64 { return s.Failed }},
		{"ratelimit.shard.uncounted", "{minute}", "Minutes of usage of a tenant that is shared of which nobody knows whether they were counted.", func(s *bucket.ShardedStats) uint64 { return s.Uncounted }},
		{"ratelimit.shard.unsettled", "{settlement}", "Settlements of more than was charged that home was not there for.", func(s *bucket.ShardedStats) uint64 { return s.Unsettled }},
	} {
		m.observable(c.name, c.unit, c.description, of(c.read, &storeLabels)...)
	}
	if err := errors.Join(m.errs...); err != nil {
		return fmt.Errorf("ratelimit: the meter provider: %w", err)
	}
	return nil
}
