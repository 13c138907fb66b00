package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	redisrate "github.com/go-redis/redis_rate/v10"
	"github.com/gomodule/redigo/redis"
	goredis "github.com/redis/go-redis/v9"
	"github.com/sethvargo/go-redisstore"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/goredisstore.v9"
	"github.com/ulule/limiter/v3"
	ulule "github.com/ulule/limiter/v3/drivers/store/redis"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/bucket/redisclient"
	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
)

// callers are how many decide at once.
var callers = []int{1, 64}

// What decisions take, and the limits they take it from: these have room for all decisions of a contest,
// and refill so slowly, one in twenty seconds, that what was spent is still spent in the next round.
const (
	amount = 1
	roomy  = 15_000_000
	refill = 4320
	period = 24 * time.Hour
)

// poolSize is the number of connections that each client may have.
const poolSize = 20

// patience is longer than any call takes, so that the tables of stores compare work and not deadlines.
const patience = 10 * time.Second

// errRefused is returned when a limiter refuses what it has room for.
var errRefused = errors.New("a decision was refused")

// errNotFrozen is returned when a stopped server answers.
var errNotFrozen = errors.New("a stopped server answered")

// redisStores compares decisions in Redis.
func redisStores(ctx context.Context, e effort) (*findings, error) {
	server, err := startRedis() //nolint:contextcheck // a start has a deadline of its own
	if err != nil {
		return nil, err
	}
	defer server.close()
	client := patientClient(server.Addr)
	defer func() { _ = client.Close() }()
	decisions, err := redisDecisions(ctx, server.Addr, client)
	if err != nil {
		return nil, err
	}
	// Many short turns: there are so many rows that the yardstick of a round is soon long ago.
	e.call /= 2
	e.rounds *= 2
	all := &findings{}
	for _, n := range callers {
		contenders := make([]contender, len(decisions))
		for i, d := range decisions {
			contenders[i] = server.calling(e, d.name, n, false, d.decide)
		}
		outcomes, err := contest(ctx, e, contenders)
		if err != nil {
			return nil, err
		}
		all.tables = append(all.tables, redisTable(n, outcomes))
		all.aims = append(all.aims, redisAims(n, outcomes)...)
	}
	sizes, err := server.sizes(ctx, client)
	all.aims = append(all.aims, sizes...)
	return all, err
}

// Where the yardsticks stand among the contenders.
const (
	returnOne = 0
	oneLimit  = 1
)

func redisTable(callers int, outcomes []outcome) *table {
	t := &table{
		title: fmt.Sprintf("Decisions in Redis, callers at once: %d", callers),
		note: "Server is the processor time of Redis for a decision, network included, and script its time inside " +
			"scripts; beside each stands the ratio to redis_rate, which decides one limit.",
		header: []string{"", "decisions/s", "× return 1", "p50 µs", "p99 µs", "server µs", "× redis_rate", "script µs", "× redis_rate", "commands"},
	}
	one, rate := &outcomes[returnOne], &outcomes[oneLimit]
	for i := range outcomes {
		o := &outcomes[i]
		t.add(o.name, digits(o.median(perSecond)), digits(o.ratio(one, perSecond)), micros(o.median(p50)), micros(o.median(p99)),
			micros(o.median(serverProcessor)), digits(o.ratio(rate, serverProcessor)),
			micros(o.median(script)), digits(o.ratio(rate, script)), digits(o.median(commands)))
	}
	return t
}

// named is a decision with the name of its row.
type named struct {
	name   string
	decide decision
}

// redisDecisions returns all rows: the yardsticks, the other libraries, and ours with each feature.
func redisDecisions(ctx context.Context, address string, client *goredis.Client) ([]named, error) {
	decisions := []named{}
	one, err := returnsOne(ctx, client)
	if err != nil {
		return nil, err
	}
	decisions = append(decisions, named{"EVALSHA `return 1`", one})
	peers, err := redisPeers(address, client)
	if err != nil {
		return nil, err
	}
	all, err := features()
	if err != nil {
		return nil, err
	}
	decisions = append(decisions, peers...)
	for i := range all {
		decision, err := all[i].inRedis(client, strconv.Itoa(i))
		if err != nil {
			return nil, err
		}
		decisions = append(decisions, decision)
	}
	return decisions, nil
}

func patientClient(address string) *goredis.Client {
	options := &goredis.Options{Addr: address, PoolSize: poolSize}
	redisclient.Bound(options)
	options.DialTimeout, options.ReadTimeout, options.WriteTimeout, options.PoolTimeout = patience, patience, patience, patience
	return goredis.NewClient(options)
}

// returnsOne is the least that a script can do.
func returnsOne(ctx context.Context, client *goredis.Client) (decision, error) {
	script := goredis.NewScript("return 1")
	if err := script.Load(ctx, client).Err(); err != nil {
		return nil, err
	}
	return func(ctx context.Context, tenant string) error {
		return script.EvalSha(ctx, client, []string{tenant}).Err()
	}, nil
}

// roomyQuota is the same limit for throttled.
var roomyQuota = throttled.RateQuota{MaxRate: throttled.PerDay(refill), MaxBurst: roomy}

// redisPeers are the other libraries, each deciding one limit. redis_rate comes first.
func redisPeers(address string, client *goredis.Client) ([]named, error) {
	rate := redisrate.NewLimiter(client)
	rateLimit := redisrate.Limit{Rate: refill, Burst: roomy, Period: period}
	cas, err := goredisstore.NewCtx(client, "throttled:")
	if err != nil {
		return nil, err
	}
	gcra, err := throttled.NewGCRARateLimiterCtx(cas, roomyQuota)
	if err != nil {
		return nil, err
	}
	tokens, err := redisstore.NewWithPool(
		&redisstore.Config{Tokens: roomy, Interval: period},
		&redis.Pool{MaxActive: poolSize, MaxIdle: poolSize, Wait: true, Dial: func() (redis.Conn, error) {
			return redis.Dial("tcp", address)
		}})
	if err != nil {
		return nil, err
	}
	windows, err := ulule.NewStore(client)
	if err != nil {
		return nil, err
	}
	window := limiter.Rate{Period: period, Limit: roomy}
	return []named{
		{"redis_rate, 1 limit", func(ctx context.Context, tenant string) error {
			result, err := rate.AllowN(ctx, tenant, rateLimit, amount)
			return admitted(err == nil && result.Allowed == amount, err)
		}},
		{"redis_rate, 4 limits one after another", func(ctx context.Context, tenant string) error {
			for _, name := range []string{":s", ":m", ":h", ":d"} {
				result, err := rate.AllowN(ctx, tenant+name, rateLimit, amount)
				if err := admitted(err == nil && result.Allowed == amount, err); err != nil {
					return err
				}
			}
			return nil
		}},
		{"throttled, 1 limit", func(ctx context.Context, tenant string) error {
			limited, _, err := gcra.RateLimitCtx(ctx, tenant, amount)
			return admitted(!limited, err)
		}},
		{"go-redisstore, 1 limit of requests", func(ctx context.Context, tenant string) error {
			_, _, _, ok, err := tokens.Take(ctx, tenant)
			return admitted(ok, err)
		}},
		{"ulule/limiter, 1 limit", func(ctx context.Context, tenant string) error {
			state, err := windows.Increment(ctx, tenant, amount, window)
			return admitted(!state.Reached, err)
		}},
	}, nil
}

func admitted(ok bool, err error) error {
	if err == nil && !ok {
		return errRefused
	}
	return err
}

// feature is what a row of ours has.
type feature struct {
	name string
	// buckets are those of each tenant.
	buckets []bucket.Bucket
	// second are those of another policy, under which half of the decisions are made.
	second []bucket.Bucket
	// candidate are those of a candidate policy.
	candidate []bucket.Bucket
	// overridden gives each tenant an override record of a limit.
	overridden bool
	// claimed adds an idempotency key that was never used to each decision.
	claimed bool
	// usage is what is counted of each decision, nil if nothing is.
	usage *bucket.Usage
	// verdict is the answer to each decision but the first about a tenant, which is admitted.
	verdict bucket.Verdict
}

// countedTotals is the feature of a take that counts points and requests.
const countedTotals = "4 limits, and usage in points and requests"

// features are the rows of ours. What is added to the stores is a line here.
func features() ([]feature, error) {
	var mistakes []error
	four := func(of bucket.Limit, windows ...bucket.WindowKind) *bucket.Limits {
		limits, err := fourLimits(of, windows...)
		mistakes = append(mistakes, err)
		return limits
	}
	single := usualLimit
	single.Name = "one"
	one, err := bucket.Compile(single)
	mistakes = append(mistakes, err)
	tight := bucket.Limit{Capacity: amount, Refill: amount, Period: period}
	shadow := tight
	shadow.Mode = bucket.Shadow
	soft := tight
	soft.Soft = true
	window := bucket.Limit{Capacity: roomy, Period: period}
	faster := usualLimit
	faster.Refill *= 2
	calendar := []bucket.WindowKind{bucket.HourWindow, bucket.DayWindow, bucket.MonthWindow, bucket.YearWindow}
	all := []feature{
		{name: "1 limit", buckets: levels(one, 1), verdict: bucket.Admitted},
		{name: "4 limits", buckets: levels(four(usualLimit), 1), verdict: bucket.Admitted},
		{name: countedTotals, buckets: levels(four(usualLimit), 1), usage: &bucket.Usage{}, verdict: bucket.Admitted},
		{name: "4 limits, and usage with a root field", buckets: levels(four(usualLimit), 1), usage: usageOf("Query.search"), verdict: bucket.Admitted},
		{
			name: "4 limits, and usage with 3 root fields", buckets: levels(four(usualLimit), 1),
			usage: usageOf("Query.search", "Query.me", "Query.team"), verdict: bucket.Admitted,
		},
		{name: "4 limits, refused", buckets: levels(four(tight), 1), verdict: bucket.Limited},
		{name: "4 limits in shadow mode, over their budget", buckets: levels(four(shadow), 1), verdict: bucket.Admitted},
		{name: "4 soft limits, over their budget", buckets: levels(four(soft), 1), verdict: bucket.Admitted},
		{name: "4 fixed windows", buckets: levels(four(window, bucket.FixedWindow), 1), verdict: bucket.Admitted},
		{name: "4 sliding windows", buckets: levels(four(window, bucket.SlidingWindow), 1), verdict: bucket.Admitted},
		{name: "4 windows of the calendar", buckets: levels(four(window, calendar...), 1), verdict: bucket.Admitted},
		{name: "4 limits and a claim", buckets: levels(four(usualLimit), 1), claimed: true, verdict: bucket.Admitted},
		{name: "4 limits, one of them overridden", buckets: levels(four(usualLimit), 1), overridden: true, verdict: bucket.Admitted},
		{name: "4 limits, under two policies by turns", buckets: levels(four(usualLimit), 1), second: levels(four(faster), 1), verdict: bucket.Admitted},
		{name: "3 owners of 4 limits", buckets: levels(four(usualLimit), 3), verdict: bucket.Admitted},
		{name: "4 limits, and 4 of a candidate", buckets: levels(four(usualLimit), 1), candidate: levels(four(usualLimit), 1), verdict: bucket.Admitted},
		{name: "3 owners of 4 limits and a claim", buckets: levels(four(usualLimit), 3), claimed: true, verdict: bucket.Admitted},
		{
			name:    "3 owners of 4 limits, the same of a candidate, and a claim",
			buckets: levels(four(usualLimit), 3), candidate: levels(four(usualLimit), 3), claimed: true, verdict: bucket.Admitted,
		},
	}
	return all, errors.Join(mistakes...)
}

// usageOf counts each of these root fields once.
func usageOf(fields ...string) *bucket.Usage {
	usage := &bucket.Usage{}
	for _, name := range fields {
		usage.Fields = append(usage.Fields, bucket.FieldUsage{Name: name, Points: amount, Calls: 1})
	}
	return usage
}

// usualLimit is a token bucket with room for all decisions.
var usualLimit = bucket.Limit{Capacity: roomy, Refill: refill, Period: period}

// levels returns the buckets of a tenant, a team and a user, as many as are asked for.
func levels(limits *bucket.Limits, n int) []bucket.Bucket {
	owners := []bucket.Owner{{}, {Level: bucket.Team, Name: "core"}, {Level: bucket.User, Name: "ann"}}
	buckets := make([]bucket.Bucket, n)
	for i := range buckets {
		buckets[i] = bucket.Bucket{Owner: owners[i], Limits: limits}
	}
	return buckets
}

// fourLimits returns four limits of an owner, which differ in name, and in the windows, of which the last
// is that of the rest. Without any they are token buckets.
func fourLimits(of bucket.Limit, windows ...bucket.WindowKind) (*bucket.Limits, error) {
	var limits []bucket.Limit
	for i, name := range []string{"one", "two", "three", "four"} {
		limit := of
		limit.Name = name
		if len(windows) > 0 {
			limit.Window.Kind = windows[min(i, len(windows)-1)]
		}
		if limit.Window.Kind.Calendar() {
			limit.Period = 0
		}
		limits = append(limits, limit)
	}
	return bucket.Compile(limits...)
}

// on returns the row of the feature on a store. States, if there is any, is room for the answers, for a
// single caller.
func (f *feature) on(store bucket.Store, states []bucket.LimitState) named {
	amounts := bucket.Amounts{{Unit: bucket.Points, N: amount}}
	var keys atomic.Int64
	var overridden sync.Map
	return named{"**ratelimit, " + f.name + "**", func(ctx context.Context, tenant string) error {
		take := bucket.Take{Tenant: tenant, Buckets: f.buckets, Amounts: amounts, States: states, Usage: f.usage}
		if f.second != nil && rand.IntN(2) == 0 { //nolint:gosec // No secret.
			take.Buckets = f.second
		}
		if f.candidate != nil {
			take.Candidate = &bucket.Candidate{ID: "next", Buckets: f.candidate}
		}
		if f.claimed {
			take.Claim = newClaim(keys.Add(1))
		}
		if f.overridden {
			if _, done := overridden.LoadOrStore(tenant, true); !done {
				if err := override(ctx, store, tenant); err != nil {
					return err
				}
			}
		}
		result, err := store.Take(ctx, take)
		if err == nil && result.Verdict != f.verdict && result.Verdict != bucket.Admitted {
			return fmt.Errorf("%w: %v", errRefused, result.Verdict)
		}
		return err
	}}
}

// inRedis returns the row of the feature in a Redis. Each row has a namespace, so that no two share a budget.
func (f *feature) inRedis(client *goredis.Client, namespace string) (named, error) {
	store, err := bucket.NewRedis(bucket.RedisConfig{Client: client, Namespace: namespace, Timeout: patience})
	if err != nil {
		return named{}, err
	}
	return f.on(store, nil), nil
}

// override gives the tenant more of one limit.
func override(ctx context.Context, store bucket.Store, tenant string) error {
	records, ok := store.(bucket.OverrideStore)
	if !ok {
		return errors.New("a store without override records")
	}
	_, err := records.SetOverride(ctx, tenant, bucket.Override{
		Limit: "one", Capacity: roomy + 1, Reason: "benchmark", Actor: "benchmarks",
	})
	return err
}

func newClaim(number int64) *idempotency.Claim {
	return &idempotency.Claim{
		Key:     idempotency.Key("benchmark-" + strconv.FormatInt(number, 10)),
		Attempt: idempotency.NewAttemptID(),
		Lease:   time.Second,
		TTL:     2 * time.Second,
	}
}
