// Package fleet has the words of the instances that share a store and, while it is away, its limits: what package bucket,
// which judges by their shares, and those who configure it have in common.
package fleet

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/internal/state"
)

const (
	// DefaultPercent is how much of a limit all instances together may admit by themselves.
	DefaultPercent = 70
	// DefaultBoundedMultiple is how many times a limit that fails bounded all instances together may admit by themselves.
	DefaultBoundedMultiple = 2
	// DefaultOwners is how many tenants and owners are remembered: some 30 MB with short names, and 55 MB with names of 100 bytes.
	DefaultOwners = 50_000
	// MaxInstances is the largest fleet.
	MaxInstances = state.MaxInstances
	// BeatEvery is how often an instance says that it lives.
	BeatEvery = 5 * time.Second
	// BeatLife is for how long it is believed to.
	BeatLife = 4 * BeatEvery
)

// Config configures local shares: ratelimit.OutageConfig says what Instances, Percent and Clock mean. Nobody but tests sets BoundedMultiple,
// KnownFor and MaxOwners.
type Config struct {
	Instances int
	Percent   int
	Clock     func() time.Time
	// Instance names this instance among those that are counted, the zero one at random. All that belong to one process and one
	// store have the same.
	Instance [8]byte
	// BoundedMultiple is how many times a limit that fails bounded all instances together may admit by themselves. Zero is
	// DefaultBoundedMultiple.
	BoundedMultiple int
	// KnownFor is for how long it is believed what the store has said is left of a limit. Zero is a sixtieth of the time in which the
	// limit comes back, at least one second and at most five, and less than nothing believes nothing. A single instance always believes.
	KnownFor time.Duration
	// MaxOwners is how many tenants and owners are remembered. Zero is DefaultOwners.
	MaxOwners int
}

// Mistakes returns what is wrong with the configuration, one text for each field.
func (c *Config) Mistakes() []string {
	var mistakes []string
	for _, number := range []struct {
		name        string
		value, most int
	}{
		{"Instances", c.Instances, MaxInstances},
		{"Percent", c.Percent, 100},
	} {
		if number.value < 0 || number.value > number.most {
			mistakes = append(mistakes, fmt.Sprintf("%s is %d, want 0 to %d", number.name, number.value, number.most))
		}
	}
	return mistakes
}

// WithDefaults returns the configuration with the defaults in the place of what is zero.
func (c Config) WithDefaults() Config {
	if c.Instance == ([8]byte{}) {
		c.Instance = NewInstance()
	}
	c.BoundedMultiple = cmp.Or(c.BoundedMultiple, DefaultBoundedMultiple)
	c.Percent = cmp.Or(c.Percent, DefaultPercent)
	c.MaxOwners = cmp.Or(c.MaxOwners, DefaultOwners)
	if c.Clock == nil {
		c.Clock = time.Now
	}
	return c
}

// NewInstance returns the random name of another instance, which says that it can lease.
func NewInstance() (i [8]byte) {
	for n, word := copy(i[:], state.Leases), rand.Uint64(); n < len(i); n++ { //nolint:gosec // Unique is enough: it is no secret.
		i[n] = byte(word >> (8 * n))
	}
	return i
}
