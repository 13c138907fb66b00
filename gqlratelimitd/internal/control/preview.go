package control

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/preview"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
	"github.com/gqlgen-ratelimit/ratelimit/internal/previewreport"
	"github.com/gqlgen-ratelimit/ratelimit/policy"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// Previewer replays what instances have recorded of late under two policies. It is safe for concurrent use.
type Previewer interface {
	// Preview says what Config.After newly refuses. Where nothing was recorded the report has seen no tenants.
	Preview(ctx context.Context, cfg preview.Config) (*previewreport.Report, error)
}

// Errors of previews.
var (
	// ErrBusy says that another preview is under way, and that this one was not begun.
	ErrBusy = errors.New("control: another preview is under way: ask again when it is done")
	// ErrPreview says that what instances have recorded could not be read, or not be judged in time.
	ErrPreview = errors.New("control: what instances have recorded could not be read and judged")
)

const (
	// previewTime is how long a preview may take. It is less than a request waits, so that a document that is published without one is
	// answered too.
	previewTime = 15 * time.Second
	// previewOperations is how many operations and tenants it judges. With more, it judges fewer tenants. They take about a second, and
	// some 100 MB.
	previewOperations = 100_000
	// MaxPreviewRows is how many tenants a preview names at most.
	MaxPreviewRows = 1000
	// maxPreviewOverrides is how many overrides hold in it.
	maxPreviewOverrides = 100_000
)

// PreviewInput is a document that is tried.
type PreviewInput struct {
	// Document is compared with the policy that holds. Of one with two policies the next is compared with the one of now.
	Document []byte
	// Enforced has what is in mode shadow and warn count as enforced in the document: what its next stage would refuse.
	Enforced bool
	// Rows is how many tenants are named: 0 is 100, and [MaxPreviewRows] the most.
	Rows int
}

// Previewed is what a document would newly refuse.
type Previewed struct {
	// Against is the number of the revision that it was compared with, 0 for none. Staged says that it was not, because the document
	// has two policies: those were compared.
	Against uint64
	Staged  bool
	// Missing says why nothing was judged, and what to do. Empty means that something was.
	Missing string
	// Report is what the replay has found. It is that of nothing where Missing says so.
	Report previewreport.Report
	// Misfits are tenants whose records would stop fitting. Nil is none.
	Misfits *Misfits
	// Warnings are what is odd about the document.
	Warnings []tiers.Warning
}

// Preview says who would newly be refused if a document were published: [access.PreviewPolicy]. What does not compile is an
// [*InvalidError] with all mistakes. It takes a processor for seconds, so that there is one at a time: [ErrBusy]. There is [ErrPreview]
// where Redis does not answer.
func (c *Control) Preview(ctx context.Context, actor access.Actor, in PreviewInput) (*Previewed, error) {
	if err := access.Authorize(actor, access.PreviewPolicy, ""); err != nil {
		return nil, err
	}
	if in.Rows < 0 || in.Rows > MaxPreviewRows {
		return nil, invalid("rows", "0 to %d fits", MaxPreviewRows)
	}
	select {
	case c.asked <- struct{}{}:
		defer func() { <-c.asked }()
	default:
		return nil, ErrBusy
	}
	holds, err := c.current(ctx)
	if err != nil {
		return nil, err
	}
	next, err := c.compileDocument(in.Document, holds.number()+1)
	if err != nil {
		return nil, err
	}
	out := &Previewed{Against: holds.number(), Warnings: next.snapshot.Warnings()}
	if out.Misfits, err = c.misfits(ctx, next); err != nil {
		return nil, err
	}
	before, after := holds, next
	if now, following, _, staged := tiers.StageParts(in.Document); staged {
		out.Staged = true
		if before, err = c.compileDocument(now, 1); err == nil {
			after, err = c.compileDocument(following, 2)
		}
		if err != nil {
			return nil, err
		}
	}
	return out, c.try(ctx, out, before, after, &in)
}

// try fills in what a replay says.
func (c *Control) try(ctx context.Context, out *Previewed, before, after *compiled, in *PreviewInput) (err error) {
	switch {
	case before == nil:
		out.Missing = "no policy was published yet: there is nothing to compare the document with"
		return nil
	case before.snapshot == nil:
		out.Missing = "this daemon cannot read the policy that holds: a newer one has published it"
	default:
		report, err := c.replay(ctx, before, after, in)
		if out.Missing, err = missing(report, err); err != nil {
			return err
		}
		if report != nil {
			out.Report = *report
		}
	}
	return nil
}

// errNoRecords says that nobody records anything that this daemon can read.
var errNoRecords = errors.New("the daemon has no Redis: start it with that of the instances, and have them write digests into it")

// missing says why a replay has judged nothing. What is left is the error.
func missing(report *previewreport.Report, err error) (string, error) {
	switch {
	case errors.Is(err, errNoRecords):
		return errNoRecords.Error(), nil
	case errors.Is(err, preview.ErrKey):
		return "the instances write their digests with another key: start the daemon with it", nil
	case err != nil:
		return "", fmt.Errorf("%w: %w", ErrPreview, err)
	case report.Tenants.Seen == 0:
		return "nothing was recorded of late: have each instance write digests into the Redis of the daemon, in its namespace", nil
	}
	return "", nil
}

// compileDocument compiles a document that is not published, of who previews: one at a time.
func (c *Control) compileDocument(document []byte, number uint64) (*compiled, error) {
	return c.compileNow(&policy.Revision{Number: min(number, policy.MaxNumber), Document: document, Hash: policy.HashOf(document)})
}

// replay replays what was recorded, with what the database has of tenants.
func (c *Control) replay(ctx context.Context, before, after *compiled, in *PreviewInput) (*previewreport.Report, error) {
	if c.cfg.Preview == nil {
		return nil, errNoRecords
	}
	ctx, cancel := context.WithTimeout(ctx, previewTime)
	defer cancel()
	overrides, err := c.heldOverrides(ctx)
	if err != nil {
		return nil, err
	}
	records := knownTenants{control: c, ctx: ctx, of: make(map[string]*tiers.Record), same: make(map[string]*tiers.Record)}
	report, err := c.cfg.Preview.Preview(ctx, preview.Config{
		Before: before.snapshot, After: after.snapshot, Record: records.record, Overrides: overrides,
		Enforced: in.Enforced, Operations: previewOperations, Rows: in.Rows,
	})
	return report, errors.Join(err, records.err)
}

// heldOverrides returns the overrides that hold now, also those that nobody has set here.
func (c *Control) heldOverrides(ctx context.Context) (held []preview.Override, err error) {
	query := &store.OverrideQuery{Now: c.now()}
	for more := true; more; {
		err := c.cfg.Store.Read(ctx, func(v *store.View) error {
			page, err := v.FindOverrides(query, store.MaxPage)
			for i := range page {
				o := &page[i]
				if query.After = o.Mark(query.Order); !o.Replaced {
					held = append(held, preview.Override{Tenant: o.Tenant, Override: o.Override.Override})
				}
			}
			more = len(page) == store.MaxPage
			return err
		})
		if err != nil {
			return nil, err
		}
		if len(held) > maxPreviewOverrides {
			return nil, fmt.Errorf("control: more than %d overrides hold", maxPreviewOverrides)
		}
	}
	return held, nil
}

// knownTenants reads the record of each tenant once. It is for one goroutine.
type knownTenants struct {
	control *Control
	// ctx is that of the preview: who asks for a record has none.
	ctx context.Context
	// of has what was found of each tenant.
	of map[string]*tiers.Record
	// same has one for each text: most tenants have nothing of their own but a tier.
	same map[string]*tiers.Record
	err  error
}

// record returns that of a tenant, nil for none. After an error it knows of nobody.
func (k *knownTenants) record(tenant string) *tiers.Record {
	found, known := k.of[tenant]
	if known || k.err != nil {
		return found
	}
	k.err = k.control.cfg.Store.Read(k.ctx, func(v *store.View) error {
		t, err := v.Tenant(tenant)
		if err != nil || t == nil || t.Record == nil {
			return err
		}
		text := string(t.Record)
		if found = k.same[text]; found == nil {
			found, err = tiers.ParseRecord(t.Record)
			k.same[text] = found
		}
		return err
	})
	k.of[tenant] = found
	return found
}
