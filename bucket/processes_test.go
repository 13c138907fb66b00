package bucket_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
)

// Some tests need a second process. It is this test binary, started again with these variables set.
const (
	workVariable = "BUCKET_TEST_WORK"
	addrVariable = "BUCKET_TEST_ADDR"
)

// report is what a process counted.
type report struct {
	Admitted, Limited, InFlight, Failed int64
	// Times are those of Redis around the takes, in Unix milliseconds.
	Times times
}

type times struct {
	// End is a moment after every take.
	End int64
	// Refused is the latest moment that is known to lie before a take that was refused.
	Refused int64
}

func (t *times) merge(o times) {
	t.End, t.Refused = max(t.End, o.End), max(t.Refused, o.Refused)
}

func TestMain(m *testing.M) {
	work, isWorker := workers[os.Getenv(workVariable)]
	if !isWorker {
		// It writes a line for each connection that a test breaks.
		redis.SetLogger(noLog{})
		os.Exit(m.Run())
	}
	counted, err := work(os.Getenv(addrVariable))
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(counted)
	}
	if err != nil {
		_, _ = os.Stderr.WriteString(err.Error())
		os.Exit(1)
	}
}

type noLog struct{}

func (noLog) Printf(context.Context, string, ...any) {}

var workers = map[string]func(addr string) (report, error){
	"hammer": hammer, "claim": claimAtOnce, "old policy": oldPolicy, "new policy": newPolicy,
}

const (
	hammerCapacity = 20_000
	// hammerFirst is taken before the processes start, so that the bucket is not full again while they
	// are slow to come: a full bucket gains nothing.
	hammerFirst   = 19_500
	hammerRefill  = 1000 // a second
	hammerCost    = 3
	hammerCalls   = 60
	hammerCallers = 32
	claimCallers  = 25
)

// eachCaller runs a take in several goroutines and counts the verdicts.
func eachCaller(addr string, callers, calls int, take func() bucket.Take) (report, error) {
	client := redis.NewClient(patientOptions(addr))
	defer func() { _ = client.Close() }()
	store, err := bucket.NewRedis(bucket.RedisConfig{Client: client, Timeout: patience})
	if err != nil {
		return report{}, err
	}
	var mu sync.Mutex
	var counted report
	var group sync.WaitGroup
	for range callers {
		group.Go(func() {
			for call := range calls {
				last := call == calls-1
				before := redisTime(client, last)
				result, err := store.Take(context.Background(), take())
				seen := times{End: redisTime(client, last)}
				if result.Verdict == bucket.Limited {
					seen.Refused = before
				}
				mu.Lock()
				counted.count(result.Verdict, err)
				counted.Times.merge(seen)
				mu.Unlock()
			}
		})
	}
	group.Wait()
	return counted, nil
}

func redisTime(client *redis.Client, wanted bool) int64 {
	if !wanted {
		return 0
	}
	now, err := client.Time(context.Background()).Result()
	if err != nil {
		return 0
	}
	return now.UnixMilli()
}

func (r *report) count(verdict bucket.Verdict, err error) {
	switch {
	case err != nil:
		r.Failed++
	case verdict == bucket.Admitted:
		r.Admitted++
	case verdict == bucket.InFlight:
		r.InFlight++
	default:
		r.Limited++
	}
}

func hammer(addr string) (report, error) {
	limits, err := bucket.Compile(bucket.Limit{Name: "second", Capacity: hammerCapacity, Refill: hammerRefill, Period: time.Second})
	if err != nil {
		return report{}, err
	}
	return eachCaller(addr, hammerCallers, hammerCalls, func() bucket.Take {
		return bucket.Take{Tenant: "acme", Buckets: []bucket.Bucket{{Limits: limits}}, Amounts: points(hammerCost)}
	})
}

func claimAtOnce(addr string) (report, error) {
	limits, err := bucket.Compile(bucket.Limit{Name: "year", Capacity: 1000, Refill: 1, Period: time.Hour})
	if err != nil {
		return report{}, err
	}
	return eachCaller(addr, claimCallers, 1, func() bucket.Take {
		return bucket.Take{
			Tenant: "acme", Buckets: []bucket.Bucket{{Limits: limits}}, Amounts: points(10),
			Claim: &idempotency.Claim{Subject: "ann", Key: "12345678", Attempt: idempotency.NewAttemptID()},
		}
	})
}

// The policies that two processes judge one tenant by, while a deploy rolls.
const (
	oldCapacity   = 500
	newCapacity   = 20_000
	newRefill     = 20_000 // a minute
	policyCallers = 16
	policyCalls   = 250
)

func policyOf(capacity, cost int64) func() (bucket.Take, error) {
	return func() (bucket.Take, error) {
		limits, err := bucket.Compile(
			bucket.Limit{Name: "minute", Capacity: capacity, Period: time.Minute},
			bucket.Limit{Name: "requests", Unit: bucket.Requests, Capacity: 1 << 30, Period: time.Minute},
		)
		return bucket.Take{
			Tenant: "acme", Buckets: []bucket.Bucket{{Limits: limits}},
			Amounts: bucket.Amounts{{Unit: bucket.Points, N: cost}, {Unit: bucket.Requests, N: 1}},
		}, err
	}
}

func underPolicy(addr string, capacity, cost int64) (report, error) {
	take, err := policyOf(capacity, cost)()
	if err != nil {
		return report{}, err
	}
	return eachCaller(addr, policyCallers, policyCalls, func() bucket.Take { return take })
}

// oldPolicy makes requests that cost nothing, under the smaller limit.
func oldPolicy(addr string) (report, error) { return underPolicy(addr, oldCapacity, 0) }

// newPolicy spends as fast as it can.
func newPolicy(addr string) (report, error) { return underPolicy(addr, newCapacity, hammerCost) }

// beside does the work in a second process while this one does its own, and returns what each has counted.
func beside(t *testing.T, second, first, addr string) (own, other report) {
	t.Helper()
	process := exec.Command(os.Args[0])
	process.Env = append(os.Environ(), workVariable+"="+second, addrVariable+"="+addr)
	var output, problems bytes.Buffer
	process.Stdout, process.Stderr = &output, &problems
	require.NoError(t, process.Start())
	own, err := workers[first](addr)
	require.NoError(t, process.Wait(), problems.String())
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(output.Bytes(), &other))
	return own, other
}

// twoProcesses does the work in this process and a second one at once and returns the sum.
func twoProcesses(t *testing.T, work, addr string) report {
	t.Helper()
	own, other := beside(t, work, work, addr)
	own.Times.merge(other.Times)
	return report{
		Admitted: own.Admitted + other.Admitted, Limited: own.Limited + other.Limited,
		InFlight: own.InFlight + other.InFlight, Failed: own.Failed + other.Failed, Times: own.Times,
	}
}

func TestTwoProcessesTogetherGetTheCapacityAndTheRefillAndNoMore(t *testing.T) {
	t.Parallel()
	addr := redistest.Start(t).Addr
	client := patientClient(t, addr)
	limits := compile(t, bucket.Limit{Name: "second", Capacity: hammerCapacity, Refill: hammerRefill, Period: time.Second})
	before := redisTime(client, true)
	first, err := newRedisStore(t, client).Take(context.Background(), bucket.Take{
		Tenant: "acme", Buckets: []bucket.Bucket{{Limits: limits}}, Amounts: points(hammerFirst),
	})
	require.NoError(t, err)
	require.Equal(t, bucket.Admitted, first.Verdict)
	after := redisTime(client, true)
	counted := twoProcesses(t, "hammer", addr)
	require.Zero(t, counted.Failed)
	require.EqualValues(t, 2*hammerCallers*hammerCalls, counted.Admitted+counted.Limited)
	require.NotZero(t, counted.Times.Refused, "the load is more than the limit until the end")

	taken := hammerFirst + counted.Admitted*hammerCost
	most := hammerCapacity + (counted.Times.End-before)*hammerRefill/1000
	// What is refused last finds less than one operation.
	least := hammerCapacity + (counted.Times.Refused-after)*hammerRefill/1000 - hammerCost
	t.Logf("%d points were taken in %d ms, between %d and %d", taken, counted.Times.End-before, least, most)
	require.LessOrEqual(t, taken, most)
	require.GreaterOrEqual(t, taken, least)
}

func TestOfFiftyAttemptsInTwoProcessesOneIsAdmitted(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	counted := twoProcesses(t, "claim", server.Addr)
	counted.Times = times{}
	require.Equal(t, report{Admitted: 1, InFlight: 2*claimCallers - 1}, counted)
	store := newRedisStore(t, patientClient(t, server.Addr))
	limits := compile(t, bucket.Limit{Name: "year", Capacity: 1000, Refill: 1, Period: time.Hour})
	states, err := store.Peek(context.Background(), "acme", []bucket.Bucket{{Limits: limits}})
	require.NoError(t, err)
	require.EqualValues(t, 990, states[0].Remaining)
}

func TestTwoProcessesUnderTwoPoliciesAdmitWhatTheLargerOneAllows(t *testing.T) {
	t.Parallel()
	addr := redistest.Start(t).Addr
	client := patientClient(t, addr)
	take, err := policyOf(newCapacity, newCapacity)()
	require.NoError(t, err)
	before := redisTime(client, true)
	// The budget is spent before the old policy comes.
	first, err := newRedisStore(t, client).Take(context.Background(), take)
	require.NoError(t, err)
	require.Equal(t, bucket.Admitted, first.Verdict)
	under, old := beside(t, "old policy", "new policy", addr)
	require.Zero(t, under.Failed+old.Failed)
	require.EqualValues(t, policyCallers*policyCalls, old.Admitted, "what costs nothing passes")
	taken := newCapacity + under.Admitted*hammerCost
	most := newCapacity + (max(under.Times.End, old.Times.End)-before)*newRefill/60_000
	t.Logf("%d points were taken in %d ms under two policies, of which %d at once; at most %d may be; %d requests of 0 points beside",
		taken, under.Times.End-before, newCapacity, most, old.Admitted)
	require.LessOrEqual(t, taken, most)
	require.NotZero(t, under.Limited)
}
