package postgresfeed

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/gqlgen-ratelimit/ratelimit/policy"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

const (
	headSQL = `
SELECT h.number, r.hash
FROM {schema}.policy_head h
LEFT JOIN {schema}.policy_revision r ON r.name = h.name AND r.number = h.number
WHERE h.name = $1::text`

	firstSQL = `INSERT INTO {schema}.policy_head (name) VALUES ($1::text) ON CONFLICT DO NOTHING`

	// publishSQL returns a row if it has published. Who comes second waits for the row of the head, and sees then that it is another one.
	publishSQL = `
WITH head AS (
	UPDATE {schema}.policy_head SET number = $2::bigint
	WHERE name = $1::text AND coalesce(number, 0) = $3::bigint AND $2::bigint > $3::bigint
	RETURNING name, number
), revision AS (
	INSERT INTO {schema}.policy_revision (name, number, hash, document, author, reason, published, signature)
	SELECT name, number, $4::bytea, $5::bytea, $6::text, $7::text, $8::timestamptz, $9::bytea FROM head
	RETURNING number
)
SELECT pg_notify('` + hintChannel + `', $10::text) FROM revision`
)

// uniqueViolation is the SQLSTATE of a row that is there already.
const uniqueViolation = "23505"

// queries is a pool or a transaction.
type queries interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// Publish implements policy.Publisher. After an error of the connection nobody knows whether the revision was published:
// publish it once more. Text with a zero byte is refused: PostgreSQL has none.
func (f *Feed) Publish(ctx context.Context, r *policy.Revision, expected uint64) error {
	return f.publish(ctx, f.pool, r, expected)
}

// PublishIn publishes as a part of a transaction, for example of one that writes into an audit log as well. The revision is there, and
// instances hear of it, once the transaction is committed. Until then others who publish wait. A *policy.ConflictError
// leaves the transaction as it was. In a transaction of another isolation than READ COMMITTED, who comes second can
// have the SQLSTATE 40001 instead.
func (f *Feed) PublishIn(ctx context.Context, tx pgx.Tx, r *policy.Revision, expected uint64) error {
	return f.publish(ctx, tx, r, expected)
}

func (f *Feed) publish(ctx context.Context, q queries, r *policy.Revision, expected uint64) error {
	if _, err := r.LoadWith(tiers.ParseConfig{MaxDocument: f.maxDocument}); err != nil {
		return err
	}
	if strings.ContainsRune(r.Author+r.Reason, 0) {
		return malformed(r, errors.New("its author or its reason has a zero byte, which PostgreSQL does not keep"))
	}
	if expected > policy.MaxNumber {
		return fmt.Errorf("postgresfeed: revision %d is expected: no number is larger than %d", expected, uint64(policy.MaxNumber))
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for range 2 {
		done, err := f.raise(ctx, q, r, expected)
		if done || err != nil {
			return err
		}
		newest, known, err := f.head(ctx, q)
		switch {
		case err != nil:
			return err
		case known || expected != 0:
			if newest == r.Head() {
				return nil
			}
			return &policy.ConflictError{Newest: newest}
		}
		// There is no row yet that publishers can lock.
		if _, err := q.Exec(ctx, f.sql.first, pgx.QueryExecModeExec, f.name); err != nil {
			return fmt.Errorf("postgresfeed: %w", err)
		}
	}
	return &policy.ConflictError{}
}

// raise publishes if the newest revision is the expected one, and returns whether it is.
func (f *Feed) raise(ctx context.Context, q queries, r *policy.Revision, expected uint64) (bool, error) {
	var published *time.Time
	if !r.Published.IsZero() {
		at := time.UnixMilli(r.Published.UnixMilli())
		published = &at
	}
	tag, err := q.Exec(ctx, f.sql.publish, pgx.QueryExecModeExec, f.name, int64(r.Number), int64(expected), r.Hash[:], r.Document,
		r.Author, r.Reason, published, append([]byte{}, r.Signature...), f.hints.payload)
	if there := (*pgconn.PgError)(nil); errors.As(err, &there) && there.Code == uniqueViolation {
		return false, fmt.Errorf("postgresfeed: there was a revision %d before: publish under a larger number: %w", r.Number, err)
	}
	if err != nil {
		return false, fmt.Errorf("postgresfeed: %w", err)
	}
	return tag.RowsAffected() == 1, nil
}

// head returns number and hash of the newest revision, and whether the policy has the row that says so.
func (f *Feed) head(ctx context.Context, q queries) (newest policy.Head, known bool, _ error) {
	var number *int64
	var hash []byte
	err := q.QueryRow(ctx, f.sql.head, pgx.QueryExecModeExec, f.name).Scan(&number, &hash)
	if errors.Is(err, pgx.ErrNoRows) {
		return newest, false, nil
	}
	if err != nil {
		return newest, false, fmt.Errorf("postgresfeed: %w", err)
	}
	if number != nil {
		newest.Number = uint64(*number)
		copy(newest.Hash[:], hash)
	}
	return newest, true, nil
}
