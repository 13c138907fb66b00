package directory

import (
	"context"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/gqlgen-ratelimit/ratelimit/internal/follow"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// Mark is a place in the history of a source. The zero value is that of who has read nothing.
type Mark struct {
	// Origin tells the histories apart that a source has had: one that was lost and begun anew counts from 1 again. It is
	// at most [MaxOrigin] bytes.
	Origin string `json:"origin"`
	// Revision is the newest change that was read.
	Revision uint64 `json:"revision"`
}

// MaxOrigin is how many bytes [Mark.Origin] has at most.
const MaxOrigin = 64

// Record is what a source has of a tenant.
type Record struct {
	// Tenant is whose record it is: 1 to [tiers.MaxLongName] bytes.
	Tenant string
	// Revision is the change that has written it. Changes of one source are numbered from 1, in the order in which they
	// are there for readers.
	Revision uint64
	// Document is a [tiers.RecordDocument] as JSON, at most [tiers.MaxRecord] bytes.
	Document []byte
}

// Change says that a record was written or removed.
type Change struct {
	Tenant   string
	Revision uint64
}

// Page is what has changed since a mark.
type Page struct {
	// Changes are in the order of their revisions, each tenant with its last change at least. At most [MaxPage] stand in a
	// page.
	Changes []Change
	// Through is the mark to ask with next.
	Through Mark
	// More says that another page follows.
	More bool
	// Gap says that the source does not know all that has changed since the mark: nothing that was read before is to be
	// relied on. Through is the newest change then, and there are no Changes.
	Gap bool
}

// MaxPage is how many changes a page has at most.
const MaxPage = 1000

// Source has records of tenants. A [Directory] calls it from several goroutines. Its methods end when their context does, and
// what they return is judged as if a stranger had written it. Package directorytest has their contract as tests.
type Source interface {
	// Tenant returns the newest record of a tenant, nil if it has none. A source in which nothing was ever written returns
	// [ErrEmpty]: it may have lost what it had.
	Tenant(ctx context.Context, tenant string) (*Record, error)
	// Changes returns what has changed since a mark. Who has the zero mark, the mark of another origin, or one that is too
	// old, is given a gap. A source in which nothing was ever written returns [ErrEmpty].
	Changes(ctx context.Context, since Mark) (Page, error)
}

// Hinter is a [Source] that says when something may have changed, so that nobody waits for an interval.
type Hinter interface {
	Source
	// Hints blocks while a subscription stands, and returns why it stands no longer. It calls wake when the subscription
	// stands, so that what came before is read, and then whenever a record may have changed. A hint is never the truth: it may
	// come for nothing, and it may not come. wake never blocks.
	//
	// A source without hints returns [ErrNoHints] at once. Any other error has the directory subscribe again.
	Hints(ctx context.Context, wake func()) error
}

// Writer writes the records of a source.
type Writer interface {
	// Put writes the record of a tenant if the revision of what is there is the expected one, 0 for none, and returns the
	// revision of the change. Empty documents remove it. Of many who expect the same, one wins, and the others
	// have a [*ConflictError]. A repeat of what is there already succeeds: the answer to the first call may have been lost.
	//
	// A document that [tiers.ParseRecord] refuses is not written. Whether it fits the policy, the caller has asked
	// tiers.Record.Check.
	Put(ctx context.Context, tenant string, document []byte, expected uint64) (revision uint64, err error)
}

// Errors of sources.
var (
	// ErrEmpty says that nothing was ever written into a source.
	ErrEmpty = errors.New("directory: the source has never had a record")
	// ErrNoHints says that a source has no hints: it is only asked at intervals.
	ErrNoHints = fmt.Errorf("directory: %w", follow.ErrNoHints)
	// ErrConflict says that a record was not written, because another one was written meanwhile: read it, and decide again. It
	// is a [*ConflictError].
	ErrConflict = errors.New("directory: another record was written")
)

// ConflictError is an [ErrConflict].
type ConflictError struct {
	// There is the revision of what is there instead, 0 for nothing.
	There uint64
}

// Error says which revision is there.
func (e *ConflictError) Error() string {
	if e.There == 0 {
		return "directory: nothing was written: the tenant has no record"
	}
	return fmt.Sprintf("directory: nothing was written: the record has revision %d", e.There)
}

// Is reports whether the target is [ErrConflict].
func (*ConflictError) Is(target error) bool { return target == ErrConflict }

// CheckPut returns what is wrong with what a [Writer] is given.
func CheckPut(tenant string, document []byte) error {
	if tenant == "" || len(tenant) > tiers.MaxLongName {
		return fmt.Errorf("directory: the name of the tenant has %d bytes, want 1 to %d", len(tenant), tiers.MaxLongName)
	}
	if len(document) == 0 {
		return nil
	}
	if !utf8.Valid(document) {
		return errors.New("directory: the document is not UTF-8")
	}
	_, err := tiers.ParseRecord(document)
	return err
}
