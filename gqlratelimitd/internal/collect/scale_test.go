package collect_test

import (
	"context"
	"flag"
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/bucket/redisclient"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/collect"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
	"github.com/gqlgen-ratelimit/ratelimit/usage"
)

var tenants = flag.Int("tenants", 20_000, "how many tenants benchmarks collect")

// wide is a source in which many tenants were counted in each minute.
type wide struct {
	bucket.UsageStore
	clock *clock
	n     int
	// reads are those hours that were read.
	reads atomic.Int64
}

const pageOfTenants = 1000

func (w *wide) Now(context.Context) (time.Time, error) { return w.clock.now(), nil }

func (w *wide) Found(_ context.Context, cursor string) (found []bucket.UsageFound, next string, err error) {
	from, _ := strconv.Atoi(cursor)
	hour := w.clock.now().Add(-2 * time.Minute).Truncate(time.Hour)
	for i := from; i < min(from+pageOfTenants, w.n); i++ {
		found = append(found, bucket.UsageFound{Tenant: fmt.Sprint("tenant-", i), Hour: hour})
	}
	if from+pageOfTenants < w.n {
		next = strconv.Itoa(from + pageOfTenants)
	}
	return found, next, nil
}

func (*wide) Refused(context.Context, time.Time, string) ([]usage.Refused, string, error) {
	return nil, "", nil
}

func (w *wide) ReadUsage(ctx context.Context, tenant string, hour time.Time, grade bucket.UsageGrade) (*bucket.UsageHour, error) {
	w.reads.Add(1)
	if w.UsageStore != nil {
		return w.UsageStore.ReadUsage(ctx, tenant, hour, grade)
	}
	read := &bucket.UsageHour{Tenant: tenant, Hour: hour, Counts: make([]bucket.UsageCount, 2)}
	last := int(w.clock.now().Sub(hour)/time.Minute) - 2
	for i, unit := range []bucket.Unit{bucket.Points, bucket.Requests} {
		c := &read.Counts[i]
		c.Unit, c.Generation = unit, 7
		c.Minutes[min(last, len(c.Minutes)-1)].Charged = 5
	}
	return read, nil
}

func (w *wide) ForgetUsage(context.Context, *bucket.UsageHour) (bool, error) { return true, nil }

// BenchmarkAMinuteOfManyTenants says how many tenants are read and written in a second who have counted points and requests in a minute, and how
// much memory that takes at most: with -tenants=1000000 of a million.
func BenchmarkAMinuteOfManyTenants(b *testing.B) {
	for kind := range kinds {
		b.Run(kind, func(b *testing.B) {
			s := newScene(b, kind)
			source := &wide{clock: s.clock, n: *tenants}
			r := collect.NewRound(s.collector(source), nil)
			measure(b, s, r, source)
		})
	}
}

// processorTime is what this process has used so far: a file of SQLite is part of it, a PostgreSQL is not.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// measure has a round read minutes.
func measure(b *testing.B, s *scene, r collect.Round, source *wide) {
	b.Helper()
	ctx := b.Context()
	most, done := uint64(0), make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		for {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			most = max(most, m.HeapAlloc)
			select {
			case <-done:
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	})
	var reading time.Duration
	before := processorTime(b)
	for b.Loop() {
		s.clock.advance(time.Minute)
		begun := time.Now()
		require.NoError(b, r.Collect(ctx))
		reading += time.Since(begun)
	}
	close(done)
	watching.Wait()
	all := float64(source.reads.Load())
	b.ReportMetric(float64((processorTime(b)-before).Microseconds())/all, "cpu-µs/tenant")
	b.ReportMetric(all/reading.Seconds(), "tenants-read/s")
	b.ReportMetric(float64(most)/(1<<20), "MiB-at-most")
}

// BenchmarkAMinuteOfManyTenantsOfARedis reads them from a Redis.
func BenchmarkAMinuteOfManyTenantsOfARedis(b *testing.B) {
	server := redistest.Start(b)
	client, err := redisclient.Open(server.Addr, redisclient.Config{})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, client.Close()) })
	budgets, err := bucket.NewRedis(bucket.RedisConfig{Client: client, Timeout: 5 * time.Second})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, budgets.Close()) })
	var taking sync.WaitGroup
	for worker := range 32 {
		taking.Go(func() {
			for i := worker; i < *tenants; i += 32 {
				_, err := budgets.Take(b.Context(), bucket.Take{
					Tenant: fmt.Sprint("tenant-", i), Amounts: bucket.Amounts{{Unit: bucket.Points, N: 5}, {Unit: bucket.Requests, N: 1}}, Usage: &bucket.Usage{},
				})
				if err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	taking.Wait()
	for kind := range kinds {
		b.Run(kind, func(b *testing.B) {
			s := newScene(b, kind)
			s.clock.us.Store(time.Now().Truncate(time.Minute).Add(time.Minute + time.Second).UnixMicro())
			source := &wide{UsageStore: budgets, clock: s.clock, n: *tenants}
			r := collect.NewRound(s.collector(source), nil)
			measure(b, s, r, source)
		})
	}
}
