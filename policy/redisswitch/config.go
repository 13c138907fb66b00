package redisswitch

import (
	"github.com/redis/go-redis/v9"

	"github.com/gqlgen-ratelimit/ratelimit/internal/redisplace"
)

// Config says where switches are.
type Config struct {
	// Client is that of the Redis. It is required, and the caller's to close. redisclient.Open makes one whose calls end when
	// their deadline does.
	Client redis.UniversalClient
	// Namespace is that of bucket.RedisConfig. Empty means main.
	Namespace string
}

// complete puts the defaults in, and returns everything that is wrong.
func (c *Config) complete() error {
	place := redisplace.Place(*c)
	err := place.Complete("redisswitch")
	*c = Config(place)
	return err
}

func (c *Config) key() string     { return "rl:" + c.Namespace + ":modes" }
func (c *Config) channel() string { return c.key() + ":hint" }

// ACLRules returns the least rights in Redis with which everything in this package works, as rules for ACL SETUSER that are
// added to those of bucket.ACLRules. An empty namespace means main. The error is that of one that [New] refuses.
func ACLRules(namespace string) ([]string, error) {
	place := redisplace.Place{Namespace: namespace}
	if err := place.CompleteNamespace("redisswitch"); err != nil {
		return nil, err
	}
	cfg := Config(place)
	return redisplace.Rules([]string{"~" + cfg.key(), "&" + cfg.channel()},
		"evalsha", "eval", "time", "ping", "subscribe", "unsubscribe", "publish", "get", "set", "strlen"), nil
}
