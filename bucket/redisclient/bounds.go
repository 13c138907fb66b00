package redisclient

import (
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// What the bounded options of a client are. The deadline of each call stands before the timeouts,
// which only catch what has none.
const (
	// boundDial is long enough for a process that gets no processor: calls do not wait for it.
	boundDial = 500 * time.Millisecond
	// boundSocket is as long as the longest call of a store is, one that administers.
	boundSocket = bucket.DefaultAdminTimeout + bucket.DefaultPatience
	// boundPool is as long as a call may wait for others to leave.
	boundPool = bucket.DefaultPatience
	// boundUnbounded is how long a call may take that has no deadline.
	boundUnbounded = 100 * time.Millisecond
	// boundReload is how long a cluster client may believe an old map of slots: go-redis waits a
	// minute unless told otherwise.
	boundReload    = time.Second
	boundRedirects = 3
	boundIdle      = 2
)

// Bound sets the options that keep the calls of a limiter short: the deadline reaches the
// socket, nothing is sent twice, and waiting for a connection is bounded. Addresses, credentials,
// TLS, the size of the pool and what else is not about time stay as they are. Give the limiter a
// client of its own, and that client breakers with [AddBreaker].
//
// Behind Sentinels these are asked within the same bounds. In a Redis Cluster a failover is seen within about
// a second, and a call follows a slot that has moved; hooks that are given to nodes by OnNewNode must not
// panic: see [bucket.RedisConfig.SeparateCalls].
func Bound[O redis.Options | redis.FailoverOptions | redis.ClusterOptions](options *O) {
	switch o := any(options).(type) {
	case *redis.Options:
		o.ContextTimeoutEnabled = true
		o.MaxRetries = -1
		o.DialTimeout, o.DialerRetries = boundDial, 1
		o.ReadTimeout, o.WriteTimeout = boundSocket, boundSocket
		o.PoolTimeout = boundPool
		o.MinIdleConns = max(o.MinIdleConns, boundIdle)
		o.DisableIdentity = true
		o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	case *redis.FailoverOptions:
		o.ContextTimeoutEnabled = true
		o.MaxRetries = -1
		o.DialTimeout, o.DialerRetries = boundDial, 1
		o.ReadTimeout, o.WriteTimeout = boundSocket, boundSocket
		o.PoolTimeout = boundPool
		o.MinIdleConns = max(o.MinIdleConns, boundIdle)
		o.DisableIdentity = true
	case *redis.ClusterOptions:
		o.ContextTimeoutEnabled = true
		o.MaxRetries = -1
		o.MaxRedirects = boundRedirects
		o.MinRetryBackoff, o.MaxRetryBackoff = -1, -1
		o.DialTimeout, o.DialerRetries = boundDial, 1
		o.ReadTimeout, o.WriteTimeout = boundSocket, boundSocket
		o.PoolTimeout = boundPool
		o.MinIdleConns = max(o.MinIdleConns, boundIdle)
		o.ClusterStateReloadInterval = boundReload
		o.DisableRoutingPolicies = true
		o.DisableIdentity = true
		o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	}
}
