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
	// fault decides what becomes of a call of a store: nothing, or an error before or after it was done.
	fault func(store, call string) fault
}

type fault uint8

const (
	fine fault = iota
	lostRequest
	lostReply
)

func newWorld() *world {
	w := &world{stores: map[string]*bucket.Memory{}, fault: func(string, string) fault { return fine }}
	w.now.Store(time.Date(2026, time.November, 23, 12, 0, 0, 0, time.UTC).UnixMilli())
	return w
}

// add adds a store whose clock is off by so many milliseconds.
func (w *world) add(name string, off int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stores[name] = bucket.NewMemory(bucket.MemoryConfig{Clock: func() time.Time { return time.UnixMilli(w.now.Load() + off) }})
}

// open opens a store of the world.
func (w *world) open(_ context.Context, m placement.Member) (placement.Opened, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	store := w.stores[m.Name]
	if store == nil {
		return placement.Opened{}, fmt.Errorf("there is no %s", m.Name)
	}
	return placement.Opened{Movable: &faulty{Movable: store, world: w, name: m.Name}}, nil
}

// instance is one with stores of its own by a map.
func (w *world) instance(t testing.TB, m *placement.Map) *placement.Store {
	t.Helper()
	s, err := placement.New(context.Background(), placement.Config{Open: w.open}, m)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// faulty is a store behind a network.
type faulty struct {
	bucket.Movable

	world *world
	name  string
}

// call makes a call over the network.
func call[T any](f *faulty, name string, do func() (T, error)) (result T, err error) {
	how := f.world.fault(f.name, name)
	if how == lostRequest {
		return result, bucket.ErrUnavailable
	}
	result, err = do()
	if how == lostReply {
		var none T
		return none, bucket.ErrAmbiguous
	}
	return result, err
}

func (f *faulty) Take(ctx context.Context, take bucket.Take) (bucket.Result, error) {
	return call(f, "take", func() (bucket.Result, error) { return f.Movable.Take(ctx, take) })
}

func (f *faulty) Settle(ctx context.Context, s bucket.Settlement) (bucket.Settled, error) {
	return call(f, "settle", func() (bucket.Settled, error) { return f.Movable.Settle(ctx, s) })
}

func (f *faulty) Leave(ctx context.Context, tenant string, b bucket.Belongings, generation uint64) (*bucket.Parcel, error) {
	return call(f, "leave", func() (*bucket.Parcel, error) { return f.Movable.Leave(ctx, tenant, b, generation) })
}

func (f *faulty) Arrive(ctx context.Context, tenant string, parcels []*bucket.Parcel, generation uint64) error {
	_, err := call(f, "arrive", func() (struct{}, error) { return struct{}{}, f.Movable.Arrive(ctx, tenant, parcels, generation) })
	return err
}

func (f *faulty) Forget(ctx context.Context, tenant string, parcel *bucket.Parcel) error {
	_, err := call(f, "forget", func() (struct{}, error) { return struct{}{}, f.Movable.Forget(ctx, tenant, parcel) })
	return err
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
