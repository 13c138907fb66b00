package ratelimit

import (
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/event"
)

// EventsConfig configures the facts about limits. The zero value is the default in each field. The
// metrics ratelimit.limit.crossings and ratelimit.tenant.refused_repeatedly follow it as well, whether
// there is an observer or not.
type EventsConfig struct {
	// Observer is told. It is called in the request, so that it must not block; package event has a
	// channel, and a logger. Nil tells nobody.
	Observer event.Observer
	// Thresholds are the shares of a limit, above 0 and at most 1, that are told when the used share rises
	// over them: at most 8. Each is told once for each period or window of the limit of an owner, by each
	// replica. Nil means 0.8 and 1; empty means none.
	Thresholds []float64
	// Admissions is the share of the operations, and of the charges inside them, that were not refused and are
	// told all the same, as [event.Decided]: from 0 to 1, drawn at random for each. Every refusal is told.
	// Zero means none.
	Admissions float64
	// RepeatedRefusals is after how many refusals within RepeatedWithin it is told that a tenant is
	// refused repeatedly, once in that time. Zero means 100, negative means never.
	RepeatedRefusals int
	// RepeatedWithin is the time in which they are counted, from a second to a day, beginning with the
	// first. Zero means a minute.
	RepeatedWithin time.Duration
}

// Defaults and bounds of an [EventsConfig].
const (
	defaultRepeatedRefusals = 100
	defaultRepeatedWithin   = time.Minute
	maxThresholds           = 8
)

func (c EventsConfig) withDefaults() EventsConfig {
	if c.Thresholds == nil {
		c.Thresholds = []float64{0.8, 1}
	}
	c.RepeatedRefusals = orDefault(c.RepeatedRefusals, defaultRepeatedRefusals)
	c.RepeatedWithin = orDefault(c.RepeatedWithin, defaultRepeatedWithin)
	return c
}

func (c *EventsConfig) validate(fail func(format string, args ...any)) {
	if n := len(c.Thresholds); n > maxThresholds {
		fail("Events.Thresholds are %d, want at most %d", n, maxThresholds)
	}
	for _, threshold := range c.Thresholds {
		// Written so that NaN is refused too.
		if !(threshold > 0 && threshold <= 1) {
			fail("Events.Thresholds has %v, want above 0 and at most 1", threshold)
		}
	}
	if !(c.Admissions >= 0 && c.Admissions <= 1) {
		fail("Events.Admissions is %v, want a share from 0 to 1", c.Admissions)
	}
	if c.RepeatedWithin < time.Second || c.RepeatedWithin > 24*time.Hour {
		fail("Events.RepeatedWithin is %s, want from 1s to 24h", c.RepeatedWithin)
	}
}
