package bucket_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// fairness is instances that are asked for more than a limit has, and what each of them admits.
type fairness struct {
	mode    bucket.LeaseMode
	weights []float64
	// cost is that of an operation of each instance, and times how often the refill is asked for.
	costs []int64
	times float64
}

const (
	fairRate  = 20_000
	fairWarm  = 3 * time.Second
	fairSpell = 15 * time.Second
)

// run returns what each instance was asked for and admitted after a while, in points.
func (f *fairness) run(t *testing.T) (offered, admitted []float64) {
	t.Helper()
	store := &countedStore{Memory: bucket.NewMemory(bucket.MemoryConfig{})}
	limits, err := bucket.Compile(bucket.Limit{Name: "second", Capacity: fairRate, Refill: fairRate, Period: time.Second})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	offered, admitted = make([]float64, len(f.weights)), make([]float64, len(f.weights))
	var instances []*bucket.Leased
	for range f.weights {
		l := bucket.NewLeased(store, bucket.LeasedConfig{})
		l.Allow(true)
		instances = append(instances, l)
		go l.Run(ctx)
	}
	due, began, random := make([]float64, len(f.weights)), time.Now(), rand.New(rand.NewPCG(1, 2))
	for time.Since(began) < fairWarm+fairSpell {
		time.Sleep(time.Millisecond) //nolint:forbidigo // In the bubble.
		for i, l := range instances {
			// They come by chance, as a balancer sends them.
			due[i] += f.times * fairRate / 1000 * f.weights[i]
			for cost := f.costs[i%len(f.costs)]; due[i] > 0; due[i] -= float64(cost) * random.ExpFloat64() {
				result, err := l.Take(ctx, bucket.Take{
					Tenant: "acme", Buckets: []bucket.Bucket{{Limits: limits}}, Amounts: points(cost), Lease: f.mode,
				})
				require.NoError(t, err)
				if time.Since(began) < fairWarm {
					continue
				}
				offered[i] += float64(cost)
				if result.Verdict == bucket.Admitted {
					admitted[i] += float64(cost)
				}
			}
		}
	}
	cancel()
	synctest.Wait()
	return offered, admitted
}

func TestInstancesAdmitTheSamePartOfWhatTheyAreAskedFor(t *testing.T) {
	t.Parallel()
	for _, mode := range []bucket.LeaseMode{bucket.LeaseAuto, bucket.LeaseAlways} {
		for _, f := range []fairness{
			{costs: []int64{318}, weights: []float64{0.5, 0.5}, times: 2},
			{costs: []int64{318}, weights: []float64{0.8, 0.2}, times: 1.3},
			{costs: []int64{318}, weights: []float64{0.25, 0.25, 0.25, 0.25}, times: 2},
			{costs: []int64{318}, weights: []float64{0.6, 0.2, 0.1, 0.1}, times: 2},
			// One instance is busy by small operations, and the other has few large ones.
			{costs: []int64{5, 318}, weights: []float64{0.8, 0.2}, times: 2},
			{costs: []int64{5, 700}, weights: []float64{0.6, 0.4}, times: 2},
			{costs: []int64{700, 700, 1}, weights: []float64{0.4, 0.4, 0.2}, times: 2},
			{costs: []int64{1500}, weights: []float64{0.7, 0.3}, times: 2},
		} {
			f.mode = mode
			t.Run(fmt.Sprint(mode, f.weights, f.costs, f.times), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					offered, admitted := f.run(t)
					all, ran := 0.0, 0.0
					for i := range offered {
						all, ran = all+offered[i], ran+admitted[i]
					}
					require.Greater(t, ran, 0.98*fairRate*fairSpell.Seconds(), "what is used")
					require.Less(t, ran, fairRate*(fairSpell.Seconds()+1), "what was full at first, and comes back")
					for i := range offered {
						part := admitted[i] / offered[i] / (ran / all)
						t.Logf("instance %d admits %.2f of what all admit", i, part)
						// 0.79 to 1.35 in 24 runs, and up to 1.48 of an instance with a tenth of the load.
						require.Greater(t, part, 0.7, "instance %d", i)
						require.Less(t, part, 1.6, "instance %d", i)
					}
				})
			})
		}
	}
}
