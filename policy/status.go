package policy

import (
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/event"
)

// State says whether an instance is in touch with its feed.
type State uint8

// States of a [Follower].
const (
	// Never says that the feed has not answered since the start: what holds is from the disk, or what was given first.
	Never State = iota
	// Current says that the feed has said within five intervals that what holds is its newest revision, or
	// that its newest one is the one that was refused.
	Current
	// Stale says that the feed has not said so for five intervals: it does not answer, has nothing, or is behind.
	Stale
)

// String returns never, current or stale.
func (s State) String() string {
	switch s {
	case Never:
		return "never"
	case Current:
		return event.PolicyCurrent
	default:
		return "stale"
	}
}

// Status is what an instance serves and what it knows of its feed, at one moment.
type Status struct {
	// State says whether the instance is in touch with the feed.
	State State
	// Number is that of the revision that holds, 0 for [Config.First]. Hash is that of its document.
	Number uint64
	Hash   Hash
	// Changed is since when it holds here.
	Changed time.Time
	// Asked is when the feed last said that it is in step with this instance. It is zero if it never has.
	Asked time.Time
	// Refused is the newest revision of the feed if it was refused. It is nil once the feed has another one.
	Refused *Refused
	// Failure is why the feed could not be read last. It is empty if it could.
	Failure string
	// Unsaved is why [Config.LastGood] could not be written last. It is empty if it could.
	Unsaved string
}

// Refused is a revision that is not applied, and why.
type Refused struct {
	Number uint64
	Hash   Hash
	// Cause is why, in a word.
	Cause Reason
	// Error is why, in at most about 1 KiB of text.
	Error string
	// At is since when.
	At time.Time
}

// is reports whether it is this revision that was refused. Nil is none.
func (r *Refused) is(head Head) bool {
	return r != nil && r.Number == head.Number && r.Hash == head.Hash
}

// lasts reports whether the same bytes are refused again: the other reasons are about what stands beside them.
func (r *Refused) lasts() bool {
	return r.Cause == ReasonDocument || r.Cause == ReasonCheck
}

// rejected is the number of the newest revision of the feed if it is refused. It is at least 1 then, whatever the
// revision says.
func (s *Status) rejected() uint64 {
	if s.Refused == nil {
		return 0
	}
	return max(1, s.Refused.Number)
}

// Age is for how long the feed has not said that it is in step with the instance: since [Status.Asked], or
// since the policy holds where it never has.
func (s *Status) Age(now time.Time) time.Duration {
	since := s.Asked
	if since.IsZero() {
		since = s.Changed
	}
	return max(0, now.Sub(since))
}
