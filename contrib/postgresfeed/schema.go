package postgresfeed

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// DefaultSchema is the schema of the database in which the tables are, unless a configuration says another one.
const DefaultSchema = "ratelimit"

// migrationLock is the advisory lock of those who migrate: "policy" in ASCII.
const migrationLock = 0x706f6c696379

var schemaName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,62}$`)

func checkSchema(schema string) error {
	if !schemaName.MatchString(schema) {
		return fmt.Errorf("postgresfeed: the schema is called %.80q: write 1 to 63 of A-Z a-z 0-9 _, no digit first", schema)
	}
	return nil
}

// inSchema puts the name of the schema into a statement.
func inSchema(sql, schema string) string {
	return strings.ReplaceAll(sql, "{schema}", pgx.Identifier{schema}.Sanitize())
}

// Migrations returns the statements that make the tables, step by step, for those who migrate with a tool of their own: the
// first step begins with an empty schema that is there. A step that was released is never changed, and none is taken back. An
// empty schema means [DefaultSchema].
func Migrations(schema string) ([]string, error) {
	if schema == "" {
		schema = DefaultSchema
	}
	if err := checkSchema(schema); err != nil {
		return nil, err
	}
	// They are sorted by name.
	files, err := fs.Glob(migrationFiles, "migrations/*.sql")
	if err != nil {
		return nil, err
	}
	steps := make([]string, 0, len(files))
	for _, file := range files {
		text, err := migrationFiles.ReadFile(file)
		if err != nil {
			return nil, err
		}
		steps = append(steps, inSchema(string(text), schema))
	}
	return steps, nil
}

// Migrate makes the schema and its tables, or brings them to what this version of the package wants. Several may migrate at
// once: one waits for the other. What a newer version has made stays as it is. An empty schema means [DefaultSchema].
//
// It needs rights that instances and publishers do not need.
func Migrate(ctx context.Context, pool *pgxpool.Pool, schema string) error {
	if schema == "" {
		schema = DefaultSchema
	}
	steps, err := Migrations(schema)
	if err != nil {
		return err
	}
	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error { return migrate(ctx, tx, schema, steps) })
	if err != nil {
		return fmt.Errorf("postgresfeed: migration: %w", err)
	}
	return nil
}

func migrate(ctx context.Context, tx pgx.Tx, schema string, steps []string) error {
	if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", pgx.QueryExecModeExec, int64(migrationLock)); err != nil {
		return err
	}
	// CREATE SCHEMA IF NOT EXISTS wants the right to create also where there is nothing to create.
	var there bool
	err := tx.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1)", pgx.QueryExecModeExec, schema).Scan(&there)
	if err != nil {
		return err
	}
	run := func(sql string) error {
		_, err := tx.Exec(ctx, inSchema(sql, schema), pgx.QueryExecModeSimpleProtocol)
		return err
	}
	if !there {
		err = run("CREATE SCHEMA {schema}")
	}
	err = errors.Join(err, run("CREATE TABLE IF NOT EXISTS {schema}.policy_migration "+
		"(step int PRIMARY KEY, at timestamptz NOT NULL DEFAULT clock_timestamp())"))
	if err != nil {
		return err
	}
	var done int
	query := inSchema("SELECT coalesce(max(step), 0) FROM {schema}.policy_migration", schema)
	if err := tx.QueryRow(ctx, query, pgx.QueryExecModeExec).Scan(&done); err != nil {
		return err
	}
	for i := done; i < len(steps); i++ {
		if err := run(steps[i]); err != nil {
			return err
		}
		if err := run(fmt.Sprintf("INSERT INTO {schema}.policy_migration (step) VALUES (%d)", i+1)); err != nil {
			return err
		}
	}
	return nil
}
