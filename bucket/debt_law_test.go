package bucket_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
)

// lawHistories is how many histories the law is checked on; `make test-long` asks for a hundred thousand.
var lawHistories = flag.Int("histories", 60, "on how many histories of several policies the law is checked")

const lawSteps = 40

// lawSeed is the first seed of the histories: the same in each run, unless TEST_SEED says otherwise.
func lawSeed(t *testing.T) uint64 {
	t.Helper()
	switch value := os.Getenv("TEST_SEED"); value {
	case "":
		return 1
	case "random":
		return rand.Uint64()
	default:
		seed, err := strconv.ParseUint(value, 10, 64)
		require.NoError(t, err)
		return seed
	}
}

// newLawRun returns the history of a seed, on the stores that are asked for.
func newLawRun(t *testing.T, seed uint64, memory bool, client *redis.Client) *lawRun {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 0))
	r := &lawRun{
		random: random, clock: newClock(), tenant: fmt.Sprint("law-", seed), client: client,
		family: lawFamilies[random.IntN(len(lawFamilies))],
	}
	if memory {
		r.stores = append(r.stores, bucket.NewMemory(bucket.MemoryConfig{Clock: r.clock.now}))
	}
	if client != nil {
		var err error
		r.redis, err = bucket.NewRedis(bucket.RedisConfig{Client: client, Timeout: patience})
		require.NoError(t, err)
		require.NoError(t, r.redis.SetTestClock(r.clock.unixMilli))
		r.stores = append(r.stores, r.redis)
	}
	return r
}

func TestNoDebtFallsFasterThanItsRefillWhateverPoliciesMeet(t *testing.T) {
	t.Parallel()
	client := patientClient(t, redistest.Start(t).Addr)
	first, calls := lawSeed(t), 0
	admitted := map[string]int{}
	for i := range *lawHistories {
		seed := first + uint64(i)
		r := newLawRun(t, seed, true, client)
		require.NoError(t, r.run(lawSteps), "TEST_SEED=%d -histories=1", seed)
		calls += r.calls
		admitted[r.family] += len(r.live.entries)
		require.NoError(t, client.Del(context.Background(), r.redis.BucketKey(r.tenant, bucket.Owner{}),
			r.redis.CandidateKey(r.tenant, "next", bucket.Owner{}), r.redis.OverridesKey(r.tenant)).Err())
	}
	t.Logf("%d histories, %d calls of each store, admissions and givings back: %v", *lawHistories, calls, admitted)
}

// cutsDebts is what stood in the scripts before: what is written is cut to what is judged.
//
//nolint:dupword // It is Lua.
const cutsDebts = `local function save(owner)
for i = 1, #owner.limits do
local limit = owner.limits[i]
local e = limit.other or limit
if limit.raw and not limit.changed and e.debt > 2 * limit.capacity * e.one then
e.debt, limit.changed = 2 * limit.capacity * e.one, true
end
if e.debt > 2 * limit.capacity * e.one then
e.debt = 2 * limit.capacity * e.one
end
end
`

// TestStoresThatCutDebtsAreFound breaks the stores in the ways in which they were broken, and has the law find it: by
// what is stored, and by what is admitted alone.
func TestStoresThatCutDebtsAreFound(t *testing.T) {
	t.Parallel()
	client := patientClient(t, redistest.Start(t).Addr)
	const save = "local function save(owner)\n"
	mutants := []lawMutant{
		{"cap", "take", (*bucket.Memory).Cap, save, cutsDebts, true},
		{"cap", "settle", (*bucket.Memory).Cap, save, cutsDebts, true},
		{"cap", "adjust", (*bucket.Memory).Cap, save, cutsDebts, true},
		// It lets nobody through: it has them wait.
		{"terms", "settle", (*bucket.Memory).Adopt, "limit.other.tag == TOKEN and limit.units <= limit.full\nend", "limit.other.tag == TOKEN\nend", false},
	}
	for _, mutant := range mutants {
		for _, memory := range []bool{false, true} {
			for _, outside := range []bool{false, true} {
				if outside && !mutant.admits {
					continue
				}
				name := map[bool]string{false: "redis", true: "memory"}[memory]
				t.Run(fmt.Sprintf("%s on %s, %s, by admissions alone %t", mutant.name, mutant.call, name, outside), func(t *testing.T) {
					t.Parallel()
					mutant.find(t, memory, outside, client)
				})
			}
		}
	}
}

// lawMutant is a way in which a store may be wrong: what it does to a memory store after each call of a kind, or which
// text of the script it replaces.
type lawMutant struct {
	name, call   string
	spoil        func(memory *bucket.Memory, tenant string, buckets []bucket.Bucket)
	old, changed string
	// admits says that it shows in what is admitted.
	admits bool
}

// run returns a history on the mutant of a store.
func (m *lawMutant) run(t *testing.T, seed uint64, memory bool, client *redis.Client) *lawRun {
	t.Helper()
	if !memory {
		r := newLawRun(t, seed, false, client)
		r.tenant = t.Name() + r.tenant
		require.NoError(t, r.redis.Mutate(m.call, m.old, m.changed))
		return r
	}
	r := newLawRun(t, seed, true, nil)
	r.after = func(store bucket.Store, made, tenant string, buckets []bucket.Bucket) {
		if memory, ok := store.(*bucket.Memory); ok && made == m.call {
			m.spoil(memory, tenant, buckets)
		}
	}
	return r
}

// find makes histories until one breaks the law.
func (m *lawMutant) find(t *testing.T, memory, outside bool, client *redis.Client) {
	t.Helper()
	const most = 5000
	first, found, histories := lawSeed(t), error(nil), uint64(0)
	for ; found == nil && histories < most; histories++ {
		r := m.run(t, first+histories, memory, client)
		r.outside = outside
		found = r.run(lawSteps)
	}
	require.Error(t, found, "in %d histories from seed %d", most, first)
	require.Regexp(t, "tokens|admits", found.Error(), "the law finds it, not a broken script")
	t.Logf("after %d histories: %v", histories, found)
}
