package throttle

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/internal/guard"
)

// Names of the signals that every throttle can have.
const (
	signalProcessor = "processor"
	signalMemory    = "memory"
	signalLatency   = "latency"
	signalErrors    = "errors"
)

// answerWithin is for how long an instance waits for the centre. A later answer says nothing that the next one does not say.
const answerWithin = Beat / 2

// beat ends a beat: it reads the signals, tells the centre, and divides what is to be shed among the tenants.
func (t *Throttle) beat(ctx context.Context) {
	now := t.cfg.Clock()
	share, err := t.exchange(ctx, t.report(now, t.collect(ctx, now)))
	if ctx.Err() != nil {
		return
	}
	if err == nil {
		t.mu.Lock()
		t.last, t.at = share, t.cfg.Clock()
		t.mu.Unlock()
	}
	t.tell(ctx, err)
	t.shed()
}

// collect reads all signals, and returns what the operations of the beat came to.
func (t *Throttle) collect(ctx context.Context, now time.Time) beat {
	for i := range t.sources {
		s := &t.sources[i]
		value, ok := 0.0, false
		if err := guard.Call("Config.Sources", func() error {
			value, ok = s.Read()
			return nil
		}); err != nil {
			t.panics[i].tell(ctx, t.cfg.Logger, s.Name, err, now)
		}
		if ok {
			t.feed(s.Name, value, s.Target, s.Steep)
		}
	}
	t.mu.Lock()
	latencies := t.latencies
	t.mu.Unlock()
	for _, own := range latencies {
		p99, _ := own.latency.p99(nil, latencyBuckets)
		t.feed(own.name, p99.Seconds(), own.target.Seconds(), true)
	}
	b := t.flow.take(now)
	if t.cfg.Latency > 0 {
		// Without operations nothing is late.
		t.feed(signalLatency, b.p99.Seconds(), t.cfg.Latency.Seconds(), true)
	}
	if t.cfg.Errors > 0 {
		t.feed(signalErrors, b.failures, t.cfg.Errors, true)
	}
	return b
}

// report says what this instance has seen in the beat.
func (t *Throttle) report(now time.Time, b beat) Report {
	pressures := t.signals.take(now)
	t.told.pressed(pressures)
	// A beat that came late has more in it.
	beats := 1.0
	if !t.since.IsZero() {
		beats = max(0.1, now.Sub(t.since).Seconds()/Beat.Seconds())
	}
	t.since = now
	t.admittedRate += smoothing * (float64(b.admitted)/beats - t.admittedRate)
	t.completedRate += smoothing * (float64(b.completed)/beats - t.completedRate)
	report := Report{Instance: t.cfg.Instance, Admitted: t.admittedRate, Completed: t.completedRate}
	weight := 0.0
	for i := range Orders {
		offered, room, admitted := ended(&t.offered[i]), ended(&t.sheddable[i]), ended(&t.admitted[i])
		t.told.counted(i, offered, admitted)
		weight += float64(admitted)
		t.kept[i] = float64(admitted) / float64(offered)
		t.offeredLately[i] += adapting * (float64(offered)/beats - t.offeredLately[i])
		t.roomLately[i] += adapting * (float64(room)/floorWhole/beats - t.roomLately[i])
	}
	t.weight += smoothing * (weight/beats - t.weight)
	report.Weight, report.Offered, report.Sheddable = t.weight, t.offeredLately, t.roomLately
	if report.Fresh = len(pressures) > 0; report.Fresh {
		report.Pressure = pressures[0].pressure
	}
	return report
}

// exchange asks the centre.
func (t *Throttle) exchange(ctx context.Context, report Report) (share Share, err error) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	if failed := guard.Call("Config.Centre", func() error {
		share, err = t.cfg.Centre.Exchange(ctx, report)
		return nil
	}); failed != nil {
		return Share{}, failed
	}
	if err != nil {
		return Share{}, fmt.Errorf("throttle: %w", err)
	}
	return share, nil
}

// tell logs that the centre is away, and that it is back.
func (t *Throttle) tell(ctx context.Context, err error) {
	t.told.exchanged(ctx, err)
	if away := err != nil; away != t.away {
		t.away = away
		if away {
			t.cfg.Logger.WarnContext(ctx, "ratelimit: the shed share of the fleet is not known, so that it falls to nothing here", slog.Any("error", err))
		} else {
			t.cfg.Logger.InfoContext(ctx, "ratelimit: the shed share of the fleet is known again")
		}
	}
}

// shed divides what the centre said among the tenants.
func (t *Throttle) shed() {
	f := &force{at: t.at, shed: t.last.Shed, depth: fill(t.last.Shed, &t.last.Room)}
	for place := range t.crowds {
		if c := t.crowds[place].Load(); c != nil {
			c.share(t.kept[place], func(floor uint32) float64 { return f.of(place, float64(floor)/floorWhole) })
		}
	}
	if f.shed <= 0 {
		f = nil
	}
	t.force.Store(f)
}
