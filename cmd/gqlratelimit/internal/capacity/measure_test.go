package capacity_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/bucket/redisclient"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/capacity"
	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
	"github.com/gqlgen-ratelimit/ratelimit/internal/state"
	"github.com/gqlgen-ratelimit/ratelimit/lua"
)

var update = flag.Bool("update", false, "measure all figures, and write them into figures.json")

const (
	figuresFile = "figures.json"
	// owners is over how many tenants calls are spread, and calls how many are made for a figure.
	owners = 10_000
	calls  = 20_000
	// crowd is how many callers share pipelines.
	crowd = 64
	// holders is how many lease a tenant.
	holders = 100
	// roomy is the capacity of each limit.
	roomy = 15_000_000
)

// bench is a Redis that is measured.
type bench struct {
	t      *testing.T
	client *redis.Client
	store  *bucket.Redis
}

func newBench(t *testing.T) *bench {
	t.Helper()
	server := redistest.Start(t)
	client, err := redisclient.Open("redis://"+server.Addr, redisclient.Config{DialTimeout: redistest.Patience, SocketTimeout: redistest.Patience})
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	store, err := bucket.NewRedis(bucket.RedisConfig{Client: client, Timeout: redistest.Patience, Patience: redistest.Patience, AdminTimeout: redistest.Patience})
	require.NoError(t, err)
	return &bench{t, redistest.Plain(t, server.Addr), store}
}

// info reads a number that the server tells.
func (b *bench) info(section, name string) float64 {
	b.t.Helper()
	all, err := b.client.InfoMap(b.t.Context(), strings.ToLower(section)).Result()
	require.NoError(b.t, err)
	n, err := strconv.ParseFloat(all[section][name], 64)
	require.NoError(b.t, err)
	return n
}

// processor is how many microseconds the server has worked.
func (b *bench) processor() float64 {
	return 1e6 * (b.info("CPU", "used_cpu_user") + b.info("CPU", "used_cpu_sys"))
}

// shape returns what a take of so many owners with so many limits charges.
func shape(t *testing.T, owners, limits int) []bucket.Bucket {
	t.Helper()
	all := make([]bucket.Limit, limits)
	for i := range all {
		all[i] = bucket.Limit{Name: "limit" + strconv.Itoa(i), Capacity: roomy, Refill: 4320 + int64(i), Period: 24 * time.Hour}
	}
	compiled, err := bucket.Compile(all...)
	require.NoError(t, err)
	buckets := []bucket.Bucket{{Limits: compiled}}
	for i := 1; i < owners; i++ {
		buckets = append(buckets, bucket.Bucket{Owner: bucket.Owner{Level: bucket.User, Name: fmt.Sprintf("user%06d", i)}, Limits: compiled})
	}
	return buckets
}

var amounts = bucket.Amounts{{Unit: bucket.Points, N: 1}, {Unit: bucket.Requests, N: 1}}

// take returns the take of a call, by its number.
func take(buckets []bucket.Bucket, i int64) bucket.Take {
	return bucket.Take{Tenant: fmt.Sprintf("tenant-%06d", i%owners), Buckets: buckets, Amounts: amounts}
}

// each returns how many microseconds of the server a call takes, by so many callers.
func (b *bench) each(callers int, call func(ctx context.Context, i int64) error) float64 {
	b.t.Helper()
	var next atomic.Int64
	drive := func(n int64) {
		stop := next.Load() + n
		var wg sync.WaitGroup
		var failed atomic.Pointer[error]
		for range callers {
			wg.Go(func() {
				for i := next.Add(1); i <= stop; i = next.Add(1) {
					if err := call(b.t.Context(), i); err != nil {
						failed.Store(&err)
						return
					}
				}
			})
		}
		wg.Wait()
		if err := failed.Load(); err != nil {
			require.NoError(b.t, *err)
		}
	}
	// Everybody is known before anything is measured.
	drive(owners + int64(callers))
	before := b.processor()
	drive(calls)
	return (b.processor() - before) / calls
}

// takes measures a kind of take.
func (b *bench) takes(callers int, kind func(i int64) bucket.Take) float64 {
	b.t.Helper()
	return b.each(callers, func(ctx context.Context, i int64) error {
		result, err := b.store.Take(ctx, kind(i))
		if err == nil && result.Verdict != bucket.Admitted {
			err = fmt.Errorf("a take was %v", result.Verdict)
		}
		return err
	})
}

// fresh empties the server.
func (b *bench) fresh() {
	b.t.Helper()
	require.NoError(b.t, b.client.FlushAll(b.t.Context()).Err())
}

// work measures what calls take of the server.
func (b *bench) work(callers int) (p capacity.Processor) {
	for i, limits := range capacity.LimitSteps {
		b.fresh()
		one, three := shape(b.t, 1, limits), shape(b.t, 3, limits)
		p.Take[i] = b.takes(callers, func(i int64) bucket.Take { return take(one, i) })
		p.Owner[i] = (b.takes(callers, func(i int64) bucket.Take { return take(three, i) }) - p.Take[i]) / 2
	}
	four := shape(b.t, 1, 4)
	plain := p.Take[2]
	b.fresh()
	p.Usage = b.takes(callers, func(i int64) bucket.Take {
		counted := take(four, i)
		counted.Usage = &bucket.Usage{}
		return counted
	}) - plain
	settle := func(keyed bool) float64 {
		b.fresh()
		return b.each(callers, func(ctx context.Context, i int64) error {
			t := take(four, i)
			if keyed {
				t.Claim = claim(i)
			}
			result, err := b.store.Take(ctx, t)
			if err != nil {
				return err
			}
			s := bucket.Settlement{Receipt: result.Receipt, Actual: bucket.Amounts{{Unit: bucket.Points, N: 0}}}
			if keyed {
				s.Actual = amounts
				s.Claim = &bucket.ClaimSettlement{Tenant: t.Tenant, Claim: t.Claim, Outcome: idempotency.Done, Answer: make([]byte, 1<<10)}
			}
			_, err = b.store.Settle(ctx, s)
			return err
		}) - plain
	}
	p.Settle, p.Claim = settle(false), settle(true)
	one, many := b.exchanges(callers, 1), b.exchanges(callers, holders)
	p.Exchange, p.Holder = one, (many-one)/(holders-1)
	return p
}

func claim(i int64) *idempotency.Claim {
	return &idempotency.Claim{Subject: "subject", Key: idempotency.Key(fmt.Sprintf("key-%012d", i)), Attempt: idempotency.NewAttemptID()}
}

// leasing is a call of a holder that leases four limits of a tenant, and is asked for as much as comes back.
func leasing(tenant, holder, number int64) (keys []string, args []any) {
	rules := make([]state.Rule, 4)
	for i := range rules {
		rules[i] = state.NewRule(state.Rule{ID: uint16(i + 1), Tag: state.TokenBucket, Capacity: roomy, R: int64(i + 1), P: 2})
	}
	const lease, beat = 60_000, 1000
	numbers := state.AppendDouble(state.AppendDouble(nil, 0), lease)
	numbers = append(numbers, make([]byte, state.GenerationSize)...)
	numbers = state.AppendDouble(state.AppendDouble(numbers, 0), 1<<47)
	for i := range rules {
		_, _, rate := rules[i].Leasing()
		offer := state.Offer{Demand: rate / holders, Want: 1 << 20, Largest: 1}
		for _, n := range offer.Numbers() {
			numbers = state.AppendDouble(numbers, n)
		}
	}
	id := [8]byte{1, byte(holder >> 8), byte(holder)}
	exchange := state.AppendExchange(nil, id, number, beat*number, beat*(number-1), beat, false)
	exchange = state.AppendUint(exchange, 2, holder)
	tag := fmt.Sprintf("rl:main:{tenant-%06d}", tenant)
	return []string{tag + ":t", tag + ":h", tag + ":x"}, []any{numbers, exchange, state.NewRules(rules).Packed}
}

// exchanges measures those of as many tenants as have so many holders together.
func (b *bench) exchanges(callers int, of int64) float64 {
	b.t.Helper()
	b.fresh()
	scripts := lua.Load()
	sha, err := b.client.ScriptLoad(b.t.Context(), scripts.Exchange.Source).Result()
	require.NoError(b.t, err)
	// None may be left out.
	made := int64(-1)
	next := func() (keys []string, args []any) {
		made++
		return leasing(made/of%(owners/of), made%of, 1+made/owners)
	}
	if callers == 1 {
		return b.each(1, func(ctx context.Context, _ int64) error {
			keys, args := next()
			text, err := b.client.EvalSha(ctx, sha, keys, args...).Text()
			return booked(text, err)
		})
	}
	// As many in one pipeline as there are callers.
	pipe, last := b.client.Pipeline(), []*redis.Cmd{}
	return b.each(1, func(ctx context.Context, _ int64) error {
		keys, args := next()
		last = append(last, pipe.EvalSha(ctx, sha, keys, args...))
		if len(last) < callers {
			return nil
		}
		_, err := pipe.Exec(ctx)
		for _, cmd := range last {
			if text, failed := cmd.Text(); err == nil {
				err = booked(text, failed)
			}
		}
		last = nil
		return err
	})
}

// booked says what is wrong with an exchange that was not booked.
func booked(text string, err error) error {
	const head = 1 + state.DateSize
	if err == nil && (len(text) <= head || text[0] != byte(state.Applied) || text[head] != state.Exchanged) {
		err = fmt.Errorf("an exchange was not booked: %q", text[:min(len(text), head+1)])
	}
	return err
}

// room measures what things take in the memory of the server.
func (b *bench) room() (m capacity.Memory) {
	b.t.Helper()
	const n = owners - 1
	grown := func(call func(ctx context.Context, i int64) error) float64 {
		b.fresh()
		// Scripts and connections are there before.
		require.NoError(b.t, call(b.t.Context(), 0))
		before := b.info("Memory", "used_memory")
		for i := int64(1); i <= n; i++ {
			require.NoError(b.t, call(b.t.Context(), i))
		}
		return (b.info("Memory", "used_memory") - before) / n
	}
	ask := func(t bucket.Take) error {
		_, err := b.store.Take(b.t.Context(), t)
		return err
	}
	for i, limits := range capacity.LimitSteps {
		one := shape(b.t, 1, limits)
		m.Owner[i] = grown(func(_ context.Context, i int64) error { return ask(take(one, i)) })
	}
	four := shape(b.t, 1, 4)
	m.UsageHour = grown(func(_ context.Context, i int64) error {
		t := take(four, i)
		t.Usage = &bucket.Usage{}
		return ask(t)
	}) - m.Owner[2]
	m.Record = grown(func(_ context.Context, i int64) error {
		t := take(four, i)
		t.Claim = claim(i)
		return ask(t)
	}) - m.Owner[2]
	scripts := lua.Load()
	m.Holding = grown(func(ctx context.Context, i int64) error {
		keys, args := leasing(i/holders, i%holders, 1)
		text, err := b.client.Eval(ctx, scripts.Exchange.Source, keys, args...).Text()
		return booked(text, err)
	})
	return m
}

func readFile(t *testing.T) (f capacity.Figures) {
	t.Helper()
	text, err := os.ReadFile(figuresFile)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &f))
	return f
}

func TestTheFiguresOfMemoryAreThoseOfARedis(t *testing.T) {
	b := newBench(t)
	room := b.room()
	if *update {
		info, err := b.client.InfoMap(t.Context(), "server").Result()
		require.NoError(t, err)
		f := capacity.Figures{
			Version: 1, Command: "go test ./cmd/gqlratelimit/internal/capacity -run Figures -update", Date: time.Now().UTC().Format(time.DateOnly),
			Server: "Redis " + info["Server"]["redis_version"], Machine: fmt.Sprintf("%d processors, %s/%s", runtime.NumCPU(), runtime.GOOS, runtime.GOARCH),
			Alone: b.work(1), Pipelined: b.work(crowd), Memory: room,
		}
		text, err := json.MarshalIndent(rounded(f), "", "  ")
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(figuresFile, append(text, '\n'), 0o644))
	}
	f := readFile(t)
	// Another server may need less: a plan that says more is on the safe side.
	holds := func(what string, said, is float64) {
		require.LessOrEqual(t, is, 1.1*said+1, what)
		require.GreaterOrEqual(t, is, 0.5*said, what)
	}
	for i := range room.Owner {
		holds(fmt.Sprintf("an owner of %d limits", capacity.LimitSteps[i]), f.Memory.Owner[i], room.Owner[i])
	}
	holds("a record", f.Memory.Record, room.Record)
	holds("an hour of usage", f.Memory.UsageHour, room.UsageHour)
	holds("a holder", f.Memory.Holding, room.Holding)
}

// rounded has figures with as many digits as mean something.
func rounded(f capacity.Figures) capacity.Figures {
	for _, p := range []*capacity.Processor{&f.Alone, &f.Pipelined} {
		for _, n := range []*float64{&p.Claim, &p.Settle, &p.Usage, &p.Exchange, &p.Holder} {
			*n = round(*n, 10)
		}
		for i := range p.Take {
			p.Take[i], p.Owner[i] = round(p.Take[i], 10), round(p.Owner[i], 10)
		}
	}
	for i := range f.Memory.Owner {
		f.Memory.Owner[i] = round(f.Memory.Owner[i], 1)
	}
	f.Memory.Record, f.Memory.UsageHour, f.Memory.Holding = round(f.Memory.Record, 1), round(f.Memory.UsageHour, 1), round(f.Memory.Holding, 1)
	return f
}

func round(n, parts float64) float64 { return float64(int64(n*parts+0.5)) / parts }
