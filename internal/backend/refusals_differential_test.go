package backend_test

import (
	"flag"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/backend"
)

// histories is on how many histories the gate is compared; `make test-long` asks for a hundred times as many.
var histories = flag.Int("histories", 400, "on how many histories a gate is compared with a bare store")

// differential is a history of random takes under two policies, with users, candidates, grants, settlements and override
// records, against a bare store and a gated one on one clock.
type differential struct {
	t      *testing.T
	random *rand.Rand
	gated  *gated
	bare   *bucket.Memory
	age    time.Duration
	// foreign says that what gives back happens in another instance, so that the gate is not told; behind is when that
	// happened last, in milliseconds.
	foreign  bool
	behind   int64
	owners   []bucket.Owner
	policies [2][]*bucket.Limits
	receipts []bothReceipts

	takes, spared, stale int
}

type bothReceipts struct {
	gated, bare bucket.Receipt
	amount      int64
}

func newDifferential(t *testing.T, seed uint64, run int) *differential {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, uint64(run)))
	d := &differential{
		t: t, random: random, age: time.Duration(1+random.IntN(20)) * 100 * time.Millisecond, foreign: run%3 == 0, behind: -1 << 60,
		owners: []bucket.Owner{{}, {Level: bucket.User, Name: "ann"}, {Level: bucket.User, Name: "bob"}},
	}
	d.gated = newGated(t, backend.GateConfig{
		RefusalAge: d.age, CappedCalls: 1 + random.IntN(5), MaxRefusals: 64 * (1 + random.IntN(3)),
	})
	// Windows of the calendar end in some histories, and in the same ones in each run.
	d.gated.clock.ms.Store(time.Date(2090, time.May, 31, 0, 0, 0, 0, time.UTC).UnixMilli() + random.Int64N(24*time.Hour.Milliseconds()))
	d.bare = bucket.NewMemory(bucket.MemoryConfig{Clock: d.gated.clock.now})
	kinds := []bucket.WindowKind{bucket.TokenBucket, bucket.FixedWindow, bucket.SlidingWindow, bucket.HourWindow, bucket.DayWindow}
	for p := range d.policies {
		for o := range d.owners {
			limits := make([]bucket.Limit, 1+random.IntN(3))
			for i := range limits {
				limits[i] = randomLimit(random, kinds, i)
				if random.IntN(5) == 0 {
					limits[i].Unit = bucket.Requests
				}
				if p == 1 && random.IntN(2) == 0 && i < d.policies[0][o].Len() {
					// The same limit with a little more.
					limits[i] = d.policies[0][o].All()[i]
					limits[i].Capacity += random.Int64N(3)
					if limits[i].Window.Kind != bucket.TokenBucket {
						limits[i].Refill = 0
					}
				}
			}
			d.policies[p] = append(d.policies[p], compile(t, limits...))
		}
	}
	return d
}

// give does what may give budget back to both stores.
func (d *differential) give(do func(store *bucket.Memory, which func(*bothReceipts) bucket.Receipt) error) {
	d.t.Helper()
	require.NoError(d.t, do(d.gated.store.Memory, func(b *bothReceipts) bucket.Receipt { return b.gated }))
	require.NoError(d.t, do(d.bare, func(b *bothReceipts) bucket.Receipt { return b.bare }))
	if d.foreign {
		d.behind = d.gated.clock.ms.Load()
		return
	}
	d.gated.Forget("acme")
}

// settle settles the oldest receipt, for less or for more.
func (d *differential) settle() {
	if len(d.receipts) == 0 {
		return
	}
	r := d.receipts[0]
	d.receipts = d.receipts[1:]
	actual := points(d.random.Int64N(1 + 2*r.amount))
	if d.foreign {
		d.give(func(store *bucket.Memory, which func(*bothReceipts) bucket.Receipt) error {
			_, err := store.Settle(d.t.Context(), bucket.Settlement{Receipt: which(&r), Actual: actual})
			return err
		})
		return
	}
	_, err := d.gated.Settle(d.t.Context(), bucket.Settlement{Receipt: r.gated, Actual: actual})
	require.NoError(d.t, err)
	_, err = d.bare.Settle(d.t.Context(), bucket.Settlement{Receipt: r.bare, Actual: actual})
	require.NoError(d.t, err)
}

func (d *differential) override() bucket.Override {
	mode := []bucket.Mode{bucket.Enforce, bucket.Shadow, bucket.Warn, bucket.Off}[d.random.IntN(4)]
	o := bucket.Override{Owner: d.owners[d.random.IntN(3)], Reason: "x", Actor: "y"}
	switch d.random.IntN(4) {
	case 0:
		o.Blocked = true
	case 1:
		o.Unlimited = true
	case 2:
		o.Mode = &mode
	default:
		o.Limit, o.Capacity = strconv.Itoa(d.random.IntN(3)), 40+d.random.Int64N(60)
	}
	if d.random.IntN(2) == 0 {
		o.Expires = d.gated.clock.now().Add(time.Duration(1+d.random.IntN(1500)) * time.Millisecond)
	}
	return o
}

func (d *differential) draw() bucket.Take {
	p, user := d.random.IntN(8)/7, d.random.IntN(3)
	b := []bucket.Bucket{{Limits: d.policies[p][0]}}
	if user > 0 {
		b = append(b, bucket.Bucket{Owner: d.owners[user], Limits: d.policies[p][user]})
	}
	if d.random.IntN(6) == 0 {
		b = b[len(b)-1:]
	}
	take := bucket.Take{
		Tenant: "acme", Buckets: b,
		Amounts: bucket.Amounts{{Unit: bucket.Points, N: d.random.Int64N(25)}, {Unit: bucket.Requests, N: 1}},
	}
	if d.random.IntN(4) == 0 {
		take.Owners = []bucket.Owner{d.owners[1+d.random.IntN(2)]}
	}
	if d.random.IntN(10) == 0 {
		o := d.random.IntN(3)
		take.Candidate = &bucket.Candidate{ID: "cand", Buckets: []bucket.Bucket{{Owner: d.owners[o], Limits: d.policies[1][o]}}}
	}
	return take
}

// step does one thing. It returns false when the stores have parted, because the gate was not told of what another
// instance did.
func (d *differential) step() bool {
	d.t.Helper()
	switch d.random.IntN(16) {
	case 0:
		d.gated.clock.advance(time.Duration(d.random.IntN(2000)) * time.Millisecond)
	case 1:
		b := []bucket.Bucket{{Limits: d.policies[d.random.IntN(8)/7][0]}}
		d.give(func(store *bucket.Memory, _ func(*bothReceipts) bucket.Receipt) error {
			_, err := store.Grant(d.t.Context(), "acme", b, points(3))
			return err
		})
	case 2:
		d.settle()
	case 3:
		o := d.override()
		d.give(func(store *bucket.Memory, _ func(*bothReceipts) bucket.Receipt) error {
			_, err := store.SetOverride(d.t.Context(), "acme", o)
			return err
		})
	case 4:
		d.give(func(store *bucket.Memory, _ func(*bothReceipts) bucket.Receipt) error {
			_, err := store.ClearOverrides(d.t.Context(), "acme")
			return err
		})
	default:
		d.gated.clock.advance(time.Duration(d.random.IntN(50)) * time.Millisecond)
		return d.compare(d.draw())
	}
	return true
}

// compare asks both stores.
func (d *differential) compare(take bucket.Take) bool {
	d.t.Helper()
	want, err := d.bare.Take(d.t.Context(), take)
	require.NoError(d.t, err)
	got := d.gated.take(take)
	d.takes++
	if got.Verdict == bucket.Admitted && want.Verdict == bucket.Admitted && !got.Receipt.IsZero() {
		d.receipts = append(d.receipts, bothReceipts{got.Receipt, want.Receipt, take.Amounts[0].N})
	}
	if got.Origin != backend.FromStore {
		d.spared++
	}
	if got.Verdict == want.Verdict || got.Origin == backend.FromCap && want.Verdict != bucket.Admitted {
		// Of a take that is refused by what others were told, only that is known.
		return true
	}
	require.NotEqual(d.t, backend.FromStore, got.Origin, "two stores with one history")
	if d.foreign && d.gated.clock.ms.Load()-d.behind < d.age.Milliseconds() {
		d.stale++
		return false
	}
	require.Equal(d.t, want.Verdict, got.Verdict, "from %v, foreign %v, take %+v, candidate %+v", got.Origin, d.foreign, take, take.Candidate)
	return true
}

// TestTheGateRefusesWhatTheStoreRefusesAsItDoes runs whole histories. A refusal of another instance's tenant may be as old
// as the gate lets it be; any other one is that of the store, and of its kind.
func TestTheGateRefusesWhatTheStoreRefusesAsItDoes(t *testing.T) {
	t.Parallel()
	seed := uint64(1)
	switch value := os.Getenv("TEST_SEED"); value {
	case "":
	case "random":
		seed = rand.Uint64()
	default:
		var err error
		seed, err = strconv.ParseUint(value, 10, 64)
		require.NoError(t, err)
	}
	t.Logf("TEST_SEED=%d", seed)
	takes, spared, stale := 0, 0, 0
	for run := range *histories {
		d := newDifferential(t, seed, run)
		for range 80 {
			if !d.step() {
				break
			}
		}
		takes, spared, stale = takes+d.takes, spared+d.spared, stale+d.stale
	}
	t.Logf("%d takes, of which %d did not reach the store, %d were behind another instance", takes, spared, stale)
	require.Greater(t, spared, 2**histories)
}
