package redisclient

import (
	"context"
	"crypto/sha1" //nolint:gosec // Redis addresses scripts by SHA-1; only its size is used.
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// From when on a timeout, and the time between two looks at the map of a cluster, are dangerous.
const (
	hazardousTimeout          = time.Second
	hazardousTopologyInterval = 5 * time.Second
)

// Hazard is a setting of a client that is dangerous for a limiter.
type Hazard struct {
	// Code names the hazard. Codes are stable; they are listed at [Hazards].
	Code string
	// Seen is the setting.
	Seen string
	// Why says what it leads to.
	Why string
	// Remedy says what to do.
	Remedy string
}

// Hazards returns what is dangerous in the options of a client. It does not connect and shows no
// secret. A client of [Open], or one with bounded options, has none, unless its timeouts were set to
// more than a second. The codes:
//
//	deadline-ignored           the deadline of a call does not reach the socket
//	client-retries             a command without an answer is sent again
//	redirects-off              a call for a slot that has moved fails
//	long-dial-timeout          connecting may take more than a second
//	dial-attempts              connecting is tried more than once
//	long-socket-timeout        a reply may take more than a second, or for ever
//	long-pool-timeout          waiting for a connection may take more than a second
//	slow-topology-reload       a failover of a cluster is seen after more than five seconds
//	maintenance-notifications  a server that is handed over gives calls ten seconds
//	reads-from-replicas        reads go to replicas, whose budgets are late
//	unknown-client             a client of which nobody knows the options
func Hazards(client redis.UniversalClient) []Hazard {
	switch c := client.(type) {
	case *redis.Client:
		o := c.Options()
		return (&clientSettings{
			bounded: o.ContextTimeoutEnabled, retries: o.MaxRetries, redirects: 1,
			dial: o.DialTimeout, dials: o.DialerRetries, read: o.ReadTimeout, write: o.WriteTimeout, pool: o.PoolTimeout,
			// A connection that is being set up may switch the notifications off. The options of this copy are
			// taken under the lock of the client.
			maintenance: maintains(c.WithTimeout(o.ReadTimeout).Options().MaintNotificationsConfig, o.Protocol),
		}).hazards()
	case *redis.ClusterClient:
		o := c.Options()
		return (&clientSettings{
			bounded: o.ContextTimeoutEnabled, retries: o.MaxRetries, redirects: o.MaxRedirects, reload: o.ClusterStateReloadInterval,
			dial: o.DialTimeout, dials: o.DialerRetries, read: o.ReadTimeout, write: o.WriteTimeout, pool: clusterPool(o),
			maintenance: maintains(o.MaintNotificationsConfig, o.Protocol), replicas: o.ReadOnly,
		}).hazards()
	case *redis.Ring:
		o := c.Options()
		return (&clientSettings{
			bounded: o.ContextTimeoutEnabled, retries: o.MaxRetries, redirects: 1,
			dial: o.DialTimeout, dials: o.DialerRetries, read: o.ReadTimeout, write: o.WriteTimeout, pool: o.PoolTimeout,
		}).hazards()
	default:
		return []Hazard{{
			"unknown-client", fmt.Sprintf("a client of type %T", client),
			"nobody can look into its options: whether it keeps deadlines and sends no call twice is for you to see",
			"use a client of go-redis, such as that of redisclient.Open",
		}}
	}
}

// maintains says whether notifications of maintenance are on, as they are unless they are switched off.
func maintains(config *maintnotifications.Config, protocol int) bool {
	return protocol != 2 && (config == nil || config.Mode != maintnotifications.ModeDisabled)
}

// clusterPool is the PoolTimeout that the nodes of a cluster take where nothing is set.
func clusterPool(o *redis.ClusterOptions) time.Duration {
	switch {
	case o.PoolTimeout != 0:
		return o.PoolTimeout
	case o.ReadTimeout > 0:
		return o.ReadTimeout + time.Second
	default:
		return 30 * time.Second
	}
}

// clientSettings are the options that matter, as clients complete them.
type clientSettings struct {
	bounded            bool
	retries, redirects int
	dial, read, write  time.Duration
	pool, reload       time.Duration
	dials              int
	maintenance        bool
	replicas           bool
}

// orBounded ends the remedy for an option that is one of several.
const orBounded = "; use redisclient.Open, or redisclient.Bound on options of your own"

func (s *clientSettings) hazards() []Hazard {
	var found []Hazard
	add := func(dangerous bool, h Hazard) {
		if dangerous {
			found = append(found, h)
		}
	}
	add(!s.bounded, Hazard{
		"deadline-ignored", "ContextTimeoutEnabled is false",
		"the deadline of a call does not reach the socket, so that a frozen server holds each request for seconds",
		"set ContextTimeoutEnabled" + orBounded,
	})
	add(s.retries > 0, Hazard{
		"client-retries", fmt.Sprintf("MaxRetries is %d", s.retries),
		fmt.Sprintf("a command without an answer may have been applied, and is sent up to %d times: scripts and counters of "+
			"your own charge as often. The calls of this library are sent once, whatever the client says", s.retries+1),
		"set MaxRetries to -1" + orBounded,
	})
	add(s.redirects <= 0, Hazard{
		"redirects-off", "MaxRedirects is off",
		"a call for a slot that has moved fails", "set MaxRedirects to 3, with which calls of this library are still applied once",
	})
	add(s.dial > hazardousTimeout, Hazard{
		"long-dial-timeout", "DialTimeout is " + s.dial.String(),
		"connections to an address that drops packets pile up for as long", "set DialTimeout to 500ms" + orBounded,
	})
	add(s.dials > 1, Hazard{
		"dial-attempts", fmt.Sprintf("DialerRetries is %d", s.dials),
		"each attempt to connect to a dead server is made as often", "set DialerRetries to 1" + orBounded,
	})
	for _, socket := range []struct {
		name string
		time time.Duration
	}{{"ReadTimeout", s.read}, {"WriteTimeout", s.write}} {
		seen := socket.name + " is " + socket.time.String()
		if socket.time <= 0 {
			seen = socket.name + " is off"
		}
		add(socket.time <= 0 || socket.time > hazardousTimeout && socket.time != boundSocket, Hazard{
			"long-socket-timeout", seen,
			"what has no deadline, such as setting up a connection or reading the map of a cluster, hangs on a frozen server for as long",
			"set " + socket.name + " to 1s" + orBounded,
		})
	}
	add(s.pool > hazardousTimeout, Hazard{
		"long-pool-timeout", "PoolTimeout is " + s.pool.String(),
		"calls without a deadline wait as long for a free connection", "set PoolTimeout to 500ms" + orBounded,
	})
	add(s.reload > hazardousTopologyInterval, Hazard{
		"slow-topology-reload", "ClusterStateReloadInterval is " + s.reload.String(),
		"after a failover calls go to the dead master for up to as long", "set ClusterStateReloadInterval to 1s; redisclient.Open does",
	})
	add(s.maintenance, Hazard{
		"maintenance-notifications", "maintenance notifications are on",
		"while a server is handed over they allow 10s for a call", "set MaintNotificationsConfig to ModeDisabled" + orBounded,
	})
	add(s.replicas, Hazard{
		"reads-from-replicas", "ReadOnly is true",
		"the client sends what it takes for reading to replicas, whose budgets are late", "leave ReadOnly, RouteByLatency and RouteRandomly off",
	})
	return found
}

// HazardsOf returns the [Hazards] of the client of a store in Redis, or of one that has its Client method. Other stores
// have none. The extension logs them at start.
func HazardsOf(store bucket.Store) []Hazard {
	if s, ok := store.(interface{ Client() redis.UniversalClient }); ok {
		return Hazards(s.Client())
	}
	return nil
}

// once is a command that go-redis never sends twice.
type once struct{ *redis.Cmd }

// NoRetry implements redis.Cmder.
func (once) NoRetry() bool { return true }

// HasBreaker sends one call that does nothing through the client and reports whether a breaker stood before
// the node: one of [Open] or [AddBreaker], or a redis.Limiter. The error says that no node was reached,
// so that nobody knows.
func HasBreaker(ctx context.Context, client redis.UniversalClient) (bool, error) {
	if c, ok := client.(*redis.Client); ok && c.Options().Limiter != nil {
		return true, nil
	}
	watch := &breakerWatch{Context: ctx}
	// A script that nobody has.
	cmd := once{redis.NewCmd(watch, "evalsha", strings.Repeat("0", sha1.Size*2), 0)} //nolint:contextcheck // a watch is the context of its call
	err := client.Process(watch, cmd)                                                //nolint:contextcheck // as above
	if !watch.seen.Load() && err != nil && !isReply(err) {
		return false, err
	}
	return watch.seen.Load(), nil
}

// breakerWatch is a context that notices who asks it for a permit.
type breakerWatch struct {
	context.Context

	seen atomic.Bool
}

// Value implements context.Context.
func (w *breakerWatch) Value(key any) any {
	if hook, ok := key.(*nodeHook); ok && hook.breaker != nil {
		w.seen.Store(true)
	}
	return w.Context.Value(key)
}
