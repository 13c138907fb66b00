package throttle

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"time"

	"go.opentelemetry.io/otel/metric"
)

// None switches a target off whose zero value is a default.
const None = -1

// Config says how a [Throttle] works. Centre is required; everything else has a default in its zero value. Every mistake in it is
// reported, all at once, by [New].
type Config struct {
	// Centre keeps the share: a [Memory] for one process, redisthrottle.New for a fleet.
	Centre Centre
	// Instance names this process among those that share the centre. Empty means a random name.
	Instance string

	// Processor is the share of the processors that the process may use, above 0 and at most 1. Zero means 0.9, [None] that nobody looks.
	Processor float64
	// Memory is the share of its memory that the process may hold, above 0 and at most 1: of what its control group, or GOMEMLIMIT, gives
	// it. Where neither does there is no such signal. Zero means 0.9, [None] that nobody looks.
	Memory float64
	// Latency is how long the slowest hundredth of operations may take; no tenant is that alone. It is a target in itself, because a learned one drifts. Zero means that
	// latency is no signal.
	Latency time.Duration
	// Errors is the share of operations that may fail, above 0 and at most 1. Zero means that errors are no signal: they are where clients
	// cannot make operations fail.
	Errors float64
	// Sources are signals of the server's own, at most 16.
	Sources []Source

	// Clock tells the time, for tests. Nil means the system's clock.
	Clock func() time.Time
	// Logger is told that the centre does not answer, and that it does again. Nil means slog.Default().
	Logger *slog.Logger
	// MeterProvider takes the metrics. Nil means the global provider.
	MeterProvider metric.MeterProvider
}

const (
	defaultTarget = 0.9
	maxSources    = 16
	maxLatency    = time.Hour
)

func (c Config) withDefaults() Config {
	c.Processor, c.Memory = cmp.Or(c.Processor, defaultTarget), cmp.Or(c.Memory, defaultTarget)
	if c.Clock == nil {
		c.Clock = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Instance == "" {
		var random [8]byte
		// It never fails.
		_, _ = rand.Read(random[:])
		c.Instance = hex.EncodeToString(random[:])
	}
	return c
}

func (c *Config) validate() error {
	var errs []error
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf("throttle: Config."+format, args...)) }
	if absent(c.Centre) {
		fail("Centre is nil: set throttle.NewMemory or redisthrottle.New")
	}
	if len(c.Instance) > MaxInstanceName {
		fail("Instance has %d bytes, want at most %d", len(c.Instance), MaxInstanceName)
	}
	for _, target := range []struct {
		name  string
		value float64
	}{{"Processor", c.Processor}, {"Memory", c.Memory}} {
		if target.value != None && !(target.value > 0 && target.value <= 1) {
			fail("%s is %v, want above 0 and at most 1, or None", target.name, target.value)
		}
	}
	if c.Latency < 0 || c.Latency > maxLatency {
		fail("Latency is %v, want up to %v", c.Latency, maxLatency)
	}
	if !(c.Errors >= 0 && c.Errors <= 1) {
		fail("Errors is %v, want 0 to 1", c.Errors)
	}
	c.validateSources(fail)
	return errors.Join(errs...)
}

func (c *Config) validateSources(fail func(string, ...any)) {
	if len(c.Sources) > maxSources {
		fail("Sources has %d signals, want at most %d", len(c.Sources), maxSources)
	}
	seen := map[string]bool{signalProcessor: true, signalMemory: true, signalLatency: true, signalErrors: true}
	for i, s := range c.Sources {
		switch {
		case s.Name == "" || len(s.Name) > maxSignalName:
			fail("Sources[%d].Name has %d bytes, want 1 to %d", i, len(s.Name), maxSignalName)
		case seen[s.Name]:
			fail("Sources[%d].Name is %q, which another signal has", i, s.Name)
		case !usable(0, s.Target):
			fail("Sources[%d].Target is %v, want above 0", i, s.Target)
		case s.Read == nil:
			fail("Sources[%d].Read is nil: say how %s is read", i, s.Name)
		}
		seen[s.Name] = true
	}
}

// absent reports whether a centre is nil, or a nil pointer, as the result of a function is whose error was not looked at.
func absent(c Centre) bool {
	v := reflect.ValueOf(c)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()
}
