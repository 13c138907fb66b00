package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"syscall"
	"time"
)

// effort is how much is measured.
type effort struct {
	// rounds is how often each contender gets its turn.
	rounds int
	// turn is about how much processor time a turn takes where nothing else is measured.
	turn time.Duration
	// call is how long a turn takes where a server is called.
	call time.Duration
	// long is the same of a turn in which garbage is collected many times.
	long time.Duration
	// windows is how many windows of latencies there are in a round, and requests how many requests each has.
	windows, requests int
	// benchtime is that of benchmarks beside the code.
	benchtime string
	// frozen is how often a frozen server is called by a lone caller, and rest how long nothing runs before that.
	frozen int
	rest   time.Duration
}

// usual is an effort of ten minutes for all tables together.
var usual = effort{
	rounds: 7, turn: 60 * time.Millisecond, call: 400 * time.Millisecond, long: 400 * time.Millisecond, windows: 16, requests: 500,
	benchtime: "300ms", frozen: 50, rest: 6 * time.Second,
}

// metric is something that a turn shows. Times are in nanoseconds, and all but rates, percentiles and
// shares are for each time that the contender did it.
type metric int

const (
	// elapsed is the time on the clock.
	elapsed metric = iota
	// processor is the time of the processor in this process, garbage collection included.
	processor
	// uncollected is the time of the processor where no garbage is collected meanwhile.
	uncollected
	allocations
	// bytesAllocated is how much memory was allocated.
	bytesAllocated
	// collections is how often garbage was collected in the whole turn.
	collections
	// perSecond is how often it was done in a second, by all callers together.
	perSecond
	// p50, p99 and p999 are percentiles of the latency that a caller sees.
	p50
	p99
	p999
	// serverProcessor is the time of the processor in the Redis server, network included.
	serverProcessor
	// script is the time of the server inside scripts.
	script
	// commands is the number of commands that the server ran, those inside scripts included.
	commands
	// scripts is the number of calls of scripts that the server was sent.
	scripts
	// failed is the share of calls that failed.
	failed
	metrics
)

// sample is what one turn showed.
type sample [metrics]float64

// contender is one way to do what a table compares.
type contender struct {
	name string
	// turn does it for a while.
	turn func(context.Context) (sample, error)
}

// outcome is what a contender reached: a sample for each round.
type outcome struct {
	name    string
	samples []sample
}

// contest gives each contender its turn in each round, and starts each round with another one, so that
// what changes on the machine meanwhile falls on all alike.
func contest(ctx context.Context, e effort, contenders []contender) ([]outcome, error) {
	outcomes := make([]outcome, len(contenders))
	for i := range contenders {
		outcomes[i].name = contenders[i].name
	}
	for round := range e.rounds {
		for k := range contenders {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			i := (k + round) % len(contenders)
			s, err := contenders[i].turn(ctx)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", contenders[i].name, err)
			}
			outcomes[i].samples = append(outcomes[i].samples, s)
		}
	}
	return outcomes, nil
}

// alone returns a contender that does something over and over in one goroutine. Its first turn, which
// is not measured, says how often makes a turn.
func alone(e effort, name string, do func() error) contender {
	n := 0
	return contender{name: name, turn: func(context.Context) (sample, error) {
		if n == 0 {
			var err error
			if n, err = calibrate(e.turn, do); err != nil {
				return sample{}, err
			}
		}
		return measure(n, do)
	}}
}

// collecting returns a contender that has two parts in its turn: a short one in which no garbage is collected, and a long one
// in which it is collected many times.
func collecting(e effort, name string, do func() error) contender {
	short, long := alone(e, name, do), alone(effort{turn: e.long}, name, do)
	return contender{name: name, turn: func(ctx context.Context) (sample, error) {
		usual := debug.SetGCPercent(-1)
		without, err := short.turn(ctx)
		debug.SetGCPercent(usual)
		if err != nil {
			return sample{}, err
		}
		s, err := long.turn(ctx)
		s[uncollected] = without[processor]
		return s, err
	}}
}

// calibrate returns how often something is done in about the time of a turn, of the processor and not of the clock: a turn is not
// shorter because others use the machine as well.
func calibrate(turn time.Duration, do func() error) (int, error) {
	const most = 1 << 30
	for n := 1; ; n *= 2 {
		spent := processorTime()
		for range n {
			if err := do(); err != nil {
				return 0, err
			}
		}
		took := processorTime() - spent
		if took >= turn/2 || n >= most {
			return max(1, int(float64(n)*float64(turn)/float64(max(took, 1)))), nil
		}
	}
}

func measure(n int, do func() error) (sample, error) {
	// One contender's garbage is not the next one's work.
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	spent, start := processorTime(), time.Now()
	for range n {
		if err := do(); err != nil {
			return sample{}, err
		}
	}
	took := time.Since(start)
	spent = processorTime() - spent
	runtime.ReadMemStats(&after)
	var s sample
	s[elapsed] = float64(took) / float64(n)
	s[processor] = float64(spent) / float64(n)
	s[allocations] = float64(after.Mallocs-before.Mallocs) / float64(n)
	s[bytesAllocated] = float64(after.TotalAlloc-before.TotalAlloc) / float64(n)
	s[collections] = float64(after.NumGC - before.NumGC)
	s[perSecond] = float64(n) / took.Seconds()
	return s, nil
}

// processorTime is what this process has spent on all processors, in user and in kernel mode.
func processorTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// median returns the median of a metric over the rounds.
func (o *outcome) median(m metric) float64 { return median(o.values(m)) }

// values returns the metric of each round.
func (o *outcome) values(m metric) []float64 {
	values := make([]float64, len(o.samples))
	for i := range o.samples {
		values[i] = o.samples[i][m]
	}
	return values
}

// ratio returns the median of the ratios of a metric to that of another contender.
func (o *outcome) ratio(to *outcome, m metric) float64 {
	return median(o.ratios(to, m))
}

// ratios returns the metric divided by that of another contender in the same round, for each round. Rounds
// in which the other shows nothing are left out.
func (o *outcome) ratios(to *outcome, m metric) []float64 {
	var values []float64
	for i := range o.samples {
		if to.samples[i][m] != 0 {
			values = append(values, o.samples[i][m]/to.samples[i][m])
		}
	}
	return values
}

// difference returns the median over the rounds of the metric less that of another contender in the
// same round.
func (o *outcome) difference(to *outcome, m metric) float64 { return median(o.differences(to, m)) }

// differences returns the metric less that of another contender in the same round, for each round.
func (o *outcome) differences(to *outcome, m metric) []float64 {
	values := make([]float64, len(o.samples))
	for i := range o.samples {
		values[i] = o.samples[i][m] - to.samples[i][m]
	}
	return values
}

// median returns the median, and 0 if there is nothing.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	middle := len(values) / 2
	if len(values)%2 == 1 {
		return values[middle]
	}
	return (values[middle-1] + values[middle]) / 2
}

// quantile of sorted values, 0 of none.
func quantile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[int(q*float64(len(sorted)-1))]
}
