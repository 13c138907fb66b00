package access

import (
	"crypto/sha256"
	"errors"
	"net/netip"
	"sync"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/internal/recent"
)

// None means none, where zero means the default.
const None = -1

// GuessConfig bounds what an address may try. A token cannot be guessed; what is bounded is the work that trying makes, and what it
// writes into logs.
type GuessConfig struct {
	// Failures is how much an address may show within Window that does not hold. Zero is 20, [None] bounds nothing. IPv6 addresses
	// count by their /64.
	Failures int
	// Window is counted from the first failure. Zero is a minute.
	Window time.Duration
	// Addresses is how many addresses are counted at once, at 32 bytes each. Zero is 16 384. Where there are more, the one that has failed
	// longest ago is forgotten.
	Addresses int
}

// check fills in the defaults and returns all mistakes.
func (c *GuessConfig) check() error {
	if c.Failures == 0 {
		c.Failures = 20
	}
	if c.Window == 0 {
		c.Window = time.Minute
	}
	if c.Addresses == 0 {
		c.Addresses = 16 << 10
	}
	if c.Failures < None || c.Window < 0 || c.Addresses < 0 {
		return errors.New("access: GuessConfig has negative numbers: zero is the default, and None bounds nothing")
	}
	return nil
}

// guesses counts what addresses have tried.
type guesses struct {
	cfg    GuessConfig
	failed *recent.Counter[netip.Prefix]

	mu sync.Mutex
	// good are hashes of what has held lately, and until when that is remembered: whoever shares an address with somebody who guesses is
	// not kept out with them.
	good map[[sha256.Size]byte]time.Time
}

const (
	// maxGood is how many are remembered: only who is let in adds one.
	maxGood = 1024
	// goodFor is for how long.
	goodFor = 15 * time.Minute
)

func newGuesses(cfg GuessConfig) *guesses {
	return &guesses{cfg: cfg, failed: recent.NewCounter[netip.Prefix](cfg.Addresses), good: make(map[[sha256.Size]byte]time.Time)}
}

// sourceOf returns by what an address is counted: one host has a whole /64 of IPv6. All that have no address count as one. A prefix has
// no zone.
func sourceOf(address netip.Addr) netip.Prefix {
	address = address.Unmap()
	length := 32
	if address.Is6() {
		length = 64
	}
	source, _ := address.Prefix(length)
	return source
}

// begin counts a try as if it failed, so that those under way at once count as well. It reports whether the try may be made, and
// whether it was counted.
func (g *guesses) begin(source netip.Prefix, credential [sha256.Size]byte, now time.Time) (ok, counted bool) {
	if g.cfg.Failures == None {
		return true, false
	}
	if g.failed.Fits(source, 1, g.cfg.Failures, now, g.cfg.Window) {
		return true, true
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return now.Before(g.good[credential]), false
}

// spare takes back what begin has counted.
func (g *guesses) spare(source netip.Prefix, now time.Time) {
	g.failed.Fits(source, -1, g.cfg.Failures, now, g.cfg.Window)
}

// succeeded remembers what has held.
func (g *guesses) succeeded(credential [sha256.Size]byte, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, ok := g.good[credential]; !ok && len(g.good) >= maxGood {
		g.forget(now)
	}
	g.good[credential] = now.Add(goodFor)
}

// forget makes room. The lock is held.
func (g *guesses) forget(now time.Time) {
	var (
		oldest [sha256.Size]byte
		until  time.Time
	)
	for credential, t := range g.good {
		if !now.Before(t) {
			delete(g.good, credential)
		} else if until.IsZero() || t.Before(until) {
			oldest, until = credential, t
		}
	}
	if len(g.good) >= maxGood {
		delete(g.good, oldest)
	}
}
