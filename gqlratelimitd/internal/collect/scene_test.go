package collect_test

import (
	"context"
	crand "crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/collect"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/storetest"
	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
	"github.com/gqlgen-ratelimit/ratelimit/internal/postgrestest"
	"github.com/gqlgen-ratelimit/ratelimit/usage"
	"github.com/gqlgen-ratelimit/ratelimit/usage/usagetest"
)

// server is a PostgreSQL that several tests share. Each of them has a database of its own.
var server = sync.OnceValues(postgrestest.Launch)

// databases counts those that were made in the server.
var databases atomic.Int64

func TestMain(m *testing.M) {
	code := m.Run()
	if databases.Load() > 0 {
		if launched, err := server(); err != nil || launched.Close() != nil {
			code = 1
		}
	}
	os.Exit(code)
}

// kinds make an empty database of each kind, and return where it is.
var kinds = map[string]func(t testing.TB) string{
	"SQLite": func(t testing.TB) string {
		t.Helper()
		return storetest.SQLite(t)
	},
	"PostgreSQL": func(t testing.TB) string {
		t.Helper()
		name := fmt.Sprintf("test%d", databases.Add(1))
		launched, err := server()
		require.NoError(t, err)
		admin, err := pgx.Connect(context.Background(), launched.URL("postgres"))
		require.NoError(t, err)
		defer func() { _ = admin.Close(context.Background()) }()
		// The template of others would be in use while somebody makes a database.
		_, err = admin.Exec(context.Background(), "CREATE DATABASE "+name+" TEMPLATE template0")
		require.NoError(t, err)
		return launched.URL(name)
	},
}

// clock is a clock that is set.
type clock struct{ us atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.us.Store(time.Date(2026, 11, 23, 10, 7, 3, 0, time.UTC).UnixMicro())
	return c
}

func (c *clock) now() time.Time          { return time.UnixMicro(c.us.Load()).UTC() }
func (c *clock) advance(d time.Duration) { c.us.Add(d.Microseconds()) }

// scene is a database, and a store of budgets from which it is collected.
type scene struct {
	testing.TB
	clock *clock
	db    *store.DB
	// raw is the same database.
	raw    *sql.DB
	budget *usagetest.Memory
}

func newScene(t testing.TB, kind string) *scene {
	t.Helper()
	s := &scene{TB: t, clock: newClock()}
	url := kinds[kind](t)
	var err error
	s.db, err = store.Open(t.Context(), store.Config{URL: url, Now: s.clock.now})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.db.Close()) })
	driver := "pgx"
	if path, ok := strings.CutPrefix(url, "sqlite:"); ok {
		driver, url = "sqlite", path
	} else {
		url += "&search_path=" + store.Schema
	}
	s.raw, err = sql.Open(driver, url)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.raw.Close()) })
	s.budget = usagetest.NewMemory(s.clock.now)
	return s
}

// both runs a test on a database of each kind.
func both(t *testing.T, test func(s *scene)) {
	t.Helper()
	for kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			test(newScene(t, kind))
		})
	}
}

// config is that of a collector whose hours are forgotten soon.
func (s *scene) config(from usage.Source) collect.Config {
	return collect.Config{
		Store: s.db, Source: from, Settled: time.Minute, Logger: slog.New(slog.DiscardHandler), MeterProvider: noop.NewMeterProvider(), Now: s.clock.now,
	}
}

func (s *scene) collector(from usage.Source) *collect.Collector {
	s.Helper()
	c, err := collect.New(s.config(from))
	require.NoError(s, err)
	return c
}

// round returns one that leads, without faults.
func (s *scene) round() collect.Round {
	s.Helper()
	return collect.NewRound(s.collector(s.budget), nil)
}

// settle has everything collected, and what is old removed.
func (s *scene) settle() {
	s.Helper()
	r, ctx := s.round(), context.Background()
	require.NoError(s, r.Search(ctx))
	require.NoError(s, r.Keep(ctx))
}

// take takes points of a tenant, and returns what settles that at any time.
func (s *scene) take(tenant string, points int64) (settle func(actual int64)) {
	s.Helper()
	claim := &idempotency.Claim{
		Subject: "ann", Key: idempotency.Key("12345678-" + crand.Text()), Attempt: idempotency.NewAttemptID(), Lease: 30 * time.Second, TTL: 24 * time.Hour,
	}
	result, err := s.budget.Take(context.Background(), bucket.Take{
		Tenant: tenant, Amounts: bucket.Amounts{{Unit: bucket.Points, N: points}, {Unit: bucket.Requests, N: 1}}, Usage: &bucket.Usage{}, Claim: claim,
	})
	require.NoError(s, err)
	require.Equal(s, bucket.Admitted, result.Verdict)
	return func(actual int64) {
		settled, err := s.budget.Settle(context.Background(), bucket.Settlement{
			Receipt: result.Receipt, Actual: bucket.Amounts{{Unit: bucket.Points, N: actual}},
			Claim: &bucket.ClaimSettlement{Tenant: tenant, Claim: claim, Outcome: idempotency.Done, Answer: []byte("{}")},
		})
		require.NoError(s, err)
		require.True(s, settled.Applied)
	}
}

// sums are what a query returns, by its first column.
func (s *scene) sums(query string) map[string]int64 {
	s.Helper()
	rows, err := s.raw.QueryContext(context.Background(), query)
	require.NoError(s, err)
	defer func() { require.NoError(s, rows.Close()) }()
	sums := map[string]int64{}
	for rows.Next() {
		var name string
		var n int64
		require.NoError(s, rows.Scan(&name, &n))
		sums[name] += n
	}
	require.NoError(s, rows.Err())
	return sums
}

// faults break what a collector does, as chance has it.
type faults struct {
	mu sync.Mutex
	*rand.Rand
	// share is how much of what is done fails, of 100.
	share int
}

var errFault = errors.New("it is broken")

// next reports whether the next thing fails.
func (f *faults) next() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.IntN(100) < f.share
}

// faultyDatabase is one that is lost before, in and after transactions.
type faultyDatabase struct {
	collect.Database
	faults *faults
}

func (d *faultyDatabase) Count(ctx context.Context, count func(*store.UsageTx) error) error {
	if d.faults.next() {
		return errFault
	}
	dies := d.faults.next()
	err := d.Database.Count(ctx, func(tx *store.UsageTx) error {
		if err := count(tx); err != nil || !dies {
			return err
		}
		return errFault
	})
	if err == nil && d.faults.next() {
		return store.ErrUncertain
	}
	return err
}

func (d *faultyDatabase) Read(ctx context.Context, read func(*store.View) error) error {
	if d.faults.next() {
		return errFault
	}
	return d.Database.Read(ctx, read)
}

// faultySource is one whose requests and replies are lost. It adds up what it returns, as one would who adds what is new since it read last.
type faultySource struct {
	usage.Source
	faults *faults
	mu     sync.Mutex
	seen   map[string]int64
	added  *atomic.Int64
}

func (s *faultySource) Now(ctx context.Context) (time.Time, error) {
	if s.faults.next() {
		return time.Time{}, errFault
	}
	return s.Source.Now(ctx)
}

func (s *faultySource) Found(ctx context.Context, cursor string) ([]bucket.UsageFound, string, error) {
	if s.faults.next() {
		return nil, "", errFault
	}
	return s.Source.Found(ctx, cursor)
}

func (s *faultySource) Refused(ctx context.Context, hour time.Time, cursor string) ([]usage.Refused, string, error) {
	if s.faults.next() {
		return nil, "", errFault
	}
	return s.Source.Refused(ctx, hour, cursor)
}

func (s *faultySource) ReadUsage(ctx context.Context, tenant string, hour time.Time, grade bucket.UsageGrade) (*bucket.UsageHour, error) {
	if s.faults.next() {
		return nil, errFault
	}
	read, err := s.Source.ReadUsage(ctx, tenant, hour, grade)
	if err != nil || read == nil {
		return read, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range read.Counts {
		c := &read.Counts[i]
		if c.Unit != bucket.Points {
			continue
		}
		key := fmt.Sprint(tenant, hour, grade, c.Generation)
		s.added.Add(c.Net() - s.seen[key])
		s.seen[key] = c.Net()
	}
	return read, nil
}

func (s *faultySource) ForgetUsage(ctx context.Context, read *bucket.UsageHour) (bool, error) {
	if s.faults.next() {
		return false, errFault
	}
	done, err := s.Source.ForgetUsage(ctx, read)
	if s.faults.next() {
		return false, errFault
	}
	return done, err
}
