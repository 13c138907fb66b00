package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	// The driver of SQLite.
	_ "modernc.org/sqlite"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
)

// Bounds of what a database is asked for.
const (
	// patience is for how long one change or read may take, and wait for others.
	patience = 30 * time.Second
	// connections is how many connections a daemon has at most.
	connections = 8
	// idleTransaction is after which time PostgreSQL ends a transaction whose daemon says nothing: one that is frozen in the
	// middle of a change keeps the head row no longer.
	idleTransaction = "15s"
	// busy is for how long SQLite waits for another process that writes, in milliseconds.
	busy = "10000"
)

// Schema is the schema of a PostgreSQL in which the tables are.
const Schema = "gqlratelimitd"

// Config says where a database is. The zero value is a mistake.
type Config struct {
	// URL begins with postgres:// or postgresql://, as libpq and pgx read it, or it is sqlite: and the path of a file, which is
	// made if it is not there, for its owner alone. No pooler in transaction mode stands before a PostgreSQL.
	URL string
	// Now is the clock. Nil means time.Now.
	Now func() time.Time
}

// DB is a database. It is made by [Open] and safe for concurrent use, also by several processes on one database.
type DB struct {
	dialect Dialect
	now     func() time.Time
	// write has a single connection to a file of SQLite. It is the same as read for a PostgreSQL.
	write, read *sql.DB
	// tokenKey is that of the tokens of the database.
	tokenKey access.TokenKey
}

// Open opens a database and brings its tables to what this version wants. [DB.Close] closes it. An error repeats nothing of a
// URL: that may hold a password.
func Open(ctx context.Context, cfg Config) (*DB, error) {
	db := &DB{now: cfg.Now}
	if db.now == nil {
		db.now = time.Now
	}
	var err error
	if path, ok := strings.CutPrefix(cfg.URL, "sqlite:"); ok {
		err = db.openFile(path)
	} else if strings.HasPrefix(cfg.URL, "postgres://") || strings.HasPrefix(cfg.URL, "postgresql://") {
		err = db.openServer(cfg.URL)
	} else {
		err = errors.New("the URL of a database has to begin with postgres:// or with sqlite: and a path")
	}
	if err == nil {
		err = db.migrate(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("store: %w", err), db.Close())
	}
	return db, nil
}

// Close closes the database. What is under way ends with an error.
func (db *DB) Close() error {
	var errs []error
	if db.read != nil && db.read != db.write {
		errs = append(errs, db.read.Close())
	}
	if db.write != nil {
		// It comes last: who closes a file of SQLite as the last one makes it a single file again.
		errs = append(errs, db.write.Close())
	}
	return errors.Join(errs...)
}

// Dialect says which kind of database it is.
func (db *DB) Dialect() Dialect { return db.dialect }

func (db *DB) openServer(address string) error {
	db.dialect = PostgreSQL
	cfg, err := pgx.ParseConfig(address)
	if err != nil {
		return errors.New("the URL of the PostgreSQL cannot be read")
	}
	cfg.RuntimeParams["search_path"] = Schema
	cfg.RuntimeParams["idle_in_transaction_session_timeout"] = idleTransaction
	if cfg.RuntimeParams["application_name"] == "" {
		cfg.RuntimeParams["application_name"] = "gqlratelimitd"
	}
	db.write = stdlib.OpenDB(*cfg)
	db.write.SetMaxOpenConns(connections)
	db.write.SetMaxIdleConns(connections)
	db.read = db.write
	return nil
}

func (db *DB) openFile(path string) error {
	// SQLite would make it readable for everybody, and gives what stands beside it the same rights.
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	if err := file.Close(); err != nil {
		return err
	}
	open := func(more url.Values) (*sql.DB, error) {
		more["_pragma"] = append(more["_pragma"], "busy_timeout("+busy+")", "foreign_keys(1)", "synchronous(FULL)")
		return sql.Open("sqlite", "file:"+(&url.URL{Path: path}).EscapedPath()+"?"+more.Encode())
	}
	if db.write, err = open(url.Values{"_txlock": {"immediate"}, "_pragma": {"journal_mode(WAL)"}}); err != nil {
		return err
	}
	db.write.SetMaxOpenConns(1)
	if db.read, err = open(url.Values{"_pragma": {"query_only(1)"}}); err != nil {
		return err
	}
	db.read.SetMaxOpenConns(connections)
	db.read.SetMaxIdleConns(connections)
	return nil
}
