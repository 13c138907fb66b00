package store

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
)

func TestACommitThatFindsTheDiskFullHasChangedNothing(t *testing.T) {
	t.Parallel()
	db, err := Open(t.Context(), Config{URL: "sqlite:" + filepath.Join(t.TempDir(), "daemon.db")})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	// As many pages as there are: SQLite answers as on a disk that is full.
	_, err = db.write.ExecContext(t.Context(), "PRAGMA max_page_count = 1")
	require.NoError(t, err)
	full := db.Change(t.Context(), func(tx *Tx) error {
		return tx.AddToken(&access.Token{ID: "a", Subject: strings.Repeat("x", 1<<20)})
	})
	require.ErrorContains(t, full, "full")
	require.True(t, refusesCommit(full))
	require.True(t, refusesCommit(fmt.Errorf("commit: %w", full)))
	require.False(t, refusesCommit(errors.New("the connection is lost")))
}
