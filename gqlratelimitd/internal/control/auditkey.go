package control

import (
	"context"
	"errors"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/audit"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
)

// RotateAuditKeyInput says which key signs the audit log from now on.
type RotateAuditKeyInput struct {
	// Old is the key that signs it now. Nil says that it is lost: nothing vouches for the next one then, and who verifies the log has to
	// be given both.
	Old *audit.Key
	// Next is a key of the same name.
	Next *audit.Key
}

// AuditKey is a public key of the audit log.
type AuditKey struct {
	Key string `json:"key"`
}

// RotateAuditKey changes the key that signs the audit log: [access.RotateAuditKey] and [audit.Rotate]. Entry and checkpoints are one transaction.
// From then on a signer with the old key is refused with [audit.ErrOtherKey]: all daemons are started with the next one. An old key that is
// not that of the log is an [ErrInvalid] and wraps [audit.ErrOtherKey].
func (c *Control) RotateAuditKey(ctx context.Context, r Request, in RotateAuditKeyInput) (*AuditKey, error) {
	// What tells requests apart is public.
	var asked struct{ Old, Next string }
	if in.Old != nil {
		asked.Old = in.Old.Public()
	}
	if in.Next != nil {
		asked.Next = in.Next.Public()
	}
	a := action{Action: access.RotateAuditKey}
	check := func() error {
		switch {
		case in.Next == nil:
			return invalid("key", "it is missing")
		case asked.Old == asked.Next:
			return invalid("key", "it is the one that signs the log now")
		}
		return nil
	}
	return mutate(ctx, c, r, a, asked, check, func(tx *store.Tx) (*AuditKey, done, error) {
		d := done{target: "audit key", noted: true}
		if in.Old != nil {
			d.before = AuditKey{asked.Old}
		}
		e, err := entryOf(tx, &r, a, &d)
		if err != nil {
			return nil, done{}, err
		}
		err = audit.Rotate(ctx, within{tx}, in.Old, in.Next, e)
		if errors.Is(err, audit.ErrOtherName) || errors.Is(err, audit.ErrOtherKey) {
			err = &InvalidError{Field: "key", Err: err}
		}
		return &AuditKey{asked.Next}, d, entryProblem(err)
	})
}

// within is the audit log in a change that is under way.
type within struct{ tx *store.Tx }

// Change implements audit.Log.
func (w within) Change(ctx context.Context, change func(context.Context, audit.Storage) error) error {
	return change(ctx, w.tx.Audit())
}
