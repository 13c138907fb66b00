package redisusage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// Config says where usage is. The zero value is the default in each field but Client. Every mistake in it is reported, all at once.
type Config struct {
	// Client is that of the Redis. It is required, and the caller's to close. redisclient.Open makes one whose calls end when
	// their deadline does.
	Client redis.UniversalClient
	// Namespace is that of bucket.RedisConfig. Empty means main.
	Namespace string
}

func (c Config) withDefaults() Config {
	c.Namespace = cmp.Or(c.Namespace, "main")
	return c
}

func (c *Config) validate() error {
	var errs []error
	if c.Client == nil {
		errs = append(errs, errors.New("redisusage: Config.Client is nil: set the result of redisclient.Open"))
	}
	// A name is judged as a namespace of budgets is.
	if _, err := bucket.ACLRules(c.Namespace, false); err != nil {
		errs = append(errs, fmt.Errorf("redisusage: Config.Namespace: %w", err))
	}
	return errors.Join(errs...)
}

// refused is the key of the refusals of an hour.
func (c *Config) refused(hour time.Time) string {
	return c.prefix() + strconv.FormatInt(hour.Unix()/int64(time.Hour/time.Second), 10)
}

func (c *Config) prefix() string { return "rl:" + c.Namespace + ":refused:" }

// bounded gives a call a deadline, without which clients for budgets give it a tenth of a second. One that the caller has
// set holds if it is sooner.
func bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, bucket.DefaultAdminTimeout)
}

// ACLRules returns the least rights in Redis of a collector, as rules for ACL SETUSER that are added to those of bucket.ACLRules. It may list
// the names of all keys of the server. An empty namespace means main. The error is that of one that [NewReader] refuses.
func ACLRules(namespace string) ([]string, error) {
	cfg := Config{Namespace: namespace}.withDefaults()
	if _, err := bucket.ACLRules(cfg.Namespace, false); err != nil {
		return nil, fmt.Errorf("redisusage: %w", err)
	}
	return []string{"~" + cfg.prefix() + "*", "+evalsha", "+eval", "+time", "+hscan", "+scan", "+getrange"}, nil
}
