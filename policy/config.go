package policy

import (
	"cmp"
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// None is the value of a number for none at all, where a field says so. Zero is always the default, and any other
// negative number is a mistake.
const None = -1

// Defaults and bounds of a [Config].
const (
	defaultInterval = time.Second
	minInterval     = 100 * time.Millisecond
	maxInterval     = time.Minute
	defaultPatience = 2 * time.Second
	maxPatience     = time.Minute
	maxKeys         = 16
	maxName         = 64
)

// Config says how a [Follower] follows its feed. The zero value is the default in each field. Every mistake in it is
// reported, all at once, by [Follow].
type Config struct {
	// Interval is how often the feed is asked, from 100 ms to a minute, each time up to a fifth sooner or later, so
	// that the instances of a fleet do not ask together. A question that had no answer is asked again within 50 ms, and then less and less
	// soon until that is the interval. Zero means a second; [None] asks at hints and at [Follower.Reload] only, and what holds becomes
	// stale never.
	Interval time.Duration
	// Patience is for how long [Follow] waits for the first answer of the feed before it goes on with what it has, at most
	// a minute. Zero means two seconds.
	Patience time.Duration

	// LastGood is the path of a file in which the newest good revision is kept, for a start without the feed. Its folder
	// has to be there, and the file is this follower's own. What stands in it is judged as anew at each start, its
	// signature included; a file that is half written or something else is reported and left out. Empty means that nothing is
	// kept on disk.
	LastGood string
	// First is the policy until a revision comes, where neither the feed nor LastGood have one at the start: one that was
	// built into the program, for example. Nil means that [Follow] fails then.
	First *tiers.Snapshot

	// MaxDocument is the size in bytes of the largest policy document that is read, as in [tiers.ParseConfig]; a larger
	// one is refused. Zero means [tiers.DefaultMaxDocument], 1 MiB, and [tiers.MaxDocument] is the most, 16 MiB.
	MaxDocument int

	// Keys are the public keys of those who may publish, at most 16. A revision has to be signed by one of them. Empty
	// means that none is signed.
	Keys []ed25519.PublicKey

	// Observe says who is told of changes.
	Observe ObserveConfig
}

// ObserveConfig says who is told of what a [Follower] does.
type ObserveConfig struct {
	// Name tells several followers of one process apart: metrics have it as ratelimit.policy.name, and events as
	// their policy. At most 64 bytes. Empty means that there is one.
	Name string
	// Logger is told what is wrong with the file of [Config.LastGood] at the start, and of a feed that has lost its revision. Nil means slog.Default().
	Logger *slog.Logger
	// Observer is told of event.PolicyApplied, event.PolicyRefused and event.PolicyState. It is called by the goroutine of the
	// follower, or by that of a caller of Follow, Check or Reload, one call at a time; it must not call these nor Close. Nil means
	// that they are lines of Logger.
	Observer event.Observer
	// MeterProvider takes the metrics. Nil means the global provider.
	MeterProvider metric.MeterProvider
}

// withDefaults returns the configuration with the defaults in place.
func (c Config) withDefaults() Config {
	c.Interval = cmp.Or(c.Interval, defaultInterval)
	c.Patience = cmp.Or(c.Patience, defaultPatience)
	if c.Observe.Logger == nil {
		c.Observe.Logger = slog.Default()
	}
	if c.Observe.Observer == nil {
		c.Observe.Observer = event.NewLogger(c.Observe.Logger)
	}
	return c
}

// validate returns every mistake at once. Defaults have been filled in.
func (c *Config) validate(feed Feed) error {
	var errs []error
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf("policy: "+format, args...)) }
	if feed == nil {
		fail("the feed is nil: give policy.NewFile or redisfeed.New")
	}
	if c.Interval != None && (c.Interval < minInterval || c.Interval > maxInterval) {
		fail("Config.Interval is %v: write %v to %v, 0 for %v, or None", c.Interval, minInterval, maxInterval, defaultInterval)
	}
	if c.Patience < 0 || c.Patience > maxPatience {
		fail("Config.Patience is %v: write at most %v, or 0 for %v", c.Patience, maxPatience, defaultPatience)
	}
	if c.MaxDocument < 0 || c.MaxDocument > tiers.MaxDocument {
		fail("Config.MaxDocument is %d bytes: write at most %d, or 0 for %d", c.MaxDocument, tiers.MaxDocument, tiers.DefaultMaxDocument)
	}
	if len(c.Keys) > maxKeys {
		fail("Config.Keys has %d keys: write at most %d", len(c.Keys), maxKeys)
	}
	for i, key := range c.Keys {
		if len(key) != ed25519.PublicKeySize {
			fail("Config.Keys[%d] has %d bytes: an Ed25519 public key has %d", i, len(key), ed25519.PublicKeySize)
		}
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
