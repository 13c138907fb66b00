package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/bucket/redisclient"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
	"github.com/gqlgen-ratelimit/ratelimit/policy"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimittest"
)

// patientStore starts a Redis and returns a store on it that waits long enough for a test: requests and
// server share the cores with everything else that is tested.
func patientStore(t *testing.T) bucket.Store {
	t.Helper()
	options := &redis.Options{Addr: redistest.Start(t).Addr, PoolSize: 64}
	redisclient.Bound(options)
	options.DialTimeout, options.ReadTimeout, options.WriteTimeout, options.PoolTimeout = patience, patience, patience, patience
	client := redis.NewClient(options)
	t.Cleanup(func() { _ = client.Close() })
	store, err := bucket.NewRedis(bucket.RedisConfig{Client: client, Timeout: patience})
	require.NoError(t, err)
	return store
}

// replica is one of several servers on one store, with a policy file of its own: between the reload of
// one and of the other two generations of the policy are in use.
type replica struct {
	*inProcess

	path   string
	policy *policy.Follower
}

func newReplica(t *testing.T, store bucket.Store, limits string, configure ...func(*ratelimit.Config)) *replica {
	t.Helper()
	r := &replica{path: filepath.Join(t.TempDir(), "policy.yaml")}
	r.write(t, limits)
	follower, err := policy.OpenFile(r.path, policy.Config{Interval: policy.None})
	require.NoError(t, err)
	t.Cleanup(func() { _ = follower.Close() })
	r.policy = follower
	r.inProcess = newInProcess(t, store, func(cfg *ratelimit.Config) {
		cfg.Policy = follower
		for _, configure := range configure {
			configure(cfg)
		}
	})
	return r
}

func (r *replica) write(t *testing.T, limits string) {
	t.Helper()
	document := fmt.Sprintf("{version: 1, default: pro, tiers: {pro: {limits: {%s}, users: {limits: {hour: {capacity: 100000, per: hour}}}}}}", limits)
	require.NoError(t, os.WriteFile(r.path, []byte(document), 0o600))
}

func (r *replica) reload(t *testing.T, limits string) {
	t.Helper()
	r.write(t, limits)
	require.NoError(t, r.policy.Reload(t.Context()))
}

// answers counts what a load came to.
type answers struct{ admitted, refused, warned atomic.Int64 }

// load sends operations of 22 points to all the replicas at once, so many to each.
func load(operations int, replicas ...*replica) []*answers {
	return loadOf(half, operations, replicas...)
}

func loadOf(query string, operations int, replicas ...*replica) []*answers {
	var group sync.WaitGroup
	counts := make([]*answers, len(replicas))
	for i, r := range replicas {
		counts[i] = &answers{}
		const callers = 4
		for range callers {
			group.Go(func() {
				for range operations / callers {
					reply := r.post(request{Query: query, Tenant: "acme", User: "alice"})
					switch {
					case reply.Status == http.StatusTooManyRequests:
						counts[i].refused.Add(1)
					case reply.Header.Get("RateLimit-Warning") != "":
						counts[i].warned.Add(1)
					case reply.Status == http.StatusOK:
						counts[i].admitted.Add(1)
					}
				}
			})
		}
	}
	group.Wait()
	return counts
}

// TestAPolicyThatChangesUnderLoadKeepsWhatWasSpent counts what two replicas admit while only one of them
// has loaded the next generation. An operation costs 22 points, and half of one is to spare in each
// capacity; next to nothing comes back while the test runs.
func TestAPolicyThatChangesUnderLoadKeepsWhatWasSpent(t *testing.T) {
	t.Parallel()
	store := patientStore(t)

	const fifty = "day: {capacity: 1111, per: day}"
	before, after := newReplica(t, store, fifty), newReplica(t, store, fifty)
	counted := load(40, before)[0]
	require.EqualValues(t, 40, counted.admitted.Load())

	after.reload(t, "day: {capacity: 2211, per: day}")
	counts := load(100, before, after)
	admitted := counts[0].admitted.Load() + counts[1].admitted.Load()
	require.EqualValues(t, 60, admitted, "raised from 50 operations to 100, of which 40 were spent")
	require.LessOrEqual(t, counts[0].admitted.Load(), int64(10), "the old generation admits up to its 50")
	require.EqualValues(t, 140, counts[0].refused.Load()+counts[1].refused.Load())

	after.reload(t, "day: {capacity: 451, per: day}")
	counts = load(20, before, after)
	require.EqualValues(t, 40, counts[0].refused.Load()+counts[1].refused.Load(), "lowered to 20 operations: 100 are spent")

	after.reload(t, "requests: {capacity: 1000, per: day, unit: requests}")
	counts = load(20, before, after)
	require.EqualValues(t, 20, counts[0].refused.Load(), "the old generation goes on refusing")
	require.EqualValues(t, 20, counts[1].admitted.Load(), "the new one has removed the limit")

	after.reload(t, "day: {capacity: 1111, per: day, mode: warn}")
	counts = load(20, before, after)
	require.EqualValues(t, 20, counts[0].refused.Load())
	require.EqualValues(t, 20, counts[1].warned.Load(), "warned of, and left uncharged")

	const more = "day: {capacity: 2431, per: day}"
	before.reload(t, more)
	after.reload(t, more)
	counts = load(20, before, after)
	admitted = counts[0].admitted.Load() + counts[1].admitted.Load()
	require.EqualValues(t, 10, admitted, "110 operations, of which 100 were spent through it all")
	require.EqualValues(t, 6, after.policy.Snapshot().Generation())
}

// TestAWindowThatChangesUnderLoadKeepsWhatWasSpentNetOfRefunds counts as the test above does, of operations that
// are charged 202 points, of which 100 are given back: with k of them spent the next needs 102 k + 202.
//
// A replica does not hear of what another one gives back. For a second of its clock it goes on refusing what the store has refused before that.
func TestAWindowThatChangesUnderLoadKeepsWhatWasSpentNetOfRefunds(t *testing.T) {
	t.Parallel()
	const estimated = `{ users(first: 200) { name } }`
	store := patientStore(t)
	const first = "quota: {capacity: 5000, per: day, window: fixed}"
	clock := &ratelimittest.Clock{}
	refunds := func(cfg *ratelimit.Config) { cfg.Settlement.Refund, cfg.Outage.Clock = true, clock.Now }
	before, after := newReplica(t, store, first, refunds), newReplica(t, store, first, refunds)
	settled := func(operations int, replicas ...*replica) []*answers {
		t.Helper()
		counts := loadOf(estimated, operations, replicas...)
		for _, r := range replicas {
			require.NoError(t, r.extension.AwaitSettled(context.Background()))
		}
		clock.Advance(time.Second)
		return counts
	}
	// filled goes on one by one, because what is under way at once is charged whole.
	filled := func(r *replica) (admitted int64) {
		t.Helper()
		for r.post(request{Query: estimated, Tenant: "acme", User: "alice"}).Status == http.StatusOK {
			require.NoError(t, r.extension.AwaitSettled(context.Background()))
			admitted++
		}
		return admitted
	}
	admitted := settled(40, before)[0].admitted.Load()
	require.EqualValues(t, 48, admitted+filled(before))

	after.reload(t, "quota: {capacity: 10200, per: day, window: fixed}")
	counts := settled(80, before, after)
	require.EqualValues(t, 80, counts[0].refused.Load(), "the old generation goes on refusing")
	require.EqualValues(t, 51, counts[1].admitted.Load()+filled(after), "99 in all, of which 48 were spent")

	after.reload(t, "quota: {capacity: 4000, per: day, window: fixed}")
	counts = settled(12, before, after)
	require.EqualValues(t, 24, counts[0].refused.Load()+counts[1].refused.Load(), "lowered below what is spent")

	after.reload(t, "quota: {capacity: 10200, per: year, window: calendar}")
	require.EqualValues(t, 0, filled(after), "a window of another kind has as much spent")
	const more = "quota: {capacity: 10800, per: year, window: calendar}"
	before.reload(t, more)
	after.reload(t, more)
	counts = settled(12, before, after)
	admitted = counts[0].admitted.Load() + counts[1].admitted.Load()
	require.EqualValues(t, 5, admitted+filled(before), "104 in all, of which 99 were spent through it all")
}
