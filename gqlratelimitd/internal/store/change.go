package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// tries is how often a change is begun that the database wants to be begun again.
const tries = 8

// View reads as of one moment. It holds until the function that was given it returns, for one goroutine.
type View struct {
	ctx     context.Context
	tx      *sql.Tx
	dialect Dialect
}

// Tx is a change: it reads what it has written. It holds until the function that was given it returns, for one goroutine.
type Tx struct {
	View
	head Head
	now  time.Time
}

// Now is when the change is made, to the microsecond, by the clock of this daemon.
func (tx *Tx) Now() time.Time { return tx.now }

// Change makes one change: all that the function writes is there once Change returns nil, and nothing of it after any other
// error than [ErrUncertain]. An error of the function undoes what it has written, and is returned as it is.
//
// The function may be called several times: it has no effect beside the transaction. Changes wait for each other, so it
// is quick. It takes half a minute at most, waiting included.
func (db *DB) Change(ctx context.Context, change func(*Tx) error) error {
	return repeat(ctx, func(ctx context.Context) error { return db.change(ctx, true, change) })
}

// repeat makes a transaction, and again for as long as the database wants that.
func repeat(ctx context.Context, once func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for try := 1; ; try++ {
		err := once(ctx)
		if err == nil || !again(err) || try == tries || ctx.Err() != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		//nolint:gosec // jitter need not be secret
		case <-time.After(time.Duration(rand.Int64N(int64(try) * int64(20*time.Millisecond)))):
		}
	}
}

// change tries it once. In line, it locks the head row first.
func (db *DB) change(ctx context.Context, inLine bool, change func(*Tx) error) error {
	raw, err := db.write.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	// After the commit it does nothing.
	defer func() { _ = raw.Rollback() }()
	tx := &Tx{View: View{ctx, raw, db.dialect}, now: db.now().UTC().Truncate(time.Microsecond)}
	if inLine {
		if tx.head, err = tx.readHead(headSQL + db.dialect.lock("UPDATE")); err != nil {
			return err
		}
	}
	if err := change(tx); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	err = raw.Commit()
	switch {
	case err == nil:
		return nil
	case refusesCommit(err):
		return fmt.Errorf("store: %w", err)
	default:
		return fmt.Errorf("%w: %w", ErrUncertain, err)
	}
}

// Read reads as of one moment. It takes half a minute at most.
func (db *DB) Read(ctx context.Context, read func(*View) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	// A transaction of SQLite reads as of its first statement.
	var options *sql.TxOptions
	if db.dialect == PostgreSQL {
		options = &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true}
	}
	raw, err := db.read.BeginTx(ctx, options)
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	defer func() { _ = raw.Rollback() }()
	return read(&View{ctx, raw, db.dialect})
}

// again reports whether the database wants a transaction to be begun again, of which it has surely committed nothing.
func again(err error) bool {
	if errors.Is(err, ErrUncertain) {
		return false
	}
	if answer := (*pgconn.PgError)(nil); errors.As(err, &answer) {
		switch answer.Code {
		// A conflict of transactions, a deadlock, and a server that ends or begins.
		case "40001", "40P01", "57P01", "57P02", "57P03":
			return true
		}
		return false
	}
	if answer := (*sqlite.Error)(nil); errors.As(err, &answer) {
		return primary(answer) == sqlite3.SQLITE_BUSY
	}
	var refused *pgconn.ConnectError
	return errors.Is(err, driver.ErrBadConn) || errors.As(err, &refused) || pgconn.SafeToRetry(err)
}

// refusesCommit reports whether the error of a commit says that nothing was committed.
func refusesCommit(err error) bool {
	if answer := (*pgconn.PgError)(nil); errors.As(err, &answer) {
		// A server that ends may have committed before.
		return answer.Code[:2] != "57"
	}
	if answer := (*sqlite.Error)(nil); errors.As(err, &answer) {
		// What found no room on the disk was taken back.
		return primary(answer) == sqlite3.SQLITE_BUSY || primary(answer) == sqlite3.SQLITE_FULL
	}
	return errors.Is(err, sql.ErrTxDone)
}

// primary is the code of an error without what says more.
func primary(err *sqlite.Error) int { return err.Code() & 0xff }
