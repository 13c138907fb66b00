package bucket

import (
	"errors"
	"fmt"
	"net"
	"strings"
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

// NewClient returns a client whose calls end when their deadline does, as [RedisConfig] asks for. An
// address is host:port or a redis://, rediss:// or unix:// URL. Several addresses are nodes of one
// Redis Cluster, and so is a single one whose URL has the query cluster=true. It does not connect.
func NewClient(addresses ...string) (redis.UniversalClient, error) {
	if len(addresses) == 0 {
		return nil, errors.New("bucket: no address of a Redis server; such as 127.0.0.1:6379 or redis://user:password@host:6379/0")
	}
	options := make([]*redis.Options, len(addresses))
	cluster := len(addresses) > 1
	var mistakes []error
	for i, address := range addresses {
		rest, marked := strings.CutSuffix(address, "?cluster=true")
		cluster = cluster || marked
		var err error
		if options[i], err = parseAddress(rest); err != nil {
			mistakes = append(mistakes, fmt.Errorf("bucket: address %d of %d: %w", i+1, len(addresses), err))
		}
	}
	if len(mistakes) > 0 {
		return nil, errors.Join(mistakes...)
	}
	if !cluster {
		BoundOptions(options[0])
		return redis.NewClient(options[0]), nil
	}
	clusterOptions, err := clusterOptions(options)
	if err != nil {
		return nil, err
	}
	BoundClusterOptions(clusterOptions)
	return redis.NewClusterClient(clusterOptions), nil
}

// parseAddress reads one address. Its errors do not repeat the address, which may hold a password.
func parseAddress(address string) (*redis.Options, error) {
	if scheme, _, ok := strings.Cut(address, "://"); ok {
		switch scheme {
		case "redis", "rediss", "unix":
		default:
			return nil, errors.New("unknown scheme; redis://, rediss:// or unix:// fits")
		}
		options, err := redis.ParseURL(address)
		if err != nil {
			return nil, errors.New("not a valid Redis URL; the form is redis://user:password@host:port/database")
		}
		return options, nil
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil || host == "" || port == "" {
		return nil, errors.New("neither host:port nor a redis://, rediss:// or unix:// URL")
	}
	return &redis.Options{Addr: address}, nil
}

// clusterOptions joins the options of the nodes, which must not differ in anything but the address.
func clusterOptions(nodes []*redis.Options) (*redis.ClusterOptions, error) {
	first := nodes[0]
	joined := &redis.ClusterOptions{Username: first.Username, Password: first.Password, TLSConfig: first.TLSConfig}
	for _, node := range nodes {
		switch {
		case node.Network == "unix":
			return nil, errors.New("bucket: a cluster cannot be reached by unix sockets")
		case node.DB != 0:
			return nil, errors.New("bucket: a cluster has no numbered databases")
		case node.Username != first.Username || node.Password != first.Password,
			(node.TLSConfig == nil) != (first.TLSConfig == nil):
			return nil, errors.New("bucket: the addresses of a cluster differ in user, password or TLS; give all the same")
		}
		joined.Addrs = append(joined.Addrs, node.Addr)
	}
	return joined, nil
}

// BoundOptions sets the options that keep the calls of a limiter short: the deadline reaches the
// socket, nothing is sent twice, and waiting for a connection is bounded. Addresses, credentials,
// TLS, the size of the pool and what else is not about time stay as they are. Give the limiter a
// client of its own.
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

// BoundClusterOptions is [BoundOptions] for a Redis Cluster. Besides, a failover is seen within about
// a second, and a call follows a slot that has moved.
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
		bounded = c.Options().ContextTimeoutEnabled
	case *redis.ClusterClient:
		bounded = c.Options().ContextTimeoutEnabled
	case *redis.Ring:
		bounded = c.Options().ContextTimeoutEnabled
	}
	if !bounded {
		return errors.New("bucket: the client ignores deadlines (ContextTimeoutEnabled is not set), so that a frozen server would hold every request for seconds; use NewClient, BoundOptions or BoundClusterOptions")
	}
	return nil
}
