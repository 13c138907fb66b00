package bucket_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/fleet"
)

func TestALocalRemembersNoMoreOwnersThanItMay(t *testing.T) {
	t.Parallel()
	s := newScene(t, 1, fleet.Config{Instances: 1, MaxOwners: 64})
	r := s.replicas[0]
	b := bucket.Bucket{Limits: compile(t, localLimit(1000, bucket.TokenBucket))}
	for i := range 2000 {
		r.takeAs(fmt.Sprint("tenant", i), 1, b)
	}
	require.LessOrEqual(t, r.local.Held(), 64)
	s.goAway()
	admitted, refused := 0, 0
	for i := range 2000 {
		switch r.takeAs(fmt.Sprint("tenant", 1999-i), 1, b).Verdict {
		case bucket.Admitted:
			admitted++
		case bucket.Never:
			refused++
		default:
		}
	}
	require.LessOrEqual(t, r.local.Held(), 64)
	require.Equal(t, admitted, r.local.Owing(), "what has to be settled makes room for nobody")
	require.Positive(t, admitted)
	require.Positive(t, refused)
	require.Equal(t, bucket.Never, r.takeAs(strings.Repeat("x", 513), 1, b).Verdict, "a name that is too long to be kept")
	s.comeBack()
	s.settle()
}

func TestAnOwnerThatWasForgottenStartsWithNothing(t *testing.T) {
	t.Parallel()
	s := newScene(t, 1, fleet.Config{Instances: 2, MaxOwners: 64})
	r := s.replicas[0]
	b := bucket.Bucket{Limits: compile(t, localLimit(1200, bucket.TokenBucket))}
	s.goAway()
	r.take(1, b)
	s.clock.advance(10 * time.Second)
	// Two thousand others are refused, which leaves nothing to settle, and displace it.
	for i := range 2000 {
		r.takeAs(fmt.Sprint("tenant", i), 1000, b)
	}
	require.Zero(t, r.drain(1, b), "what came back in ten seconds may have been taken before it was forgotten")
	s.clock.advance(time.Second)
	require.EqualValues(t, 7, r.drain(1, b))
}

// TestWhatManyTakeAtOnceIsSettledToTheToken flips a store while many take, settle and beat, at a time that
// stands still: in the end the store has exactly what nobody took.
func TestWhatManyTakeAtOnceIsSettledToTheToken(t *testing.T) {
	t.Parallel()
	const capacity, workers, rounds = 1_000_000, 8, 400
	s := newScene(t, 2, fleet.Config{})
	b := bucket.Bucket{Limits: compile(t, localLimit(capacity, bucket.TokenBucket))}
	for range 2 {
		for _, r := range s.replicas {
			r.take(0, b)
		}
		s.clock.advance(fleet.BeatEvery)
	}
	var admitted, locally atomic.Int64
	var all sync.WaitGroup
	for worker := range workers {
		r, random := s.replicas[worker%2], rand.New(rand.NewPCG(uint64(worker), 7))
		all.Go(func() {
			for range rounds {
				switch random.IntN(20) {
				case 0:
					s.goAway()
				case 1:
					s.comeBack()
				case 2:
					_, _, _ = r.local.Settle(context.Background(), "acme")
				case 3:
					_ = r.local.Beat(context.Background())
				default:
					n := random.Int64N(50)
					take := bucket.Take{Tenant: "acme", Buckets: []bucket.Bucket{b}, Amounts: points(n)}
					result, err := s.store.Take(context.Background(), take)
					if err == nil {
						r.local.Learn(&take, &result)
					} else if result = r.local.Take(&take, false); result.Verdict == bucket.Admitted {
						locally.Add(n)
					}
					if result.Verdict == bucket.Admitted {
						admitted.Add(n)
					}
				}
			}
		})
	}
	all.Wait()
	s.comeBack()
	s.settle()
	require.Positive(t, locally.Load())
	require.Equal(t, capacity-admitted.Load(), s.remaining(b))
}
