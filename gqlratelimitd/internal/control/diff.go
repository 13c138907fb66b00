package control

import (
	"context"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/internal/policydiff"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// MaxChanges is how many changes a diff lists.
const MaxChanges = 1000

// DiffInput is a document that is compared.
type DiffInput struct {
	// Document is compared with a revision.
	Document []byte
	// Against is the number of the revision, 0 for the newest.
	Against uint64
}

// Diff is what differs between a revision and a document.
type Diff struct {
	// Against is the number of the revision.
	Against uint64 `json:"against"`
	// Changes are those of all, of tiers, and of tenants that a document lists, at most [MaxChanges]. Unlisted is how many more there are.
	Changes  []policydiff.Change `json:"changes"`
	Unlisted int                 `json:"unlisted,omitempty"`
	// Following is how many listed tenants change as their tier does.
	Following int `json:"following,omitempty"`
	// Warnings are what is odd about the document.
	Warnings []tiers.Warning `json:"warnings,omitempty"`
}

// Diff compares a document with a revision, tier by tier and limit by limit, in the words of the command: [access.ReadPolicy]. What does not
// compile is an [*InvalidError] with all mistakes. There is [ErrNotFound] where there is no such revision.
func (c *Control) Diff(ctx context.Context, actor access.Actor, in DiffInput) (*Diff, error) {
	if err := access.Authorize(actor, access.ReadPolicy, ""); err != nil {
		return nil, err
	}
	leave, err := c.checks.take(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	snapshot, err := c.cfg.Parse.Load(in.Document, 1)
	if err != nil {
		return nil, &InvalidError{Field: "document", Err: err}
	}
	r, err := c.revision(ctx, in.Against)
	if err != nil {
		return nil, err
	}
	out := &Diff{Against: r.Number, Warnings: snapshot.Warnings()}
	before, err := c.written(r.Document)
	if err != nil {
		return nil, err
	}
	after, err := c.written(in.Document)
	if err != nil {
		return nil, err
	}
	out.Changes, out.Following = policydiff.Compare(before, after)
	if len(out.Changes) > MaxChanges {
		out.Changes, out.Unlisted = out.Changes[:MaxChanges], len(out.Changes)-MaxChanges
	}
	return out, nil
}

// written is a document as it holds, and as it was written.
func (c *Control) written(document []byte) (*policydiff.Policy, error) {
	snapshot, err := c.cfg.Parse.Load(document, 1)
	if err != nil {
		return nil, &InvalidError{Field: "document", Err: err}
	}
	parsed, err := c.cfg.Parse.Parse(document)
	if err != nil {
		return nil, &InvalidError{Field: "document", Err: err}
	}
	return &policydiff.Policy{Snapshot: snapshot, Written: &parsed}, nil
}
