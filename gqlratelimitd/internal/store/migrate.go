package store

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"
	"strings"

	"github.com/jackc/pgx/v5"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// migrationLock is the advisory lock of those who migrate: "limitd" in ASCII.
const migrationLock = 0x6c696d697464

// Script returns the whole SQL that makes the tables, for who makes them with psql or sqlite3 and not with the rights of a daemon: the
// schema of a PostgreSQL, and all steps but the first so many that were done already, in one transaction. Where a step fails, nothing is
// done. The newest number of the table migration says how many were done, and 0 is none.
func Script(dialect Dialect, done int) (string, error) {
	steps, err := Migrations(dialect)
	if err != nil {
		return "", err
	}
	if done < 0 || done > len(steps) {
		return "", fmt.Errorf("store: there are %d steps, of which %d cannot be done already", len(steps), done)
	}
	// Who has a schema public of their own before it would find other tables.
	begin := "BEGIN;\nCREATE SCHEMA IF NOT EXISTS " + Schema + ";\nSET LOCAL search_path = " + Schema + ";\n"
	if dialect == SQLite {
		begin = "BEGIN IMMEDIATE;\n"
	}
	return begin + strings.Join(steps[done:], "") + "COMMIT;\n", nil
}

// Grants returns the SQL that gives a role of a PostgreSQL what a daemon needs on tables that somebody else owns, and no more: it changes
// and removes nothing that was written once.
func Grants(role string) string {
	to := " TO " + pgx.Identifier{role}.Sanitize() + ";\n"
	on := func(rights, tables string) string {
		return "GRANT " + rights + " ON " + Schema + "." + strings.ReplaceAll(tables, " ", ", "+Schema+".") + to
	}
	return "GRANT USAGE ON SCHEMA " + Schema + to +
		on("SELECT", "migration") +
		on("SELECT, INSERT", "policy_revision audit_entry") +
		// To lock a row takes UPDATE.
		on("SELECT, UPDATE", "head") +
		on("SELECT, INSERT, UPDATE", "tenant override_intent token lease announced") +
		on("SELECT, INSERT, UPDATE, DELETE", "outbox answer override_unmanaged mode_noted") +
		on("SELECT, INSERT, UPDATE, DELETE", "usage_minute usage_hour refused_hour webhook webhook_delivery webhook_cursor") +
		on("SELECT, INSERT, UPDATE", "usage_pass usage_gap") +
		on("SELECT, UPDATE", "usage_state")
}

// Migrations returns the steps of [Script], for tools that count steps themselves. They name no schema: in a PostgreSQL they are run with
// a search_path of [Schema]. Each step notes that it was done. A step that was released is never changed, and none is taken back.
func Migrations(dialect Dialect) ([]string, error) {
	// They are sorted by name.
	files, err := fs.Glob(migrationFiles, "migrations/*.sql")
	if err != nil {
		return nil, err
	}
	var steps []string
	for _, file := range files {
		single := strings.Count(file, ".") > 1
		if single && !strings.HasSuffix(file, dialect.suffix()) {
			continue
		}
		text, err := migrationFiles.ReadFile(file)
		if err != nil {
			return nil, err
		}
		now := "CAST(unixepoch('subsec') * 1000000 AS INTEGER)"
		if dialect == PostgreSQL {
			now = "CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS bigint)"
		}
		steps = append(steps, fmt.Sprintf("%s\nINSERT INTO migration (step, at) VALUES (%d, %s);\n", dialect.of(string(text)), len(steps)+1, now))
	}
	return steps, nil
}

// migrate makes the tables. Several may do so at once: one waits for the other. Where nothing is to be done, it needs no right to
// make tables.
func (db *DB) migrate(ctx context.Context) error {
	steps, err := Migrations(db.dialect)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tx, err := db.write.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	// After the commit it does nothing.
	defer func() { _ = tx.Rollback() }()
	done, err := db.migrated(ctx, tx)
	if err != nil {
		return err
	}
	if done > len(steps) {
		return fmt.Errorf("a newer version has made the tables, in %d steps; this one knows %d", done, len(steps))
	}
	for _, step := range steps[done:] {
		if _, err := tx.ExecContext(ctx, step); err != nil {
			return fmt.Errorf("a migration: %w", err)
		}
	}
	return tx.Commit()
}

// migrated returns how many steps were done. Who asks is the only one who migrates, until the transaction ends.
func (db *DB) migrated(ctx context.Context, tx *sql.Tx) (done int, _ error) {
	there := "SELECT count(*) > 0 FROM sqlite_schema WHERE type = 'table' AND name = 'migration'"
	if db.dialect == PostgreSQL {
		if _, err := tx.ExecContext(ctx, "SELECT pg_advisory_xact_lock($1)", migrationLock); err != nil {
			return 0, err
		}
		var schema bool
		err := tx.QueryRowContext(ctx, "SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1)", Schema).Scan(&schema)
		if err != nil {
			return 0, err
		}
		if !schema {
			_, err = tx.ExecContext(ctx, "CREATE SCHEMA "+Schema)
			return 0, err
		}
		there = "SELECT to_regclass('" + Schema + ".migration') IS NOT NULL"
	}
	var table bool
	err := tx.QueryRowContext(ctx, there).Scan(&table)
	if err == nil && table {
		err = tx.QueryRowContext(ctx, "SELECT coalesce(max(step), 0) FROM migration").Scan(&done)
	}
	return done, err
}
