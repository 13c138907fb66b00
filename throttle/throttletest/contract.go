// Package throttletest is the contract of the centres of package throttle.
package throttletest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/throttle"
)

// Clock is one that a test sets. It is safe for concurrent use.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// NewClock returns one that stands at a moment of the year 2026.
func NewClock() *Clock { return &Clock{now: time.UnixMilli(1_790_000_000_123)} }

// Now returns the time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Add moves the clock, back for what is negative.
func (c *Clock) Add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// scene is a centre under test.
type scene struct {
	testing.TB

	clock  *Clock
	centre throttle.Centre
}

// Run holds a centre to the contract. start returns one that is empty and goes by the clock.
func Run(t *testing.T, start func(t *testing.T, clock *Clock) throttle.Centre) {
	t.Helper()
	for _, rule := range []struct {
		name string
		hold func(*scene)
	}{
		{"nothing is shed while no signal is over its target", (*scene).calm},
		{"the share moves once a beat, however many instances report", (*scene).oncePerBeat},
		{"a step keeps at least 0.7, and nothing grows within three seconds after it", (*scene).boundedStep},
		{"less completed than admitted sheds the difference at once, and keeps at least 0.4", (*scene).drain},
		{"what is kept comes back by at most three per cent a beat", (*scene).recovery},
		{"nothing moves between calm and the target", (*scene).deadBand},
		{"a share whose signals are stale falls to nothing from the third second to the eighth", (*scene).stale},
		{"fewer than half of the instances with signals are too few", (*scene).half},
		{"the share is never larger than floors leave", (*scene).floors},
		{"the highest and the lowest tenth of the instances are not heard", (*scene).outliers},
		{"no instance is heard beyond what the others say", (*scene).alone},
		{"an instance weighs what it admits", (*scene).weights},
		{"who leaves is not counted, nor who is silent for ten seconds", (*scene).leaves},
		{"a clock that is set back neither freezes the share nor moves it", (*scene).setBack},
		{"a report that is none is refused", (*scene).noReport},
		{"more instances than fit are refused", (*scene).full},
		{"random fleets come to the bits of the centre in memory", (*scene).sameBits},
	} {
		t.Run(rule.name, func(t *testing.T) {
			t.Parallel()
			clock := NewClock()
			rule.hold(&scene{TB: t, clock: clock, centre: start(t, clock)})
		})
	}
}

// report is that of an instance whose tiers may all be shed but for a tenth.
func report(instance string, pressure float64) throttle.Report {
	r := throttle.Report{Instance: instance, Fresh: true, Pressure: pressure, Weight: 100, Admitted: 100, Completed: 100}
	r.Offered[0], r.Sheddable[0] = 100, 90
	return r
}

// tell reports, and returns the share.
func (s *scene) tell(r throttle.Report) throttle.Share {
	s.Helper()
	share, err := s.centre.Exchange(s.Context(), r)
	if err != nil {
		s.Fatal(err)
	}
	return share
}

// beat is tell a beat later.
func (s *scene) beat(r throttle.Report) throttle.Share {
	s.Helper()
	s.clock.Add(throttle.Beat)
	return s.tell(r)
}

// near fails if a number is another one.
func (s *scene) near(want, have float64, what string) {
	s.Helper()
	if have < want-1e-9 || have > want+1e-9 {
		s.Fatalf("%s is %v, want %v", what, have, want)
	}
}

// seed is that of TEST_SEED.
func (s *scene) seed() uint64 {
	s.Helper()
	switch value := os.Getenv("TEST_SEED"); value {
	case "random":
		n := rand.Uint64() //nolint:gosec // a test
		s.Logf("TEST_SEED=%d", n)
		return n
	case "":
		return 1
	default:
		n, err := strconv.ParseUint(value, 10, 64)
		if err != nil {
			s.Fatal(fmt.Errorf("TEST_SEED: %w", err))
		}
		return n
	}
}
