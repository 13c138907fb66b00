package directory

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// Defaults and bounds of a [Config].
const (
	defaultInterval = 500 * time.Millisecond
	minInterval     = 100 * time.Millisecond
	maxInterval     = time.Minute
	defaultPatience = 2 * time.Second
	maxPatience     = time.Minute
	defaultDeadline = 50 * time.Millisecond
	minDeadline     = time.Millisecond
	maxDeadline     = 5 * time.Second
	defaultMaxBytes = 32 << 20
	minMaxBytes     = 1 << 20
	maxMaxBytes     = 16 << 30
	defaultMisses   = 1000
	maxMisses       = 1_000_000
	maxName         = 64
)

// Config says how a [Directory] asks its source, and what it keeps. The zero value is the default in each field. Every mistake
// in it is reported, all at once, by [Open].
type Config struct {
	// WhileUnknown is the tier of a tenant of whom nobody knows anything while the source does not answer. The policy has to
	// have it, and one that no longer has it is refused where the source of policies is a tiers.Checker. A subject that
	// carries a tier keeps that one. Empty means that the policy decides, by its default tier.
	WhileUnknown string
	// Interval is how often the source is asked what has changed, from 100 ms to a minute, each time up to a fifth sooner or
	// later. A [Hinter] is asked at its hints besides, ten times a second at most. Zero means half a second.
	Interval time.Duration
	// Patience is for how long [Open] waits for the source, at most a minute. Zero means two seconds.
	Patience time.Duration
	// MissDeadline is for how long a request waits for the record of its tenant where the cache does not have it, from 1 ms
	// to 5 s. Zero means 50 ms.
	MissDeadline time.Duration
	// MissesPerSecond is how often in a second the source is asked about tenants of whom no record is in the cache, at most a
	// million. Above it such tenants are unknown. Zero means 1000.
	MissesPerSecond int
	// MaxBytes is about how much memory the cache takes, from 1 MiB to 16 GiB: an eighth for tenants that have no record. A
	// tenant that is assigned to a tier takes about 150 bytes. Zero means 32 MiB.
	MaxBytes int64
	// LastGood is the path of a file in which the cache is kept for a start without the source, written every half a minute if
	// anything has changed, and by [Directory.Close]. Its folder has to be there, and the file is this directory's own. Empty
	// means that nothing is kept on disk.
	LastGood string

	// Observe says who is told.
	Observe ObserveConfig
}

// ObserveConfig says who is told of what a [Directory] does.
type ObserveConfig struct {
	// Name tells several directories of one process apart: metrics have it as ratelimit.directory.name. At most 64 bytes.
	Name string
	// Logger is told when the source goes and comes, and of records that cannot be read. Nil means slog.Default().
	Logger *slog.Logger
	// MeterProvider takes the metrics. Nil means the global provider.
	MeterProvider metric.MeterProvider
}

// withDefaults returns the configuration with the defaults in place.
func (c Config) withDefaults() Config {
	c.Interval = cmp.Or(c.Interval, defaultInterval)
	c.Patience = cmp.Or(c.Patience, defaultPatience)
	c.MissDeadline = cmp.Or(c.MissDeadline, defaultDeadline)
	c.MissesPerSecond = cmp.Or(c.MissesPerSecond, defaultMisses)
	c.MaxBytes = cmp.Or(c.MaxBytes, defaultMaxBytes)
	if c.Observe.Logger == nil {
		c.Observe.Logger = slog.Default()
	}
	return c
}

// validate returns every mistake at once. Defaults have been filled in.
func (c *Config) validate(policy tiers.Source, source Source) error {
	var errs []error
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf("directory: "+format, args...)) }
	if source == nil {
		fail("the source is nil: give redisdirectory.New, postgresfeed.NewRecords or directory.NewMemory")
	}
	switch candidates, ok := policy.(tiers.CandidateSource); {
	case policy == nil || policy.Snapshot() == nil:
		fail("the policy is nil: give the result of policy.Follow or policy.OpenFile")
	case ok && candidates != nil:
		fail("the policy is a %T: put it around the directory, and the directory around what follows the policy", policy)
	case c.WhileUnknown != "" && !policy.Snapshot().HasTier(c.WhileUnknown):
		fail("Config.WhileUnknown is %.80q: the policy has no such tier", c.WhileUnknown)
	}
	within := func(field string, value, least, most, otherwise time.Duration) {
		if value < least || value > most {
			fail("Config.%s is %v: write %v to %v, or 0 for %v", field, value, least, most, otherwise)
		}
	}
	within("Interval", c.Interval, minInterval, maxInterval, defaultInterval)
	within("Patience", c.Patience, time.Nanosecond, maxPatience, defaultPatience)
	within("MissDeadline", c.MissDeadline, minDeadline, maxDeadline, defaultDeadline)
	if c.MissesPerSecond < 1 || c.MissesPerSecond > maxMisses {
		fail("Config.MissesPerSecond is %d: write 1 to %d, or 0 for %d", c.MissesPerSecond, maxMisses, defaultMisses)
	}
	if c.MaxBytes < minMaxBytes || c.MaxBytes > maxMaxBytes {
		fail("Config.MaxBytes is %d: write %d to %d, or 0 for %d", c.MaxBytes, minMaxBytes, int64(maxMaxBytes), defaultMaxBytes)
	}
	if len(c.Observe.Name) > maxName {
		fail("Config.Observe.Name has %d bytes: write at most %d", len(c.Observe.Name), maxName)
	}
	if c.LastGood != "" {
		folder := filepath.Dir(c.LastGood)
		if info, err := os.Stat(folder); err != nil || !info.IsDir() {
			fail("Config.LastGood is in %s, which is no folder: create it", folder)
		}
	}
	return errors.Join(errs...)
}
