package redistest

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// moveBatch is how many keys one step moves.
	moveBatch   = 10
	moveTimeout = 5 * time.Second
)

// Move moves a slot from one master to another with all its keys, while clients use them, as resharding
// does. Calls that need several keys of which some have moved are told to try again.
func (c *Cluster) Move(ctx context.Context, slot int, from, to *Server) error {
	source := from.client()
	defer func() { _ = source.Close() }()
	target := to.client()
	defer func() { _ = target.Close() }()
	sourceID, err := source.ClusterMyID(ctx).Result()
	if err != nil {
		return err
	}
	targetID, err := target.ClusterMyID(ctx).Result()
	if err != nil {
		return err
	}
	// The target first: it must take what the source sends clients to it for.
	if err := target.Do(ctx, "cluster", "setslot", slot, "importing", sourceID).Err(); err != nil {
		return err
	}
	if err := source.Do(ctx, "cluster", "setslot", slot, "migrating", targetID).Err(); err != nil {
		return err
	}
	for {
		keys, err := source.ClusterGetKeysInSlot(ctx, slot, moveBatch).Result()
		if err != nil {
			return err
		}
		if len(keys) == 0 {
			break
		}
		args := []any{"migrate", "127.0.0.1", to.port, "", 0, moveTimeout.Milliseconds(), "keys"}
		for _, key := range keys {
			args = append(args, key)
		}
		if err := source.Do(ctx, args...).Err(); err != nil {
			return fmt.Errorf("slot %d: %w", slot, err)
		}
	}
	for _, client := range []*redis.Client{target, source} {
		if err := client.Do(ctx, "cluster", "setslot", slot, "node", targetID).Err(); err != nil {
			return err
		}
	}
	return nil
}
