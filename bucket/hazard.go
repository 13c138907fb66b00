package bucket

import (
	"context"
	"crypto/sha1" //nolint:gosec // Redis addresses scripts by SHA-1; only its size is used.
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Codes of the hazards that [ClientHazards] finds. They are stable.
const (
	HazardDeadlineIgnored     = "deadline-ignored"
	HazardRetries             = "client-retries"
	HazardRedirectsOff        = "redirects-off"
	HazardDialTimeout         = "long-dial-timeout"
	HazardDialAttempts        = "dial-attempts"
	HazardSocketTimeout       = "long-socket-timeout"
	HazardPoolTimeout         = "long-pool-timeout"
	HazardTopologyReload      = "slow-topology-reload"
	HazardMaintenance         = "maintenance-notifications"
	HazardReadsFromReplicas   = "reads-from-replicas"
	HazardUnknownClient       = "unknown-client"
	hazardousTimeout          = time.Second
	hazardousTopologyInterval = 5 * time.Second
)

// Hazard is a setting of a client that is dangerous for a limiter.
type Hazard struct {
	// Code names the hazard: one of the constants.
	Code string
	// Seen is the setting.
	Seen string
	// Why says what it leads to.
	Why string
	// Remedy says what to do.
	Remedy string
}

// ClientHazards returns what is dangerous in the options of a client. It does not connect and shows no
// secret. A client of [OpenClient], or one with bounded options, has none, unless its timeouts were set to
// more than a second.
func ClientHazards(client redis.UniversalClient) []Hazard {
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
			HazardUnknownClient, fmt.Sprintf("a client of type %T", client),
			"nobody can look into its options: whether it keeps deadlines and sends no call twice is for you to see",
			"use a client of go-redis, such as that of bucket.OpenClient",
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
const orBounded = "; use bucket.OpenClient, or bucket.BoundOptions on options of your own"

func (s *clientSettings) hazards() []Hazard {
	var found []Hazard
	add := func(dangerous bool, h Hazard) {
		if dangerous {
			found = append(found, h)
		}
	}
	add(!s.bounded, Hazard{
		HazardDeadlineIgnored, "ContextTimeoutEnabled is false",
		"the deadline of a call does not reach the socket, so that a frozen server holds each request for seconds",
		"set ContextTimeoutEnabled" + orBounded,
	})
	add(s.retries > 0, Hazard{
		HazardRetries, fmt.Sprintf("MaxRetries is %d", s.retries),
		fmt.Sprintf("a command without an answer may have been applied, and is sent up to %d times: scripts and counters of "+
			"your own charge as often. The calls of this library are sent once, whatever the client says", s.retries+1),
		"set MaxRetries to -1" + orBounded,
	})
	add(s.redirects <= 0, Hazard{
		HazardRedirectsOff, "MaxRedirects is off",
		"a call for a slot that has moved fails", "set MaxRedirects to 3, with which calls of this library are still applied once",
	})
	add(s.dial > hazardousTimeout, Hazard{
		HazardDialTimeout, "DialTimeout is " + s.dial.String(),
		"connections to an address that drops packets pile up for as long", "set DialTimeout to 100ms" + orBounded,
	})
	add(s.dials > 1, Hazard{
		HazardDialAttempts, fmt.Sprintf("DialerRetries is %d", s.dials),
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
		add(socket.time <= 0 || socket.time > hazardousTimeout, Hazard{
			HazardSocketTimeout, seen,
			"what has no deadline, such as setting up a connection or reading the map of a cluster, hangs on a frozen server for as long",
			"set " + socket.name + " to 25ms" + orBounded,
		})
	}
	add(s.pool > hazardousTimeout, Hazard{
		HazardPoolTimeout, "PoolTimeout is " + s.pool.String(),
		"calls without a deadline wait as long for a free connection", "set PoolTimeout to 5ms" + orBounded,
	})
	add(s.reload > hazardousTopologyInterval, Hazard{
		HazardTopologyReload, "ClusterStateReloadInterval is " + s.reload.String(),
		"after a failover calls go to the dead master for up to as long", "set ClusterStateReloadInterval to 1s; bucket.OpenClient does",
	})
	add(s.maintenance, Hazard{
		HazardMaintenance, "maintenance notifications are on",
		"while a server is handed over they allow 10s for a call", "set MaintNotificationsConfig to ModeDisabled" + orBounded,
	})
	add(s.replicas, Hazard{
		HazardReadsFromReplicas, "ReadOnly is true",
		"the client sends what it takes for reading to replicas, whose budgets are late", "leave ReadOnly, RouteByLatency and RouteRandomly off",
	})
	return found
}

// HazardsOf returns what [ClientHazards] found in the client of a store in Redis, or of the one behind what
// stands before it, when the store was made. Other stores have none. The root package logs them at start.
func HazardsOf(store Store) []Hazard {
	for {
		switch s := store.(type) {
		case *Redis:
			return s.hazards
		case interface{ Unwrap() Store }:
			store = s.Unwrap()
		default:
			return nil
		}
	}
}

// HasBreaker sends one call that does nothing through the client and reports whether a breaker stood before
// the node: one of [OpenClient] or [AddBreaker], or a redis.Limiter. The error says that no node was reached,
// so that nobody knows.
func HasBreaker(ctx context.Context, client redis.UniversalClient) (bool, error) {
	if c, ok := client.(*redis.Client); ok && c.Options().Limiter != nil {
		return true, nil
	}
	watch := &breakerWatch{Context: ctx}
	// A script that nobody has.
	cmd := newCommand(watch, []any{"evalsha", strings.Repeat("0", sha1.Size*2), 0}) //nolint:contextcheck // a watch is the context of its call
	err := client.Process(watch, cmd)                                               //nolint:contextcheck // as above
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
