package placement_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	_ "github.com/gqlgen-ratelimit/ratelimit/internal/seed" // the same cases in every run
	"github.com/gqlgen-ratelimit/ratelimit/placement"
)

// world has stores by their names, each with a clock of its own.
type world struct {
	mu     sync.Mutex
	now    atomic.Int64
	stores map[string]*bucket.Memory
}

func newWorld() *world {
	w := &world{stores: map[string]*bucket.Memory{}}
	w.now.Store(time.Date(2026, time.November, 23, 12, 0, 0, 0, time.UTC).UnixMilli())
	return w
}

// add adds a store that is empty.
func (w *world) add(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stores[name] = bucket.NewMemory(bucket.MemoryConfig{Clock: func() time.Time { return time.UnixMilli(w.now.Load()) }})
}

// open opens a store of the world.
func (w *world) open(_ context.Context, m placement.Member) (placement.Opened, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	store := w.stores[m.Name]
	if store == nil {
		return placement.Opened{}, fmt.Errorf("there is no %s", m.Name)
	}
	return placement.Opened{Backend: store}, nil
}

// instance is one with stores of its own by a map.
func (w *world) instance(t testing.TB, m *placement.Map) *placement.Store {
	t.Helper()
	s, err := placement.New(context.Background(), placement.Config{Open: w.open}, m)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// compile compiles limits of a tenant.
func compile(t testing.TB, limits ...bucket.Limit) []bucket.Bucket {
	t.Helper()
	compiled, err := bucket.Compile(limits...)
	require.NoError(t, err)
	return []bucket.Bucket{{Limits: compiled}}
}

func points(n int64) bucket.Amounts { return bucket.Amounts{{Unit: bucket.Points, N: n}} }

// members are stores by their names.
func members(names ...string) []placement.Member {
	all := make([]placement.Member, len(names))
	for i, name := range names {
		all[i].Name = name
	}
	return all
}

// pinned has acme in a store by the map after another one.
func pinned(was *placement.Map, store string) *placement.Map {
	m := was.Next(was.Stores)
	m.Pins = map[string]string{"acme": store}
	return m
}
