package redisclient

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// Config says more about the Redis that a client is for than its address does. The zero value is the default in each
// field. The options that keep calls short, which [Bound] describes, are always set.
type Config struct {
	// Addresses are further ones: nodes of one Redis Cluster, or with Master the Sentinels of one group.
	Addresses []string
	// Cluster says that a single address is a node of a Redis Cluster, as the configuration endpoint of
	// managed clusters is. A URL can say so itself: redis://host:6379?cluster=true.
	Cluster bool
	// Master is the name under which the Sentinels know the master. A URL can say so itself:
	// redis://sentinel:26379?master_name=mymaster. Empty means that there are no Sentinels.
	Master string

	// Username and Password are those of Redis. Empty means those of the URL, which with Sentinels are
	// its parameters username and password.
	Username, Password string
	// Credentials is asked for user and password for each new connection in the place of the two above,
	// where they change as tokens of managed Redis do. It has to be quick and safe for concurrent use. Nil
	// means that they do not change.
	Credentials func(context.Context) (username, password string, err error)
	// SentinelUsername and SentinelPassword are those of the Sentinels. Empty means those before the @ of
	// their URL.
	SentinelUsername, SentinelPassword string
	// Database is the number of the database, 0 in a cluster. Zero means that of the URL.
	Database int

	// TLS encrypts the connections, those to Sentinels included; [LoadTLS] reads one from files. Without a
	// ServerName each node is verified by the host name of its own address. Nil means that of rediss://, or
	// none.
	TLS *tls.Config

	// Protocol is the version of RESP: 2, or 3. Zero means that of the URL, or 3.
	Protocol int
	// PoolSize is how many connections each node gets at most. Zero means that of the URL, or 10 for each
	// processor.
	PoolSize int
	// DialTimeout is how long connecting may take, TLS included. A call does not wait as long where nothing is heard of
	// the node: a connection that comes too late for it serves the next. Zero means 500 milliseconds.
	DialTimeout time.Duration
	// SocketTimeout is how long may take what has no deadline of its own, such as reading the map of a cluster. The calls
	// of a store have their own; it has to be as long as these where they are longer than 5.5 seconds. Zero means 100
	// milliseconds.
	SocketTimeout time.Duration

	// Breaker configures the breaker of each node. The zero value is one with defaults.
	Breaker BreakerConfig
}

// New returns a client whose calls end when their deadline does, as [bucket.RedisConfig] asks for, with
// breakers. It is [Open] with nothing but addresses. It does not connect.
func New(addresses ...string) (redis.UniversalClient, error) {
	return Open("", Config{Addresses: addresses})
}

// Open returns a client for a server, a Redis Cluster or the master behind Sentinels, whose calls end
// when their deadline does, with a breaker for each node. The address is host:port, or a redis://, rediss:// or unix://
// URL as go-redis reads them, whose user, password, database and TLS hold where the configuration does not set them; it
// may be empty if Config.Addresses are not. It does not connect: a Redis that is away at start
// shows in the first call. The error names everything that is wrong with the configuration, and repeats no
// password. The client is the caller's to close.
func Open(address string, cfg Config) (redis.UniversalClient, error) {
	return open(address, cfg, newNodes())
}

func open(address string, cfg Config, known *nodes) (redis.UniversalClient, error) {
	if address != "" {
		cfg.Addresses = append([]string{address}, cfg.Addresses...)
	}
	target, err := cfg.resolve()
	if err != nil {
		return nil, err
	}
	unbounded := boundUnbounded
	if cfg.SocketTimeout > 0 {
		unbounded = cfg.SocketTimeout
	}
	// Pools connect before they can be given hooks, so that the dialers have to watch as well.
	switch {
	case target.master != "":
		options := target.failoverOptions(&cfg)
		options.Dialer = known.watch(redis.NewDialer(&redis.Options{DialTimeout: options.DialTimeout, TLSConfig: options.TLSConfig}))
		client := redis.NewFailoverClient(options)
		// The address of such a client is a word of go-redis, the same for all of them.
		addNodeHook(client, target.master, known, unbounded, &cfg.Breaker)
		return client, nil
	case target.cluster:
		options := target.clusterOptions(&cfg)
		options.NewClient = func(o *redis.Options) *redis.Client {
			o.Dialer = known.watch(redis.NewDialer(o))
			return redis.NewClient(o)
		}
		client := redis.NewClusterClient(options)
		client.OnNewNode(func(node *redis.Client) {
			addNodeHook(node, node.Options().Addr, known, unbounded, &cfg.Breaker)
		})
		return client, nil
	default:
		options := target.options(&cfg)
		options.Dialer = known.watch(redis.NewDialer(options))
		client := redis.NewClient(options)
		addNodeHook(client, client.Options().Addr, known, unbounded, &cfg.Breaker)
		return client, nil
	}
}

// resolve reads the addresses and returns everything that is wrong.
func (c *Config) resolve() (*target, error) {
	if len(c.Addresses) == 0 {
		return nil, errors.New("redisclient: no address of a Redis server; such as 127.0.0.1:6379 or redis://user:password@host:6379/0")
	}
	t := &target{cluster: c.Cluster, master: c.Master}
	var errs []error
	for i, text := range c.Addresses {
		a, err := parseAddress(text)
		if err != nil {
			errs = append(errs, fmt.Errorf("redisclient: address %d of %d: %w", i+1, len(c.Addresses), err))
			continue
		}
		if a.master != "" && t.master != "" && a.master != t.master {
			errs = append(errs, fmt.Errorf("redisclient: address %d of %d: another master than before; the Sentinels of a client watch one", i+1, len(c.Addresses)))
		}
		t.cluster = t.cluster || a.cluster
		if a.master != "" {
			t.master = a.master
		}
		t.nodes = append(t.nodes, a)
	}
	if len(errs) == 0 {
		t.cluster = t.cluster || len(t.nodes) > 1 && t.master == ""
		errs = append(errs, t.check(c))
	}
	errs = append(errs, c.check(), c.Breaker.check())
	return t, errors.Join(errs...)
}

// check returns what is wrong whatever the addresses are.
func (c *Config) check() error {
	var errs []error
	if c.Protocol != 0 && c.Protocol != 2 && c.Protocol != 3 {
		errs = append(errs, fmt.Errorf("redisclient: RESP protocol %d; 2 or 3 fits", c.Protocol))
	}
	if c.PoolSize < 0 {
		errs = append(errs, fmt.Errorf("redisclient: a pool of %d connections; 1 or more fits, and 0 is the default", c.PoolSize))
	}
	if c.Database < 0 {
		errs = append(errs, fmt.Errorf("redisclient: database %d; 0 or more fits", c.Database))
	}
	for _, timeout := range []struct {
		name string
		time time.Duration
	}{{"DialTimeout", c.DialTimeout}, {"SocketTimeout", c.SocketTimeout}} {
		if timeout.time != 0 && timeout.time < time.Millisecond {
			errs = append(errs, fmt.Errorf("redisclient: a %s of %v; at least 1ms fits, and 0 is the default", timeout.name, timeout.time))
		}
	}
	if c.Credentials != nil && (c.Username != "" || c.Password != "") {
		errs = append(errs, errors.New("redisclient: Credentials and Username or Password; give one of the two"))
	}
	return errors.Join(errs...)
}
