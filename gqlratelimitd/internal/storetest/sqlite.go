// Package storetest has databases for tests of what stands on package store.
package storetest

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
)

// empty is the file of a database that has its tables and nothing in them.
// A process makes it once, because under the race detector the tables take longer than most tests.
var empty = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "storetest-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, "daemon.db")
	db, err := store.Open(context.Background(), store.Config{URL: "sqlite:" + path})
	if err != nil {
		return nil, err
	}
	// The last one to close it leaves a single file.
	if err := db.Close(); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
})

// SQLite returns the URL of a database of its own for the test, whose tables are made.
func SQLite(tb testing.TB) (url string) {
	tb.Helper()
	file, err := empty()
	if err != nil {
		tb.Fatal(err)
	}
	path := filepath.Join(tb.TempDir(), "daemon.db")
	if err := os.WriteFile(path, file, 0o600); err != nil {
		tb.Fatal(err)
	}
	return "sqlite:" + path
}
