package doctor

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// servers examines all nodes, each by itself and all at once.
func (e *examination) servers(ctx context.Context) {
	switch c := e.config.Client.(type) {
	case *redis.Client:
		// The options of this copy are taken under the lock of the client.
		options := c.WithTimeout(e.config.callTimeout()).Options()
		own, peer := e.open(options)
		defer func() { _ = own.Close() }()
		n := e.node(own, roleUnknown)
		n.peer = peer
		n.examine(ctx)
	case *redis.ClusterClient:
		e.cluster(ctx, c.Options())
	case *redis.Ring:
		e.ring(ctx, c.Options())
	default:
		e.add(Finding{
			Severity: Note, Code: "could-not-look", Seen: "the servers behind a client that is not one of go-redis",
			Why: "the doctor does not know how to reach each node of it", Remedy: "examine a redis.Client, redis.ClusterClient or redis.Ring for the same servers",
		})
	}
}

// peer is where a client is really connected, which the address of one behind Sentinels does not say.
type peer struct {
	address   atomic.Pointer[string]
	encrypted atomic.Bool
}

// open returns a client with the bounds of the doctor.
func (e *examination) open(options *redis.Options) (*redis.Client, *peer) {
	o, p, timeout := *options, &peer{}, e.config.callTimeout()
	dial := o.Dialer
	if dial == nil {
		dial = redis.NewDialer(&o)
	}
	o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		_, encrypted := conn.(*tls.Conn)
		address := conn.RemoteAddr().String()
		p.address.Store(&address)
		p.encrypted.Store(encrypted)
		return conn, nil
	}
	o.ContextTimeoutEnabled = true
	o.MaxRetries = -1
	o.DialTimeout, o.DialerRetries = timeout, 1
	o.ReadTimeout, o.WriteTimeout, o.PoolTimeout = timeout, timeout, timeout
	o.PoolSize, o.MinIdleConns, o.MaxActiveConns, o.MaxConcurrentDials = 2, 0, 0, 0
	o.DisableIdentity = true
	o.Limiter = nil
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	o.ClientSideCache, o.ClientSideCacheConfig = nil, nil
	return redis.NewClient(&o), p
}

// cluster examines the nodes that the cluster names, or else those that the client names.
func (e *examination) cluster(ctx context.Context, options *redis.ClusterOptions) {
	o, timeout := *options, e.config.callTimeout()
	o.ContextTimeoutEnabled = true
	o.MaxRetries = -1
	o.DialTimeout, o.DialerRetries = timeout, 1
	o.ReadTimeout, o.WriteTimeout, o.PoolTimeout = timeout, timeout, timeout
	o.PoolSize, o.MinIdleConns, o.MaxActiveConns, o.MaxConcurrentDials = 2, 0, 0, 0
	o.DisableIdentity, o.DisableRoutingPolicies = true, true
	o.NewClient = nil
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	client := redis.NewClusterClient(&o)
	defer func() { _ = client.Close() }()
	err := client.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
		e.member(ctx, node, roleMaster)
		return nil
	})
	if err == nil {
		err = client.ForEachSlave(ctx, func(ctx context.Context, node *redis.Client) error {
			e.member(ctx, node, roleReplica)
			return nil
		})
	}
	if err != nil {
		e.each(ctx, o.Addrs, func(addr string) *redis.Options {
			return &redis.Options{
				Addr: addr, Username: o.Username, Password: o.Password, CredentialsProvider: o.CredentialsProvider,
				CredentialsProviderContext: o.CredentialsProviderContext, StreamingCredentialsProvider: o.StreamingCredentialsProvider,
				TLSConfig: o.TLSConfig, Protocol: o.Protocol, Dialer: o.Dialer,
			}
		}, true)
	}
}

// member examines a node of a cluster, through the client that the map of slots has made for it.
func (e *examination) member(ctx context.Context, client *redis.Client, role role) {
	n := e.node(client, role)
	n.cluster = true
	n.examine(ctx)
}

// ring examines the servers of a ring.
func (e *examination) ring(ctx context.Context, o *redis.RingOptions) {
	addrs := make([]string, 0, len(o.Addrs))
	for _, addr := range o.Addrs {
		addrs = append(addrs, addr)
	}
	e.each(ctx, addrs, func(addr string) *redis.Options {
		return &redis.Options{
			Addr: addr, Username: o.Username, Password: o.Password, CredentialsProvider: o.CredentialsProvider,
			CredentialsProviderContext: o.CredentialsProviderContext, StreamingCredentialsProvider: o.StreamingCredentialsProvider,
			TLSConfig: o.TLSConfig, Protocol: o.Protocol, Dialer: o.Dialer, DB: o.DB,
		}
	}, false)
}

// each examines servers by their addresses.
func (e *examination) each(ctx context.Context, addrs []string, options func(addr string) *redis.Options, cluster bool) {
	var nodes sync.WaitGroup
	for _, addr := range addrs {
		nodes.Go(func() {
			client, peer := e.open(options(addr))
			defer func() { _ = client.Close() }()
			n := e.node(client, roleUnknown)
			n.cluster, n.peer = cluster, peer
			n.examine(ctx)
		})
	}
	nodes.Wait()
}
