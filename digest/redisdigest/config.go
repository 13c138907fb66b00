package redisdigest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/metric"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/digest"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redisrun"
	"github.com/gqlgen-ratelimit/ratelimit/policy"
)

// Config says where digests are. The zero value is the default in each field but Client. Every mistake in it is reported, all at
// once.
type Config struct {
	// Client is that of the Redis. It is required, and the caller's to close. redisclient.Open makes one whose calls end when
	// their deadline does.
	Client redis.UniversalClient
	// Namespace is that of bucket.RedisConfig. Empty means main.
	Namespace string
}

// WriterConfig says what a [Writer] writes. The zero value is the default in each field but Client and Collector.
type WriterConfig struct {
	Config

	// Collector is where the digest comes from. It is required, and this writer's own.
	Collector *digest.Collector
	// Instance is what the instance is called, 1 to 128 bytes of UTF-8. Empty means the name of the machine and some random digits.
	Instance string
	// Keep is for how long what was written is found after the instance is gone, from a minute to a week: its refusals and its records.
	// Zero means an hour.
	Keep time.Duration
	// RecordBytes is how much of records is kept, in compressed bytes, from 16 KiB to 16 MiB. Zero means 256 KiB.
	RecordBytes int

	// Logger is told, once, that the Redis does not take the digest, and once that it does again. Nil means slog.Default().
	Logger *slog.Logger
	// MeterProvider takes the metrics. Nil means the global provider.
	MeterProvider metric.MeterProvider
}

const (
	// life is that of a digest: an instance that has said nothing for so long is not there.
	life               = 10 * time.Second
	defaultKeep        = time.Hour
	minKeep            = time.Minute
	maxKeep            = 7 * 24 * time.Hour
	defaultRecordBytes = 256 << 10
	minRecordBytes     = 16 << 10
	maxRecordBytes     = 16 << 20
	// maxParts is how many parts the records of a run have.
	maxParts = 4096
)

func (c Config) withDefaults() Config {
	c.Namespace = cmp.Or(c.Namespace, "main")
	return c
}

func (c *Config) validate() error {
	var errs []error
	if c.Client == nil {
		errs = append(errs, errors.New("redisdigest: Config.Client is nil: set the result of redisclient.Open"))
	}
	// A name is judged as a namespace of budgets is.
	if _, err := bucket.ACLRules(c.Namespace, false); err != nil {
		errs = append(errs, fmt.Errorf("redisdigest: Config.Namespace: %w", err))
	}
	return errors.Join(errs...)
}

func (c WriterConfig) withDefaults() WriterConfig {
	c.Config = c.Config.withDefaults()
	c.Instance = cmp.Or(c.Instance, policy.InstanceName())
	c.Keep = cmp.Or(c.Keep, defaultKeep)
	c.RecordBytes = cmp.Or(c.RecordBytes, defaultRecordBytes)
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

func (c *WriterConfig) validate() error {
	errs := []error{c.Config.validate()}
	if c.Collector == nil {
		errs = append(errs, errors.New("redisdigest: WriterConfig.Collector is nil: set the result of digest.New"))
	}
	if err := policy.CheckInstanceName(c.Instance); err != nil {
		errs = append(errs, fmt.Errorf("redisdigest: WriterConfig.Instance: %w", err))
	}
	if c.Keep < minKeep || c.Keep > maxKeep {
		errs = append(errs, fmt.Errorf("redisdigest: WriterConfig.Keep is %v: write %v to %v, or 0 for %v", c.Keep, minKeep, maxKeep, defaultKeep))
	}
	if c.RecordBytes < minRecordBytes || c.RecordBytes > maxRecordBytes {
		errs = append(errs, fmt.Errorf("redisdigest: WriterConfig.RecordBytes is %d: write %d to %d, or 0 for %d",
			c.RecordBytes, minRecordBytes, maxRecordBytes, defaultRecordBytes))
	}
	return errors.Join(errs...)
}

// keys are those of one namespace.
type keys string

func (c *Config) keys() keys { return keys("rl:" + c.Namespace + ":digest") }

// runs are those of the instances.
func (c *Config) runs() *redisrun.Runs {
	return &redisrun.Runs{Client: c.Client, Key: string(c.keys())}
}

func (k keys) of(run string) (digest, refusals, records string) {
	digest = string(k) + ":{" + run + "}"
	return digest, digest + ":refusals", digest + ":records"
}

// bounded gives a call a deadline, without which clients for budgets give it a tenth of a second. One that the caller has
// set holds if it is sooner.
func bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, bucket.DefaultAdminTimeout)
}

// ACLRules returns the least rights in Redis with which everything in this package works, as rules for ACL SETUSER that are
// added to those of bucket.ACLRules. An empty namespace means main. The error is that of one that [Start] refuses.
func ACLRules(namespace string) ([]string, error) {
	cfg := Config{Namespace: namespace}.withDefaults()
	if _, err := bucket.ACLRules(cfg.Namespace, false); err != nil {
		return nil, fmt.Errorf("redisdigest: %w", err)
	}
	rules := []string{"~" + string(cfg.keys()), "~" + string(cfg.keys()) + ":*"}
	commands := append(redisrun.Commands(), "set", "del", "getrange", "hset", "hdel", "hlen", "hget", "hstrlen", "rpush", "ltrim", "lrange")
	for _, command := range commands {
		rules = append(rules, "+"+command)
	}
	return rules, nil
}
