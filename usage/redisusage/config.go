package redisusage

import (
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/gqlgen-ratelimit/ratelimit/internal/redisplace"
)

// Config says where usage is. The zero value is the default in each field but Client. Every mistake in it is reported, all at once.
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
	err := place.Complete("redisusage")
	*c = Config(place)
	return err
}

// refused is the key of the refusals of an hour.
func (c *Config) refused(hour time.Time) string {
	return c.prefix() + strconv.FormatInt(hour.Unix()/int64(time.Hour/time.Second), 10)
}

func (c *Config) prefix() string { return "rl:" + c.Namespace + ":refused:" }

// ACLRules returns the least rights in Redis of a collector, as rules for ACL SETUSER that are added to those of bucket.ACLRules. It may list
// the names of all keys of the server. An empty namespace means main. The error is that of one that [NewReader] refuses.
func ACLRules(namespace string) ([]string, error) {
	place := redisplace.Place{Namespace: namespace}
	if err := place.CompleteNamespace("redisusage"); err != nil {
		return nil, err
	}
	cfg := Config(place)
	return redisplace.Rules([]string{"~" + cfg.prefix() + "*"}, "evalsha", "eval", "time", "hscan", "scan", "getrange"), nil
}
