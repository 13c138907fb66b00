package control

import (
	"fmt"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/freeze"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
)

const (
	// searchPass says when the store of budgets was searched last for what nobody has told.
	searchPass   = "search"
	minutesOfDay = secondsOfDay / 60
)

// coverage is what is known of a period whose counts are all there that ever will be.
type coverage struct {
	// until is up to when counts were collected, and unknown up to when not everything was: zero if it was from the beginning of the period on.
	until, unknown time.Time
}

// waits returns why a period cannot be frozen.
func waits(reason freeze.Reason, format string, args ...any) error {
	problem := fmt.Sprintf(format, args...)
	return &InvalidError{Field: "period", Problem: problem, Err: &freeze.WaitError{Reason: reason, Problem: problem}}
}

// collected returns what is there of a period, of which nothing is forgotten before the transaction ends, or what is missing. Of a tenant, or of all if that is empty.
func (p statementPeriod) collected(v *store.View, kept store.UsageState, tenant string, incomplete bool) (*coverage, error) {
	span, err := v.UsageSpan(usagePass)
	if err != nil {
		return nil, err
	}
	searched, err := v.UsagePass(searchPass)
	if err != nil {
		return nil, err
	}
	computing, err := v.UsageWaits(tenant, p.first, p.until)
	if err != nil {
		return nil, err
	}
	// A settlement that comes late is lost with its minute.
	gap, err := v.LastUsageGap(p.first*minutesOfDay, p.settled().Unix()/60)
	if err != nil {
		return nil, err
	}
	since, until := spanTimes(&span)
	switch {
	case since.IsZero() || !since.Before(dayAt(p.until)):
		return nil, waits(freeze.Uncollected, "nobody has collected counts of it")
	case until.Before(p.settled()):
		return nil, waits(freeze.Behind, "counts are collected up to %s, and settlements of it come until %s: the collector is behind", shown(until), shown(p.settled()))
	case searched < p.until*minutesOfDay:
		return nil, waits(freeze.Unsearched, "the store of budgets was not searched since its end for counts that nobody has told: the collector does so each hour")
	case computing:
		return nil, waits(freeze.Uncomputed, "something of it is collected and not added up yet: ask again in some minutes")
	case store.MonthOfDay(p.first) < kept.DaysFrom:
		return nil, waits(freeze.Forgotten, "days are kept from %s on: what was before is forgotten", shown(dayAt(store.FirstDayOfMonth(kept.DaysFrom))))
	case gap != nil && !incomplete:
		return nil, waits(freeze.Gap, "nobody has collected from %s to %s, for longer than counts are kept: what was counted may be lost. Freeze it as incomplete, and the statement says so",
			shown(minuteAt(gap.First)), shown(minuteAt(gap.Until)))
	}
	c := &coverage{until: until}
	if since.After(dayAt(p.first)) {
		c.unknown = since
	}
	if gap != nil {
		c.unknown = latest(c.unknown, minuteAt(min(gap.Until, p.until*minutesOfDay)))
	}
	return c, nil
}

// minuteAt is when a minute begins, counted since 1970.
func minuteAt(minute int64) time.Time { return time.Unix(minute*60, 0).UTC() }

// latest is the later one of two times.
func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
