package redisswitch

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// defaultNamespace is that of budgets.
const defaultNamespace = "main"

// Config says where switches are.
type Config struct {
	// Client is that of the Redis. It is required, and the caller's to close. redisclient.Open makes one whose calls end when
	// their deadline does.
	Client redis.UniversalClient
	// Namespace is that of bucket.RedisConfig. Empty means main.
	Namespace string
}

func (c Config) withDefaults() Config {
	c.Namespace = cmp.Or(c.Namespace, defaultNamespace)
	return c
}

func (c *Config) validate() error {
	var errs []error
	if c.Client == nil {
		errs = append(errs, errors.New("redisswitch: Config.Client is nil: set the result of redisclient.Open"))
	}
	// A name is judged as a namespace of budgets is.
	if _, err := bucket.ACLRules(c.Namespace, false); err != nil {
		errs = append(errs, fmt.Errorf("redisswitch: Config.Namespace: %w", err))
	}
	return errors.Join(errs...)
}

func (c *Config) key() string     { return "rl:" + c.Namespace + ":modes" }
func (c *Config) channel() string { return c.key() + ":hint" }

// bounded gives a call a deadline, without which clients for budgets give it a tenth of a second. One that the caller has
// set holds if it is sooner.
func bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, bucket.DefaultAdminTimeout)
}

// ACLRules returns the least rights in Redis with which everything in this package works, as rules for ACL SETUSER that are
// added to those of bucket.ACLRules. An empty namespace means main. The error is that of one that [New] refuses.
func ACLRules(namespace string) ([]string, error) {
	cfg := Config{Namespace: namespace}.withDefaults()
	if _, err := bucket.ACLRules(cfg.Namespace, false); err != nil {
		return nil, fmt.Errorf("redisswitch: %w", err)
	}
	rules := []string{"~" + cfg.key(), "&" + cfg.channel()}
	for _, command := range [...]string{"evalsha", "eval", "time", "ping", "subscribe", "unsubscribe", "publish", "get", "set", "strlen"} {
		rules = append(rules, "+"+command)
	}
	return rules, nil
}
