package postgresfeed

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/gqlgen-ratelimit/ratelimit/policy"
	"github.com/gqlgen-ratelimit/ratelimit/policy/directory"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// RecordsConfig says where [Records] are.
type RecordsConfig struct {
	// Pool has the connections to the database. It is required, and the caller's to close. Reading works through a pooler in any mode,
	// writing in session and transaction mode. Listening takes one connection out of it for good, which does not count among those of
	// the pool.
	Pool *pgxpool.Pool
	// Listen is where to listen instead, as in [Config].
	Listen *pgx.ConnConfig
	// Schema is that of [Migrate]. Empty means [DefaultSchema].
	Schema string
	// Name tells several directories of one schema apart: 1 to 64 characters of A-Z a-z 0-9 _ . and -. Empty means main.
	Name string
	// Logger is told once if notifications do not arrive, and once if they do again. Nil means slog.Default().
	Logger *slog.Logger
}

// Records is the directory.Source and the directory.Writer of a PostgreSQL, for as many tenants as a table has: an instance reads
// the row of a tenant when it comes, and what has changed by an index. It is made by [NewRecords] and safe for concurrent use.
// Several directories may share one.
type Records struct {
	pool  *pgxpool.Pool
	name  string
	sql   recordStatements
	hints *hints
}

var (
	_ directory.Hinter = (*Records)(nil)
	_ directory.Writer = (*Records)(nil)
)

// recordStatements are those of one schema.
type recordStatements struct {
	tenant, changes, locked, first, put, renewed, forgotten string
}

// NewRecords returns the records of a database. It does not connect. The error has everything that is wrong with the configuration.
func NewRecords(cfg RecordsConfig) (*Records, error) {
	cfg.Schema, cfg.Name = cmp.Or(cfg.Schema, DefaultSchema), cmp.Or(cfg.Name, "main")
	var errs []error
	if cfg.Pool == nil {
		errs = append(errs, errors.New("postgresfeed: RecordsConfig.Pool is nil: set the result of pgxpool.New"))
	}
	if err := checkSchema(cfg.Schema); err != nil {
		errs = append(errs, fmt.Errorf("RecordsConfig.Schema: %w", err))
	}
	if !feedName.MatchString(cfg.Name) {
		errs = append(errs, fmt.Errorf("postgresfeed: RecordsConfig.Name is %.80q: write 1 to 64 characters of A-Z a-z 0-9 _ . -", cfg.Name))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return &Records{
		pool: cfg.Pool, name: cfg.Name,
		hints: newHints(cfg.Pool, cfg.Listen, cfg.Logger, changeChannel, cfg.Schema+"."+cfg.Name, "directory: changes of tenants"),
		sql: recordStatements{
			tenant: inSchema(tenantSQL, cfg.Schema), changes: inSchema(changesSQL, cfg.Schema), locked: inSchema(lockedSQL, cfg.Schema),
			first: inSchema(firstRecordSQL, cfg.Schema), put: inSchema(putSQL, cfg.Schema), renewed: inSchema(renewedSQL, cfg.Schema),
			forgotten: inSchema(forgottenRecordsSQL, cfg.Schema),
		},
	}, nil
}

// String returns the schema and the name of the directory.
func (r *Records) String() string { return "postgresql:" + r.hints.payload }

const (
	// tenantSQL has no row where nothing was ever written. A document that is too large is not read, and is none: the server knows the
	// size of a value without reading it.
	tenantSQL = `
SELECT r.revision, CASE WHEN octet_length(r.document) <= $3::bigint THEN r.document ELSE '['::bytea END
FROM {schema}.directory_head h
LEFT JOIN {schema}.directory_record r ON r.name = h.name AND r.tenant = $2::bytea AND r.document IS NOT NULL
WHERE h.name = $1::text AND h.revision > 0`

	// changesSQL has one row where there is no change, or a gap. Head and changes are those of one moment.
	changesSQL = `
SELECT h.origin, h.revision, r.tenant, r.revision
FROM {schema}.directory_head h
LEFT JOIN LATERAL (
	SELECT c.tenant, c.revision
	FROM {schema}.directory_record c
	WHERE c.name = h.name AND c.revision > $3::bigint AND h.origin = $2::text
	ORDER BY c.revision LIMIT $4::bigint
) r ON true
WHERE h.name = $1::text AND h.revision > 0
ORDER BY r.revision`
)

// Tenant implements directory.Source, in one query.
func (r *Records) Tenant(ctx context.Context, tenant string) (*directory.Record, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var revision *int64
	var document []byte
	// A pooler may give each query another connection: nothing is prepared.
	err := r.pool.QueryRow(ctx, r.sql.tenant, pgx.QueryExecModeExec, r.name, []byte(tenant), int64(tiers.MaxRecord)).Scan(&revision, &document)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, directory.ErrEmpty
	case err != nil:
		return nil, wrap(err)
	case revision == nil:
		return nil, nil
	}
	return &directory.Record{Tenant: tenant, Revision: uint64(*revision), Document: document}, nil
}

// Changes implements directory.Source, in one query.
func (r *Records) Changes(ctx context.Context, since directory.Mark) (page directory.Page, _ error) {
	if since.Revision > policy.MaxNumber {
		// No revision is larger.
		since.Origin, since.Revision = "", 0
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	rows, err := r.pool.Query(ctx, r.sql.changes, pgx.QueryExecModeExec, r.name, since.Origin, int64(since.Revision), int64(directory.MaxPage+1))
	if err != nil {
		return page, wrap(err)
	}
	defer rows.Close()
	found := false
	for rows.Next() {
		var newest int64
		var tenant []byte
		var revision *int64
		if err := rows.Scan(&page.Through.Origin, &newest, &tenant, &revision); err != nil {
			return page, wrap(err)
		}
		page.Through.Revision, found = uint64(newest), true
		if revision != nil {
			page.Changes = append(page.Changes, directory.Change{Tenant: string(tenant), Revision: uint64(*revision)})
		}
	}
	if err := rows.Err(); err != nil {
		return page, wrap(err)
	}
	if !found {
		return page, directory.ErrEmpty
	}
	if page.Gap = page.Through.Origin != since.Origin || page.Through.Revision < since.Revision; page.Gap {
		page.Changes = nil
	}
	if page.More = len(page.Changes) > directory.MaxPage; page.More {
		page.Changes = page.Changes[:directory.MaxPage]
		page.Through.Revision = page.Changes[directory.MaxPage-1].Revision
	}
	return page, nil
}

// HintsFailure returns why there are no hints now, nil if a subscription stands and delivers. It is [ErrSwallowed] behind a pooler that
// delivers none; a change is then there after an interval of the directory.
func (r *Records) HintsFailure() error { return r.hints.failure() }

// Hints implements directory.Hinter, as [Feed.Hints] does policy.Feed.
func (r *Records) Hints(ctx context.Context, wake func()) error { return r.hints.stand(ctx, wake) }

const (
	firstRecordSQL = `INSERT INTO {schema}.directory_head (name, origin) VALUES ($1::text, $2::text) ON CONFLICT DO NOTHING`

	lockedSQL = `SELECT origin FROM {schema}.directory_head WHERE name = $1::text FOR UPDATE`

	// putSQL sees what the one before has written, because it begins when the head is locked. Its one row says whether the
	// document is there already, the revision of the record that was there, and that of the one that is written.
	putSQL = `
WITH there AS (
	SELECT revision, document FROM {schema}.directory_record
	WHERE name = $1::text AND tenant = $2::bytea AND document IS NOT NULL
), verdict AS (
	SELECT h.revision > 0 AND coalesce(t.document, ''::bytea) = $3::bytea AS same, coalesce(t.revision, 0) AS there
	FROM {schema}.directory_head h LEFT JOIN there t ON true
	WHERE h.name = $1::text
), head AS (
	UPDATE {schema}.directory_head h SET revision = h.revision + 1 FROM verdict v
	WHERE h.name = $1::text AND NOT v.same AND v.there = $4::bigint
	RETURNING h.revision
), written AS (
	INSERT INTO {schema}.directory_record AS r (name, tenant, revision, document)
	SELECT $1::text, $2::bytea, revision, nullif($3::bytea, ''::bytea) FROM head
	ON CONFLICT (name, tenant) DO UPDATE SET revision = excluded.revision, document = excluded.document
	RETURNING r.revision
)
SELECT v.same, v.there, w.revision, CASE WHEN w.revision IS NOT NULL THEN pg_notify('` + changeChannel + `', $5::text)::text END
FROM verdict v LEFT JOIN written w ON true`

	forgottenRecordsSQL = `DELETE FROM {schema}.directory_record WHERE name = $1::text AND document IS NULL`

	renewedSQL = `
WITH head AS (UPDATE {schema}.directory_head SET origin = $2::text WHERE name = $1::text RETURNING name)
SELECT pg_notify('` + changeChannel + `', $3::text) FROM head`
)

// Put implements directory.Writer, in a transaction. After an error of the connection nobody knows whether the record was written:
// write it once more.
func (r *Records) Put(ctx context.Context, tenant string, document []byte, expected uint64) (revision uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var failed error
	err = pgx.BeginFunc(ctx, r.pool, func(tx pgx.Tx) error {
		revision, failed = r.PutIn(ctx, tx, tenant, document, expected)
		return failed
	})
	switch {
	case failed != nil:
		return 0, failed
	case err != nil:
		return 0, wrap(err)
	}
	return revision, nil
}

// PutIn writes as a part of a transaction, for example of one that writes many records, or into an audit log as well. The record is
// there, and instances hear of it, once the transaction is committed. Until then others who write wait. A
// *directory.ConflictError leaves the transaction as it was. In a transaction of another isolation than READ COMMITTED, who
// comes second can have the SQLSTATE 40001 instead.
func (r *Records) PutIn(ctx context.Context, tx pgx.Tx, tenant string, document []byte, expected uint64) (revision uint64, _ error) {
	if err := directory.CheckPut(tenant, document); err != nil {
		return 0, err
	}
	if expected > policy.MaxNumber {
		return 0, fmt.Errorf("postgresfeed: revision %d is expected: no number is larger than %d", expected, uint64(policy.MaxNumber))
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := r.lock(ctx, tx); err != nil {
		return 0, err
	}
	var same bool
	var there int64
	var written *int64
	err := tx.QueryRow(ctx, r.sql.put, pgx.QueryExecModeExec, r.name, []byte(tenant), append([]byte{}, document...), int64(expected), r.hints.payload).
		Scan(&same, &there, &written, nil)
	switch {
	case err != nil:
		return 0, wrap(err)
	case written != nil:
		return uint64(*written), nil
	case same:
		return uint64(there), nil
	default:
		return 0, &directory.ConflictError{There: uint64(there)}
	}
}

// lock locks the row of the head until the end of the transaction, and makes it before if nothing was ever written.
func (r *Records) lock(ctx context.Context, tx pgx.Tx) (err error) {
	for range 2 {
		var origin string
		err = tx.QueryRow(ctx, r.sql.locked, pgx.QueryExecModeExec, r.name).Scan(&origin)
		if !errors.Is(err, pgx.ErrNoRows) {
			break
		}
		if _, err := tx.Exec(ctx, r.sql.first, pgx.QueryExecModeExec, r.name, rand.Text()); err != nil {
			return wrap(err)
		}
	}
	return wrap(err)
}

// Renew begins another history: each instance asks for the records that it knows once more, when their tenants come. Call it
// after a backup was restored, or a failover has lost commits, because records can have gone back then under numbers that instances
// have seen. It also removes what is left of tenants whose records were removed.
func (r *Records) Renew(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := pgx.BeginFunc(ctx, r.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, r.sql.renewed, pgx.QueryExecModeExec, r.name, rand.Text(), r.hints.payload); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, r.sql.forgotten, pgx.QueryExecModeExec, r.name)
		return err
	})
	return wrap(err)
}
