package leasetest_test

import (
	"context"
	"flag"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/freeze"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
)

// faultTime is how long things break; `make test-long` asks for more.
var faultTime = flag.Duration("fault-time", 4*time.Second, "how long processes that lease are killed, stopped and cut off")

// seed is what TEST_SEED says.
func seed(t testing.TB) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(os.Getenv("TEST_SEED"), 10, 64)
	switch {
	case os.Getenv("TEST_SEED") == "random":
		n = rand.Uint64() >> 16
	case err != nil:
		n = 1
	}
	t.Logf("TEST_SEED=%d", n)
	return n
}

// mixed are the costs of operations: 70 % cost 1, 25 % 5 and 5 % 50.
var mixed = []int64{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 5, 5, 5, 5, 5, 50}

// mostStopped is longer than a lease.
const mostStopped = 2500 * time.Millisecond

// upTo is a time up to one.
func upTo(r *rand.Rand, most time.Duration) time.Duration {
	return time.Duration(r.Int64N(int64(most)))
}

// during lets something be so for a while.
func during(begin func(), d time.Duration, end func()) {
	begin()
	pass(d)
	end()
}

// troubles are what may happen to an instance, or to the Redis of all, for a part of the longest time.
func (fl *fleet) troubles(admin *redis.Client) map[string]func(i int, d time.Duration) {
	return map[string]func(i int, d time.Duration){
		"kill": func(i int, d time.Duration) { fl.kill(i, d/4) },
		"stop": func(i int, d time.Duration) {
			during(func() { fl.signal(i, syscall.SIGSTOP) }, d, func() { fl.signal(i, syscall.SIGCONT) })
		},
		"stop for longer than a lease": func(i int, _ time.Duration) {
			during(func() { fl.signal(i, syscall.SIGSTOP) }, mostStopped, func() { fl.signal(i, syscall.SIGCONT) })
		},
		"cut off while it serves": func(i int, d time.Duration) { during(fl.proxies[i].Cut, d, fl.proxies[i].Heal) },
		"lost replies":            func(i int, d time.Duration) { during(fl.proxies[i].DropReplies, d/4, fl.proxies[i].Heal) },
		"ended connections":       func(i int, _ time.Duration) { fl.proxies[i].Sever() },
		"slow network": func(i int, d time.Duration) {
			during(func() { fl.proxies[i].Delay(d / 30) }, d/2, func() { fl.proxies[i].Delay(0) })
		},
		"frozen Redis": func(_ int, d time.Duration) {
			during(func() { _ = freeze.Process(fl.server.Process()) }, d/4, func() { _ = freeze.Thaw(fl.server.Process()) })
		},
		"CLIENT PAUSE": func(_ int, d time.Duration) {
			_ = admin.Do(context.Background(), "client", "pause", d.Milliseconds()/4+1, "all").Err()
		},
	}
}

// breaks has things happen to instances, by turns and by chance, for so long, and returns when all is well again.
func (fl *fleet) breaks(r *rand.Rand, length time.Duration, only ...string) (happened map[string]int) {
	admin := redis.NewClient(&redis.Options{Addr: fl.server.Addr})
	defer func() { _ = admin.Close() }()
	all := fl.troubles(admin)
	names := only
	if len(only) == 0 {
		for name := range all {
			names = append(names, name)
		}
	}
	happened = map[string]int{}
	var going sync.WaitGroup
	// What takes an instance of its own has one at a time.
	busy := make([]sync.Mutex, fleetSize)
	pause := min(300*time.Millisecond, length/time.Duration(len(names)+1))
	for begin := time.Now(); time.Since(begin) < length; {
		r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		for _, name := range names {
			i, d := r.IntN(fleetSize), upTo(r, mostStopped)
			happened[name]++
			going.Go(func() {
				busy[i].Lock()
				defer busy[i].Unlock()
				all[name](i, d)
			})
			pass(pause)
			if r.IntN(3) == 0 {
				fl.load(1.5*float64(fl.Refill), onOne(r.IntN(fleetSize)))
			}
		}
	}
	going.Wait()
	return happened
}

// verdictsOf judges a run: what was admitted beyond the limit in the worst interval, and what was used of what one bucket admits from a moment on.
type verdictsOf struct {
	over, inexact, got, could int64
	operations                int
	perSecond                 float64
}

// used is a part of what one bucket admits.
func (v *verdictsOf) used() float64 { return 100 * float64(v.got) / float64(max(1, v.could)) }

// judge ends the fleet and judges what it did from a moment on.
func (fl *fleet) judge(from, callsBefore int64) (v verdictsOf) {
	fl.Helper()
	seconds := float64(fl.clock.after()-from) / second
	v.perSecond = float64(calls(fl, fl.server.Addr)-callsBefore) / seconds
	v.inexact = fl.inexact()
	all := fl.finish()
	v.operations = len(all)
	v.over = fl.budget().excess(all)
	v.got, v.could = fl.budget().used(all, from)
	fl.Logf("%d operations; beyond the limit in the worst interval: %d of %d points (clocks explain %d); used %.2f %%; %.0f calls a second",
		v.operations, v.over, fl.Capacity, v.inexact, v.used(), v.perSecond)
	require.NotZero(fl, v.got)
	return v
}

// ordinary is the setting of the tests.
func ordinary(t testing.TB) setting {
	t.Helper()
	return setting{Kind: leased, Seed: seed(t), Capacity: 20_000, Refill: 20_000, Costs: mixed}
}

// rest is what the store has of the limit that nobody holds, in points.
func (fl *fleet) rest() int64 {
	client := redis.NewClient(&redis.Options{Addr: fl.server.Addr, ContextTimeoutEnabled: true})
	defer func() { _ = client.Close() }()
	store, err := bucket.NewRedis(bucket.RedisConfig{Client: client, Timeout: patience})
	require.NoError(fl, err)
	limits, err := bucket.Compile(bucket.Limit{Name: "second", Capacity: fl.Capacity, Refill: fl.Refill, Period: time.Second})
	require.NoError(fl, err)
	states, err := store.Peek(fl.Context(), tenantName(0), []bucket.Bucket{{Limits: limits}})
	require.NoError(fl, err)
	return states[0].Remaining
}

// promote has the replica take the place of its master, which has gone on alone for so long. It returns what the lost instant had at most.
func (fl *fleet) promote(replica *redistest.Server, lag time.Duration) (most int64) {
	most = fl.rest()
	began := time.Now()
	require.NoError(fl, replica.StopReplicating(fl.Context()))
	pass(lag)
	fl.server.Kill()
	most += int64(time.Since(began)/time.Millisecond+1) * fl.Refill / 1000
	admin := redis.NewClient(&redis.Options{Addr: replica.Addr})
	defer func() { _ = admin.Close() }()
	require.NoError(fl, admin.Do(fl.Context(), "replicaof", "no", "one").Err())
	for _, p := range fl.proxies {
		p.Lead(replica.Addr)
		p.Sever()
	}
	fl.server = replica
	return most
}

// inStep waits until the replica has what its master has.
func inStep(t testing.TB, replica *redistest.Server) {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: replica.Addr})
	defer func() { _ = client.Close() }()
	require.Eventually(t, func() bool {
		role, err := client.Do(t.Context(), "role").Slice()
		return err == nil && len(role) > 3 && role[3] == "connected"
	}, patience, time.Millisecond)
}

// failOver is a run in which a replica takes over that lacks what came in so long.
func failOver(t testing.TB, s setting, lag time.Duration) (v verdictsOf, most int64) {
	t.Helper()
	master := redistest.Start(t)
	host, port, err := net.SplitHostPort(master.Addr)
	require.NoError(t, err)
	replica := redistest.Start(t, "--replicaof", host+" "+port)
	inStep(t, replica)
	fl := newFleet(t, master, s, false)
	fl.load(1.5*float64(fl.Refill), onOne(0))
	pass(2 * time.Second)
	from := fl.clock.after()
	most = fl.promote(replica, lag)
	pass(2 * time.Second)
	return fl.judge(from, 0), most
}

// loseAll is a run in which the Redis comes back with nothing.
func loseAll(t testing.TB, s setting) verdictsOf {
	t.Helper()
	fl := newFleet(t, redistest.Start(t), s, false)
	fl.load(1.5*float64(fl.Refill), onOne(0))
	pass(2 * time.Second)
	from := fl.clock.after()
	fl.server.Kill()
	require.NoError(t, fl.server.Restart())
	pass(2 * time.Second)
	return fl.judge(from, 0)
}

// ordinaryFaults has eight processes ask for half more than the limit while they are killed, stopped and cut off.
func ordinaryFaults(t testing.TB) verdictsOf {
	t.Helper()
	fl := newFleet(t, redistest.Start(t), ordinary(t), false)
	r := newRandom(fl.Seed)
	fl.load(1.5*float64(fl.Refill), onOne(0))
	pass(time.Second)
	from, before := fl.clock.after(), calls(t, fl.server.Addr)
	happened := fl.breaks(r, *faultTime)
	pass(time.Second)
	local := uint64(0)
	for _, c := range fl.count() {
		local += c.Leases.Admitted
	}
	require.NotZero(t, local, "processes decide without the store")
	t.Log(happened)
	return fl.judge(from, before)
}

func TestLimitHoldsWhileProcessesBreak(t *testing.T) {
	v := ordinaryFaults(t)
	require.LessOrEqual(t, v.over, v.inexact)
}
