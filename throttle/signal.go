package throttle

import (
	"math"
	"slices"
	"strings"
	"sync"
	"time"
)

// maxSignals is how many signals an instance has.
const maxSignals = 32

// Source is a signal that is read once a second, in the goroutine of [Throttle.Run].
type Source struct {
	// Name is what metrics call the signal: 1 to 64 bytes.
	Name string
	// Target is the value above which there is too much load.
	Target float64
	// Steep is for what grows beyond all bounds where load grows a little, as latencies and errors do. It is false for what grows as load
	// does: processor time, connections in use.
	Steep bool
	// Read returns the value, and false if there is none now. It must return soon, and is called by one goroutine. A panic in it counts as no
	// value, and is logged: the first at once, later ones once a minute with their number.
	Read func() (value float64, ok bool)
}

// pressure is how far a value is from its target.
func pressure(value, target float64, steep bool) float64 {
	p := value / target
	if steep {
		// The fourth root of a latency grows by about as much as the load behind it.
		p = math.Sqrt(math.Sqrt(p))
	}
	return min(p, mostPressure)
}

// usable reports whether there is a pressure in the numbers.
func usable(value, target float64) bool {
	return value >= 0 && target > 0 && !math.IsInf(value, 0) && !math.IsInf(target, 0)
}

// signal is what an instance knows of one.
type signal struct {
	// raw is the last pressure, and at when it came.
	raw float64
	at  time.Time
	// smooth is the pressure over about a second, zero before the first beat with it.
	smooth float64
	warm   bool
}

// signals are those of an instance.
type signals struct {
	mu     sync.Mutex
	byName map[string]*signal
}

func newSignals() *signals { return &signals{byName: make(map[string]*signal)} }

// feed takes a pressure. It returns false if there are too many signals.
func (s *signals) feed(name string, p float64, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.byName[name]
	if known == nil {
		if len(s.byName) >= maxSignals {
			return false
		}
		known = &signal{}
		s.byName[strings.Clone(name)] = known
	}
	known.raw, known.at = p, now
	return true
}

// pressed is one signal as metrics show it.
type pressed struct {
	name     string
	pressure float64
}

// smoothing is how much of a new pressure counts at once, with beats of a second: 1 - 1/e.
const smoothing = 0.632

// take ends a beat and returns the pressures of the signals that are fresh, the worst first, and no more if there are none.
func (s *signals) take(now time.Time) []pressed {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []pressed
	for name, known := range s.byName {
		if now.Sub(known.at) > staleAfter {
			delete(s.byName, name)
			continue
		}
		if known.warm {
			known.smooth += smoothing * (known.raw - known.smooth)
		} else {
			known.smooth, known.warm = known.raw, true
		}
		all = append(all, pressed{name, known.smooth})
	}
	slices.SortFunc(all, func(a, b pressed) int {
		if a.pressure != b.pressure {
			if a.pressure > b.pressure {
				return -1
			}
			return 1
		}
		return strings.Compare(a.name, b.name)
	})
	return all
}
