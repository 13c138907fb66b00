package stream

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"regexp"
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/otel/metric"

	"github.com/gqlgen-ratelimit/ratelimit/event"
)

// Config says what a [Queue] brings where. The zero value is the default in each field but Sink. Every mistake in it is reported, all at
// once.
type Config struct {
	// Sink is where events go. It is required, and the caller's to close, after the queue.
	Sink Sink
	// Namespace is that of bucket.RedisConfig: it stands in the source of each event. Empty means main.
	Namespace string
	// Instance is what this instance is called in the source, 1 to 128 bytes of UTF-8 without control characters. Empty means the name of the
	// machine and some random digits.
	Instance string
	// Topics are the names of topics.
	Topics Topics

	// MaxEvents is how many events wait, those that are being sent included, from 1 to a million. Zero means 10 000. Room for them, 100 bytes each, is
	// taken at the start. One tenant has at most half of the room, and always less than the tenants beside it leave: see [Queue.Keep].
	MaxEvents int
	// MaxBytes is about how much memory the events take beside that, from 64 KiB to 1 GiB. Zero means 16 MiB.
	MaxBytes int
	// MaxAge is for how long an event is sent again and again, from a second to a day. Zero means five minutes.
	MaxAge time.Duration
	// BatchEvents is how many events are sent at once, 10 000 at most. Zero means 500.
	BatchEvents int
	// Timeout is for how long one batch may take, from 100 ms to five minutes. What is not acknowledged by then is sent again. Zero means 10 s.
	Timeout time.Duration

	// Edit returns an event as it is to leave, such as without the names of users, or nil if it is to stay. It is called by the goroutine of the
	// queue, not in requests, and copies what it changes in slices, because other observers have the same. What it returns goes to the same topic. If it
	// panics the event is dropped. Nil leaves events as they are.
	Edit func(event.Event) event.Event

	// Logger is told, once, that the broker takes nothing, and once that it does again. Nil means slog.Default().
	Logger *slog.Logger
	// MeterProvider takes the metrics. Nil means the global provider.
	MeterProvider metric.MeterProvider
}

// Topics are names of topics: 1 to 200 letters, digits, _, - and, between these, single dots. Two may have the same name.
type Topics struct {
	// Denials has what was refused and what would have been. Empty means ratelimit.denials.
	Denials string
	// Thresholds has limits that fill up. Empty means ratelimit.thresholds.
	Thresholds string
	// PolicyUpdates has what instances do with policies and mode switches. Empty means ratelimit.policy.updates.
	PolicyUpdates string
}

const (
	maxEvents  = 1_000_000
	minBytes   = 64 << 10
	maxBytes   = 1 << 30
	minAge     = time.Second
	maxAge     = 24 * time.Hour
	maxBatch   = 10_000
	minTimeout = 100 * time.Millisecond
	maxTimeout = 5 * time.Minute
	maxName    = 128

	defaultEvents  = 10_000
	defaultBytes   = 16 << 20
	defaultAge     = 5 * time.Minute
	defaultBatch   = 500
	defaultTimeout = 10 * time.Second
)

var (
	topicForm     = regexp.MustCompile(`^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$`)
	namespaceForm = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)
)

// DefaultDenials is the topic of denials where a configuration names none.
const DefaultDenials = "ratelimit.denials"

// CheckTopic returns what is wrong with the name of a topic, nil if nothing is.
func CheckTopic(name string) error {
	const longest = 200
	if len(name) > longest || !topicForm.MatchString(name) {
		return fmt.Errorf("%.80q is no topic: write 1 to %d letters, digits, _ and -, with single dots between them", name, longest)
	}
	return nil
}

func (c Config) withDefaults() Config {
	c.Namespace = cmp.Or(c.Namespace, "main")
	c.Instance = cmp.Or(c.Instance, instanceName())
	c.Topics.Denials = cmp.Or(c.Topics.Denials, DefaultDenials)
	c.Topics.Thresholds = cmp.Or(c.Topics.Thresholds, "ratelimit.thresholds")
	c.Topics.PolicyUpdates = cmp.Or(c.Topics.PolicyUpdates, "ratelimit.policy.updates")
	c.MaxEvents = cmp.Or(c.MaxEvents, defaultEvents)
	c.MaxBytes = cmp.Or(c.MaxBytes, defaultBytes)
	c.MaxAge = cmp.Or(c.MaxAge, defaultAge)
	c.BatchEvents = cmp.Or(c.BatchEvents, defaultBatch)
	c.Timeout = cmp.Or(c.Timeout, defaultTimeout)
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

func (c *Config) validate() error {
	var errs []error
	wrong := func(format string, arguments ...any) {
		errs = append(errs, fmt.Errorf("stream: "+format, arguments...))
	}
	if c.Sink == nil {
		wrong("Config.Sink is nil: set that of a broker, such as the result of redisstream.New")
	}
	if !namespaceForm.MatchString(c.Namespace) {
		wrong("Config.Namespace %.80q: write 1 to 64 characters of A-Z a-z 0-9 _ . -", c.Namespace)
	}
	if len(c.Instance) > maxName || !utf8.ValidString(c.Instance) || Subject(c.Instance) != c.Instance {
		wrong("Config.Instance has %d bytes: write 1 to %d bytes of UTF-8 without control characters and backslashes", len(c.Instance), maxName)
	}
	for field, name := range map[string]string{
		"Denials": c.Topics.Denials, "Thresholds": c.Topics.Thresholds, "PolicyUpdates": c.Topics.PolicyUpdates,
	} {
		if err := CheckTopic(name); err != nil {
			wrong("Config.Topics.%s: %w", field, err)
		}
	}
	if c.MaxEvents < 1 || c.MaxEvents > maxEvents {
		wrong("Config.MaxEvents is %d: write 1 to %d, or 0 for %d", c.MaxEvents, maxEvents, defaultEvents)
	}
	if c.MaxBytes < minBytes || c.MaxBytes > maxBytes {
		wrong("Config.MaxBytes is %d: write %d to %d, or 0 for %d", c.MaxBytes, minBytes, maxBytes, defaultBytes)
	}
	if c.MaxAge < minAge || c.MaxAge > maxAge {
		wrong("Config.MaxAge is %v: write %v to %v, or 0 for %v", c.MaxAge, minAge, maxAge, defaultAge)
	}
	if c.BatchEvents < 1 || c.BatchEvents > maxBatch {
		wrong("Config.BatchEvents is %d: write 1 to %d, or 0 for %d", c.BatchEvents, maxBatch, defaultBatch)
	}
	if c.Timeout < minTimeout || c.Timeout > maxTimeout {
		wrong("Config.Timeout is %v: write %v to %v, or 0 for %v", c.Timeout, minTimeout, maxTimeout, defaultTimeout)
	}
	return errors.Join(errs...)
}

// source is the URI of an instance.
func (c *Config) source() string {
	return "ratelimit:" + url.PathEscape(c.Namespace) + "/" + url.PathEscape(c.Instance)
}
