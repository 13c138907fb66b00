package placement_test

import (
	"context"
	"fmt"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/placement"
)

// envelope adds up what a token bucket admits, in exact numbers: the most that any window has admitted beyond its refill.
type envelope struct {
	capacity, refill, period int64
	// level is that most, in units of 1/period token, as of the time at.
	level *big.Int
	at    int64
}

// admit takes an admission in, and returns by how much the most is above the capacity.
func (e *envelope) admit(amount, now int64) *big.Int {
	back := new(big.Int).Mul(big.NewInt(e.refill), big.NewInt(now-e.at))
	if e.level.Sub(e.level, back).Sign() < 0 {
		e.level.SetInt64(0)
	}
	e.at = now
	e.level.Add(e.level, new(big.Int).Mul(big.NewInt(amount), big.NewInt(e.period)))
	return new(big.Int).Sub(e.level, new(big.Int).Mul(big.NewInt(e.capacity), big.NewInt(e.period)))
}

// scenario is instances that learn maps at different times, over stores that fail.
type scenario struct {
	*rapid.T
	world     *world
	random    *rand.Rand
	names     []string
	maps      []*placement.Map
	instances []*placement.Store
	envelopes map[string]*envelope
	tenants   []string
	buckets   []bucket.Bucket
	receipts  []bucket.Receipt
	seen      map[string]int
}

func newScenario(rt *rapid.T) *scenario {
	seed := rapid.Uint64().Draw(rt, "seed")
	s := &scenario{T: rt, world: newWorld(), random: rand.New(rand.NewPCG(seed, 1)), envelopes: map[string]*envelope{}, seen: map[string]int{}}
	for i := range 3 + s.random.IntN(2) {
		name := string(rune('a' + i))
		s.names = append(s.names, name)
		// Clocks are off by seconds, and run alike.
		s.world.add(name, s.random.Int64N(20_000)-10_000)
	}
	limits := []bucket.Limit{
		{Name: "short", Capacity: 1 + s.random.Int64N(50), Refill: 1 + s.random.Int64N(20), Period: time.Duration(1+s.random.Int64N(3000)) * time.Millisecond},
		{Name: "long", Capacity: 1 + s.random.Int64N(400), Refill: 1 + s.random.Int64N(50), Period: time.Duration(1+s.random.Int64N(90_000)) * time.Millisecond},
	}
	compiled, err := bucket.Compile(limits...)
	require.NoError(rt, err)
	s.buckets = []bucket.Bucket{{Limits: compiled}, {Owner: bucket.Owner{Level: bucket.User, Name: "jo"}, Limits: compiled}}
	s.tenants = []string{"acme", "globex"}
	for _, tenant := range s.tenants {
		for _, l := range limits {
			s.envelopes[tenant+l.Name] = &envelope{capacity: l.Capacity, refill: l.Refill, period: l.Period.Milliseconds(), level: new(big.Int), at: s.world.now.Load()}
		}
	}
	s.maps = []*placement.Map{{Generation: 1, Candidates: 1 + s.random.IntN(2), Stores: members(s.names...)}}
	for range 3 {
		store, err := placement.New(context.Background(), placement.Config{Open: s.world.open}, s.maps[0])
		require.NoError(rt, err)
		s.instances = append(s.instances, store)
	}
	s.world.fault = func(_, _ string) fault {
		switch s.random.IntN(16) {
		case 0:
			return lostRequest
		case 1:
			return lostReply
		default:
			return fine
		}
	}
	return s
}

// newest is the map that instances are to learn.
func (s *scenario) newest() *placement.Map { return s.maps[len(s.maps)-1] }

// publish makes another map: a pin, a store that drains, or one that takes in again.
func (s *scenario) publish() {
	was := s.newest()
	stores := members(s.names...)
	if s.random.IntN(2) == 0 {
		stores[s.random.IntN(len(stores))].Draining = true
	}
	m := was.Next(stores)
	m.Pins = nil
	if s.random.IntN(2) == 0 {
		for _, to := range s.random.Perm(len(stores)) {
			if !stores[to].Draining {
				m.Pins = map[string]string{s.tenants[s.random.IntN(len(s.tenants))]: stores[to].Name}
				break
			}
		}
	}
	require.NoError(s, m.Check())
	s.maps = append(s.maps, m)
}

// lose loses a store with all it has. Every instance learns that before anything else happens: a store that is lost is gone, and admits nothing more.
func (s *scenario) lose() {
	name := s.names[s.random.IntN(len(s.names))]
	// Its clock is off as before; nothing is in it.
	lost := time.UnixMilli(s.world.now.Load() + 10_000)
	stores := members(s.names...)
	for i := range stores {
		if stores[i].Name == name {
			stores[i].Lost = &lost
		}
	}
	m := s.newest().Next(stores)
	m.Pins = nil
	s.maps = append(s.maps, m)
	for _, instance := range s.instances {
		require.NoError(s, instance.Apply(context.Background(), m))
	}
	s.world.add(name, s.random.Int64N(20_000)-10_000)
}

func (s *scenario) take() {
	instance := s.instances[s.random.IntN(len(s.instances))]
	amount := 1 + s.random.Int64N(12)
	tenant := s.tenants[s.random.IntN(len(s.tenants))]
	result, err := instance.Take(context.Background(), bucket.Take{Tenant: tenant, Buckets: s.buckets, Amounts: points(amount)})
	if err != nil {
		s.seen["failed"]++
		return
	}
	s.seen[result.Verdict.String()]++
	if result.Verdict != bucket.Admitted {
		return
	}
	s.receipts = append(s.receipts, result.Receipt)
	for _, l := range s.buckets[0].Limits.All() {
		over := s.envelopes[tenant+l.Name].admit(amount, s.world.now.Load())
		require.LessOrEqual(s, over.Sign(), 0, "%s of %s has admitted %v units more than its envelope", l.Name, tenant, over)
	}
}

// step does one thing.
func (s *scenario) step(losses bool) {
	switch n := s.random.IntN(40); {
	case n == 0 && len(s.maps) <= placement.MaxBefore:
		// What is forgotten of where tenants were is to be full again by then, which nobody waits for here.
		s.publish()
	case n < 4:
		// An instance learns the newest map, or one that it has missed.
		m := s.maps[max(0, len(s.maps)-1-s.random.IntN(2))]
		err := s.instances[s.random.IntN(len(s.instances))].Apply(context.Background(), m)
		if err != nil {
			require.ErrorIs(s, err, placement.ErrGeneration)
		}
	case n < 12:
		s.world.now.Add(s.random.Int64N(1500))
	case n == 12:
		// One that begins anew remembers no arrival.
		i := s.random.IntN(len(s.instances))
		m := s.instances[i].Map()
		require.NoError(s, s.instances[i].Close())
		var err error
		s.instances[i], err = placement.New(context.Background(), placement.Config{Open: s.world.open}, m)
		require.NoError(s, err)
	case n == 13 && losses && len(s.maps) <= placement.MaxBefore:
		s.lose()
	case n == 14 && len(s.receipts) > 0:
		// What is charged on, and what is not given back, admits nothing.
		_, _ = s.instances[s.random.IntN(len(s.instances))].Settle(context.Background(), bucket.Settlement{
			Receipt: s.receipts[s.random.IntN(len(s.receipts))], Actual: points(1000),
		}.WithoutRefund())
	default:
		s.take()
	}
}

func (s *scenario) end() {
	for _, instance := range s.instances {
		require.NoError(s, instance.Close())
	}
}

func TestNoMoveRefillsWhateverIsLostRepeatedOrForgotten(t *testing.T) { //nolint:tparallel // Its parts add up what they have seen.
	t.Parallel()
	seen := map[string]int{}
	for _, losses := range []bool{false, true} {
		t.Run(fmt.Sprintf("stores are lost: %v", losses), func(t *testing.T) { //nolint:paralleltest // They add up what they have seen.
			rapid.Check(t, func(rt *rapid.T) {
				s := newScenario(rt)
				defer s.end()
				for range 400 {
					s.step(losses)
				}
				for what, n := range s.seen {
					seen[what] += n
				}
			})
		})
	}
	t.Logf("%v", seen)
	require.Greater(t, seen["admitted"], 1000)
	require.Greater(t, seen["limited"], 1000)
	require.Greater(t, seen["failed"], 100)
}
