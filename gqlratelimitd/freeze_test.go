package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/audit"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/collect"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/control"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/freeze"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
	"github.com/gqlgen-ratelimit/ratelimit/internal/postgrestest"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
	"github.com/gqlgen-ratelimit/ratelimit/usage"
	"github.com/gqlgen-ratelimit/ratelimit/usage/redisusage"
)

// forward is a clock that is put on by days, of a daemon and of the minutes that its Redis tells. What the Redis counts it counts in its own time.
type forward struct{ by atomic.Int64 }

func (a *forward) now() time.Time { return time.Now().Add(time.Duration(a.by.Load())) }

// shifted is a source of which it is later.
type shifted struct {
	usage.Source
	clock *forward
}

func (s shifted) Now(ctx context.Context) (time.Time, error) {
	now, err := s.Source.Now(ctx)
	return now.Add(time.Duration(s.clock.by.Load())), err
}

// Reports asks for nothing that is told in a time that the Redis has not come to.
func (s shifted) Reports(ctx context.Context, told time.Time, cursor string) ([]usage.Report, string, error) {
	if told.After(time.Now()) {
		return nil, "", nil
	}
	return s.Source.Reports(ctx, told, cursor)
}

// billing is a Redis that counts, and daemons on one database that collect and freeze each day.
type billing struct {
	*testing.T
	clock   *forward
	redis   string
	url     string
	budgets *bucket.Redis
	// tenant is who has used something.
	tenant string
	key    *audit.Key
	// control and db are those of the last daemon.
	control *control.Control
	db      *store.DB
}

func newBilling(t *testing.T, url string) *billing {
	t.Helper()
	b := &billing{T: t, clock: &forward{}, redis: redistest.Start(t).Addr, url: url}
	b.budgets = b.open()
	private, _, err := audit.NewKey("log.example.org")
	require.NoError(t, err)
	b.key, err = audit.ParseKey(private)
	require.NoError(t, err)
	return b
}

// open is a store on the Redis.
func (b *billing) open() *bucket.Redis {
	b.Helper()
	client := redistest.Connect(b, b.redis)
	budgets, err := bucket.NewRedis(bucket.RedisConfig{Client: client, Timeout: 5 * time.Second})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, budgets.Close()) })
	return budgets
}

// take takes points of a tenant, and returns when by the clock of the Redis, and what settles that.
func (b *billing) take(tenant string, points int64) (at time.Time, settle func(actual int64)) {
	b.Helper()
	claim := &idempotency.Claim{
		Subject: "ann", Key: idempotency.Key("12345678-" + rand.Text()), Attempt: idempotency.NewAttemptID(), Lease: 30 * time.Second, TTL: 24 * time.Hour,
	}
	result, err := b.budgets.Take(b.Context(), bucket.Take{
		Tenant: tenant, Amounts: bucket.Amounts{{Unit: bucket.Points, N: points}, {Unit: bucket.Requests, N: 1}}, Usage: &bucket.Usage{}, Claim: claim,
	})
	require.NoError(b, err)
	require.Equal(b, bucket.Admitted, result.Verdict)
	return time.Now().UTC(), func(actual int64) {
		settled, err := b.budgets.Settle(b.Context(), bucket.Settlement{
			Receipt: result.Receipt, Actual: bucket.Amounts{{Unit: bucket.Points, N: actual}},
			Claim: &bucket.ClaimSettlement{Tenant: tenant, Claim: claim, Outcome: idempotency.Done, Answer: []byte("{}")},
		})
		require.NoError(b, err)
		require.True(b, settled.Applied)
	}
}

// use takes 165 points of a tenant in all, on one day of the Redis, of which 5 are given back. Of 100 of them it returns what settles them.
func (b *billing) use() (day time.Time, late func(actual int64)) {
	b.Helper()
	for attempt := 0; ; attempt++ {
		b.tenant = fmt.Sprint("acme-", attempt)
		first, settle := b.take(b.tenant, 65)
		settle(60)
		last, late := b.take(b.tenant, 100)
		if day = first.Truncate(24 * time.Hour); day.Equal(last.Truncate(24 * time.Hour)) {
			return day, late
		}
	}
}

// later has the days pass until it is so many days later. Who is away for two days at once may have missed something.
func (b *billing) later(days int) {
	b.Helper()
	for b.clock.by.Load() < int64(days)*int64(24*time.Hour) {
		b.clock.by.Add(int64(24 * time.Hour))
		now := b.clock.now()
		require.Eventually(b, func() bool {
			var told int64
			require.NoError(b, b.db.Read(b.Context(), func(v *store.View) (err error) {
				told, err = v.UsagePass("told")
				return err
			}))
			return told*60 > now.Add(-3*time.Minute).Unix()
		}, time.Minute, 20*time.Millisecond)
	}
}

// daemon runs what a daemon runs that collects and freezes, until the function is called that it returns.
func (b *billing) daemon(name string) (stop func()) {
	b.Helper()
	db, err := store.Open(b.Context(), store.Config{URL: b.url, Now: b.clock.now})
	require.NoError(b, err)
	client := redistest.Connect(b, b.redis)
	reader, err := redisusage.NewReader(redisusage.Config{Client: client}, b.open())
	require.NoError(b, err)
	log := slog.New(slog.DiscardHandler)
	collector, err := collect.New(collect.Config{
		Store: db, Source: shifted{reader, b.clock}, Holder: name, Interval: 20 * time.Millisecond, Fresh: 50 * time.Millisecond, Search: 50 * time.Millisecond,
		Lease: 2 * time.Second, Logger: log, MeterProvider: noop.NewMeterProvider(), Now: b.clock.now,
	})
	require.NoError(b, err)
	schedule := freeze.Schedule{Every: freeze.Daily}
	c, err := control.New(control.Config{Store: db, StatementKey: b.key, Freeze: schedule, Now: b.clock.now})
	require.NoError(b, err)
	freezer, err := freeze.New(freeze.Config{
		Store: db, Ledger: c.FreezeLedger(), Status: c.Freezing, Schedule: schedule, Holder: name, Interval: 20 * time.Millisecond, Lease: 2 * time.Second,
		Logger: log, MeterProvider: noop.NewMeterProvider(), Now: b.clock.now,
	})
	require.NoError(b, err)
	ctx, cancel := context.WithCancel(b.Context())
	var running sync.WaitGroup
	for _, run := range []func(context.Context) error{collector.Run, freezer.Run} {
		running.Go(func() { _ = run(ctx) })
	}
	stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
		require.NoError(b, client.Close())
		require.NoError(b, db.Close())
	})
	b.Cleanup(stop)
	b.control, b.db = c, db
	return stop
}

// statements waits until acme has so many statements, and returns them as files, the first one first.
func (b *billing) statements(n int) (files []string) {
	b.Helper()
	auditor := access.Actor{Subject: "eve", Method: access.MethodToken, Roles: []access.Role{access.Auditor}}
	var heads []control.StatementHead
	require.Eventually(b, func() bool {
		// Sums are computed a minute after what they are of.
		b.clock.by.Add(int64(time.Second))
		var err error
		heads, err = b.control.Statements(b.Context(), auditor, b.tenant, 0, 100)
		require.NoError(b, err)
		return len(heads) >= n
	}, 2*time.Minute, 20*time.Millisecond, "%d statements", n)
	require.Len(b, heads, n)
	for _, head := range slices.Backward(heads) {
		found, err := b.control.Statement(b.Context(), auditor, b.tenant, head.Number)
		require.NoError(b, err)
		name := filepath.Join(b.TempDir(), fmt.Sprint(head.Number))
		require.NoError(b, os.WriteFile(name, found.Signed, 0o600))
		files = append(files, name)
	}
	return files
}

// billings runs a test on each kind of database, on which so many daemons may be.
func billings(t *testing.T, test func(b *billing, daemons int)) {
	t.Helper()
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		test(newBilling(t, "sqlite:"+filepath.Join(t.TempDir(), "daemon.db")), 1)
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		server, err := postgrestest.Launch()
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, server.Close()) })
		test(newBilling(t, server.URL("postgres")), 2)
	})
}

func TestWhatARedisHasCountedIsFrozenByItselfAndCorrectedWhenItIsSettledLate(t *testing.T) {
	t.Parallel()
	billings(t, func(b *billing, daemons int) {
		day, late := b.use()
		var stops []func()
		for i := range daemons {
			stops = append(stops, b.daemon(fmt.Sprint("daemon-", i)))
		}
		// It begins with the day before yesterday, of which there is nothing.
		b.frozenTo(time.Time{})
		b.later(3)
		one := b.statements(1)
		out, code := command("statement", "verify", one[0], "-key", b.key.Public())
		require.Zero(b, code, out)
		require.Contains(b, out, "Statement 1 of "+b.tenant+", "+day.Format(time.DateOnly))
		require.Contains(b, out, "points (exact): 160, of which 5 was given back from 165")

		late(60)
		if daemons > 1 {
			// Whoever collects and freezes may be gone.
			stops[0]()
		}
		b.later(4)
		two := b.statements(2)
		out, code = command("statement", "verify", two[0], two[1], "-key", b.key.Public())
		require.Zero(b, code, out)
		require.Contains(b, out, "It corrects statement 1 by:\n  points (exact): -40, of which +0 was charged and +40 given back\n")
		require.Contains(b, out, "points (exact): 120, of which 45 was given back from 165")
		b.later(5)
		b.frozenTo(day.AddDate(0, 0, 3))
		b.statements(2)
	})
}

// frozenTo waits until freezing has begun, and everything before a day is frozen.
func (b *billing) frozenTo(day time.Time) {
	b.Helper()
	require.Eventually(b, func() bool {
		frozen, err := b.control.FreezeLedger().Frozen(b.Context())
		require.NoError(b, err)
		return !frozen.IsZero() && !frozen.Before(day)
	}, time.Minute, 20*time.Millisecond)
}

// freezerRow is a metric of the freezer on the page of metrics, or as Prometheus reads it.
var freezerRow = regexp.MustCompile(`(?m)^(?:\| \x60|# TYPE )(ratelimit_freezer_\w+)(?:\x60 \||) (gauge|counter)`)

// nothingOverdue is the freezer's metric of a daemon that has frozen all that is due.
var nothingOverdue = regexp.MustCompile(`(?m)^ratelimit_freezer_overdue_seconds\{.*\} 0$`)

func TestADaemonFreezesWhatItsConfigurationSaysAndTellsHowFarItIs(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	config := filepath.Join(data, "gqlratelimitd.yaml")
	require.NoError(t, os.WriteFile(config, []byte("usage: {freeze: daily, freezeDelay: 49h}\nredis: "+redistest.Start(t).Addr+"\n"), 0o600))
	start(t, data).stop()
	day := time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -5)
	keep(t, data, day)
	searched(t, data)
	count(t, data, func(tx *store.UsageTx) error { return tx.PutUsagePass("frozen", day.Unix()/60) })
	r := start(t, data, "-config", config, "-new-token=false")
	out, code := command("-new-token", "-data", data, "-listen", strings.TrimPrefix(r.url, "http://"))
	require.Zero(t, code, out)
	token := r.issue("ada", regexp.MustCompile(`grl_[a-z2-7]{13}_[a-z2-7]{59}`).FindString(out))
	var told map[string]any
	require.Eventually(t, func() bool {
		told = r.plain(http.StatusOK, http.MethodGet, "/v1/ratelimit/freezing", token)
		// Two days may be due at first, and are frozen one after the other.
		text, _ := told["due"].(string)
		due, err := time.Parse(time.RFC3339, text)
		return err == nil && due.After(time.Now())
	}, time.Minute, time.Second)
	require.NotEqual(t, day.Format(time.DateOnly), told["frozen"])
	require.Equal(t, "daily", told["every"])
	require.InDelta(t, 49*3600, told["delaySeconds"], 0)
	require.NotContains(t, told, "reason")
	head := r.plain(http.StatusOK, http.MethodGet, "/v1/orgs/acme%2F1/ratelimit/statements", token)["statements"].([]any)[0].(map[string]any)
	require.Equal(t, day.Format(time.DateOnly), head["from"])
	graph := r.graphql(token, `{ freezing { every delaySeconds frozen from to due reason problem } }`).(map[string]any)
	require.Equal(t, "DAILY", graph["every"])
	graph["every"] = "daily"
	require.Equal(t, told, flat(graph))
	page, err := os.ReadFile("../docs/reference/metrics.md")
	require.NoError(t, err)
	rows := freezerRow.FindAllStringSubmatch(string(page), -1)
	var metrics string
	require.Eventually(t, func() bool {
		metrics = r.ask(http.StatusOK, http.MethodGet, "/metrics", token, "")
		return nothingOverdue.MatchString(metrics)
	}, time.Minute, time.Second)
	require.Len(t, rows, 4)
	for _, row := range rows {
		require.Contains(t, metrics, "# TYPE "+row[1]+" "+row[2]+"\n")
	}
	require.Len(t, freezerRow.FindAllString(metrics, -1), len(rows))
	require.Regexp(t, `(?m)^ratelimit_freezer_statements_total\{.*ratelimit_freezer_kind="first"\} 1$`, metrics)
}
