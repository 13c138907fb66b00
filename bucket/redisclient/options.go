package redisclient

import (
	"time"

	"github.com/redis/go-redis/v9"
)

// options are those of a single server.
func (t *target) options(cfg *Config) *redis.Options {
	o := t.nodes[0].options
	o.Username, o.Password = cfg.credentials(o.Username, o.Password)
	o.CredentialsProviderContext = cfg.Credentials
	o.DB = given(cfg.Database, o.DB)
	o.TLSConfig = t.tls(cfg)
	o.Protocol = given(cfg.Protocol, o.Protocol)
	o.PoolSize = given(cfg.PoolSize, o.PoolSize)
	Bound(o)
	cfg.timeouts(&o.DialTimeout, &o.ReadTimeout, &o.WriteTimeout)
	return o
}

// clusterOptions are those of a cluster. What the URL of the first node says about connections holds for all.
func (t *target) clusterOptions(cfg *Config) *redis.ClusterOptions {
	first := t.nodes[0].options
	o := &redis.ClusterOptions{
		Addrs: t.addresses(), ClientName: first.ClientName,
		CredentialsProviderContext: cfg.Credentials,
		TLSConfig:                  t.tls(cfg),
		Protocol:                   given(cfg.Protocol, first.Protocol),
		PoolSize:                   given(cfg.PoolSize, first.PoolSize), PoolFIFO: first.PoolFIFO,
		MinIdleConns: first.MinIdleConns, MaxIdleConns: first.MaxIdleConns, MaxActiveConns: first.MaxActiveConns,
		MaxConcurrentDials: first.MaxConcurrentDials,
		ConnMaxIdleTime:    first.ConnMaxIdleTime, ConnMaxLifetime: first.ConnMaxLifetime,
		ConnMaxLifetimeJitter: first.ConnMaxLifetimeJitter,
	}
	o.Username, o.Password = cfg.credentials(first.Username, first.Password)
	Bound(o)
	cfg.timeouts(&o.DialTimeout, &o.ReadTimeout, &o.WriteTimeout)
	return o
}

// failoverOptions are those of the master behind Sentinels.
func (t *target) failoverOptions(cfg *Config) *redis.FailoverOptions {
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
	o.Username, o.Password = cfg.credentials(o.Username, o.Password)
	o.CredentialsProviderContext = cfg.Credentials
	if cfg.SentinelUsername != "" || cfg.SentinelPassword != "" {
		o.SentinelUsername, o.SentinelPassword = cfg.SentinelUsername, cfg.SentinelPassword
	}
	o.DB = given(cfg.Database, o.DB)
	o.TLSConfig = t.tls(cfg)
	o.Protocol = given(cfg.Protocol, o.Protocol)
	o.PoolSize = given(cfg.PoolSize, o.PoolSize)
	Bound(o)
	cfg.timeouts(&o.DialTimeout, &o.ReadTimeout, &o.WriteTimeout)
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
func (c *Config) credentials(username, password string) (string, string) {
	if c.Username != "" || c.Password != "" {
		return c.Username, c.Password
	}
	return username, password
}

// timeouts replaces the bounds by those of the configuration.
func (c *Config) timeouts(dial, read, write *time.Duration) {
	if c.DialTimeout > 0 {
		*dial = c.DialTimeout
	}
	*read, *write = max(*read, c.SocketTimeout), max(*write, c.SocketTimeout)
}

func given(configured, otherwise int) int {
	if configured != 0 {
		return configured
	}
	return otherwise
}
