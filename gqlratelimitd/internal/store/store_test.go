package store_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
)

func TestManyDaemonsOpenAnEmptyDatabaseAtOnce(t *testing.T) {
	t.Parallel()
	for kind, empty := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			url := empty(t)
			var daemons sync.WaitGroup
			for range 8 {
				daemons.Go(func() {
					db, err := store.Open(t.Context(), store.Config{URL: url})
					require.NoError(t, err)
					require.NoError(t, db.Read(t.Context(), func(v *store.View) error {
						head, err := v.Head()
						require.Equal(t, store.Head{}, head)
						return err
					}))
					require.NoError(t, db.Close())
				})
			}
			daemons.Wait()
		})
	}
}

func TestEachDatabaseHasItsOwnKeyOfTokens(t *testing.T) {
	t.Parallel()
	for kind, empty := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			url := empty(t)
			key := open(t, store.Config{URL: url}).TokenKey()
			require.Equal(t, key, open(t, store.Config{URL: url}).TokenKey())
			other := open(t, store.Config{URL: empty(t)}).TokenKey()
			// Of 32 random bytes one in 256 is the same as in others, and less than half are 0. Both halves are random.
			for _, half := range [][2]int{{0, 16}, {16, 32}} {
				require.NotEqual(t, key[half[0]:half[1]], other[half[0]:half[1]])
				require.Less(t, bytes.Count(key[half[0]:half[1]], []byte{0}), 8)
			}
			require.NotEqual(t, key[:16], key[16:])
		})
	}
}

func TestTheSchemaCanBeMadeWithAToolOfOnesOwn(t *testing.T) {
	t.Parallel()
	url := database(t, server)
	admin, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	defer func() { _ = admin.Close(context.Background()) }()
	run := func(script string) {
		t.Helper()
		_, err := admin.Exec(t.Context(), script, pgx.QueryExecModeSimpleProtocol)
		require.NoError(t, err)
	}
	// A name that has to be quoted.
	role := fmt.Sprintf("modest-%d", databases.Add(1))
	run(fmt.Sprintf("CREATE ROLE %q LOGIN", role))
	whole, err := store.Script(store.PostgreSQL)
	require.NoError(t, err)
	run(whole)
	// It leaves the connection as it was.
	var path string
	require.NoError(t, admin.QueryRow(t.Context(), "SHOW search_path").Scan(&path))
	require.NotContains(t, path, store.Schema)
	run(store.Grants(role))
	// A daemon that may make nothing, and change nothing that was written once, works on it.
	modest := strings.Replace(url, "postgres@", role+"@", 1)
	db := open(t, store.Config{URL: modest})
	change(t, db, func(tx *store.Tx) {
		require.NoError(t, publishNext(t.Context(), tx))
		require.NoError(t, tx.PutTenant(&store.Tenant{Name: "acme", Record: []byte("{}")}, 0))
		require.NoError(t, tx.PutOverride(&store.Override{Tenant: "acme"}, 0))
		require.NoError(t, tx.AddToken(&access.Token{ID: "a", Hash: [32]byte{1}}))
		_, err := tx.RevokeToken("a")
		require.NoError(t, err)
		require.NoError(t, tx.KeepAnswer(&store.Answer{ID: []byte{1}, Request: []byte{1}, Expires: tx.Now()}))
		require.NoError(t, tx.Dequeue(1))
		_, err = tx.TakeLease("relay", "one", store.Lease{})
		require.NoError(t, err)
		require.NoError(t, tx.PutUnmanaged(&store.Override{}))
		require.NoError(t, tx.RemoveUnmanaged(store.OverrideKey{}))
		require.NoError(t, tx.NoteSwitch("a"))
		require.NoError(t, tx.ForgetSwitch("a"))
		require.NoError(t, tx.Announce("redis", 1))
		require.NoError(t, tx.Announce("redis", 2))
	})
	count(t, db, func(tx *store.UsageTx) {
		for range 2 {
			counts, refused := newTruthOfUsage(1).grow()
			require.NoError(t, put(tx, counts, refused))
			require.NoError(t, tx.PutUsagePass(store.UsagePass{Began: 1, Collected: 2}))
			require.NoError(t, tx.PutUsageGap(store.UsageGap{First: 1, Until: 2}))
		}
		require.NoError(t, tx.SetBackUsagePass(1))
	})
	keepUsage(t, db, store.UsageState{MinutesFrom: 2 * minuteOfUsage, HoursFrom: 2 * hourOfUsage})
	removeUsage(t, db)
	require.Equal(t, map[string]int64{}, levels(t, db))
	other, err := pgx.Connect(t.Context(), modest)
	require.NoError(t, err)
	defer func() { _ = other.Close(context.Background()) }()
	for _, statement := range []string{"DELETE FROM audit_entry", "UPDATE audit_entry SET hash = hash", "TRUNCATE policy_revision", "ALTER TABLE audit_entry DISABLE TRIGGER ALL"} {
		_, err := other.Exec(t.Context(), "SET search_path = gqlratelimitd; "+statement, pgx.QueryExecModeSimpleProtocol)
		var refused *pgconn.PgError
		require.ErrorAs(t, err, &refused)
		require.Equal(t, "42501", refused.Code, "that is insufficient_privilege: %s", statement)
	}
}

func TestTheScriptOfAFileMakesWhatADaemonMakes(t *testing.T) {
	t.Parallel()
	schema := func(path string) (made []string) {
		db, err := sql.Open("sqlite", path)
		require.NoError(t, err)
		defer func() { require.NoError(t, db.Close()) }()
		rows, err := db.QueryContext(t.Context(), "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL UNION ALL SELECT 'step ' || step FROM migration ORDER BY 1")
		require.NoError(t, err)
		defer func() { require.NoError(t, rows.Close()) }()
		for rows.Next() {
			var text string
			require.NoError(t, rows.Scan(&text))
			made = append(made, text)
		}
		require.NoError(t, rows.Err())
		return made
	}
	byDaemon, byScript := filepath.Join(t.TempDir(), "daemon.db"), filepath.Join(t.TempDir(), "script.db")
	require.NoError(t, open(t, store.Config{URL: "sqlite:" + byDaemon}).Close())
	whole, err := store.Script(store.SQLite)
	require.NoError(t, err)
	db, err := sql.Open("sqlite", byScript)
	require.NoError(t, err)
	_, err = db.ExecContext(t.Context(), whole)
	require.NoError(t, err)
	require.NoError(t, db.Close())
	require.Equal(t, schema(byDaemon), schema(byScript))
	open(t, store.Config{URL: "sqlite:" + byScript})
}

func TestTheRightsThatAreGrantedAreOnEveryTable(t *testing.T) {
	t.Parallel()
	whole, err := store.Script(store.PostgreSQL)
	require.NoError(t, err)
	tables := regexp.MustCompile(`CREATE TABLE (\w+)`).FindAllStringSubmatch(whole, -1)
	require.NotEmpty(t, tables)
	for _, table := range tables {
		require.Regexp(t, `gqlratelimitd\.`+table[1]+`\b`, store.Grants("limits"))
	}
}

func TestADatabaseOfANewerVersionIsRefused(t *testing.T) {
	t.Parallel()
	url := database(t, server)
	open(t, store.Config{URL: url})
	admin, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	defer func() { _ = admin.Close(context.Background()) }()
	_, err = admin.Exec(t.Context(), "INSERT INTO gqlratelimitd.migration VALUES (1000, 0)")
	require.NoError(t, err)
	_, err = store.Open(t.Context(), store.Config{URL: url})
	require.ErrorContains(t, err, "a newer version has made the tables, in 1000 steps")
}

func TestAFileIsItsOwnersAlone(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	// The name has what a URL has to escape.
	open(t, store.Config{URL: "sqlite:" + filepath.Join(folder, "a ?&#%20 b.db")})
	files, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Len(t, files, 3, "the file, and what SQLite keeps beside it")
	for _, file := range files {
		info, err := file.Info()
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm(), file)
	}
}

func TestAnURLThatCannotBeOpenedIsSaidWithoutItsPassword(t *testing.T) {
	t.Parallel()
	foreign := filepath.Join(t.TempDir(), "foreign")
	require.NoError(t, os.WriteFile(foreign, []byte(strings.Repeat("not a database\n", 100)), 0o600))
	for url, want := range map[string]string{
		"":                                   "has to begin with postgres://",
		"mysql://user:hunter2@host/db":       "has to begin with postgres://",
		"postgres://user:hunter2@host:x/db":  "cannot be read",
		"sqlite:" + t.TempDir() + "/none/db": "no such file",
		"sqlite:" + foreign:                  "not a database",
		"postgres://user:hunter2@127.0.0.1:1/db?connect_timeout=1&sslmode=disable": "connect",
	} {
		_, err := store.Open(t.Context(), store.Config{URL: url})
		require.ErrorContains(t, err, want, url)
		require.NotContains(t, err.Error(), "hunter2")
	}
}

func TestAChangeHasTheTimeOfItsClockToTheMicrosecond(t *testing.T) {
	t.Parallel()
	for kind, empty := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			url := empty(t)
			now := time.Date(2026, 11, 22, 3, 0, 0, 123456789, time.FixedZone("", 3600))
			db := open(t, store.Config{URL: url, Now: func() time.Time { return now }})
			require.NoError(t, db.Change(t.Context(), func(tx *store.Tx) error {
				require.Equal(t, time.Date(2026, 11, 22, 2, 0, 0, 123456000, time.UTC), tx.Now())
				return nil
			}))
		})
	}
}

func TestTheErrorOfAChangeIsReturnedAsItIs(t *testing.T) {
	t.Parallel()
	for kind, empty := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			url := empty(t)
			db := open(t, store.Config{URL: url})
			refused := errors.New("refused")
			require.Equal(t, refused, db.Change(t.Context(), func(*store.Tx) error { return refused }))
			require.Equal(t, refused, db.Read(t.Context(), func(*store.View) error { return refused }))
			// A panic leaves no transaction behind that holds the head.
			require.PanicsWithValue(t, "oh", func() { _ = db.Change(t.Context(), func(*store.Tx) error { panic("oh") }) })
			require.NoError(t, db.Change(t.Context(), func(*store.Tx) error { return nil }))
		})
	}
}

func TestChangesWaitForEachOtherAndForNobodyWhoGaveUp(t *testing.T) {
	t.Parallel()
	for kind, empty := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			url := empty(t)
			one, other := open(t, store.Config{URL: url}), open(t, store.Config{URL: url})
			require.NoError(t, one.Change(t.Context(), func(*store.Tx) error {
				ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
				defer cancel()
				for _, db := range []*store.DB{one, other} {
					err := db.Change(ctx, func(*store.Tx) error { return errors.New("it did not wait") })
					require.Error(t, err)
					require.ErrorIs(t, ctx.Err(), context.DeadlineExceeded)
					require.NotContains(t, err.Error(), "did not wait")
					// Readers wait for nobody.
					require.NoError(t, db.Read(t.Context(), func(v *store.View) error { _, err := v.Head(); return err }))
				}
				return nil
			}))
			require.NoError(t, other.Change(t.Context(), func(*store.Tx) error { return nil }))
		})
	}
}

func TestADaemonThatIsFrozenInAChangeLosesTheHead(t *testing.T) {
	t.Parallel()
	url := database(t, server)
	db := open(t, store.Config{URL: url})
	admin, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	defer func() { _ = admin.Close(context.Background()) }()
	frozen := func(*store.Tx) error {
		// PostgreSQL ends the transaction after 15 s; here somebody does it at once.
		var ended int
		err := admin.QueryRow(t.Context(), `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
			WHERE application_name = 'gqlratelimitd' AND datname = current_database() AND state = 'idle in transaction'`).Scan(&ended)
		require.NoError(t, err)
		require.Equal(t, 1, ended)
		return nil
	}
	require.ErrorIs(t, db.Change(t.Context(), frozen), store.ErrUncertain)
	require.NoError(t, db.Change(t.Context(), func(*store.Tx) error { return nil }))
}
