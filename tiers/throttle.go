package tiers

import (
	"fmt"
)

// Throttle is what the adaptive throttle does with the operations of a tenant while servers are overloaded. The zero value is shed first, with
// the floor of its place.
type Throttle struct {
	// Acts is share (a share of the operations is refused before anything is charged) or none (nothing is shed). Empty means share.
	Acts string `yaml:"acts,omitempty" json:"acts,omitempty"`
	// Order is the place of the tenant in the order in which tiers are shed, 1 to 8: all of 1 to its floor before any of 2. Zero means 1.
	Order int64 `yaml:"order,omitempty" json:"order,omitempty"`
	// Floor is what of the load that is asked for is never shed, in per cent, 1 to 100. Zero means 10 at place 1, 25 at place 2, and 50 from
	// place 3 on.
	Floor int64 `yaml:"floor,omitempty" json:"floor,omitempty"`
}

// ThrottleActs is how the adaptive throttle acts on a tenant.
type ThrottleActs uint8

const (
	// ThrottleShare refuses a share of the operations, before they are charged. It is the default.
	ThrottleShare ThrottleActs = iota
	// ThrottleNone sheds nothing.
	ThrottleNone
)

// throttleActs are the words of the document.
var throttleActs = map[string]ThrottleActs{"": ThrottleShare, "share": ThrottleShare, "none": ThrottleNone}

// String returns the word of the document.
func (a ThrottleActs) String() string {
	for word, acts := range throttleActs {
		if word != "" && acts == a {
			return word
		}
	}
	return ""
}

// Shedding is a [Throttle] with its defaults filled in.
type Shedding struct {
	// Acts is how the throttle acts.
	Acts ThrottleActs
	// Order is 1 to 8, and Floor a share of what is asked for in per cent, 1 to 100.
	Order, Floor uint8
}

// Usual reports whether that is what holds where a policy says nothing.
func (s Shedding) Usual() bool { return s == shedding(nil) }

// String says what is shed, in words.
func (s Shedding) String() string {
	if s.Acts == ThrottleNone {
		return "nothing is shed"
	}
	return fmt.Sprintf("a share is shed, place %d, at least %d %% stays", s.Order, s.Floor)
}

// The bounds and defaults of a [Throttle].
const (
	maxThrottleOrder = 8
	maxThrottleFloor = 100
)

// throttleFloors are the floors of the first places. Those after them have the last one.
var throttleFloors = [...]uint8{10, 25, 50}

// shedding returns a throttle as it acts. What is out of bounds is the checker's to report.
func shedding(t *Throttle) Shedding {
	if t == nil {
		t = &Throttle{}
	}
	s := Shedding{Acts: throttleActs[t.Acts], Order: uint8(min(max(t.Order, 1), maxThrottleOrder))}
	s.Floor = throttleFloors[min(int(s.Order), len(throttleFloors))-1]
	if t.Floor > 0 {
		s.Floor = uint8(min(t.Floor, maxThrottleFloor))
	}
	return s
}

// throttle checks that of a tier or an exception.
func (c *checker) throttle(at path, t *Throttle) {
	if t == nil {
		return
	}
	at = at.to("throttle")
	if _, ok := throttleActs[t.Acts]; !ok {
		c.fail(at.to("acts"), "acts %s is unknown; share or none fits", echo(t.Acts))
	}
	if t.Order < 0 || t.Order > maxThrottleOrder {
		c.fail(at.to("order"), "order %d; 1 (shed first) to %d fit", t.Order, maxThrottleOrder)
	}
	if t.Floor < 0 || t.Floor > maxThrottleFloor {
		c.fail(at.to("floor"), "floor %d; 1 to %d per cent fit", t.Floor, maxThrottleFloor)
	}
}
