package bucket

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/gqlgen-ratelimit/ratelimit/bucket/internal/deadline"
	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
	"github.com/gqlgen-ratelimit/ratelimit/internal/fleet"
	"github.com/gqlgen-ratelimit/ratelimit/internal/state"
	"github.com/gqlgen-ratelimit/ratelimit/lua"
)

// Defaults of a [RedisConfig], used where its field is zero.
const (
	// DefaultTimeout is how long a call may take in all.
	DefaultTimeout = 10 * time.Millisecond
	// defaultNamespace is the namespace of the keys.
	defaultNamespace = "main"
)

// RedisConfig configures [NewRedis] and [NewRedisAnswers].
type RedisConfig struct {
	// Client is the connection to a server, a cluster or a Sentinel group. It has to let deadlines
	// reach the socket: package redisclient makes such a client with breakers, sets up options of one's own, and adds
	// breakers to a client of one's own. It stays the caller's to close. Required.
	Client redis.UniversalClient
	// Namespace keeps the keys of several services, regions or environments in one Redis apart: 1 to
	// 64 characters of A–Z a–z 0–9 _ . and -. Empty means main.
	Namespace string
	// Timeout is how long a call may take in all; the deadline of a caller's context holds besides, and so do
	// the ReadTimeout and WriteTimeout of the client, 25 ms in bounded options: a longer Timeout needs a longer
	// redisclient.Config.SocketTimeout. Zero means [DefaultTimeout].
	Timeout time.Duration
	// SeparateCalls lets each call send its command by itself. Otherwise, while two calls are on their
	// way to a node, those that come meanwhile wait and are sent together in one pipeline; a lone call
	// goes by itself. A hook of the client sees such a pipeline with a context that has the last
	// deadline of its calls, and none of their values. A hook that panics there makes its batch fail, except a
	// hook of the nodes of a cluster (OnNewNode): go-redis runs it in a goroutine of its own, where nobody can
	// recover, so that it ends the process. Hooks of nodes that may panic need SeparateCalls, with which
	// they run in the goroutine of the caller. [NewRedisAnswers] sends each call by itself whatever this says. A
	// client that is neither a [redis.Client] nor a
	// [redis.ClusterClient] is never pipelined.
	SeparateCalls bool
	// Clock tells what this process takes for the time, and is for tests of one whose clock is wrong. It
	// decides nothing: it is asked which window of the calendar to send until a first reply has told the
	// time of Redis. It has to be safe for concurrent use. Nil means time.Now.
	Clock func() time.Time
}

// Redis is a [Store] in Redis, shared by as many replicas as there are. Each call is one script, run
// once; the time is that of Redis. It is safe for concurrent use.
//
// In a Redis Cluster all keys of a tenant are in one slot.
//
// [Redis.Close] ends it. A store that nobody uses holds neither goroutines nor connections of its own, so
// that one that is dropped without being closed leaks nothing.
type Redis struct {
	pipeline  *pipeline
	namespace string
	timeout   time.Duration
	scripts   lua.Scripts
	offsets   offsets
	overrides knownOverrides
	// testClock, if it is set, is the time in Unix milliseconds that scripts with a test clock are
	// told.
	testClock func() int64
	// testSkew is by how much the estimate of that time is off.
	testSkew int64
}

var _ Store = (*Redis)(nil)

// NewRedis returns a store in Redis. It does not connect: a server that is away at start shows in the
// first call. The error says what is wrong with the configuration.
func NewRedis(cfg RedisConfig) (*Redis, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	_, cluster := cfg.Client.(*redis.ClusterClient)
	return &Redis{
		pipeline:  newPipeline(cfg.Client, !cfg.SeparateCalls),
		namespace: cfg.Namespace,
		timeout:   cfg.Timeout,
		scripts:   lua.Load(),
		offsets:   newOffsets(cluster, cfg.Clock),
	}, nil
}

// complete fills in the defaults. The error says what is wrong.
func (c RedisConfig) complete() (RedisConfig, error) {
	if err := checkClient(c.Client); err != nil {
		return c, err
	}
	if c.Namespace == "" {
		c.Namespace = defaultNamespace
	}
	if err := checkNamespace(c.Namespace); err != nil {
		return c, err
	}
	if c.Timeout == 0 {
		c.Timeout = DefaultTimeout
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	if c.Timeout < time.Millisecond {
		return c, fmt.Errorf("bucket: a timeout of %v; at least 1ms fits", c.Timeout)
	}
	return c, nil
}

// checkClient returns why the deadline of a call would not hold with the client.
func checkClient(client redis.UniversalClient) error {
	bounded := true
	switch c := client.(type) {
	case nil:
		return errors.New("bucket: RedisConfig.Client is nil; redisclient.Open makes one")
	case *redis.Client:
		// Behind Sentinels as well.
		bounded = c.Options().ContextTimeoutEnabled
	case *redis.ClusterClient:
		bounded = c.Options().ContextTimeoutEnabled
	case *redis.Ring:
		bounded = c.Options().ContextTimeoutEnabled
	}
	if !bounded {
		return errors.New("bucket: the client ignores deadlines (ContextTimeoutEnabled is not set), so that a frozen server would hold every request for seconds; use redisclient.Open, or redisclient.Bound on options of your own")
	}
	return nil
}

// Client is that of the configuration.
func (r *Redis) Client() redis.UniversalClient { return r.pipeline.client }

// Close waits until the calls that are on their way have ended, which is within their timeout. Calls after
// it fail with [ErrUnavailable]. The client stays open: it is the caller's. Close never fails and may be
// called again.
func (r *Redis) Close() error {
	r.pipeline.close()
	return nil
}

// Take implements [Store]. A take with a claim that got no answer is sent once more if there is time
// left: its attempt id makes that safe.
func (r *Redis) Take(ctx context.Context, take Take) (Result, error) {
	if err := take.Check(); err != nil {
		return Result{}, err
	}
	buckets := take.all()
	if take.empty() {
		if err := checkContext(ctx); err != nil {
			return Result{}, err
		}
		return Result{Verdict: Admitted}, nil
	}
	c := r.newCall(take.Tenant, &r.scripts.Take, len(buckets)+2, len(buckets)+4)
	c.bucketKeys(take.Buckets)
	if take.Candidate != nil {
		keys := c.keys.candidate(take.Candidate.ID)
		for i := range take.Candidate.Buckets {
			c.key(keys.bucket(take.Candidate.Buckets[i].Owner))
		}
	}
	if take.Claim != nil {
		c.key(c.keys.record(take.Claim))
	}
	c.overrides()
	c.values(buckets, 0, 1, func(_ int, l *rule) [2]int64 {
		return [2]int64{take.Amounts.Of(l.limit.Unit)}
	})
	c.claim = take.Claim
	c.arg([]byte(nil))
	c.rules()
	c.live = len(take.Buckets)
	c.owners, c.takes, c.again = take.Owners, true, take.Claim != nil
	reply, err := c.do(ctx)
	if err != nil {
		return Result{}, err
	}
	if reply.outcome == state.Blocked {
		return blockedResult(&take, c.governed.blocked, reply.now, c.governed.until), nil
	}
	take.Buckets = c.governed.buckets[:c.live:c.live]
	result, err := readTake(&take, c.governed.buckets[c.live:], reply)
	result.unused = c.governed.unused
	result.until(c.governed.until)
	return result, err
}

// kindOfTake says whether the fast path of take.lua fits the buckets.
func kindOfTake(g *governing) int64 {
	if g.blocked != nil {
		return state.BlockedTake
	}
	for i := range g.buckets {
		if !g.buckets[i].Limits.compiled.Fast {
			return state.AnyTake
		}
	}
	return state.FastTake
}

// Settle implements [Store].
func (r *Redis) Settle(ctx context.Context, settlement Settlement) (Settled, error) {
	if err := settlement.check(); err != nil {
		return Settled{}, err
	}
	receipt, end := &settlement.Receipt, settlement.Claim
	if receipt.IsZero() && end == nil {
		return Settled{}, nil
	}
	packedEnd, answer := "", []byte(nil)
	if end != nil {
		packedEnd = packEnd(end)
		// A command may be read after its caller has gone.
		answer = bytes.Clone(end.Answer)
	}
	c := r.newCall(settlement.Tenant(), &r.scripts.Settle, len(receipt.buckets)+1, len(receipt.buckets)+6)
	c.bucketKeys(receipt.buckets)
	if end != nil {
		c.key(c.keys.record(end.Claim))
	} else {
		c.key(c.keys.settled(receipt))
	}
	c.values(receipt.buckets, receipt.takenAt, 2, func(k int, l *rule) [2]int64 {
		charged, actual := settlement.settleAmounts(k, l)
		return [2]int64{charged, actual - charged}
	})
	c.arg(packedEnd)
	c.arg(answer)
	c.rules()
	reply, err := c.do(ctx)
	if err != nil {
		return Settled{}, err
	}
	if reply.outcome != state.Applied {
		return Settled{}, reply.check()
	}
	limits, err := reply.changes(receipt.buckets)
	return Settled{Applied: err == nil, Limits: limits}, err
}

// Renew implements [Store].
func (r *Redis) Renew(ctx context.Context, tenant string, claim *idempotency.Claim) (bool, error) {
	if err := checkRenewal(claim); err != nil {
		return false, err
	}
	lease, _ := leaseAndTTL(claim)
	c := r.newCall(tenant, &r.scripts.Renew, 1, 3)
	c.key(c.keys.record(claim))
	c.values(nil, lease, 0, nil)
	c.arg(bytes.Clone(claim.Attempt[:]))
	reply, err := c.do(ctx)
	if err != nil {
		return false, err
	}
	return reply.outcome == state.Applied, reply.check()
}

// Peek implements [Store].
func (r *Redis) Peek(ctx context.Context, tenant string, buckets []Bucket) ([]LimitState, error) {
	if err := checkBuckets(buckets); err != nil {
		return nil, err
	}
	if len(buckets) == 0 {
		return nil, checkContext(ctx)
	}
	c := r.newCall(tenant, &r.scripts.Peek, len(buckets)+1, len(buckets)+1)
	c.bucketKeys(buckets)
	c.overrides()
	c.values(buckets, 0, 0, nil)
	c.rules()
	reply, err := c.do(ctx)
	if err != nil {
		return nil, err
	}
	return reply.states(c.governed.buckets)
}

// Grant implements [Store].
func (r *Redis) Grant(ctx context.Context, tenant string, buckets []Bucket, amounts Amounts) ([]LimitState, error) {
	if err := checkBuckets(buckets); err != nil {
		return nil, err
	}
	if err := checkAmounts(amounts); err != nil {
		return nil, err
	}
	if len(buckets) == 0 {
		return nil, checkContext(ctx)
	}
	c := r.newCall(tenant, &r.scripts.Grant, len(buckets)+1, len(buckets)+2)
	c.bucketKeys(buckets)
	c.overrides()
	c.values(buckets, 0, 1, func(_ int, l *rule) [2]int64 {
		return [2]int64{amounts.Of(l.limit.Unit)}
	})
	c.rules()
	reply, err := c.do(ctx)
	if err != nil {
		return nil, err
	}
	return reply.changes(c.governed.buckets)
}

// Reset implements [Store].
func (r *Redis) Reset(ctx context.Context, tenant string, buckets []Bucket) error {
	if err := checkBuckets(buckets); err != nil {
		return err
	}
	if len(buckets) == 0 {
		return checkContext(ctx)
	}
	keys := newKeyspace(r.namespace, tenant)
	args := make([]any, 0, len(buckets)+1)
	args = append(args, "unlink")
	for i := range buckets {
		args = append(args, keys.bucket(buckets[i].Owner))
	}
	ctx, _, cancel := deadline.Bound(ctx, r.timeout)
	defer cancel()
	if err := checkContext(ctx); err != nil {
		return err
	}
	if err := r.pipeline.alone(ctx, newCommand(ctx, args)); err != nil {
		return classify(err)
	}
	return nil
}

// Beat counts this instance among those that share the store, and returns how many there are. It is for the
// extension, whose instances share the limits that fail local while the store is away.
func (r *Redis) Beat(ctx context.Context, instance [8]byte) (int, error) {
	key := "rl:" + r.namespace + fleetSuffix
	c := r.newCall("", &r.scripts.Heartbeat, 1, 2)
	if len(r.offsets.groups) > 1 {
		c.group = int(crc16(key)) % clusterSlots / slotsPerGroup
	}
	c.key(key)
	c.values(nil, fleet.BeatLife.Milliseconds(), 0, nil)
	c.arg(instance[:])
	reply, err := c.do(ctx)
	if err != nil {
		return 0, err
	}
	if reply.outcome != state.Applied || len(reply.rest) != countSize {
		return 0, fmt.Errorf("%w: %w", ErrUnavailable, errReply)
	}
	return int(state.ReadUint(reply.rest, countSize)), nil
}

// countSize is that of a number of instances in a reply.
const countSize = 2
