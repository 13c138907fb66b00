package follow

import "time"

// Contact says whether an instance is in touch with what it follows.
type Contact uint8

// Whether an instance is in touch.
const (
	// Never says that the source has not answered since the start.
	Never Contact = iota
	// Current says that the source has answered within five intervals.
	Current
	// Stale says that the source has not answered for five intervals.
	Stale
)

// String returns never, current or stale.
func (c Contact) String() string {
	switch c {
	case Never:
		return "never"
	case Current:
		return "current"
	default:
		return "stale"
	}
}

// State is what is known of a source at one moment.
type State struct {
	Contact Contact
	// Asked is when the source has last answered. It is zero if it never has.
	Asked time.Time
	// Age is for how long it has not: since the follower was made where it never has.
	Age time.Duration
	// Err is why the last question had no answer. It is nil if it had one.
	Err error
}

// State returns what is known of the source. It waits for nothing.
func (f *Follower[T]) State() State {
	k, now := f.known.Load(), time.Now()
	s := State{Asked: k.asked, Err: k.err}
	since := k.asked
	switch {
	case k.asked.IsZero():
		since = f.began
	case f.cfg.Interval > 0 && now.Sub(k.asked) > staleIntervals*f.cfg.Interval:
		s.Contact = Stale
	default:
		s.Contact = Current
	}
	s.Age = max(0, now.Sub(since))
	return s
}
