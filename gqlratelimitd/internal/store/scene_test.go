package store_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
	"github.com/gqlgen-ratelimit/ratelimit/internal/postgrestest"
)

// server is the PostgreSQL of all tests but those that restart one. Each test has a database of its own.
var server *postgrestest.Server

func TestMain(m *testing.M) {
	if url := os.Getenv(writerURL); url != "" {
		fmt.Fprintln(os.Stderr, publishForEver(url))
		os.Exit(1)
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	var err error
	if server, err = postgrestest.Launch(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	if err := server.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	return code
}

var databases atomic.Int64

// database makes an empty database in a PostgreSQL, and returns where it is.
func database(t testing.TB, in *postgrestest.Server) string {
	t.Helper()
	name := fmt.Sprintf("test%d", databases.Add(1))
	ctx := context.Background()
	admin, err := pgx.Connect(ctx, in.URL("postgres"))
	require.NoError(t, err)
	defer func() { _ = admin.Close(ctx) }()
	// The template of others would be in use while somebody makes a database.
	_, err = admin.Exec(ctx, "CREATE DATABASE "+name+" TEMPLATE template0")
	require.NoError(t, err)
	return in.URL(name)
}

// kinds make an empty database of each kind, and return where it is.
var kinds = map[string]func(t testing.TB) string{
	"SQLite": func(t testing.TB) string {
		t.Helper()
		return "sqlite:" + filepath.Join(t.TempDir(), "daemon.db")
	},
	"PostgreSQL": func(t testing.TB) string {
		t.Helper()
		return database(t, server)
	},
}

// open returns a database that is closed with the test.
func open(t testing.TB, cfg store.Config) *store.DB {
	t.Helper()
	db, err := store.Open(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}
