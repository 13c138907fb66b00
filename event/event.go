package event

import (
	"log/slog"
	"time"
)

// Event is a fact. Its type is one of those of this package; further types may come, so that a switch
// over them has a default. As JSON the durations in events are nanoseconds, and what is empty is left out.
type Event interface {
	// Name is the name of the type in logs and metrics, such as threshold_crossed.
	Name() string
	// LogValue is what there is to say, as a group of attributes.
	slog.LogValuer
}

// Budget is the limit that a fact is about, and whose it is.
type Budget struct {
	// Tenant is the top owner, Tier the tier whose rules applied. Names of more than 256 bytes, which no
	// policy can have, are cut to as many here and in Owner.
	Tenant string `json:"tenant,omitempty"`
	Tier   string `json:"tier,omitempty"`
	// Level is whose limit it is: tenant, team, user or operation. Owner tells owners of one level
	// apart; it is empty at the level of the tenant. Part tells apart those who have a bucket of an operation
	// each: it is the name of a user, or a hash of what was given as an argument.
	Level string `json:"level,omitempty"`
	Owner string `json:"owner,omitempty"`
	Part  string `json:"part,omitempty"`
	// Limit is the name of the limit, Unit what it counts, and Capacity how much it holds.
	Limit    string `json:"limit,omitempty"`
	Unit     string `json:"unit,omitempty"`
	Capacity int64  `json:"capacity,omitempty"`
	// Mode is what the limit does to an operation that exceeds it: enforce, warn or shadow.
	Mode string `json:"mode,omitempty"`
}

func (b *Budget) attributes(more ...slog.Attr) slog.Value {
	attributes := make([]slog.Attr, 0, 9+len(more))
	add := func(key, text string) {
		if text != "" {
			attributes = append(attributes, slog.String(key, text))
		}
	}
	add("tenant", b.Tenant)
	add("tier", b.Tier)
	add("level", b.Level)
	add("owner", b.Owner)
	add("part", b.Part)
	add("limit", b.Limit)
	add("unit", b.Unit)
	if b.Capacity > 0 {
		attributes = append(attributes, slog.Int64("capacity", b.Capacity))
	}
	add("mode", b.Mode)
	return slog.GroupValue(append(attributes, more...)...)
}

// ThresholdCrossed says that the share of a limit that is used has risen over a threshold.
type ThresholdCrossed struct {
	Budget

	// At is when, by the clock of the replica.
	At time.Time `json:"at"`
	// Threshold is the share, above 0 and at most 1, and Share the one that is used now: more than 1 of a
	// limit that is overdrawn.
	Threshold float64 `json:"threshold"`
	Share     float64 `json:"share"`
	// Remaining is what is left.
	Remaining int64 `json:"remaining"`
}

// Name returns threshold_crossed.
func (ThresholdCrossed) Name() string { return "threshold_crossed" }

// LogValue returns all fields but the time.
func (e ThresholdCrossed) LogValue() slog.Value {
	return e.attributes(slog.Float64("threshold", e.Threshold), slog.Float64("share", e.Share),
		slog.Int64("remaining", e.Remaining))
}

// LimitReached says that a limit refuses for the first time in a period.
type LimitReached struct {
	Budget

	// At is when, by the clock of the replica.
	At time.Time `json:"at"`
	// RetryAfter is when the operation that was refused would pass. It is zero if it never would: what
	// it takes exceeds the capacity.
	RetryAfter time.Duration `json:"retryAfter,omitempty"`
}

// Name returns limit_reached.
func (LimitReached) Name() string { return "limit_reached" }

// LogValue returns all fields but the time, and retryAfter only if waiting helps.
func (e LimitReached) LogValue() slog.Value {
	if e.RetryAfter == 0 {
		return e.attributes()
	}
	return e.attributes(slog.Duration("retryAfter", e.RetryAfter))
}

// WouldRefuse says that an operation ran which would have been refused if its mode were enforce, for
// the first time in a period.
type WouldRefuse struct {
	// Budget has no limit if the operation exceeds a maximum cost or breaks a rule of shape.
	Budget

	// At is when, by the clock of the replica.
	At time.Time `json:"at"`
	// Code is the one that the client would have been refused with.
	Code string `json:"code"`
	// EnforceFrom is when it is refused. It is zero if that is not known.
	EnforceFrom time.Time `json:"enforceFrom,omitzero"`
}

// Name returns would_refuse.
func (WouldRefuse) Name() string { return "would_refuse" }

// LogValue returns all fields but the time.
func (e WouldRefuse) LogValue() slog.Value {
	more := []slog.Attr{slog.String("code", e.Code)}
	if !e.EnforceFrom.IsZero() {
		more = append(more, slog.Time("enforceFrom", e.EnforceFrom))
	}
	return e.attributes(more...)
}

// CandidateDiffers says that a candidate policy would have admitted what was refused, or refused what was
// admitted.
type CandidateDiffers struct {
	// Tenant is the top owner, Tier the tier whose live rules applied.
	Tenant string `json:"tenant,omitempty"`
	Tier   string `json:"tier,omitempty"`
	// At is when, by the clock of the replica.
	At time.Time `json:"at"`
	// Candidate is the id of the candidate.
	Candidate string `json:"candidate"`
	// Live is the outcome of the decision, and Would that of the candidate, in the words of metrics.
	Live  string `json:"live"`
	Would string `json:"would"`
}

// Name returns candidate_differs.
func (CandidateDiffers) Name() string { return "candidate_differs" }

// LogValue returns all fields but the time.
func (e CandidateDiffers) LogValue() slog.Value {
	return slog.GroupValue(slog.String("tenant", e.Tenant), slog.String("tier", e.Tier),
		slog.String("candidate", e.Candidate), slog.String("live", e.Live), slog.String("would", e.Would))
}

// RefusedRepeatedly says that a tenant keeps being refused: its client does not wait, or its tier is
// too small.
type RefusedRepeatedly struct {
	// Tenant is the top owner, Tier the tier whose rules applied.
	Tenant string `json:"tenant,omitempty"`
	Tier   string `json:"tier,omitempty"`
	// At is when, by the clock of the replica.
	At time.Time `json:"at"`
	// Refusals is how many there were, in all its limits, and Within in how long at most.
	Refusals int           `json:"refusals"`
	Within   time.Duration `json:"within"`
}

// Name returns refused_repeatedly.
func (RefusedRepeatedly) Name() string { return "refused_repeatedly" }

// LogValue returns all fields but the time.
func (e RefusedRepeatedly) LogValue() slog.Value {
	return slog.GroupValue(slog.String("tenant", e.Tenant), slog.String("tier", e.Tier),
		slog.Int("refusals", e.Refusals), slog.Duration("within", e.Within))
}
