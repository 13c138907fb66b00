package throttle

import (
	"context"
	"errors"
	"hash/maphash"
	"log/slog"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// Throttle sheds load in one process. Make it with [New], start [Throttle.Run], and give it to ratelimit.Config. It is safe for concurrent use.
type Throttle struct {
	cfg     Config
	epoch   time.Time
	seed    maphash.Seed
	flow    *flow
	signals *signals
	told    *instruments
	sources []Source
	// panics are those of each source, and belong to the goroutine of Run.
	panics []panics

	// crowds are the tenants of each place in the order, nil before the first.
	crowds [Orders]atomic.Pointer[crowd]
	// offered and admitted are points of this beat, and sheddable is in 1/1024 of a point.
	offered, sheddable, admitted [Orders]atomic.Int64
	// force is what is shed now.
	force atomic.Pointer[force]

	running, ended chan struct{}
	begin, end     sync.Once
	mu             sync.Mutex
	// latencies are the server's own, under mu.
	latencies []named

	// What follows belongs to the goroutine of Run. last is what the centre has said, and at when.
	last Share
	at   time.Time
	away bool
	// rates are smoothed over about a second, and places over about three.
	admittedRate, completedRate float64
	offeredLately, roomLately   [Orders]float64
	weight                      float64
	// kept is the share that ran in the last beat, by place, no number if nothing was asked for.
	kept [Orders]float64
	// overfull says that it was logged that there are too many signals, and mistaken that one has no target or no name. Both are under mu.
	overfull, mistaken bool
	since              time.Time
}

// force is what is shed in a beat.
type force struct {
	// at is as of when the centre has said so.
	at time.Time
	// depth is how much of what a tier has to spare is shed, by the place in the order.
	depth [Orders]float64
	// shed is the share of the whole load.
	shed float64
}

// of is the share that is shed of a tier with a floor.
func (f *force) of(order int, floor float64) float64 {
	return f.depth[order] * (1 - floor)
}

// New returns a throttle that sheds nothing before [Throttle.Run]. The error has every mistake in the configuration.
func New(cfg Config) (*Throttle, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	t := &Throttle{
		cfg: cfg, epoch: cfg.Clock(), seed: maphash.MakeSeed(), signals: newSignals(),
		running: make(chan struct{}), ended: make(chan struct{}),
	}
	t.flow = newFlow(t.epoch, t.seed, cfg.Latency, cfg.Errors)
	t.sources = append(collectors(&cfg), cfg.Sources...)
	t.panics = make([]panics, len(t.sources))
	var err error
	if t.told, err = newInstruments(cfg.MeterProvider, t); err != nil {
		return nil, err
	}
	return t, nil
}

// Verdict is what becomes of an operation.
type Verdict struct {
	// Shed says that it is not to run, and Share is the share that is shed of operations of its tier, from 0 to 1.
	Shed  bool
	Share float64
	// RetryAfter is when its client should come back. It is drawn at random, so that those who are shed together do not come back together.
	RetryAfter time.Duration
}

// What clients are told to wait: the share stays for three seconds, and comes back by a few per cent a second.
const (
	retryLeast  = time.Second
	retrySpread = 3 * time.Second
)

// mostCost bounds what one operation counts in a beat, in points.
const mostCost = 1 << 26

// Offer judges an operation of a tenant. order is the place of its tier, from 1, which is shed first, to [Orders], and floor the share of what
// the tier asks for that is never shed, from 0 to 1: at 1 nothing is. cost is in points, and what costs nothing counts as a point. It takes no
// memory.
func (t *Throttle) Offer(tenant string, order int, floor float64, cost int64) Verdict {
	place, fixed, cost := placeOf(order, floor, cost)
	c := t.crowd(place)
	s, asker := c.of(t.seed, tenant)
	if s.floor.Load() != fixed {
		s.floor.Store(fixed)
	}
	sheds, left := t.sheds(place, fixed)
	turn, cut := c.turnOf(s, asker, fixed)
	if sheds <= 0 || admits(turn, whole-uint64(left*float64(cut))) {
		s.offered.Add(cost)
		s.passed.Add(cost)
		t.count(place, fixed, cost)
		t.admitted[place].Add(cost)
		return Verdict{Share: sheds}
	}
	// Of what is shed as much would have run as of what was not.
	runs := int64(float64(cost) * s.runs())
	s.offered.Add(runs)
	t.count(place, fixed, runs)
	return Verdict{Shed: true, Share: sheds, RetryAfter: (retryLeast + rand.N(retrySpread)).Truncate(time.Millisecond)} //nolint:gosec // It spreads load and is no secret.
}

// Weigh counts what [Throttle.Offer] counts, and returns the share that is shed of such a tier, for who acts on it in another way. It takes no memory.
func (t *Throttle) Weigh(order int, floor float64, cost int64) float64 {
	place, fixed, cost := placeOf(order, floor, cost)
	t.count(place, fixed, cost)
	t.admitted[place].Add(cost)
	sheds, _ := t.sheds(place, fixed)
	return sheds
}

// Withdraw says of an operation that [Throttle.Offer] has not shed that it does not run after all, because limits refuse it, or because its answer is known: with
// the arguments of the offer, once. It is no load then: a tenant who sends what its limits refuse, however much, is not shed in the place of those whose operations
// run. It takes no memory.
func (t *Throttle) Withdraw(tenant string, order int, floor float64, cost int64) {
	t.WithdrawWeight(order, floor, cost)
	place, _, cost := placeOf(order, floor, cost)
	s, _ := t.crowd(place).of(t.seed, tenant)
	s.offered.Add(-cost)
	s.withdrawn.Add(cost)
}

// WithdrawWeight is [Throttle.Withdraw] of an operation that [Throttle.Weigh] has counted.
func (t *Throttle) WithdrawWeight(order int, floor float64, cost int64) {
	place, fixed, cost := placeOf(order, floor, cost)
	t.count(place, fixed, -cost)
	t.admitted[place].Add(-cost)
}

// count adds what is asked for, or takes it back if it is negative.
func (t *Throttle) count(place int, fixed uint32, cost int64) {
	t.offered[place].Add(cost)
	t.sheddable[place].Add(cost * int64(floorWhole-fixed))
}

// ended returns what was counted in a beat. What was withdrawn after the beat in which it was counted is left to the next one.
func ended(counter *atomic.Int64) int64 {
	n := drained(counter)
	if n < 0 {
		counter.Add(n)
	}
	return max(0, n)
}

// drained takes what was counted. Most counters of a crowd have nothing in a beat, and to look takes less than to write.
func drained(counter *atomic.Int64) int64 {
	if counter.Load() == 0 {
		return 0
	}
	return counter.Swap(0)
}

// placeOf returns the place of an operation, its floor in 1/1024, and the cost that counts.
func placeOf(order int, floor float64, cost int64) (place int, fixed uint32, counts int64) {
	fixed = uint32(math.Ceil(max(0, min(1, floor)) * floorWhole))
	return min(max(order, 1), Orders) - 1, fixed, min(max(cost, 1), mostCost)
}

// sheds is the share that is shed of tiers with a place and a floor, and what is left of a share that has grown old.
func (t *Throttle) sheds(place int, fixed uint32) (share, left float64) {
	f := t.force.Load()
	if f == nil {
		return 0, 0
	}
	// A goroutine that tells nothing any more, as after Shutdown, has its share fall too.
	left = fading(t.cfg.Clock().Sub(f.at).Milliseconds())
	return f.of(place, float64(fixed)/floorWhole) * left, left
}

// floorWhole is a floor of 1.
const floorWhole = 1024

// crowd returns the tenants of a place.
func (t *Throttle) crowd(place int) *crowd {
	if c := t.crowds[place].Load(); c != nil {
		return c
	}
	t.crowds[place].CompareAndSwap(nil, newCrowd())
	return t.crowds[place].Load()
}

// Begin says that an operation of a tenant runs, and returns what [Throttle.End] is to be given, once. Give all who can have as many tenants as they like, such as one
// for each address, one name here. It takes no memory.
func (t *Throttle) Begin(tenant string) Start { return t.flow.begin(tenant, t.cfg.Clock()) }

// End says that an operation has ended, and whether it failed. Its time is a signal if [Config.Latency] is set, and its failure if
// [Config.Errors] is. No tenant is that signal alone: see docs/adr/0024-shed-by-one-share-for-the-fleet.md. It takes no memory.
func (t *Throttle) End(start Start, failed bool) { t.flow.end(start, t.cfg.Clock(), failed) }

// Signal feeds in the value of a signal, and its target: the value above which there is too much load. It is for what grows as load does, such as
// connections in use; what grows beyond all bounds where load grows a little is for [Throttle.Steep]. A value holds for three seconds.
// What is negative or no number is no value. There may be 32 signals at once; more are dropped, and logged once. A name has 1 to 64 bytes, and a target is above 0:
// what has not counts for nothing, and the first is logged.
func (t *Throttle) Signal(name string, value, target float64) { t.feed(name, value, target, false) }

// Steep is [Throttle.Signal] for latencies, lengths of queues, and errors: the fourth root of the ratio counts.
func (t *Throttle) Steep(name string, value, target float64) { t.feed(name, value, target, true) }

// Latency returns a signal of what something takes: the 99th percentile of what is given to [Latency.Observe], against a target. Keep it, and call
// Latency once for each name. There may be 16 of them; what is more is measured, and is no signal.
func (t *Throttle) Latency(name string, target time.Duration) *Latency {
	l := &Latency{}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.latencies) < maxSources {
		t.latencies = append(t.latencies, named{name, target, l})
	}
	return l
}

// named is a latency of the server's own.
type named struct {
	name    string
	target  time.Duration
	latency *Latency
}

// maxSignalName is how long the name of a signal may be.
const maxSignalName = 64

func (t *Throttle) feed(name string, value, target float64, steep bool) {
	if !usable(0, target) || name == "" || len(name) > maxSignalName {
		t.warnOnce(&t.mistaken, "ratelimit: a signal of the throttle counts for nothing: its name has to have 1 to 64 bytes, and its target to be above 0",
			slog.String("name", name[:min(len(name), maxSignalName)]), slog.Float64("target", target))
		return
	}
	if usable(value, target) && !t.signals.feed(name, pressure(value, target, steep), t.cfg.Clock()) {
		t.warnOnce(&t.overfull, "ratelimit: the throttle has too many signals, and drops others", slog.Int("signals", maxSignals))
	}
}

// warnOnce logs a mistake that was not logged before.
func (t *Throttle) warnOnce(logged *bool, message string, attributes ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !*logged {
		*logged = true
		t.cfg.Logger.Warn(message, attributes...)
	}
}

// Status is what a throttle does now.
type Status struct {
	// Shed is the share of the load of the fleet that is shed now, and Depth how much of what each place in the order has to
	// spare.
	Shed  float64
	Depth [Orders]float64
	// Fleet is what the centre said last, and Age how old that is. Age is zero if it never said anything.
	Fleet Share
	Age   time.Duration
}

// Status returns what is shed now.
func (t *Throttle) Status() Status {
	f := t.force.Load()
	t.mu.Lock()
	s := Status{Fleet: t.last}
	if now := t.cfg.Clock(); !t.at.IsZero() {
		s.Age = now.Sub(t.at)
	}
	t.mu.Unlock()
	if f == nil {
		return s
	}
	left := fading(t.cfg.Clock().Sub(f.at).Milliseconds())
	s.Shed = f.shed * left
	for i := range s.Depth {
		s.Depth[i] = f.depth[i] * left
	}
	return s
}

// ErrRuns says that [Throttle.Run] was called twice before [Throttle.Shutdown].
var ErrRuns = errors.New("throttle: it runs already")

// Run tells the centre of this instance once a second, and sheds what it says, until the context ends or [Throttle.Shutdown] is called. Call it
// once, in a goroutine of its own. The error matches [ErrRuns] if it is called again. After Shutdown it returns nil at once, also if it has not run before: the
// goroutine may begin that late.
func (t *Throttle) Run(ctx context.Context) error {
	second := true
	t.begin.Do(func() { second = false })
	if second {
		select {
		case <-t.ended:
			return nil
		default:
			return ErrRuns
		}
	}
	defer close(t.running)
	// Instances that start together do not tell in one moment.
	timer := time.NewTimer(rand.N(Beat)) //nolint:gosec // It spreads load and is no secret.
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.ended:
			return nil
		case <-timer.C:
			timer.Reset(Beat)
			t.beat(ctx)
		}
	}
}

// Shutdown ends [Throttle.Run], waits for it, and has the centre forget this instance. What is shed falls to zero. The error is that of the
// context, or of the centre. It may be called again, and on a throttle that never ran.
func (t *Throttle) Shutdown(ctx context.Context) error {
	t.end.Do(func() { close(t.ended) })
	ran := true
	t.begin.Do(func() { ran = false })
	if ran {
		select {
		case <-t.running:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	t.told.close()
	return t.cfg.Centre.Leave(ctx, t.cfg.Instance)
}
