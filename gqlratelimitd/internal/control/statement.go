package control

import (
	"context"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/statement"
)

const (
	// StatementGrace is how long after its end a period can be frozen: for so long counts of its last hour stay in the store of budgets, so that a settlement
	// that comes late is counted in it.
	StatementGrace = 48 * time.Hour
	// MaxFrozen is of how many tenants statements are made at once.
	MaxFrozen = 100
	// maxStatementDays is how many days a period has.
	maxStatementDays = 366
)

// FreezeInput says what is frozen. Either Month is there, or From and To are.
type FreezeInput struct {
	// Tenant is whose statement is made. Empty is all of which something was counted.
	Tenant string
	// Month is a month of UTC, such as 2026-10.
	Month string
	// From is the first day of UTC, and To the one after the last, such as 2026-10-01 and 2026-11-01: at most 366 days.
	From, To string
	// After is the Next of the answer before, and N of how many tenants statements are made at most, up to [MaxFrozen], where all are asked for.
	After string
	N     int
	// Incomplete freezes a period also where nobody has collected for so long that counts of it may be lost. The statement says so.
	Incomplete bool

	// again corrects what has changed in the period before, too.
	again bool
}

// StatementHead is of what a statement is.
type StatementHead struct {
	Number uint64
	Tenant string
	// From is the first day, and To the one after the last.
	From, To time.Time
	Frozen   time.Time
	// Corrects is the number of the statement of the same period in whose place it is, 0 for none.
	Corrects uint64
	Hash     statement.Hash
	// New says that it was made for who has asked, and was not there already.
	New bool
}

// Statement is a statement with its numbers.
type Statement struct {
	StatementHead

	// Content is all that it says.
	Content *statement.Statement
	// Signed is the text with its signature, as [statement.Open] reads it.
	Signed []byte
}

// Frozen is what has come of [Control.FreezeUsage].
type Frozen struct {
	// Statements are those that hold for the period now, by tenant. Of a tenant of which nothing has changed since it is the one that was there.
	Statements []StatementHead
	// Left are tenants that have none, and why. Where one tenant is asked for that is an error.
	Left []Unfrozen
	// Next is the After of the next tenants. It is empty where there are no more.
	Next string
}

// Unfrozen is a tenant without a statement.
type Unfrozen struct{ Tenant, Problem string }

// Statements returns at most n statements of a tenant below a number, 0 for all, the newest first: [access.ReadUsage]. Without a tenant they are those of all.
func (c *Control) Statements(ctx context.Context, actor access.Actor, tenant string, below uint64, n int) (heads []StatementHead, _ error) {
	if err := access.Authorize(actor, access.ReadUsage, tenant); err != nil {
		return nil, err
	}
	err := c.cfg.Store.Read(ctx, func(v *store.View) error {
		found, err := v.Statements(tenant, below, n)
		heads = make([]StatementHead, len(found))
		for i := range found {
			heads[i] = headOf(&found[i])
		}
		return err
	})
	return heads, err
}

// Statement returns a statement of a tenant: [access.ReadUsage]. There is [ErrNotFound], also where it is that of another tenant.
func (c *Control) Statement(ctx context.Context, actor access.Actor, tenant string, number uint64) (*Statement, error) {
	if err := access.Authorize(actor, access.ReadUsage, tenant); err != nil {
		return nil, err
	}
	var found *store.Statement
	err := c.cfg.Store.Read(ctx, func(v *store.View) (err error) {
		found, err = v.Statement(number)
		return err
	})
	if err == nil && (found == nil || found.Tenant != tenant) {
		err = ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	content, err := readStatement(found)
	if err != nil {
		return nil, err
	}
	return &Statement{headOf(found), content, found.Note}, nil
}

func headOf(s *store.Statement) StatementHead {
	return StatementHead{
		Number: s.Number, Tenant: s.Tenant, From: dayAt(s.FirstDay), To: dayAt(s.UntilDay), Frozen: s.Frozen, Corrects: s.Corrects, Hash: s.Hash,
	}
}

// dayAt is when a day begins, counted since 1970.
func dayAt(day int64) time.Time { return time.Unix(day*secondsOfDay, 0).UTC() }
