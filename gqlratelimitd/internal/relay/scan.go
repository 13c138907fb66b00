package relay

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
)

// scanned is about how many keys a node looks at in one call.
const scanned = 500

// scan looks for keys on one node after the other.
type scan struct {
	nodes  []redis.Cmdable
	cursor uint64
}

// newScan begins to look, on each master of a cluster.
func (r *Relay) newScan(ctx context.Context) (s scan, err error) {
	ctx, cancel := context.WithTimeout(ctx, callPatience)
	defer cancel()
	var mu sync.Mutex
	add := func(_ context.Context, node *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		s.nodes = append(s.nodes, node)
		return nil
	}
	switch client := r.cfg.Client.(type) {
	case *redis.ClusterClient:
		err = client.ForEachMaster(ctx, add)
	case *redis.Ring:
		err = client.ForEachShard(ctx, add)
	default:
		s.nodes = []redis.Cmdable{client}
	}
	if err != nil {
		return s, fmt.Errorf("relay: the nodes of the Redis: %w", err)
	}
	return s, nil
}

// step looks at some keys, and returns those that match.
func (s *scan) step(ctx context.Context, pattern string) (found []string, last bool, _ error) {
	if len(s.nodes) == 0 {
		return nil, true, nil
	}
	ctx, cancel := context.WithTimeout(ctx, callPatience)
	defer cancel()
	found, cursor, err := s.nodes[0].Scan(ctx, s.cursor, pattern, scanned).Result()
	if err != nil {
		return nil, false, fmt.Errorf("relay: the keys of override records: %w", err)
	}
	if s.cursor = cursor; cursor == 0 {
		s.nodes = s.nodes[1:]
	}
	return found, len(s.nodes) == 0, nil
}

// lookForOverrides looks for tenants that have override records in Redis and none in the database, and compares those.
func (r *Relay) lookForOverrides(ctx context.Context) (last bool, _ error) {
	// A tenant that is called t has a key of the same form as all others.
	before, after, _ := strings.Cut(bucket.OverridesKey(r.namespace, "t"), "{t}")
	before, after = before+"{", "}"+after
	keys, last, err := r.sweep.scan.step(ctx, before+"*"+after)
	if err != nil {
		// The next node may answer.
		if r.sweep.failed+1 >= triesOfPage && len(r.sweep.scan.nodes) > 0 {
			r.sweep.scan = scan{nodes: r.sweep.scan.nodes[1:]}
		}
		return len(r.sweep.scan.nodes) == 0, err
	}
	var foreign []string
	for _, key := range keys {
		tenant := strings.TrimSuffix(strings.TrimPrefix(key, before), after)
		if bucket.OverridesKey(r.namespace, tenant) != key {
			if len(r.sweep.hashed) < maxHashed {
				r.sweep.hashed[key] = struct{}{}
			}
			continue
		}
		known, err := r.knowsOverrides(ctx, tenant)
		if err != nil {
			return false, err
		}
		if !known {
			foreign = append(foreign, tenant)
		}
	}
	return last, r.bringAll(ctx, store.OverridesMessage, foreign, r.bringOverrides)
}

// knowsOverrides reports whether the overrides of a tenant are compared anyway.
func (r *Relay) knowsOverrides(ctx context.Context, tenant string) (known bool, _ error) {
	err := r.cfg.Store.Read(ctx, func(v *store.View) error {
		managed, err := v.HasOverrides(tenant)
		if err != nil {
			return err
		}
		unmanaged, err := v.Unmanaged(tenant)
		known = managed || len(unmanaged) > 0
		return err
	})
	return known, err
}
