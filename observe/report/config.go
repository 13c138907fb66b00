package report

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"

	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/metric"

	"github.com/gqlgen-ratelimit/ratelimit/event/redisstream"
	"github.com/gqlgen-ratelimit/ratelimit/internal/pseudonym"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redisplace"
)

// Place is the Redis and the namespace of what instances write. The zero value is the default in each field but Client.
type Place struct {
	// Client is that of the Redis. It is required, and the caller's to close. redisclient.Open makes one whose calls end when their deadline
	// does.
	Client redis.UniversalClient
	// Namespace is that of bucket.RedisConfig. Empty means main.
	Namespace string
}

// Config says what a [Reporter] writes and where. The zero value is the default in each field but Client. [Start] reports every mistake in
// it at once.
type Config struct {
	Place

	// Instance is the name of the instance, 1 to 128 bytes of UTF-8, another one for each. Empty means the name of the machine and
	// some random digits.
	Instance string
	// Users says how the names of users are written. Zero means [Hashed].
	Users Names
	// Key makes hashes of names that nobody else can make. It is 16 to 64 random bytes, the same in each instance of a fleet. Without a key
	// a reader of the Redis can try names, and a client that chooses its own name can choose whether it is sampled.
	Key []byte

	// Logger is told once that the Redis takes nothing, and once that it does again. Nil means slog.Default().
	Logger *slog.Logger
	// MeterProvider takes the metrics. Nil means the global provider.
	MeterProvider metric.MeterProvider
}

// complete puts the defaults in, and returns everything that is wrong.
func (p *Place) complete() error {
	place := redisplace.Place(*p)
	err := place.Complete("report")
	*p = Place(place)
	return err
}

func (c Config) withDefaults() Config {
	c.Instance = cmp.Or(c.Instance, InstanceName())
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

func (c *Config) validate() error {
	errs := []error{c.complete()}
	if err := CheckInstanceName(c.Instance); err != nil {
		errs = append(errs, fmt.Errorf("report: Config.Instance: %w", err))
	}
	if c.Users > Omitted {
		errs = append(errs, fmt.Errorf("report: Config.Users is %d: write Hashed, Plain or Omitted", c.Users))
	}
	return errors.Join(append(errs, pseudonym.CheckKey("report: Config.Key", c.Key))...)
}

// activityKey is the key of the stream of activity:
//
//	rl:NAMESPACE:activity   what instances have counted and sampled, one entry for a second of an instance
func (p *Place) activityKey() string { return "rl:" + p.Namespace + ":activity" }

// ACLRules returns the least rights in Redis with which everything in this package works, as rules for ACL SETUSER that are added to those of
// bucket.ACLRules. An empty namespace means main. The error is that of a namespace that [Start] refuses.
func ACLRules(namespace string) ([]string, error) {
	at := redisplace.Place{Namespace: namespace}
	if err := at.CompleteNamespace("report"); err != nil {
		return nil, err
	}
	rules, err := redisstream.ACLRules(at.Namespace)
	place := Place(at)
	return redisplace.Rules(append(rules, "~"+place.activityKey(), "~rl:"+place.Namespace+":refused:*"), "xrange", "xrevrange", "hset"), err
}
