package control_test

import (
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/audit"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/control"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/statement"
	"github.com/gqlgen-ratelimit/ratelimit/internal/postgrestest"
)

// launch starts the PostgreSQL of all tests that need one.
var (
	launched bool
	launch   = sync.OnceValues(func() (*postgrestest.Server, error) {
		launched = true
		return postgrestest.Launch()
	})
)

func TestMain(m *testing.M) {
	code := m.Run()
	if launched {
		if server, err := launch(); err == nil {
			err = server.Close()
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				code = 1
			}
		}
	}
	os.Exit(code)
}

// ledger is a control plane that makes statements, on a database of some kind.
type ledger struct {
	*scene

	url string
	// counted is what acme and others have, and public the key of statements.
	counted *usageTruth
	public  string
}

// The days of which counts are, and a time at which they can be frozen.
var (
	firstFrozen = time.Date(2026, 11, 16, 0, 0, 0, 0, time.UTC)
	afterFrozen = time.Date(2026, 11, 19, 0, 0, 0, 0, time.UTC)
	period      = control.FreezeInput{Tenant: "acme", From: "2026-11-16", To: "2026-11-19"}
)

func newLedger(t *testing.T, url string) *ledger {
	t.Helper()
	s := newScene(t, control.Config{})
	if url != "" {
		var err error
		s.db, err = store.Open(t.Context(), store.Config{URL: url, Now: func() time.Time { return s.now }})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.db.Close()) })
	}
	private, public, err := audit.NewKey("log.example.org")
	require.NoError(t, err)
	s.key, err = audit.ParseKey(private)
	require.NoError(t, err)
	l := &ledger{scene: s, url: url, public: public}
	l.Control = l.daemon(s.db, s.key)
	return l
}

// daemon is another control plane on a database.
func (l *ledger) daemon(db *store.DB, key *audit.Key) *control.Control {
	l.Helper()
	c, err := control.New(control.Config{Store: db, StatementKey: key, Now: func() time.Time { return l.now }})
	require.NoError(l, err)
	return c
}

// ledgers runs a test on each kind of database.
func ledgers(t *testing.T, test func(l *ledger)) {
	t.Helper()
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		test(newLedger(t, ""))
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		server, err := launch()
		require.NoError(t, err)
		admin, err := pgx.Connect(t.Context(), server.URL("postgres"))
		require.NoError(t, err)
		defer func() { _ = admin.Close(t.Context()) }()
		name := fmt.Sprintf("test%d", time.Now().UnixNano())
		_, err = admin.Exec(t.Context(), "CREATE DATABASE "+name+" TEMPLATE template0")
		require.NoError(t, err)
		test(newLedger(t, server.URL(name)))
	})
}

// draw has counts, all of them collected.
func (l *ledger) draw() *ledger {
	l.Helper()
	l.counted = drawUsage(5, firstFrozen.AddDate(0, 0, -1), afterFrozen.AddDate(0, 0, 1), 600)
	for i := range l.counted.charged {
		if c := &l.counted.charged[i]; i%3 == 0 {
			c.Field, c.Calls = fmt.Sprintf("Query.f%d", i%7), int64(i)
		}
	}
	l.put(l.counted.charged)
	return l
}

func (l *ledger) put(counts []store.UsageCount) {
	l.Helper()
	l.collect(firstFrozen.AddDate(0, 0, -2), firstFrozen, l.now, func(tx *store.UsageTx) {
		left, err := tx.PutUsage(counts)
		require.NoError(l, err)
		require.Zero(l, left)
		require.NoError(l, tx.PutUsagePass("search", minuteOf(l.now)))
	})
}

// truth are the lines that acme has.
func (l *ledger) truth() (lines []statement.Line) {
	sums := map[statement.Line]*statement.Line{}
	for _, c := range l.counted.charged {
		if c.Tenant != "acme" || c.Minute < minuteOf(firstFrozen) || c.Minute >= minuteOf(afterFrozen) {
			continue
		}
		key := statement.Line{Unit: c.Unit, Field: c.Field, Grade: c.Grade.String()}
		if sums[key] == nil {
			sums[key] = &statement.Line{Unit: c.Unit, Field: c.Field, Grade: c.Grade.String()}
		}
		sums[key].Charged += c.Charged
		sums[key].GivenBack += c.GivenBack
		sums[key].Calls += c.Calls
	}
	for _, line := range sums {
		lines = append(lines, *line)
	}
	statement.Sort(lines)
	return lines
}

// freeze freezes the period of acme.
func (l *ledger) freeze() control.StatementHead {
	l.Helper()
	frozen, err := l.FreezeUsage(l.ctx(), by(operator), period)
	require.NoError(l, err)
	require.Len(l, frozen.Statements, 1)
	return frozen.Statements[0]
}

// read is a statement of acme, as whoever has nothing but the bytes and the key reads it.
func (l *ledger) read(number uint64) *statement.Statement {
	l.Helper()
	found, err := l.Statement(l.ctx(), auditor, "acme", number)
	require.NoError(l, err)
	s, _, err := statement.Open(found.Signed, l.public)
	require.NoError(l, err)
	require.Equal(l, s, found.Content)
	return s
}
