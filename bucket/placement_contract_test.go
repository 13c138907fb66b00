package bucket_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/bucket/buckettest"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
	"github.com/gqlgen-ratelimit/ratelimit/placement"
)

// threeStores is a map of stores of which one drains.
func threeStores() *placement.Map {
	m := &placement.Map{Generation: 1, Candidates: 2, Stores: []placement.Member{{Name: "a"}, {Name: "b"}, {Name: "c"}}}
	return m.Next([]placement.Member{{Name: "a"}, {Name: "b", Draining: true}, {Name: "c"}})
}

// placed runs the contract over stores by their names.
func placed(t *testing.T, open func(t *testing.T, c *clock, name string) placement.Backend) {
	t.Helper()
	harness := func(t *testing.T) buckettest.Harness {
		t.Helper()
		c := newClock()
		store, err := placement.New(t.Context(), placement.Config{Open: func(_ context.Context, m placement.Member) (placement.Opened, error) {
			return placement.Opened{Backend: open(t, c, m.Name)}, nil
		}}, threeStores())
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, store.Close()) })
		return buckettest.Harness{Store: store, Advance: c.advance}
	}
	buckettest.Run(t, harness)
	buckettest.RunOverrides(t, harness)
	buckettest.RunUsage(t, harness)
	buckettest.RunLeases(t, harness)
}

func TestPlacedMemoriesKeepTheContract(t *testing.T) {
	t.Parallel()
	placed(t, func(_ *testing.T, c *clock, _ string) placement.Backend {
		return bucket.NewMemory(bucket.MemoryConfig{Clock: c.now})
	})
}

func TestPlacedRedisesKeepTheContract(t *testing.T) {
	t.Parallel()
	addresses := map[string]string{}
	for _, name := range []string{"a", "b", "c"} {
		addresses[name] = redistest.Start(t).Addr
	}
	placed(t, func(t *testing.T, c *clock, name string) placement.Backend {
		t.Helper()
		store := newRedisStore(t, patientClient(t, addresses[name]))
		require.NoError(t, store.SetTestClock(c.unixMilli))
		return store
	})
}
