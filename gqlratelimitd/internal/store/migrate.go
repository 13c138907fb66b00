package store

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

//go:embed schema/*.sql
var schemaFiles embed.FS

const (
	// migrationLock is the advisory lock of those who make the tables: "limitd" in ASCII.
	migrationLock = 0x6c696d697464
	// schemaStep is the newest step that this version knows, in the table migration.
	schemaStep = 1
)

// Script returns the whole SQL that makes the tables, for who makes them with psql or sqlite3 and not with the rights of a daemon, in one
// transaction, with the schema of a PostgreSQL.
func Script(dialect Dialect) (string, error) {
	tables, err := dialect.tables()
	if err != nil {
		return "", err
	}
	// Who has a schema public of their own before it would find other tables.
	begin := "BEGIN;\nCREATE SCHEMA IF NOT EXISTS " + Schema + ";\nSET LOCAL search_path = " + Schema + ";\n"
	if dialect == SQLite {
		begin = "BEGIN IMMEDIATE;\n"
	}
	return begin + tables + "COMMIT;\n", nil
}

// tables returns the SQL that makes the tables, and notes that it was run. It names no schema.
func (d Dialect) tables() (string, error) {
	now := "CAST(unixepoch('subsec') * 1000000 AS INTEGER)"
	if d == PostgreSQL {
		now = "CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS bigint)"
	}
	var all strings.Builder
	for _, name := range []string{"tables.sql", "append_only" + d.suffix()} {
		text, err := schemaFiles.ReadFile("schema/" + name)
		if err != nil {
			return "", fmt.Errorf("store: %w", err)
		}
		all.WriteString(d.of(string(text)))
	}
	fmt.Fprintf(&all, "INSERT INTO migration (step, at) VALUES (%d, %s);\n", schemaStep, now)
	return all.String(), nil
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
		on("SELECT, INSERT, UPDATE", "tenant override_intent lease announced") +
		on("SELECT, INSERT, UPDATE, DELETE", "outbox answer token override_unmanaged mode_noted") +
		on("SELECT, INSERT, UPDATE, DELETE", "usage_minute usage_hour refused_hour webhook webhook_delivery webhook_cursor") +
		on("SELECT, INSERT, UPDATE", "usage_pass usage_gap") +
		on("SELECT, UPDATE", "usage_state")
}

// migrate makes the tables. Several may do so at once: one waits for the other. Where nothing is to be done, it needs no right to
// make tables.
func (db *DB) migrate(ctx context.Context) error {
	tables, err := db.dialect.tables()
	if err != nil {
		return err
	}
	// SQLite does not wait for another process while it opens a file that is new.
	return repeat(ctx, func(ctx context.Context) error { return db.makeTables(ctx, tables) })
}

// makeTables makes the tables if there are none, and reads the key of tokens.
func (db *DB) makeTables(ctx context.Context, tables string) error {
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
	if done > schemaStep {
		return fmt.Errorf("a newer version has made the tables, in %d steps; this one knows %d", done, schemaStep)
	}
	if done == 0 {
		if _, err := tx.ExecContext(ctx, tables); err != nil {
			return fmt.Errorf("the tables: %w", err)
		}
	}
	if err := db.readTokenKey(ctx, tx); err != nil {
		return err
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
