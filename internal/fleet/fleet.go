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
	// DefaultOpenMultiple is how many times a limit that fails bounded all instances together may admit by themselves.
	DefaultOpenMultiple = 2
	// MaxOpenMultiple is the largest multiple: a larger one bounds nothing.
	MaxOpenMultiple = 100
	// DefaultOwners is how many owners are remembered.
	DefaultOwners = 50_000
	// MaxInstances is the largest fleet.
	MaxInstances = state.MaxInstances
	// BeatEvery is how often an instance says that it lives.
	BeatEvery = 5 * time.Second
	// BeatLife is for how long it is believed to.
	BeatLife = 4 * BeatEvery
)

// Config configures local shares: ratelimit.OutageConfig says what each field means.
type Config struct {
	Instances    int
	Instance     [8]byte
	OpenMultiple int
	Percent      int
	KnownFor     time.Duration
	MaxOwners    int
	Clock        func() time.Time
	// Counted is told whose usage was counted with a settlement, or may have been, and when by the clock of the store. Nil is told nothing.
	Counted func(tenant string, at time.Time)
}

// Mistakes returns what is wrong with the configuration, one text for each field.
func (c *Config) Mistakes() []string {
	var mistakes []string
	for _, number := range []struct {
		name        string
		value, most int
	}{
		{"Instances", c.Instances, MaxInstances},
		{"OpenMultiple", c.OpenMultiple, MaxOpenMultiple},
		{"Percent", c.Percent, 100},
		{"MaxOwners", c.MaxOwners, 1 << 30},
	} {
		if number.value < 0 || number.value > number.most {
			mistakes = append(mistakes, fmt.Sprintf("%s is %d, want 0 to %d", number.name, number.value, number.most))
		}
	}
	if c.KnownFor < -1 {
		mistakes = append(mistakes, fmt.Sprintf("KnownFor is %v, want a time, or None", c.KnownFor))
	}
	return mistakes
}

// WithDefaults returns the configuration with the defaults in the place of what is zero.
func (c Config) WithDefaults() Config {
	if c.Instance == ([8]byte{}) {
		c.Instance = NewInstance()
	}
	c.OpenMultiple = cmp.Or(c.OpenMultiple, DefaultOpenMultiple)
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
