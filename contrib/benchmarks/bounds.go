package main

import (
	"context"
	"fmt"
	"math"

	goredis "github.com/redis/go-redis/v9"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// redisBounds are the most processor time of Redis that a row of ours may take for a decision, as a ratio to redis_rate deciding
// one limit, by the number of callers.
var redisBounds = []struct {
	row    string
	bounds map[int]float64
}{
	{"4 limits", map[int]float64{1: 0.95, 64: 0.65}},
	{"3 owners of 4 limits and a claim", map[int]float64{1: 1.4, 64: 1.4}},
	{"3 owners of 4 limits, the same of a candidate, and a claim", map[int]float64{1: 1.9, 64: 2.3}},
	{"4 fixed windows", map[int]float64{1: 1.2, 64: 1.2}},
	{"4 sliding windows", map[int]float64{1: 1.2, 64: 1.2}},
	{"4 windows of the calendar", map[int]float64{1: 1.2, 64: 1.2}},
}

func redisAims(callers int, outcomes []outcome) []aim {
	var aims []aim
	for _, b := range redisBounds {
		for i := range outcomes {
			if outcomes[i].name != "**ratelimit, "+b.row+"**" {
				continue
			}
			what := fmt.Sprintf("processor time of Redis ÷ redis_rate deciding one limit, callers at once %d: %s", callers, b.row)
			aims = append(aims, atMost(what, b.bounds[callers], outcomes[i].ratio(&outcomes[oneLimit], serverProcessor), times))
			if b.row == redisBounds[0].row {
				// A script that was not loaded, or a call that was sent again, is one more.
				aims = append(aims, atMost(fmt.Sprintf("round trips of a decision, callers at once %d", callers), 1,
					math.Round(100*outcomes[i].median(scripts))/100, digits))
			}
		}
	}
	return append(aims, countingAim(callers, outcomes)...)
}

// countingAim is about a take that counts usage beside one that does not.
func countingAim(callers int, outcomes []outcome) []aim {
	var plain, counted *outcome
	for i := range outcomes {
		switch outcomes[i].name {
		case "**ratelimit, 4 limits**":
			plain = &outcomes[i]
		case "**ratelimit, " + countedTotals + "**":
			counted = &outcomes[i]
		}
	}
	if plain == nil || counted == nil {
		return nil
	}
	what := fmt.Sprintf("processor time of Redis for a take that counts points and requests ÷ one that does not, callers at once %d", callers)
	return []aim{atMost(what, 1.10, counted.ratio(plain, serverProcessor), times)}
}

// sizes says how much memory an owner of four limits takes, under a key as long as the aim permits.
func (s *redisServer) sizes(ctx context.Context, client *goredis.Client) ([]aim, error) {
	const namespace, tenant = "size", "tenant-9999"
	four, err := fourLimits(usualLimit)
	if err != nil {
		return nil, err
	}
	store, err := bucket.NewRedis(bucket.RedisConfig{Client: client, Namespace: namespace, Timeout: patience})
	if err != nil {
		return nil, err
	}
	f := feature{buckets: levels(four, 1), verdict: bucket.Admitted}
	if err := f.on(store, nil).decide(ctx, tenant); err != nil {
		return nil, err
	}
	key := "rl:" + namespace + ":{" + tenant + "}:t"
	value, err := s.admin.Get(ctx, key).Result()
	if err != nil {
		return nil, err
	}
	usage, err := s.admin.MemoryUsage(ctx, key).Result()
	if err != nil {
		return nil, err
	}
	return []aim{
		atMost("an owner of 4 limits in Redis: value", 64, float64(len(value)), inBytes),
		atMost(fmt.Sprintf("the same: `MEMORY USAGE` with a key of %d bytes", len(key)), 136, float64(usage), inBytes),
	}, nil
}
