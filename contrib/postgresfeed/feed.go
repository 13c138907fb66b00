package postgresfeed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/gqlgen-ratelimit/ratelimit/policy"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// Config says where a [Feed] keeps revisions.
type Config struct {
	// Pool has the connections to the database. It is required, and the caller's to close. It may lead through a pooler in any mode.
	// Listening takes one connection out of it for good, which does not count among those of the pool.
	Pool *pgxpool.Pool
	// Listen is where to listen instead: the server itself, where Pool leads through a pooler in transaction or statement mode.
	// pgx.ParseConfig makes one. Nil means that Pool is good for it.
	Listen *pgx.ConnConfig
	// Schema is that of [Migrate]. Empty means [DefaultSchema].
	Schema string
	// Name tells several policies of one schema apart: 1 to 64 characters of A-Z a-z 0-9 _ . and -. Empty means main.
	Name string
	// MaxDocument is the size in bytes of the largest document that [Feed.Publish] takes, as in policy.Config: what it
	// takes, followers have to take too. Zero means tiers.DefaultMaxDocument.
	MaxDocument int
	// Logger is told once if notifications do not arrive, and once if they do again. Nil means slog.Default().
	Logger *slog.Logger
}

// Feed is the policy.Feed and the policy.Publisher of a PostgreSQL. It is made by [New] and safe for concurrent use. Several followers may share one.
type Feed struct {
	pool        *pgxpool.Pool
	name        string
	maxDocument int
	sql         statements
	hints       *hints
}

var (
	_ policy.Feed      = (*Feed)(nil)
	_ policy.Publisher = (*Feed)(nil)
)

// patience bounds a call whose context has no sooner deadline.
const patience = 10 * time.Second

// statements are those of one schema.
type statements struct {
	newest, head, first, publish string
}

var feedName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

// New returns the feed of a database. It does not connect. The error has everything that is wrong with the configuration.
func New(cfg Config) (*Feed, error) {
	cfg.Schema, cfg.Name = cmp.Or(cfg.Schema, DefaultSchema), cmp.Or(cfg.Name, "main")
	var errs []error
	if cfg.Pool == nil {
		errs = append(errs, errors.New("postgresfeed: Config.Pool is nil: set the result of pgxpool.New"))
	}
	if err := checkSchema(cfg.Schema); err != nil {
		errs = append(errs, fmt.Errorf("Config.Schema: %w", err))
	}
	if !feedName.MatchString(cfg.Name) {
		errs = append(errs, fmt.Errorf("postgresfeed: Config.Name is %.80q: write 1 to 64 characters of A-Z a-z 0-9 _ . -", cfg.Name))
	}
	if cfg.MaxDocument < 0 || cfg.MaxDocument > tiers.MaxDocument {
		errs = append(errs, fmt.Errorf("postgresfeed: Config.MaxDocument is %d: write at most %d, or 0 for %d",
			cfg.MaxDocument, tiers.MaxDocument, tiers.DefaultMaxDocument))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return &Feed{
		maxDocument: cfg.MaxDocument,
		pool:        cfg.Pool, name: cfg.Name,
		hints: newHints(cfg.Pool, cfg.Listen, cfg.Logger, hintChannel, cfg.Schema+"."+cfg.Name, "policy: revisions"),
		sql: statements{
			newest: inSchema(newestSQL, cfg.Schema), head: inSchema(headSQL, cfg.Schema), first: inSchema(firstSQL, cfg.Schema),
			publish: inSchema(publishSQL, cfg.Schema),
		},
	}, nil
}

// String returns the schema and the name of the policy.
func (f *Feed) String() string { return "postgresql:" + f.hints.payload }

// newestSQL reads the newest revision, without its parts if the reader has it or if they are larger than what fits: the server
// knows the size of a value without reading it.
const newestSQL = `
SELECT h.number, r.hash, r.same, r.fits,
	CASE WHEN r.whole THEN r.document END,
	CASE WHEN r.whole THEN r.author END,
	CASE WHEN r.whole THEN r.reason END,
	r.published,
	CASE WHEN r.whole THEN r.signature END
FROM {schema}.policy_head h
LEFT JOIN LATERAL (
	SELECT p.*, s.*, s.fits AND NOT s.same AS whole
	FROM {schema}.policy_revision p
	CROSS JOIN LATERAL (SELECT
		p.number = $2::bigint AND p.hash = $3::bytea AS same,
		octet_length(p.document) <= $4::bigint AND octet_length(p.author) <= $5::bigint
			AND octet_length(p.reason) <= $5::bigint AND octet_length(p.signature) <= $5::bigint AS fits
	) s
	WHERE p.name = h.name AND p.number = h.number
) r ON true
WHERE h.name = $1::text`

// maxField is how many bytes a part of a revision has besides the document.
const maxField = 1024

// Newest implements policy.Feed, in one query.
func (f *Feed) Newest(ctx context.Context, have policy.Head) (*policy.Revision, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var number *int64
	var hash, document, signature []byte
	var same, fits *bool
	var author, reason *string
	var published pgtype.Timestamptz
	// A pooler may give each query another connection: nothing is prepared.
	err := f.pool.QueryRow(ctx, f.sql.newest, pgx.QueryExecModeExec,
		f.name, int64(have.Number), have.Hash[:], int64(tiers.MaxDocument), int64(maxField)).
		Scan(&number, &hash, &same, &fits, &document, &author, &reason, &published, &signature)
	switch {
	case errors.Is(err, pgx.ErrNoRows), err == nil && number == nil:
		return nil, policy.ErrEmpty
	case err != nil:
		return nil, fmt.Errorf("postgresfeed: %w", err)
	}
	r := &policy.Revision{Number: uint64(*number)}
	copy(r.Hash[:], hash)
	switch {
	case same == nil:
		return nil, malformed(r, errors.New("there is no row with it"))
	case *same:
		return nil, nil
	case !*fits:
		return nil, malformed(r, errors.New("the document, or what stands beside it, is larger than what fits"))
	case len(hash) != len(r.Hash) || published.InfinityModifier != pgtype.Finite:
		return nil, malformed(r, errors.New("its hash or its time is none"))
	}
	r.Document, r.Author, r.Reason = document, *author, *reason
	if published.Valid {
		r.Published = time.UnixMilli(published.Time.UnixMilli()).UTC()
	}
	if len(signature) > 0 {
		r.Signature = signature
	}
	return r, nil
}

// malformed is the refusal of what is no revision.
func malformed(r *policy.Revision, err error) error {
	return &policy.RefusedError{Revision: r.Head(), Reason: policy.ReasonMalformed, Err: err}
}

// HintsFailure returns why there are no hints now, nil if a subscription stands and delivers. It is [ErrSwallowed] behind a pooler that
// delivers none; a new revision is then there after an interval of the follower.
func (f *Feed) HintsFailure() error { return f.hints.failure() }

// Hints implements policy.Feed: it listens, and wakes at each notification. A connection that has broken without a word is
// noticed within some seconds. While notifications are swallowed it waits, and tries once more after some minutes.
func (f *Feed) Hints(ctx context.Context, wake func()) error { return f.hints.stand(ctx, wake) }
