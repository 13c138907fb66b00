package bucket

import (
	"time"

	"github.com/redis/go-redis/v9"
)

// options are those of a single server.
func (t *target) options(config *ClientConfig) *redis.Options {
	o := t.nodes[0].options
	o.Username, o.Password = config.credentials(o.Username, o.Password)
	o.CredentialsProviderContext = config.Credentials
	o.DB = given(config.Database, o.DB)
	o.TLSConfig = t.tls(config)
	o.Protocol = given(config.Protocol, o.Protocol)
	o.PoolSize = given(config.PoolSize, o.PoolSize)
	BoundOptions(o)
	config.timeouts(&o.DialTimeout, &o.ReadTimeout, &o.WriteTimeout)
	return o
}

// clusterOptions are those of a cluster. What the URL of the first node says about connections holds for all.
func (t *target) clusterOptions(config *ClientConfig) *redis.ClusterOptions {
	first := t.nodes[0].options
	o := &redis.ClusterOptions{
		Addrs: t.addresses(), ClientName: first.ClientName,
		CredentialsProviderContext: config.Credentials,
		TLSConfig:                  t.tls(config),
		Protocol:                   given(config.Protocol, first.Protocol),
		PoolSize:                   given(config.PoolSize, first.PoolSize), PoolFIFO: first.PoolFIFO,
		MinIdleConns: first.MinIdleConns, MaxIdleConns: first.MaxIdleConns, MaxActiveConns: first.MaxActiveConns,
		MaxConcurrentDials: first.MaxConcurrentDials,
		ConnMaxIdleTime:    first.ConnMaxIdleTime, ConnMaxLifetime: first.ConnMaxLifetime,
		ConnMaxLifetimeJitter: first.ConnMaxLifetimeJitter,
	}
	o.Username, o.Password = config.credentials(first.Username, first.Password)
	BoundClusterOptions(o)
	config.timeouts(&o.DialTimeout, &o.ReadTimeout, &o.WriteTimeout)
	return o
}

// failoverOptions are those of the master behind Sentinels.
func (t *target) failoverOptions(config *ClientConfig) *redis.FailoverOptions {
	o := t.failover()
	if o == nil {
		first := t.nodes[0].options
		o = &redis.FailoverOptions{
			SentinelUsername: first.Username, SentinelPassword: first.Password, DB: first.DB,
			ClientName: first.ClientName, Protocol: first.Protocol,
			PoolSize: first.PoolSize, PoolFIFO: first.PoolFIFO,
			MinIdleConns: first.MinIdleConns, MaxIdleConns: first.MaxIdleConns, MaxActiveConns: first.MaxActiveConns,
			MaxConcurrentDials: first.MaxConcurrentDials,
			ConnMaxIdleTime:    first.ConnMaxIdleTime, ConnMaxLifetime: first.ConnMaxLifetime,
			ConnMaxLifetimeJitter: first.ConnMaxLifetimeJitter,
		}
	}
	o.MasterName, o.SentinelAddrs = t.master, t.addresses()
	// A limiter writes: replicas are of no use to it, and go-redis panics for the other two.
	o.ReplicaOnly, o.RouteByLatency, o.RouteRandomly = false, false, false
	o.Username, o.Password = config.credentials(o.Username, o.Password)
	o.CredentialsProviderContext = config.Credentials
	if config.SentinelUsername != "" || config.SentinelPassword != "" {
		o.SentinelUsername, o.SentinelPassword = config.SentinelUsername, config.SentinelPassword
	}
	o.DB = given(config.Database, o.DB)
	o.TLSConfig = t.tls(config)
	o.Protocol = given(config.Protocol, o.Protocol)
	o.PoolSize = given(config.PoolSize, o.PoolSize)
	BoundFailoverOptions(o)
	config.timeouts(&o.DialTimeout, &o.ReadTimeout, &o.WriteTimeout)
	return o
}

// failover are the options of the first URL that names the master, or nil.
func (t *target) failover() *redis.FailoverOptions {
	for i := range t.nodes {
		if f := t.nodes[i].failover; f != nil {
			return f
		}
	}
	return nil
}

// credentials returns those of the configuration, or else those of the address.
func (c *ClientConfig) credentials(username, password string) (string, string) {
	if c.Username != "" || c.Password != "" {
		return c.Username, c.Password
	}
	return username, password
}

// timeouts replaces the bounds by those of the configuration.
func (c *ClientConfig) timeouts(dial, read, write *time.Duration) {
	if c.DialTimeout > 0 {
		*dial = c.DialTimeout
	}
	if c.SocketTimeout > 0 {
		*read, *write = c.SocketTimeout, c.SocketTimeout
	}
}

func given(configured, otherwise int) int {
	if configured != 0 {
		return configured
	}
	return otherwise
}
