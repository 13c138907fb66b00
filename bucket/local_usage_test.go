package bucket_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/fleet"
)

// counted is what a store has counted of the tenant: charged less given back of each unit, and the points of each root field.
func counted(t *testing.T, store bucket.UsageStore, tenant string, now time.Time, grade bucket.UsageGrade) map[string]int64 {
	t.Helper()
	sums := map[string]int64{}
	for hour := now.Add(-12 * time.Hour); !hour.After(now); hour = hour.Add(time.Hour) {
		read, err := store.ReadUsage(t.Context(), tenant, hour, grade)
		require.NoError(t, err)
		if read == nil {
			continue
		}
		for i := range read.Counts {
			sums[string(read.Counts[i].Unit)+read.Counts[i].Field] += read.Counts[i].Net()
		}
	}
	return sums
}

// use takes as an operation does whose usage is counted.
func (r *replica) use(n int64, buckets ...bucket.Bucket) bucket.Result {
	r.t.Helper()
	take := bucket.Take{
		Tenant: "acme", Buckets: buckets, Amounts: bucket.Amounts{{Unit: bucket.Points, N: n}, {Unit: bucket.Requests, N: 1}, {Unit: "exports", N: 2}},
		Usage: &bucket.Usage{Fields: []bucket.FieldUsage{{Name: "Query.search", Points: n, Calls: 1}}},
	}
	result, err := r.store.Take(context.Background(), take)
	if err != nil {
		return r.local.Take(&take, false)
	}
	r.local.Learn(&take, &result)
	return result
}

func TestWhatALocalShareAdmitsIsCountedWhenItIsSettledAndInAGradeOfItsOwn(t *testing.T) {
	t.Parallel()
	s := newScene(t, 1, fleet.Config{Instances: 1})
	r, b := s.replicas[0], bucket.Bucket{Limits: compile(t, localLimit(1000, bucket.TokenBucket))}
	require.Equal(t, bucket.Admitted, r.use(100, b).Verdict)
	s.goAway()
	for range 3 {
		require.Equal(t, bucket.Admitted, r.use(50, b).Verdict)
	}
	require.NotEqual(t, bucket.Admitted, r.use(900, b).Verdict)
	_, _, err := r.local.Settle(context.Background(), "acme")
	require.ErrorIs(t, err, bucket.ErrUnavailable, "nothing is lost with it")
	s.store.fail(bucket.ErrAmbiguous, true)
	_, _, err = r.local.Settle(context.Background(), "acme")
	require.ErrorIs(t, err, bucket.ErrAmbiguous, "nor counted twice")
	s.comeBack()
	s.settle()
	require.Equal(t, map[string]int64{"points": 100, "requests": 1, "exports": 2, "pointsQuery.search": 100},
		counted(t, s.store, "acme", s.clock.now(), bucket.UsageExact))
	require.Equal(t, map[string]int64{"points": 150, "requests": 3, "exports": 6, "pointsQuery.search": 150},
		counted(t, s.store, "acme", s.clock.now(), bucket.UsageLocal))
}

func TestWhatTheRefillHasRepaidIsCountedAllTheSame(t *testing.T) {
	t.Parallel()
	s := newScene(t, 1, fleet.Config{Instances: 1})
	r, b := s.replicas[0], bucket.Bucket{Limits: compile(t, localLimit(1000, bucket.TokenBucket))}
	r.use(0, b)
	s.goAway()
	require.Equal(t, bucket.Admitted, r.use(50, b).Verdict)
	s.clock.advance(time.Hour)
	s.comeBack()
	s.settle()
	require.EqualValues(t, 1000, s.remaining(b))
	require.EqualValues(t, 50, counted(t, s.store, "acme", s.clock.now(), bucket.UsageLocal)["points"])
}
