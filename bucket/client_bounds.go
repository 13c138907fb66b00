package bucket

import (
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// What the bounded options of a client are. The deadline of each call stands before the timeouts,
// which only catch what has none.
const (
	boundDial   = 100 * time.Millisecond
	boundSocket = 25 * time.Millisecond
	boundPool   = 5 * time.Millisecond
	// boundReload is how long a cluster client may believe an old map of slots: go-redis waits a
	// minute unless told otherwise.
	boundReload    = time.Second
	boundRedirects = 3
	boundIdle      = 2
)

// BoundOptions sets the options that keep the calls of a limiter short: the deadline reaches the
// socket, nothing is sent twice, and waiting for a connection is bounded. Addresses, credentials,
// TLS, the size of the pool and what else is not about time stay as they are. Give the limiter a
// client of its own, and that client breakers with [AddBreaker].
func BoundOptions(o *redis.Options) {
	o.ContextTimeoutEnabled = true
	o.MaxRetries = -1
	o.DialTimeout, o.DialerRetries = boundDial, 1
	o.ReadTimeout, o.WriteTimeout = boundSocket, boundSocket
	o.PoolTimeout = boundPool
	o.MinIdleConns = max(o.MinIdleConns, boundIdle)
	o.DisableIdentity = true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
}

// BoundFailoverOptions is [BoundOptions] for the master behind Sentinels. The Sentinels are asked within
// the same bounds.
func BoundFailoverOptions(o *redis.FailoverOptions) {
	o.ContextTimeoutEnabled = true
	o.MaxRetries = -1
	o.DialTimeout, o.DialerRetries = boundDial, 1
	o.ReadTimeout, o.WriteTimeout = boundSocket, boundSocket
	o.PoolTimeout = boundPool
	o.MinIdleConns = max(o.MinIdleConns, boundIdle)
	o.DisableIdentity = true
}

// BoundClusterOptions is [BoundOptions] for a Redis Cluster. Besides, a failover is seen within about
// a second, and a call follows a slot that has moved. Hooks that are given to nodes by OnNewNode must not
// panic: see [RedisConfig.DisablePipelining].
func BoundClusterOptions(o *redis.ClusterOptions) {
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

// checkClient returns why the deadline of a call would not hold with the client.
func checkClient(client redis.UniversalClient) error {
	bounded := true
	switch c := client.(type) {
	case nil:
		return errors.New("bucket: RedisConfig.Client is nil; NewClient makes one")
	case *redis.Client:
		// Behind Sentinels as well.
		bounded = c.Options().ContextTimeoutEnabled
	case *redis.ClusterClient:
		bounded = c.Options().ContextTimeoutEnabled
	case *redis.Ring:
		bounded = c.Options().ContextTimeoutEnabled
	}
	if !bounded {
		return errors.New("bucket: the client ignores deadlines (ContextTimeoutEnabled is not set), so that a frozen server would hold every request for seconds; use NewClient, OpenClient, BoundOptions, BoundFailoverOptions or BoundClusterOptions")
	}
	return nil
}
