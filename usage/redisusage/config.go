package redisusage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"

	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/metric"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redisrun"
	"github.com/gqlgen-ratelimit/ratelimit/policy"
	"github.com/gqlgen-ratelimit/ratelimit/usage"
)

// Config says where usage is told. The zero value is the default in each field but Client. Every mistake in it is reported, all at
// once.
type Config struct {
	// Client is that of the Redis. It is required, and the caller's to close. redisclient.Open makes one whose calls end when
	// their deadline does.
	Client redis.UniversalClient
	// Namespace is that of bucket.RedisConfig. Empty means main.
	Namespace string
}

// WriterConfig says what a [Writer] writes. The zero value is the default in each field but Client and Recorder.
type WriterConfig struct {
	Config

	// Recorder is where it comes from. It is required, and this writer's own.
	Recorder *usage.Recorder
	// Instance is what the instance is called, 1 to 128 bytes of UTF-8. Empty means the name of the machine and some random digits.
	Instance string
	// Bytes is about how much of what this instance has told of its decisions is kept, from 1 MiB to 1 GiB: where there is more, the oldest is
	// deleted. Zero means 16 MiB. A collector reads it within minutes, so that the room is for the time in which there is none.
	Bytes int

	// Logger is told, once, that the Redis does not take it, and once that it does again. Nil means slog.Default().
	Logger *slog.Logger
	// MeterProvider takes the metrics. Nil means the global provider.
	MeterProvider metric.MeterProvider
}

const (
	defaultBytes = 16 << 20
	minBytes     = 1 << 20
	maxBytes     = 1 << 30

	// shards is over how many sets the hours of a minute are spread.
	shards = 16
	// mark is the field of a hash that has no tenant: the number of the last write, and the name of the instance.
	mark = "#"
)

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

func (c WriterConfig) withDefaults() WriterConfig {
	c.Config = c.Config.withDefaults()
	c.Instance = cmp.Or(c.Instance, policy.InstanceName())
	c.Bytes = cmp.Or(c.Bytes, defaultBytes)
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

func (c *WriterConfig) validate() error {
	errs := []error{c.Config.validate()}
	if c.Recorder == nil {
		errs = append(errs, errors.New("redisusage: WriterConfig.Recorder is nil: set the result of usage.NewRecorder"))
	}
	if err := policy.CheckInstanceName(c.Instance); err != nil {
		errs = append(errs, fmt.Errorf("redisusage: WriterConfig.Instance: %w", err))
	}
	if c.Bytes < minBytes || c.Bytes > maxBytes {
		errs = append(errs, fmt.Errorf("redisusage: WriterConfig.Bytes is %d: write %d to %d, or 0 for %d", c.Bytes, minBytes, maxBytes, defaultBytes))
	}
	return errors.Join(errs...)
}

// keys are those of one namespace.
type keys string

func (c *Config) keys() keys { return keys("rl:" + c.Namespace + ":usage") }

func (c *Config) runs() *redisrun.Runs {
	return &redisrun.Runs{Client: c.Client, Key: string(c.keys())}
}

// told is the key of a part of the hours that were told in a minute.
func (k keys) told(minute int64, shard int) string {
	return string(k) + ":told:{" + strconv.FormatInt(minute, 10) + ":" + strconv.Itoa(shard) + "}"
}

// report is the key of what a run has told in a minute.
func (k keys) report(run string, minute int64) string {
	return string(k) + ":{" + run + "}:" + strconv.FormatInt(minute, 10)
}

// bounded gives a call a deadline, without which clients for budgets give it a tenth of a second. One that the caller has
// set holds if it is sooner.
func bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, bucket.DefaultAdminTimeout)
}

// ACLRules returns the least rights in Redis with which an instance tells usage, as rules for ACL SETUSER that are added to those of
// bucket.ACLRules. collects has those of a collector too, which may list the names of all keys of the server. An empty namespace means main. The
// error is that of one that [Start] refuses.
func ACLRules(namespace string, collects bool) ([]string, error) {
	cfg := Config{Namespace: namespace}.withDefaults()
	if _, err := bucket.ACLRules(cfg.Namespace, false); err != nil {
		return nil, fmt.Errorf("redisusage: %w", err)
	}
	rules := []string{"~" + string(cfg.keys()), "~" + string(cfg.keys()) + ":*"}
	commands := append(redisrun.Commands(), "sadd", "hget", "hset", "unlink")
	if collects {
		commands = append(commands, "sscan", "hscan", "scan", "getrange")
	}
	for _, command := range commands {
		rules = append(rules, "+"+command)
	}
	return rules, nil
}
