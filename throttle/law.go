package throttle

import (
	"math"
	"time"
)

// The law. A step is what the share does at once; times are counted in milliseconds by the clock of the centre.
const (
	// Beat is how often an instance tells its signals, and how often the share moves.
	Beat = time.Second
	// hold is for how long the share stays after it has grown: the signals are a second late, and the effect of a step takes
	// two beats to show.
	hold = 3 * Beat
	// staleAfter is after which time signals, and answers of the centre, say nothing any more, and fadeOver the time in which the
	// share then falls to zero.
	staleAfter = 3 * Beat
	fadeOver   = 5 * Beat
	// life is for how long an instance that says nothing counts as one of the fleet.
	life = 10 * Beat

	// slowest is what the smallest share that is kept is multiplied by in one step where pressure alone is known, and steepest where
	// less comes out of the servers than goes in.
	slowest  = 0.7
	steepest = 0.4
	// flows is the share of what was admitted that has to be completed, and drains what is aimed at below that.
	flows  = 0.95
	drains = 0.95
	// countable is how many operations have to be admitted before their completion says anything.
	countable = 20
	// calm is the pressure below which the share shrinks, by at most recovery of what is kept and by easing times the distance.
	calm     = 0.95
	recovery = 0.03
	easing   = 0.25
	// mostPressure bounds what one signal can say.
	mostPressure = 16
)

// Orders is how many places there are in the order in which tiers are shed.
const Orders = 8

// seen is what the fleet has said in a beat.
type seen struct {
	pressure            float64
	admitted, completed float64
	// most is the largest share that floors leave to be shed.
	most float64
}

// share is the state of the law.
type share struct {
	// shed is the share as of fresh, which is when signals were last there.
	shed  float64
	fresh int64
	// holdUntil is until when the share does not grow.
	holdUntil int64
}

// step moves the share by what the fleet has said. It uses addition, multiplication, division and square roots alone, in this
// order, so that the script in Redis comes to the same bits.
func (s *share) step(now int64, what seen) {
	keep := 1 - s.shedAt(now)
	switch {
	case what.pressure > 1 && now >= s.holdUntil:
		down := max(slowest, math.Sqrt(1/what.pressure))
		if what.admitted >= countable {
			if flow := what.completed / what.admitted; flow < flows {
				down = max(steepest, min(down, flow*drains))
			}
		}
		keep *= down
		s.holdUntil = now + hold.Milliseconds()
	case what.pressure < calm:
		// A conversion of its own, so that no processor fuses the product with the sum.
		eased := float64(easing * (calm - what.pressure))
		keep *= 1 + min(recovery, eased)
	}
	s.shed = max(0, min(1-keep, what.most))
	s.fresh = now
}

// shedAt returns the share at a time: it fades when nobody has said anything for too long.
func (s *share) shedAt(now int64) float64 { return s.shed * fading(now-s.fresh) }

// settle takes in that the clock of the centre was set back.
func (s *share) settle(now int64) {
	s.fresh = min(s.fresh, now)
	s.holdUntil = min(s.holdUntil, now+hold.Milliseconds())
}

// fading is what is left of a share that is some milliseconds old.
func fading(age int64) float64 {
	late := float64(age - staleAfter.Milliseconds())
	return max(0, min(1, 1-late/float64(fadeOver.Milliseconds())))
}

// fill says how much of what each place in the order has to spare is shed: all of the lowest before any of the next. room is
// that in shares of the whole load.
func fill(shed float64, room *[Orders]float64) (depth [Orders]float64) {
	for i, has := range room {
		if shed <= 0 {
			break
		}
		if has <= 0 {
			continue
		}
		depth[i] = min(1, shed/has)
		shed -= has
	}
	return depth
}
