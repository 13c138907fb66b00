package throttle

import (
	"cmp"
	"context"
	"slices"
)

// Centre keeps the shed share of a fleet. Implementations are safe for concurrent use. Package throttletest is their contract.
type Centre interface {
	// Exchange takes what an instance reports, in the place of what it has reported before, and returns the share that holds now.
	// The first exchange after a [Beat] moves the share. An error says that nothing is known of it.
	Exchange(ctx context.Context, report Report) (Share, error)
	// Leave forgets an instance. One that does not leave is forgotten by itself.
	Leave(ctx context.Context, instance string) error
}

// Report is what an instance says of its last beat.
type Report struct {
	// Instance names it, in at most [MaxInstanceName] bytes.
	Instance string
	// Fresh says that the instance has signals at all, and Pressure how far the worst of them is from its target: 1 is on it.
	Fresh    bool
	Pressure float64
	// Weight is what the instance admits in a second, in points: its part in the pressure of the fleet.
	Weight float64
	// Admitted and Completed are how many operations began and ended.
	Admitted, Completed float64
	// Offered is what was asked for in points by the place of the tier in the order, and Sheddable what of it floors leave to be shed.
	Offered, Sheddable [Orders]float64
}

// Share is what a centre answers.
type Share struct {
	// Shed is the share of the offered load that is to be shed now.
	Shed float64
	// Room is how much of the load each place in the order has to spare, as shares of all that is offered to the fleet.
	Room [Orders]float64
	// Pressure is that of the fleet as of the last step.
	Pressure float64
	// Instances is how many are there, and Fresh how many of them have signals. Stale says that these are too few, so that the share
	// falls.
	Instances, Fresh int
	Stale            bool
}

// Bounds of a fleet.
const (
	// MaxInstances is how many instances a centre knows at once.
	MaxInstances = 1000
	// MaxInstanceName is how long the name of an instance may be, in bytes.
	MaxInstanceName = 128
)

// told is a report and when it came, in milliseconds.
type told struct {
	Report

	at int64
}

// state is what a centre keeps.
type state struct {
	share

	next                int64
	room                [Orders]float64
	pressure            float64
	instances, reported int
	stale               bool
}

// due reports whether a beat is over.
func (s *state) due(now int64) bool {
	return now >= s.next || s.next > now+Beat.Milliseconds()
}

// move moves the share, a beat after it was moved last. reports are those of all instances.
func (s *state) move(now int64, reports []told) {
	s.next = now + Beat.Milliseconds()
	s.instances = len(reports)
	fresh := slices.DeleteFunc(slices.Clone(reports), func(r told) bool {
		return !r.Fresh || now-r.at > staleAfter.Milliseconds()
	})
	s.reported = len(fresh)
	if s.stale = len(fresh) == 0 || 2*len(fresh) < len(reports); s.stale {
		return
	}
	slices.SortFunc(fresh, func(a, b told) int { return cmp.Compare(a.Instance, b.Instance) })
	what := seen{}
	var sheddable [Orders]float64
	offered := 0.0
	for i := range fresh {
		r := &fresh[i]
		what.admitted += r.Admitted
		what.completed += r.Completed
		for order := range Orders {
			offered += r.Offered[order]
			sheddable[order] += r.Sheddable[order]
		}
	}
	// Without load the shares are those of the last one.
	if offered > 0 {
		for order := range Orders {
			s.room[order] = sheddable[order] / offered
		}
	}
	for order := range Orders {
		what.most += s.room[order]
	}
	what.most = min(1, what.most)
	what.pressure = pressureOf(fresh)
	s.pressure = what.pressure
	s.step(now, what)
}

// pressureOf is the pressure of the fleet: the mean by weight, without the highest and the lowest tenth of the instances, and without one of each at least. No instance
// weighs more than the second heaviest. Of two instances the lower pressure counts. So it is never beyond what the others say: none of them moves the share alone.
func pressureOf(reports []told) float64 {
	slices.SortStableFunc(reports, func(a, b told) int { return cmp.Compare(a.Pressure, b.Pressure) })
	if len(reports) < 3 {
		return reports[0].Pressure
	}
	heaviest, second := 0.0, 0.0
	for i := range reports {
		w := max(1, reports[i].Weight)
		second = max(second, min(heaviest, w))
		heaviest = max(heaviest, w)
	}
	cut := max(1, len(reports)/10)
	sum, weight := 0.0, 0.0
	for _, r := range reports[cut : len(reports)-cut] {
		w := min(second, max(1, r.Weight))
		part := float64(w * r.Pressure)
		sum += part
		weight += w
	}
	return sum / weight
}

// answer returns the share as it holds now.
func (s *state) answer(now int64) Share {
	return Share{
		Shed: s.shedAt(now), Room: s.room, Pressure: s.pressure,
		Instances: s.instances, Fresh: s.reported, Stale: s.stale,
	}
}

// gone reports whether a report is so old that its instance is not there. One of the future was made before the clock was set back.
func gone(now, at int64) bool {
	return now-at > life.Milliseconds() || at-now > Beat.Milliseconds()
}
