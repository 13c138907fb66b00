package webhook

import "time"

// State is where a delivery stands.
type State string

// States.
const (
	// Waiting has an attempt before it, at Delivery.Due.
	Waiting State = "waiting"
	// Done was delivered.
	Done State = "done"
	// Dead is tried no more unless it is replayed: all attempts have failed, the endpoint wants none, or no attempt can bring it.
	Dead State = "dead"
)

// Delivery is a message on its way to one endpoint. It is a value: its methods return what it becomes, and keep nothing. They know no clock but the one
// that they are given.
type Delivery struct {
	Message
	// State is where it stands.
	State State
	// Attempts is how many were made since it was begun or replayed.
	Attempts int
	// Due is when the next attempt may be made.
	Due time.Time
	// Outcome, Reason and Status are those of the last attempt.
	Outcome Outcome
	Reason  Reason
	Status  int
}

// waits are those before each attempt, as Standard Webhooks recommends them: 75 h 35 min and 5 s in all.
var waits = [...]time.Duration{
	0, 5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour,
}

const (
	// MaxAttempts is how many attempts are made.
	MaxAttempts = len(waits)
	// minSlow is how long an endpoint that asks for fewer messages is left alone at least.
	minSlow = time.Minute
	// spread is the share of a wait by which it is longer at most.
	spread = 0.2
)

// Begin returns the delivery of a message, due now.
func Begin(m Message, now time.Time) Delivery {
	return Delivery{Message: m, State: Waiting, Due: now}
}

// Replay returns the delivery as it was at first, due now, under the same id: a receiver that has seen it knows it.
func (d Delivery) Replay(now time.Time) Delivery {
	return Begin(d.Message, now)
}

// After returns what becomes of a delivery that waits by an attempt that ended now. The next one is due after the wait of the schedule, or what the
// endpoint has asked for if that is longer, and up to a fifth later: jitter, from 0 to 1, is the share of that, so that what failed together does not come back
// together. What does not wait stays as it is.
func (d Delivery) After(r Result, now time.Time, jitter float64) Delivery {
	if d.State != Waiting {
		return d
	}
	d.Attempts++
	d.Outcome, d.Reason, d.Status = r.Outcome, r.Reason, r.Status
	switch {
	case r.Outcome == Delivered:
		d.State = Done
		return d
	case r.Outcome == Gone, r.Outcome == Refused, d.Attempts >= MaxAttempts:
		d.State = Dead
		return d
	}
	wait := max(waits[d.Attempts], min(r.RetryAfter, MaxRetryAfter))
	if r.Outcome == Slow {
		wait = max(wait, minSlow)
	}
	// A jitter that is none is none.
	if jitter > 0 && jitter <= 1 {
		wait += time.Duration(jitter * spread * float64(wait))
	}
	d.Due = now.Add(wait)
	return d
}
