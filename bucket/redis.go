package bucket

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/gqlgen-ratelimit/ratelimit/bucket/internal/deadline"
	"github.com/gqlgen-ratelimit/ratelimit/lua"
)

// Defaults of a [RedisConfig], used where its field is zero.
const (
	// DefaultTimeout is how long a node may be silent.
	DefaultTimeout = 10 * time.Millisecond
	// DefaultPatience is how long a call may wait besides.
	DefaultPatience = 500 * time.Millisecond
	// DefaultAdminTimeout is how long a node may be silent in an administrative call.
	DefaultAdminTimeout = 5 * time.Second
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
	// Timeout is how long a node may be silent, from the moment in which a command has left for it: no reply to
	// anybody. A call then ends, and counts as a failure of the node. It does not while the node answers others, or
	// while this process is late itself; clients without the hook of redisclient.Open or redisclient.AddBreaker cannot
	// tell, and end it all the same. The deadline of a caller's context holds besides. Zero means [DefaultTimeout].
	Timeout time.Duration
	// Patience is how long a call may wait besides: for others to leave, for a connection or a processor, and for a node
	// that answers others. What has not left by then ends with [ErrBusy]. Zero means [DefaultPatience].
	Patience time.Duration
	// AdminTimeout is what Timeout is, for a call that administers and that no request waits for: all those of
	// [OverrideStore], Peek, Grant and Reset. The ReadTimeout and WriteTimeout of the client bound it besides, which
	// bounded options leave room for the default. Zero means [DefaultAdminTimeout], or Timeout if that is longer.
	AdminTimeout time.Duration
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
	core

	pipeline  *pipeline
	namespace string
	offsets   offsets
	// testClock, if it is set, is the time in Unix milliseconds that scripts with a test clock are
	// told.
	testClock func() int64
	// testSkew is by how much the estimate of that time is off.
	testSkew int64
}

var (
	_ Store         = (*Redis)(nil)
	_ OverrideStore = (*Redis)(nil)
	_ UsageStore    = (*Redis)(nil)
)

// NewRedis returns a store in Redis. It does not connect: a server that is away at start shows in the
// first call. The error says what is wrong with the configuration.
func NewRedis(cfg RedisConfig) (*Redis, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	_, cluster := cfg.Client.(*redis.ClusterClient)
	r := &Redis{
		core: core{
			scripts: lua.Load(), largest: math.MaxInt, usual: cfg.bounds(),
			administration: deadline.Bounds{Silence: cfg.AdminTimeout, Patience: cfg.Patience},
		},
		pipeline:  newPipeline(cfg.Client, cfg.Timeout, !cfg.SeparateCalls),
		namespace: cfg.Namespace,
		offsets:   newOffsets(cluster, cfg.Clock),
	}
	r.engine = r
	return r, nil
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
	if c.Patience == 0 {
		c.Patience = DefaultPatience
	}
	if c.AdminTimeout == 0 {
		c.AdminTimeout = max(DefaultAdminTimeout, c.Timeout)
	}
	if c.Patience < 0 || c.AdminTimeout < c.Timeout {
		return c, fmt.Errorf("bucket: a patience of %v and an administrative timeout of %v; 0 or more fits, and at least the timeout of %v",
			c.Patience, c.AdminTimeout, c.Timeout)
	}
	return c, nil
}

// bounds are those of a call for which a request waits.
func (c *RedisConfig) bounds() deadline.Bounds {
	return deadline.Bounds{Silence: c.Timeout, Patience: c.Patience}
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

// Close waits until the calls that are on their way have ended, which is within their patience. Calls after
// it fail with [ErrUnavailable]. The client stays open: it is the caller's. Close never fails and may be
// called again.
func (r *Redis) Close() error {
	r.pipeline.close()
	return nil
}
