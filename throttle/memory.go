package throttle

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"time"
)

// ErrFull says that a centre knows as many instances as it can, and did not take the report of another one.
var ErrFull = errors.New("throttle: there are too many instances")

// ErrReport says that a report is none: a number in it is negative or no number, or its instance has no name or too long a one.
var ErrReport = errors.New("throttle: the report is not valid")

// Check returns an error that matches [ErrReport] if something in the report is wrong.
func (r *Report) Check() error {
	if r.Instance == "" || len(r.Instance) > MaxInstanceName {
		return fmt.Errorf("%w: the instance has a name of %d bytes, want 1 to %d", ErrReport, len(r.Instance), MaxInstanceName)
	}
	numbers := append([]float64{r.Pressure, r.Weight, r.Admitted, r.Completed}, r.Offered[:]...)
	for _, n := range append(numbers, r.Sheddable[:]...) {
		if !(n >= 0) || math.IsInf(n, 0) {
			return fmt.Errorf("%w: %v is none of its numbers", ErrReport, n)
		}
	}
	return nil
}

// Memory is a [Centre] in this process, for a server that runs once, and for tests. Make it with [NewMemory].
type Memory struct {
	clock func() time.Time

	mu      sync.Mutex
	state   state
	reports map[string]told
}

var _ Centre = (*Memory)(nil)

// NewMemory returns a centre with nothing shed. A nil clock is the system's.
func NewMemory(clock func() time.Time) *Memory {
	if clock == nil {
		clock = time.Now
	}
	return &Memory{clock: clock, reports: make(map[string]told)}
}

// Exchange implements [Centre]. The error matches [ErrReport] or [ErrFull].
func (m *Memory) Exchange(_ context.Context, report Report) (Share, error) {
	if err := report.Check(); err != nil {
		return Share{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.clock().UnixMilli()
	m.state.settle(now)
	due := m.state.due(now)
	if due {
		maps.DeleteFunc(m.reports, func(name string, r told) bool { return name != report.Instance && gone(now, r.at) })
	}
	if _, known := m.reports[report.Instance]; !known && len(m.reports) >= MaxInstances {
		return Share{}, ErrFull
	}
	m.reports[report.Instance] = told{Report: report, at: now}
	if due {
		m.state.move(now, slices.Collect(maps.Values(m.reports)))
	}
	return m.state.answer(now), nil
}

// Leave implements [Centre].
func (m *Memory) Leave(_ context.Context, instance string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.reports, instance)
	return nil
}
