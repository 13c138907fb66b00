package event

import (
	"context"
	"log/slog"
	"slices"
	"sync/atomic"
)

// Observer is told of events. It is called in the request that made them and by many at once, so that
// implementations must be safe for concurrent use and must not block. The context is that of the
// request: it may have ended.
type Observer interface {
	Observe(ctx context.Context, e Event)
}

// Keeper is an [Observer] that says whether it keeps what it is told. The id of a refusal that no keeper keeps leads
// nowhere, so that its client is given none.
type Keeper interface {
	Observer
	// Keep does what Observe does, and reports whether the event can be found later: it was written, or handed on.
	Keep(ctx context.Context, e Event) (kept bool)
}

// Func is an [Observer] of one function.
type Func func(ctx context.Context, e Event)

// Observe calls the function.
func (f Func) Observe(ctx context.Context, e Event) { f(ctx, e) }

// DropCounter is an [Observer] that says how many events it has not passed on. Package ratelimit has a metric of
// it.
type DropCounter interface {
	Observer
	// Dropped is how many events were dropped so far. It never becomes less.
	Dropped() uint64
}

var (
	_ DropCounter = (*Channel)(nil)
	_ DropCounter = all(nil)
	_ Keeper      = (*Channel)(nil)
	_ Keeper      = (*Logger)(nil)
)

// All returns an observer that tells each of them in turn. It is a [DropCounter] of those that are one, and has kept what
// one of them has: those that are no [Keeper] keep everything.
func All(observers ...Observer) Keeper {
	return all(slices.Clone(observers))
}

type all []Observer

// Observe tells each.
func (a all) Observe(ctx context.Context, e Event) { a.Keep(ctx, e) }

// Keep tells each, and reports whether one has kept the event.
func (a all) Keep(ctx context.Context, e Event) bool {
	kept := false
	for _, observer := range a {
		if keeper, ok := observer.(Keeper); ok {
			kept = keeper.Keep(ctx, e) || kept
			continue
		}
		observer.Observe(ctx, e)
		kept = true
	}
	return kept
}

// Dropped adds up what they have dropped.
func (a all) Dropped() uint64 {
	dropped := uint64(0)
	for _, observer := range a {
		if counter, ok := observer.(DropCounter); ok {
			dropped += counter.Dropped()
		}
	}
	return dropped
}

// Logger is an [Observer] that writes each event as a line: its name as the message, its fields as
// attributes. It blocks as long as the handler of the logger does; put a [Channel] before a slow one.
type Logger struct {
	log *slog.Logger
}

// NewLogger returns an observer for the logger. Nil means slog.Default().
func NewLogger(log *slog.Logger) *Logger {
	if log == nil {
		log = slog.Default()
	}
	return &Logger{log: log}
}

// Observe writes a line at level info, what concerns an operator now at level warn.
func (l *Logger) Observe(ctx context.Context, e Event) { l.Keep(ctx, e) }

// Keep writes the line, and returns false if the handler of the logger wants none of its level.
func (l *Logger) Keep(ctx context.Context, e Event) bool {
	level := slog.LevelInfo
	switch e := e.(type) {
	case RefusedRepeatedly, StoreAway, PolicyRefused:
		level = slog.LevelWarn
	case ModeSwitched:
		if len(e.InForce) > 0 || e.Refused > 0 || e.State != PolicyCurrent {
			level = slog.LevelWarn
		}
	case PolicyState:
		if e.To != PolicyCurrent || e.Unsaved != "" {
			level = slog.LevelWarn
		}
	case BreakerChanged:
		if e.To == BreakerOpen {
			level = slog.LevelWarn
		}
	default:
	}
	if !l.log.Enabled(ctx, level) {
		return false
	}
	// An empty key puts the fields into the line, and not into a group.
	l.log.LogAttrs(ctx, level, "ratelimit: "+e.Name(), slog.Attr{Value: e.LogValue()})
	return true
}

// Channel is an [Observer] that never blocks: it holds a number of events until somebody receives them,
// and drops and counts those that come while it is full. It starts no goroutine.
type Channel struct {
	events  chan Event
	dropped atomic.Uint64
}

// NewChannel returns a channel with room for so many events, at least one.
func NewChannel(room int) *Channel {
	return &Channel{events: make(chan Event, max(1, room))}
}

// Observe puts the event into the channel, or drops it.
func (c *Channel) Observe(ctx context.Context, e Event) { c.Keep(ctx, e) }

// Keep puts the event into the channel, and returns false if it drops it.
func (c *Channel) Keep(_ context.Context, e Event) bool {
	select {
	case c.events <- e:
		return true
	default:
		c.dropped.Add(1)
		return false
	}
}

// Events is where to receive. It is never closed.
func (c *Channel) Events() <-chan Event { return c.events }

// Dropped is how many events there was no room for.
func (c *Channel) Dropped() uint64 { return c.dropped.Load() }

// Forward tells the observer of all events until the context ends, with that context. It returns then,
// which makes it the body of a goroutine of the caller.
func (c *Channel) Forward(ctx context.Context, to Observer) {
	for {
		select {
		case <-ctx.Done():
			return
		case e := <-c.events:
			to.Observe(ctx, e)
		}
	}
}
