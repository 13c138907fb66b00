// Package fleet has the words of the instances that share a store and, while it is away, its limits: what package bucket,
// which judges by their shares, and those who configure it have in common.
package fleet

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/internal/state"
)

const (
	// DefaultPercent is how much of a limit all instances together may admit by themselves.
	DefaultPercent = 70
	// DefaultOwners is how many owners are remembered: some 20 MB with short names, and 45 MB with names of
	// 100 bytes.
	DefaultOwners = 50_000
	// MaxInstances is the largest fleet.
	MaxInstances = state.MaxInstances
	// BeatEvery is how often an instance says that it lives.
	BeatEvery = 5 * time.Second
	// BeatLife is for how long it is believed to.
	BeatLife = 4 * BeatEvery
)

// Config configures local shares. The zero value counts instances by heartbeats.
type Config struct {
	// Instances is how many instances share the store, at most [MaxInstances]. Zero counts them by the
	// heartbeats that they send through the store, if it counts them; until the first was answered nothing
	// is admitted.
	Instances int
	// Instance names this instance among those that are counted. Zero means a random name. Several that belong
	// to one process and one store have the same.
	Instance [8]byte
	// Percent is how much of each limit all instances together may admit by themselves, from 1 to 100.
	// Zero means [DefaultPercent]. What is missing to 100 covers what others have taken since this
	// instance was last told what is left.
	Percent int
	// KnownFor is for how long it is believed what the store has said is left of a limit. What is older counts
	// as unknown: a budget starts empty then, and gains its share of the refill. Zero means a sixtieth of the
	// time in which the limit comes back, but at least one second and at most five; -1 believes nothing, so that
	// what others took since does not matter, however unevenly the instances are used. A single instance always
	// believes: nobody else takes from its budgets.
	KnownFor time.Duration
	// MaxOwners is how many owners are remembered. Zero means [DefaultOwners].
	MaxOwners int
	// Clock tells the time; it may be called by several goroutines at once. Nil means the system's clock. It
	// is corrected by the time that the store tells.
	Clock func() time.Time
}

// Mistakes returns what is wrong with the configuration, one text for each field.
func (c *Config) Mistakes() []string {
	var mistakes []string
	for _, number := range []struct {
		name        string
		value, most int
	}{{"Instances", c.Instances, MaxInstances}, {"Percent", c.Percent, 100}, {"MaxOwners", c.MaxOwners, 1 << 30}} {
		if number.value < 0 || number.value > number.most {
			mistakes = append(mistakes, fmt.Sprintf("%s is %d, want 0 to %d", number.name, number.value, number.most))
		}
	}
	if c.KnownFor < -1 {
		mistakes = append(mistakes, fmt.Sprintf("KnownFor is %v, want 0 or more, or None", c.KnownFor))
	}
	return mistakes
}

// NewInstance returns the random name of another instance.
func NewInstance() (i [8]byte) {
	for n, word := 0, rand.Uint64(); n < len(i); n++ { //nolint:gosec // Unique is enough: it is no secret.
		i[n] = byte(word >> (8 * n))
	}
	return i
}
