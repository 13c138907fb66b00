package postgresfeed_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/contrib/postgresfeed"
	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/internal/postgrestest"
	"github.com/gqlgen-ratelimit/ratelimit/policy"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// patience is for how long something that has to happen may take on a busy machine.
const patience = time.Minute

// server is that of all tests but those that restart it. Each has a database of its own.
var server *postgrestest.Server

func TestMain(m *testing.M) {
	var err error
	if server, err = postgrestest.Launch(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	if err := server.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// creating orders those who make databases: PostgreSQL copies a template that nobody else may use meanwhile.
var creating sync.Mutex

var databases int

// database makes a database with the tables, and returns its name.
func database(t testing.TB) string {
	t.Helper()
	creating.Lock()
	defer creating.Unlock()
	databases++
	name := fmt.Sprintf("test%d", databases)
	ctx := context.Background()
	admin, err := pgx.Connect(ctx, server.URL("postgres"))
	require.NoError(t, err)
	defer func() { _ = admin.Close(ctx) }()
	_, err = admin.Exec(ctx, "CREATE DATABASE "+name)
	require.NoError(t, err)
	require.NoError(t, postgresfeed.Migrate(ctx, connect(t, server.URL(name)), ""))
	return name
}

// connect returns a pool that ends with the test.
func connect(t testing.TB, url string) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(context.Background(), url)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool
}

func open(t testing.TB, cfg postgresfeed.Config) *postgresfeed.Feed {
	t.Helper()
	if cfg.Logger == nil {
		cfg.Logger = quiet
	}
	feed, err := postgresfeed.New(cfg)
	require.NoError(t, err)
	return feed
}

// put writes a revision by hand.
func put(pool *pgxpool.Pool, r *policy.Revision) error {
	var published *time.Time
	if !r.Published.IsZero() {
		published = &r.Published
	}
	return pgx.BeginFunc(context.Background(), pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(context.Background(), `INSERT INTO ratelimit.policy_revision VALUES ('main', $1, $2, $3, $4, $5, $6, $7)
			ON CONFLICT (name, number) DO UPDATE SET hash = excluded.hash, document = excluded.document`,
			r.Number, r.Hash[:], r.Document, r.Author, r.Reason, published, append([]byte{}, r.Signature...))
		if err != nil {
			return err
		}
		_, err = tx.Exec(context.Background(), `INSERT INTO ratelimit.policy_head VALUES ('main', $1)
			ON CONFLICT (name) DO UPDATE SET number = excluded.number`, r.Number)
		return err
	})
}

// terminate ends the connections to a database but the one that does so, those with the name of an application or all, and
// returns how many.
func terminate(ctx context.Context, pool *pgxpool.Pool, application string) (n int, err error) {
	err = pool.QueryRow(ctx, `SELECT count(*) FROM (SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name LIKE $1) ended`, application+"%").Scan(&n)
	return n, err
}

// revision returns a revision whose maximum cost is its number.
func revision(number uint64) *policy.Revision {
	return other(number, fmt.Appendf(nil, "version: 1\ndefault: free\ntiers: {free: {maxCost: %d}}\n", number))
}

func other(number uint64, document []byte) *policy.Revision {
	return &policy.Revision{Number: number, Document: document, Hash: policy.HashOf(document)}
}

func maxCost(source tiers.Source) uint64 {
	return uint64(source.Snapshot().Rules(tiers.Subject{Tenant: "x"}, tiers.Selection{}).MaxCost.Enforce)
}

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// follow starts a follower that ends with the test.
func follow(t testing.TB, feed policy.Feed, cfg policy.Config) *policy.Follower {
	t.Helper()
	cfg.Observe.Logger = quiet
	if cfg.Observe.Observer == nil {
		cfg.Observe.Observer = event.NewLogger(quiet)
	}
	f, err := policy.Follow(t.Context(), feed, cfg)
	require.NoError(t, err)
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// memo is a log that is read while others write.
type memo struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (m *memo) Write(p []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.text.Write(p)
}

// count returns how often the log has a text.
func (m *memo) count(text string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return strings.Count(m.text.String(), text)
}
