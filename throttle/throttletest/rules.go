package throttletest

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/throttle"
)

func (s *scene) calm() {
	for range 20 {
		s.near(0, s.beat(report("a", 1)).Shed, "the share")
	}
}

func (s *scene) oncePerBeat() {
	first := s.tell(report("a", 4)).Shed
	s.near(0.3, first, "the share after the first step")
	s.clock.Add(10 * time.Second)
	s.tell(report("a", 0))
	shed := s.tell(report("b", 0)).Shed
	for i := range 50 {
		s.clock.Add(time.Millisecond)
		s.near(shed, s.tell(report(fmt.Sprint("c", i), 0)).Shed, "the share within a beat")
	}
}

func (s *scene) boundedStep() {
	keep, stepped := 1.0, time.Time{}
	for range 30 {
		shed := s.beat(report("a", 1000)).Shed
		if now := 1 - shed; now < keep {
			s.near(max(0.1, 0.7*keep), now, "what is kept after a step")
			if since := s.clock.Now().Sub(stepped); since < 3*throttle.Beat {
				s.Fatalf("a step came %v after the last one", since)
			}
			keep, stepped = now, s.clock.Now()
		}
	}
	s.near(0.1, keep, "what is kept at last")
}

func (s *scene) drain() {
	half := report("a", 1.1)
	half.Completed = 50
	s.near(1-0.5*0.95, s.tell(half).Shed, "the share where half is completed")
	s.clock.Add(3 * throttle.Beat)
	half.Completed = 0
	s.near(1-0.5*0.95*0.4, s.tell(half).Shed, "the share where nothing is completed")
	// A few operations say nothing.
	s.clock.Add(3 * throttle.Beat)
	few := report("a", 1.0001)
	few.Admitted, few.Completed = 19, 0
	s.near(1-0.5*0.95*0.4*math.Sqrt(1/1.0001), s.tell(few).Shed, "the share with few operations")
}

func (s *scene) recovery() {
	keep := 1 - s.tell(report("a", 4)).Shed
	for keep < 1 {
		now := 1 - s.beat(report("a", 0)).Shed
		s.near(min(1, 1.03*keep), now, "what is kept")
		keep = now
	}
	slow := 1 - s.beat(report("a", 4)).Shed
	s.near(slow*(1+0.25*0.05), 1-s.beat(report("a", 0.9)).Shed, "what is kept near the target")
}

func (s *scene) deadBand() {
	shed := s.tell(report("a", 2)).Shed
	for _, pressure := range []float64{0.95, 0.97, 1} {
		s.near(shed, s.beat(report("a", pressure)).Shed, "the share")
	}
}

func (s *scene) stale() {
	shed := s.tell(report("a", 4)).Shed
	silent := report("a", 0)
	silent.Fresh = false
	for second := 1; second <= 9; second++ {
		share := s.beat(silent)
		left := min(1, max(0, 1-float64(second-3)/5))
		s.near(shed*left, share.Shed, fmt.Sprintf("the share after %d s without signals", second))
		if !share.Stale {
			s.Fatal("the share is not stale")
		}
	}
	// It goes on from where it is, not from where it was.
	s.near(0, s.beat(report("a", 0.97)).Shed, "the share when the signals are back")
}

func (s *scene) half() {
	s.tell(report("a", 4))
	blind := report("b", 0)
	blind.Fresh = false
	s.tell(blind)
	if share := s.beat(report("a", 1)); share.Stale || share.Instances != 2 || share.Fresh != 1 {
		s.Fatalf("half of the instances are enough: %+v", share)
	}
	blind.Instance = "c"
	s.tell(blind)
	if share := s.beat(report("a", 1)); !share.Stale || share.Instances != 3 || share.Fresh != 1 {
		s.Fatalf("a third of the instances is too little: %+v", share)
	}
}

func (s *scene) floors() {
	r := report("a", 16)
	r.Offered, r.Sheddable = [throttle.Orders]float64{50, 30, 20}, [throttle.Orders]float64{45, 0, 5}
	shed := 0.0
	for range 20 {
		share := s.beat(r)
		shed = share.Shed
		s.near(0.45, share.Room[0], "the room of the first place")
		s.near(0, share.Room[1], "the room of the second place")
		s.near(0.05, share.Room[2], "the room of the third place")
	}
	s.near(0.5, shed, "the share at last")
	// It does not wind up: calm, it comes back at once.
	s.near(1-0.5*1.03, s.beat(report("a", 0)).Shed, "the share a beat later")
}

func (s *scene) outliers() {
	for i := range 20 {
		pressure := 1.0
		switch i {
		case 0, 1:
			pressure = 1e9
		case 2, 3:
			pressure = 0
		}
		s.tell(report(fmt.Sprintf("i%02d", i), pressure))
	}
	share := s.beat(report("i05", 1))
	s.near(1, share.Pressure, "the pressure of the fleet")
}

func (s *scene) weights() {
	for i, pressure := range []float64{0, 1, 2, 9} {
		r := report(fmt.Sprint("i", i), pressure)
		r.Weight = 300
		switch pressure {
		case 1:
			r.Weight = 100
		case 2:
			// It counts as the second heaviest.
			r.Weight = 1e300
		}
		s.tell(r)
	}
	s.clock.Add(throttle.Beat)
	highest := report("i3", 9)
	highest.Weight = 300
	s.near(1.75, s.tell(highest).Pressure, "the pressure of the fleet")
}

func (s *scene) alone() {
	// The first of them is the others, and the second is the one that speaks against them.
	for _, said := range []struct{ others, one float64 }{{0.5, 16}, {2, 0}} {
		for fleet := 2; fleet <= 12; fleet++ {
			if fleet == 2 && said.one < said.others {
				// Of two the lower one counts.
				continue
			}
			s.clock.Add(time.Minute)
			liar := report("liar", said.one)
			liar.Weight = 1e300
			s.tell(liar)
			for i := range fleet - 1 {
				s.tell(report(fmt.Sprint("i", i), said.others))
			}
			s.near(said.others, s.beat(liar).Pressure, fmt.Sprintf("the pressure of a fleet of %d", fleet))
		}
	}
}

func (s *scene) leaves() {
	s.tell(report("a", 1))
	s.tell(report("b", 1))
	if err := s.centre.Leave(s.Context(), "b"); err != nil {
		s.Fatal(err)
	}
	if share := s.beat(report("a", 1)); share.Instances != 1 {
		s.Fatalf("there are %d instances after one has left", share.Instances)
	}
	s.tell(report("c", 1))
	for range 9 {
		s.beat(report("a", 1))
	}
	s.clock.Add(500 * time.Millisecond)
	if share := s.tell(report("a", 1)); share.Instances != 2 {
		s.Fatalf("there are %d instances, one of them silent for less than ten seconds", share.Instances)
	}
	s.clock.Add(throttle.Beat)
	if share := s.tell(report("a", 1)); share.Instances != 1 {
		s.Fatalf("there are %d instances, one of them silent for more than ten seconds", share.Instances)
	}
}

func (s *scene) setBack() {
	shed := s.tell(report("a", 4)).Shed
	s.clock.Add(-time.Hour)
	s.near(shed, s.tell(report("a", 0.97)).Shed, "the share after the clock was set back")
	s.clock.Add(3 * throttle.Beat)
	s.near(1-(1-shed)*0.7, s.tell(report("a", 16)).Shed, "the share after another step")
}

func (s *scene) noReport() {
	for _, wrong := range []func(*throttle.Report){
		func(r *throttle.Report) { r.Instance = "" },
		func(r *throttle.Report) { r.Instance = string(make([]byte, throttle.MaxInstanceName+1)) },
		func(r *throttle.Report) { r.Pressure = math.NaN() },
		func(r *throttle.Report) { r.Weight = -1 },
		func(r *throttle.Report) { r.Offered[7] = math.Inf(1) },
		func(r *throttle.Report) { r.Sheddable[0] = math.NaN() },
	} {
		r := report("a", 1)
		wrong(&r)
		if _, err := s.centre.Exchange(s.Context(), r); !errors.Is(err, throttle.ErrReport) {
			s.Fatalf("the error is %v, want ErrReport", err)
		}
	}
}

func (s *scene) full() {
	for i := range throttle.MaxInstances {
		s.tell(report(fmt.Sprint("i", i), 1))
	}
	if _, err := s.centre.Exchange(s.Context(), report("another", 1)); !errors.Is(err, throttle.ErrFull) {
		s.Fatalf("the error is %v, want ErrFull", err)
	}
	s.tell(report("i7", 1))
}

// sameBits drives the centre and one in memory with the same random fleet.
func (s *scene) sameBits() {
	random := rand.New(rand.NewPCG(s.seed(), 87)) //nolint:gosec // a test
	model := throttle.NewMemory(s.clock.Now)
	for step := range 1500 {
		s.clock.Add(time.Duration(random.IntN(400)) * time.Millisecond)
		switch random.IntN(200) {
		case 0:
			s.clock.Add(time.Duration(random.IntN(12)) * time.Second)
		case 1:
			s.clock.Add(-time.Duration(random.IntN(5000)) * time.Millisecond)
		}
		r := report(fmt.Sprint("i", random.IntN(1+step/50)), math.Exp(random.NormFloat64()*0.3))
		r.Fresh = random.IntN(10) > 0
		r.Weight, r.Admitted = random.Float64()*1000, random.Float64()*200
		r.Completed = r.Admitted * random.Float64()
		for i := range r.Offered {
			r.Offered[i] = random.Float64() * 100
			r.Sheddable[i] = r.Offered[i] * random.Float64()
		}
		want, err := model.Exchange(s.Context(), r)
		if err != nil {
			s.Fatal(err)
		}
		if have := s.tell(r); have != want {
			s.Fatalf("step %d: the share is %+v, in memory %+v", step, have, want)
		}
	}
}
