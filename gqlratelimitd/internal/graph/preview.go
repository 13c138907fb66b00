package graph

import (
	"context"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/control"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/graph/internal/model"
	"github.com/gqlgen-ratelimit/ratelimit/internal/policydiff"
	"github.com/gqlgen-ratelimit/ratelimit/internal/previewreport"
)

// PreviewPolicy says who would newly be refused.
func (q query) PreviewPolicy(ctx context.Context, document string, enforced bool, rows int) (*model.PolicyPreview, error) {
	if rows < 1 || rows > maxPage {
		return nil, &control.InvalidError{Field: "rows", Problem: "1 to 100 fits"}
	}
	found, err := q.control.Preview(ctx, actorOf(ctx), control.PreviewInput{Document: []byte(document), Enforced: enforced, Rows: rows})
	return shown(found, err, previewOf)
}

// DiffPolicy says what a document changes.
func (q query) DiffPolicy(ctx context.Context, document string, against *uint64) (*model.PolicyDiff, error) {
	if against != nil && *against == 0 {
		return nil, &control.InvalidError{Field: "against", Problem: "the first revision has the number 1"}
	}
	found, err := q.control.Diff(ctx, actorOf(ctx), control.DiffInput{Document: []byte(document), Against: value(against)})
	return shown(found, err, diffOf)
}

func diffOf(d *control.Diff) *model.PolicyDiff {
	return &model.PolicyDiff{
		Against: given(d.Against), Changes: each(d.Changes, func(c *policydiff.Change) *model.PolicyChange {
			return &model.PolicyChange{Tier: given(c.Tier), Tenant: given(c.Tenant), What: c.What, Old: given(c.Old), New: given(c.New)}
		}), Unlisted: d.Unlisted, Following: d.Following, Warnings: mistakesOf(d.Warnings),
	}
}

func previewOf(p *control.Previewed) *model.PolicyPreview {
	r := &p.Report
	out := &model.PolicyPreview{
		Missing: given(p.Missing), Halts: r.Halts(), Remark: given(r.Remark()),
		Lowers: p.Reach.First || p.Reach.Lowered != nil, Reach: p.Reach.String(), Problem: given(p.Reach.Problem), SecondPerson: p.SecondPerson,
		From: instant(r.From), To: instant(r.To), Recorded: r.Share, LeftOut: r.LeftOut, LargestShare: r.LargestShare, Unlisted: r.Unlisted,
		Total: rowOf(&r.Total), Tenants: groupOf(&r.Tenants), Users: groupOf(&r.Users), Rows: each(r.Rows, rowOf), NotJudged: some(r.NotJudged),
		Warnings: mistakesOf(p.Warnings),
	}
	if !p.Staged {
		out.Against = given(p.Against)
	}
	out.Misfits, out.Misfitting = misfitsOf(p.Misfits)
	return out
}

func rowOf(r *previewreport.Row) *model.PolicyPreviewRow {
	return &model.PolicyPreviewRow{
		Tenant: given(r.Tenant), Tier: given(r.Tier), Operations: r.Operations,
		RefusedLive: r.Live, RefusedNow: r.Before, RefusedThen: r.After, NewlyRefused: r.NewlyRefused,
		By: each(r.By, func(c *previewreport.Cause) *model.PolicyPreviewCause {
			cause := &model.PolicyPreviewCause{Owner: given(c.Owner), Limit: c.Limit, N: c.N}
			if c.Level != "" {
				level := word[model.Level](c.Level)
				cause.Level = &level
			}
			return cause
		}),
	}
}

func groupOf(g *previewreport.Group) *model.PolicyPreviewGroup {
	return &model.PolicyPreviewGroup{Seen: g.Seen, NewlyRefused: g.NewlyRefused, Share: g.Share, Low: g.Low, High: g.High}
}

// each returns all of a list as the schema has them. It is no list of nothing.
func each[T, M any](all []T, show func(*T) *M) []*M {
	out := make([]*M, len(all))
	for i := range all {
		out[i] = show(&all[i])
	}
	return out
}
