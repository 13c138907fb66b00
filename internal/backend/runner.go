package backend

import (
	"context"
	"fmt"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// runs has a store run that works in the background, until the context ends or what it returns is called, which waits for that.
func (b *Store) runs(ctx context.Context) (end func()) {
	if b.runner == nil {
		return func() {}
	}
	if b.local.BeatDue() {
		// It is told which instance this is before it sends heartbeats itself.
		_ = b.beat(ctx)
	}
	return accompany(ctx, b.runner.Run)
}

// shutDown ends such a store.
func (b *Store) shutDown(ctx context.Context) error {
	if b.runner == nil {
		return nil
	}
	if err := b.runner.Shutdown(ctx); err != nil {
		return fmt.Errorf("ratelimit: %w", err)
	}
	return nil
}

// Shards returns what takes from shards, by the names of the stores.
func (s *Stores) Shards() map[string]*bucket.Sharded {
	all := map[string]*bucket.Sharded{}
	for name, b := range s.byName {
		if b.sharded != nil {
			all[name] = b.sharded
		}
	}
	return all
}
