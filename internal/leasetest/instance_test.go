package leasetest_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/bucket/redisclient"
)

// An instance is this test binary, started again with its setting in this variable.
const settingVariable = "LEASE_TEST_SETTING"

// setting is what an instance is told when it starts.
type setting struct {
	Address, Ledger string
	Kind            kind
	Seed            uint64
	// Capacity and Refill are of the limit, and Instances is how many share it. Zero is fleetSize.
	Capacity, Refill, Instances int64
	// Costs are what operations cost, each as likely as the others.
	Costs []int64
	// Tenants are how many are asked for. Their operations are noted by tenant.
	Tenants int
}

// kind is how an instance decides.
type kind string

const (
	leased   kind = "leased"
	static   kind = "static partition"
	postPaid kind = "post-paid"
	prePaid  kind = "pre-paid"
)

// What an instance is told in a line of its standard input. It ends with its input.
const (
	// tellRate is followed by points each second, of all its callers.
	tellRate = "rate"
	// tellStop has it stop itself once, in the moment after it has looked at the clock for its next take.
	tellStop = "stop"
	// tellCount asks for a line of counted.
	tellCount = "count"
)

// counted is what an instance has done.
type counted struct {
	Operations, Admitted, Failed int64
	// Processor is processor time.
	Processor time.Duration
	Leases    bucket.LeaseStats
	// Problem is what must not happen.
	Problem string
}

const (
	callers = 3
	// redisTimeout is longer than that of a server: the machine of a test is busy.
	redisTimeout = 100 * time.Millisecond
	// nap is how long a caller sleeps at least.
	nap = 2 * time.Millisecond
)

// pass lets time pass. Processes and servers have no clock that a test could move.
func pass(d time.Duration) { <-time.After(d) }

// silent is the log of clients whose connections are cut all the time.
type silent struct{}

// Printf implements the logger of go-redis.
func (silent) Printf(context.Context, string, ...any) {}

func TestMain(m *testing.M) {
	redis.SetLogger(silent{})
	text := os.Getenv(settingVariable)
	if text == "" {
		os.Exit(m.Run())
	}
	var s setting
	err := json.Unmarshal([]byte(text), &s)
	if err == nil {
		err = live(s)
	}
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// decider decides about an operation.
type decider interface {
	decide(tenant string, cost int64) verdict
	// stats and end are for leases.
	stats() bucket.LeaseStats
	end()
}

// instance is one process.
type instance struct {
	setting
	clock  sharedClock
	ledger *ledger
	of     decider
	// rate is points each second of one caller, as bits.
	rate atomic.Uint64
	// told says that it is to stop in its next take, and armed that it does at the next look at the clock.
	told, armed atomic.Bool

	operations, admitted, failed atomic.Int64
	problem                      atomic.Pointer[string]
}

// live is an instance until its input ends.
func live(s setting) error {
	clock, err := newSharedClock()
	if err != nil {
		return err
	}
	l, err := openLedger(s.Ledger)
	if err != nil {
		return err
	}
	client, err := redisclient.Open(s.Address, redisclient.Config{PoolSize: 8})
	if err != nil {
		return err
	}
	i := &instance{setting: s, clock: clock, ledger: l}
	if i.of, err = i.newDecider(client); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	var calling sync.WaitGroup
	for caller := range callers {
		calling.Go(func() { i.call(ctx, rand.New(rand.NewPCG(s.Seed, uint64(caller)))) })
	}
	i.report()
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		i.obey(lines.Text())
	}
	stop()
	calling.Wait()
	i.of.end()
	i.report()
	return nil
}

// obey does what a line says.
func (i *instance) obey(line string) {
	word, number, _ := strings.Cut(line, " ")
	switch word {
	case tellRate:
		rate, _ := strconv.ParseFloat(number, 64)
		i.rate.Store(math.Float64bits(rate / callers))
	case tellStop:
		i.told.Store(true)
	case tellCount:
		i.report()
	}
}

// report writes what it has done.
func (i *instance) report() {
	c := counted{Operations: i.operations.Load(), Admitted: i.admitted.Load(), Failed: i.failed.Load(), Leases: i.of.stats()}
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err == nil {
		c.Processor = time.Duration(used.Utime.Nano() + used.Stime.Nano())
	}
	if problem := i.problem.Load(); problem != nil {
		c.Problem = *problem
	}
	_ = json.NewEncoder(os.Stdout).Encode(c)
}

// look is the clock of what is leased. It stops the process once, after it has looked: what is decided by that time is decided long after it.
func (i *instance) look(epoch time.Time) time.Duration {
	now := time.Since(epoch)
	if i.armed.Load() && i.armed.CompareAndSwap(true, false) {
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		// The signal may come to another thread first.
		pass(nap)
	}
	return now
}

// call asks as clients do who come by chance, at the rate.
func (i *instance) call(ctx context.Context, random *rand.Rand) {
	mean := 0.0
	for _, cost := range i.Costs {
		mean += float64(cost) / float64(len(i.Costs))
	}
	for due := time.Now(); ctx.Err() == nil; {
		rate := math.Float64frombits(i.rate.Load()) / mean
		// Who was stopped does not catch up.
		if now := time.Now(); rate <= 0 || now.Sub(due) > 200*time.Millisecond {
			due = now
		}
		for n := 0; rate > 0 && n < 1000 && time.Until(due) <= 0; n++ {
			i.ask(random)
			due = due.Add(time.Duration(random.ExpFloat64() / rate * second))
		}
		pass(max(nap, min(time.Until(due), 50*time.Millisecond)))
	}
}

// ask makes an operation, and notes it before it is answered.
func (i *instance) ask(random *rand.Rand) {
	cost, tenant := i.Costs[random.IntN(len(i.Costs))], 0
	if i.Tenants > 0 {
		tenant = random.IntN(i.Tenants)
	}
	before := i.clock.before()
	if i.told.CompareAndSwap(true, false) {
		i.armed.Store(true)
	}
	is := i.of.decide(tenantName(tenant), cost)
	after := i.clock.after()
	i.operations.Add(1)
	switch is {
	case admitted:
		i.admitted.Add(1)
	case failed:
		i.failed.Add(1)
	default:
	}
	if i.Tenants > 0 {
		cost = int64(tenant)
	}
	if err := i.ledger.note(operation{before, after, cost, is}); err != nil {
		problem := err.Error()
		i.problem.Store(&problem)
	}
}

func tenantName(n int) string { return tenantNames[n%len(tenantNames)] }

var tenantNames = func() (all [64]string) {
	for n := range all {
		all[n] = "tenant-" + strconv.Itoa(n)
	}
	return all
}()

// newDecider makes what it decides by.
func (i *instance) newDecider(client redis.UniversalClient) (decider, error) {
	if i.Kind != leased && i.Kind != backstop {
		return newStrategy(i.setting, client), nil
	}
	store, err := bucket.NewRedis(bucket.RedisConfig{Client: client, Timeout: redisTimeout})
	if err != nil {
		return nil, err
	}
	limits, err := bucket.Compile(bucket.Limit{Name: "second", Capacity: i.Capacity, Refill: i.Refill, Period: time.Second})
	if err != nil {
		return nil, err
	}
	epoch := time.Now()
	d := &leasing{buckets: []bucket.Bucket{{Limits: limits}}, ended: make(chan struct{})}
	d.room.New = func() any { return new(takeRoom) }
	d.store = bucket.NewLeased(store, bucket.LeasedConfig{Clock: func() time.Duration { return i.look(epoch) }})
	d.store.Allow(true)
	go func() {
		defer close(d.ended)
		d.store.Run(context.Background())
	}()
	if i.Kind == backstop {
		return newWall(d, i.Capacity, i.Refill)
	}
	return d, nil
}

// leasing decides by what is leased.
type leasing struct {
	store   *bucket.Leased
	buckets []bucket.Bucket
	ended   chan struct{}
	room    sync.Pool
}

// takeRoom is room for what a take needs, which a server keeps too.
type takeRoom struct {
	amounts [1]bucket.Amount
	states  [1]bucket.LimitState
}

func (d *leasing) decide(tenant string, cost int64) verdict {
	r := d.room.Get().(*takeRoom)
	defer d.room.Put(r)
	r.amounts[0] = bucket.Amount{Unit: bucket.Points, N: cost}
	result, err := d.store.Take(context.Background(), bucket.Take{
		Tenant: tenant, Buckets: d.buckets, Amounts: r.amounts[:], States: r.states[:], Lease: bucket.LeaseAlways,
	})
	switch {
	case err != nil:
		return failed
	case result.Verdict == bucket.Admitted:
		return admitted
	case result.Verdict == bucket.Blocked:
		return blocked
	default:
		return refused
	}
}

func (d *leasing) stats() bucket.LeaseStats { return d.store.Stats() }

// end gives back what it leases, if the store is there.
func (d *leasing) end() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := d.store.Shutdown(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		_, _ = fmt.Fprintln(os.Stderr, err)
	}
	<-d.ended
}
