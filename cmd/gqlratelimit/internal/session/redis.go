// Package session is what the sub-commands for a live limiter work with: its Redis, the policy that holds, what is known of a tenant,
// and how a change is asked for.
package session

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/bucket/redisclient"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/cli"
)

// Variables of the environment in which an operator keeps what every call needs.
const (
	RedisVariable     = "RATELIMIT_REDIS"
	NamespaceVariable = "RATELIMIT_NAMESPACE"
	PolicyVariable    = "RATELIMIT_POLICY"
)

// defaultNamespace is that of bucket.RedisConfig.
const defaultNamespace = "main"

// defaultTimeout is the patience of a person, who is told what is wrong rather than that it took longer than usual.
const defaultTimeout = 5 * time.Second

// maxPassword is how many bytes a file with a password has.
const maxPassword = 4 << 10

// Address are the flags that name a Redis.
type Address struct {
	Addresses     cli.Paths
	Cluster       bool
	Master        string
	CA, Cert, Key string
	Username      string
	PasswordFile  string
}

// Register adds the flags.
func (a *Address) Register(flags *flag.FlagSet) {
	flags.Var(&a.Addresses, "redis", "`address` or URL of a server; can be given several times; $"+RedisVariable+" unless given")
	flags.BoolVar(&a.Cluster, "cluster", false, "the single address is a node of a cluster")
	flags.StringVar(&a.Master, "master", "", "the addresses are Sentinels, which know the master by this `name`")
	flags.StringVar(&a.CA, "tls-ca", "", "PEM `file` of the authorities to trust")
	flags.StringVar(&a.Cert, "tls-cert", "", "PEM `file` of the certificate of the client")
	flags.StringVar(&a.Key, "tls-key", "", "PEM `file` of its key")
	flags.StringVar(&a.Username, "redis-user", "", "`name` of the user of Redis")
	flags.StringVar(&a.PasswordFile, "redis-password-file", "", "`file` of the password of Redis")
}

// Read returns the configuration that the flags make, with addresses from the environment where they name a variable of it.
func (a *Address) Read(c cli.Console) (redisclient.Config, error) {
	if len(a.Addresses) == 0 && c.Getenv(RedisVariable) != "" {
		a.Addresses = cli.Paths{"$" + RedisVariable}
	}
	if len(a.Addresses) == 0 {
		return redisclient.Config{}, cli.Usagef("no Redis is given: say -redis ADDRESS, or set $%s", RedisVariable)
	}
	for i, address := range a.Addresses {
		name, variable := strings.CutPrefix(address, "$")
		switch {
		case !variable:
			if parsed, err := url.Parse(address); err == nil && parsed.User != nil {
				if _, has := parsed.User.Password(); has {
					fmt.Fprintln(c.Stderr, "note: the password stands in the list of processes; say -redis '$REDIS_URL', with the quotes, or -redis-password-file")
				}
			}
		case c.Getenv(name) == "":
			return redisclient.Config{}, cli.Usagef("the environment has no variable %s", name)
		default:
			a.Addresses[i] = c.Getenv(name)
		}
	}
	config := redisclient.Config{Addresses: a.Addresses, Cluster: a.Cluster, Master: a.Master, Username: a.Username}
	if a.PasswordFile != "" {
		password, err := cli.ReadFile(a.PasswordFile, maxPassword)
		if err != nil {
			return config, err
		}
		config.Password = strings.TrimRight(string(password), "\r\n")
	}
	if a.CA != "" || a.Cert != "" || a.Key != "" {
		tls, err := redisclient.LoadTLS(a.CA, a.Cert, a.Key)
		if err != nil {
			return config, err
		}
		config.TLS = tls
	}
	return config, nil
}

// Redis are the flags of a live limiter.
type Redis struct {
	Address

	Namespace string
	Timeout   time.Duration
}

// Register adds the flags.
func (r *Redis) Register(flags *flag.FlagSet) {
	r.Address.Register(flags)
	RegisterNamespace(flags, &r.Namespace)
	flags.DurationVar(&r.Timeout, "timeout", defaultTimeout, "how much `time` Redis has for each call, connecting included")
}

// RegisterNamespace adds the flag of the namespace, which [Namespace] completes.
func RegisterNamespace(flags *flag.FlagSet, to *string) {
	flags.StringVar(to, "namespace", "", "the `name` in RedisConfig.Namespace of the servers; $"+NamespaceVariable+" unless given, and without either "+defaultNamespace)
}

// Namespace returns the namespace that is given, else that of the environment.
func Namespace(c cli.Console, given string) string {
	return cmp.Or(given, c.Getenv(NamespaceVariable), defaultNamespace)
}

// Given reports whether a Redis is named.
func (r *Redis) Given(c cli.Console) bool {
	return len(r.Addresses) > 0 || c.Getenv(RedisVariable) != ""
}

// Live is the Redis of a limiter.
type Live struct {
	Client    redis.UniversalClient
	Store     *bucket.Redis
	Namespace string

	timeout time.Duration
}

// Open opens what the flags name. It does not connect. Live.Close ends it.
func (r *Redis) Open(c cli.Console) (*Live, error) {
	if r.Timeout < 100*time.Millisecond || r.Timeout > 10*time.Minute {
		return nil, cli.Usagef("a -timeout of %v: 100ms to 10m fits", r.Timeout)
	}
	r.Namespace = Namespace(c, r.Namespace)
	config, err := r.Read(c)
	if err != nil {
		return nil, err
	}
	config.DialTimeout, config.SocketTimeout = r.Timeout, r.Timeout+time.Second
	// A person asks once, and wants to be told what the node says.
	config.Breaker.Disabled = true
	client, err := redisclient.Open("", config)
	if err != nil {
		return nil, cli.Usagef("%v", err)
	}
	store, err := bucket.NewRedis(bucket.RedisConfig{
		Client: client, Namespace: r.Namespace, Timeout: r.Timeout, AdminTimeout: r.Timeout, Patience: r.Timeout,
	})
	if err != nil {
		_ = client.Close()
		return nil, cli.Usagef("%v", err)
	}
	return &Live{Client: client, Store: store, Namespace: r.Namespace, timeout: r.Timeout}, nil
}

// Close ends the connections.
func (l *Live) Close() {
	_ = l.Store.Close()
	_ = l.Client.Close()
}

// Call makes one call, with the time that the flags give it. What it could not do is said in the words of who waits for it.
func (l *Live) Call(call func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), l.timeout)
	defer cancel()
	return l.explain(call(ctx))
}

// Now is the time of Redis, by which records expire.
func (l *Live) Now() (now time.Time, err error) {
	err = l.Call(func(ctx context.Context) error {
		now, err = l.Client.Time(ctx).Result()
		return err
	})
	return now.Truncate(time.Millisecond), err
}

func (l *Live) explain(err error) error {
	switch {
	case err == nil, errors.Is(err, bucket.ErrInvalid), errors.Is(err, bucket.ErrOverridesFull):
		return err
	case errors.Is(err, bucket.ErrAmbiguous):
		return fmt.Errorf("Redis gave no answer within %v, and may have done it: look whether it has, with show or list: %w", l.timeout, err)
	case errors.Is(err, bucket.ErrUnavailable), errors.Is(err, bucket.ErrBusy):
		return fmt.Errorf("Redis cannot be reached, and nothing was changed; gqlratelimit doctor says more: %w", err)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("Redis gave no answer within %v; gqlratelimit doctor says more", l.timeout)
	}
	return err
}

// Overrides returns the override records of a tenant, those changed first in front.
func (l *Live) Overrides(tenant string) (records []bucket.Override, err error) {
	err = l.Call(func(ctx context.Context) error {
		records, err = l.Store.ListOverrides(ctx, tenant)
		return err
	})
	return records, err
}
