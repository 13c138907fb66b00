package graph

import (
	"context"
	"encoding/base64"
	"errors"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/audit"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/control"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/graph/internal/model"
)

// maxPage is how many nodes a page has.
const maxPage = 100

// read reads a page, with one node more than the page has, to know whether there is another one.
func read[T, M any](first int, find func(n int) ([]T, error), show func(*T) *M) ([]*M, *model.PageInfo, error) {
	if err := checkFirst(first); err != nil {
		return nil, nil, err
	}
	found, err := find(first + 1)
	if err != nil {
		return nil, nil, err
	}
	info := &model.PageInfo{HasNextPage: len(found) > first}
	nodes := make([]*M, min(len(found), first))
	for i := range nodes {
		nodes[i] = show(&found[i])
	}
	return nodes, info, nil
}

// Me returns who asks.
func (q query) Me(ctx context.Context) (*model.Actor, error) {
	actor := actorOf(ctx)
	about := ""
	if len(actor.Tenants) > 0 {
		about = actor.Tenants[0]
	}
	me := &model.Actor{
		Subject: actor.Subject, Issuer: actor.Issuer, Method: string(actor.Method), Owner: given(actor.Owner),
		Roles: rolesOf(actor.Roles), Tenants: some(actor.Tenants), Actions: []string{},
	}
	for _, action := range access.Actions() {
		if access.Authorize(actor, action, about) == nil {
			me.Actions = append(me.Actions, string(action))
		}
	}
	return me, nil
}

// Policy returns a revision.
func (q query) Policy(ctx context.Context, revision *uint64) (*model.Policy, error) {
	number := value(revision)
	found, err := q.control.Policy(ctx, actorOf(ctx), number)
	if errors.Is(err, control.ErrNotFound) || err == nil && revision != nil && number == 0 {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return policyOf(found), nil
}

// Policies returns a page of revisions.
func (q query) Policies(ctx context.Context, first int, before *uint64) (*model.PolicyPage, error) {
	nodes, info, err := read(first, func(n int) ([]control.Published, error) {
		found, err := q.control.Policies(ctx, actorOf(ctx), value(before), n)
		if before != nil && *before == 0 {
			found = nil
		}
		return found, err
	}, summaryOf)
	if err != nil {
		return nil, err
	}
	return &model.PolicyPage{Nodes: nodes, PageInfo: info}, nil
}

// CheckPolicy compiles a document.
func (q query) CheckPolicy(ctx context.Context, document string) (*model.PolicyCheck, error) {
	warnings, err := q.control.Lint(ctx, actorOf(ctx), []byte(document))
	if err != nil {
		return nil, err
	}
	return &model.PolicyCheck{Warnings: mistakesOf(warnings)}, nil
}

// Proposal returns a proposal.
func (q query) Proposal(ctx context.Context, id int64) (*model.Proposal, error) {
	found, err := q.control.Proposal(ctx, actorOf(ctx), uint64(max(id, 0)))
	if errors.Is(err, control.ErrNotFound) {
		return nil, nil
	}
	return shown(found, err, proposalOf)
}

// Proposals returns a page of proposals.
func (q query) Proposals(ctx context.Context, first int, before *int64) (*model.ProposalPage, error) {
	nodes, info, err := read(first, func(n int) ([]control.Proposal, error) {
		found, err := q.control.Proposals(ctx, actorOf(ctx), uint64(max(value(before), 0)), n)
		if before != nil && *before <= 0 {
			found = nil
		}
		return found, err
	}, proposalOf)
	if err != nil {
		return nil, err
	}
	return &model.ProposalPage{Nodes: nodes, PageInfo: info}, nil
}

// Tenant returns a tenant, of which nothing is read yet.
func (q query) Tenant(ctx context.Context, id string) (*model.Tenant, error) {
	if err := access.Authorize(actorOf(ctx), access.ReadTenant, id); err != nil {
		return nil, err
	}
	if id == "" {
		return nil, &control.InvalidError{Field: "id", Problem: "it is missing"}
	}
	return &model.Tenant{ID: id}, nil
}

// Tenants returns a page of tenants.
func (q query) Tenants(ctx context.Context, first int, after *string) (*model.TenantRecordPage, error) {
	nodes, info, err := read(first, func(n int) ([]control.Tenant, error) {
		return q.control.Tenants(ctx, actorOf(ctx), value(after), n)
	}, recordOf)
	if err != nil {
		return nil, err
	}
	return &model.TenantRecordPage{Nodes: nodes, PageInfo: info}, nil
}

// ModeSwitches returns a page of switches.
func (q query) ModeSwitches(ctx context.Context, first int, after *uint64) (*model.ModeSwitchPage, error) {
	nodes, info, err := read(first, func(n int) ([]control.ModeSwitch, error) {
		return q.control.ModeSwitches(ctx, actorOf(ctx), value(after), n)
	}, switchOf)
	if err != nil {
		return nil, err
	}
	unmanaged, err := q.control.UnmanagedSwitches(ctx, actorOf(ctx))
	page := &model.ModeSwitchPage{Nodes: nodes, PageInfo: info, Unmanaged: []*model.ModeSwitch{}}
	for i := range unmanaged {
		page.Unmanaged = append(page.Unmanaged, switchOf(&unmanaged[i]))
	}
	return page, err
}

// Tokens returns a page of tokens.
func (q query) Tokens(ctx context.Context, about *string, first int, after *string) (*model.TokenPage, error) {
	nodes, info, err := read(first, func(n int) ([]control.Token, error) {
		return q.control.Tokens(ctx, actorOf(ctx), value(about), value(after), n)
	}, tokenOf)
	if err != nil {
		return nil, err
	}
	return &model.TokenPage{Nodes: nodes, PageInfo: info}, nil
}

// Audit returns a page of the audit log, the newest first.
func (q query) Audit(ctx context.Context, filter *model.AuditFilter, first int, after *int64) (*model.AuditPage, error) {
	var f control.AuditFilter
	if filter != nil {
		f = control.AuditFilter{Subject: value(filter.Subject), Action: value(filter.Action), Target: value(filter.Target), Tenant: value(filter.Tenant)}
	}
	nodes, info, err := read(first, func(n int) ([]audit.Entry, error) {
		found, err := q.control.FindAudit(ctx, actorOf(ctx), f, value(after), n)
		if after != nil && *after <= 0 {
			// Nothing is before the first entry.
			found = nil
		}
		return found, err
	}, entryOf)
	if err != nil {
		return nil, err
	}
	page := &model.AuditPage{Nodes: nodes, PageInfo: info}
	err = q.control.ReadAudit(ctx, actorOf(ctx), func(r audit.Reader) error {
		newest, err := r.Newest(ctx)
		page.Checkpoint = given(string(newest))
		return err
	})
	return page, err
}

// Proof proves that an entry is in the log.
func (a auditEntry) Proof(ctx context.Context, e *model.AuditEntry) (proof *model.AuditProof, _ error) {
	err := a.control.ReadAudit(ctx, actorOf(ctx), func(r audit.Reader) error {
		proof = nil
		newest, err := r.Newest(ctx)
		if err != nil || newest == nil {
			return err
		}
		checkpoint, err := audit.ReadCheckpoint(newest)
		if err != nil || checkpoint.Size <= e.Sequence {
			return err
		}
		hashes, err := audit.ProveEntry(ctx, r, e.Sequence, checkpoint.Size)
		if err != nil {
			return err
		}
		proof = &model.AuditProof{Size: checkpoint.Size, Hashes: make([]string, len(hashes)), Checkpoint: string(newest)}
		for i := range hashes {
			proof.Hashes[i] = base64.StdEncoding.EncodeToString(hashes[i][:])
		}
		return nil
	})
	return proof, err
}

// Effective returns what holds for a tenant.
func (t tenant) Effective(ctx context.Context, of *model.Tenant, team, user, operation *string) (*model.Effective, error) {
	found, err := t.control.Effective(ctx, actorOf(ctx), control.EffectiveInput{
		Tenant: of.ID, Team: value(team), User: value(user), Operation: value(operation),
	})
	if errors.Is(err, control.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return effectiveOf(found), nil
}

// Record returns what is written of a tenant.
func (t tenant) Record(ctx context.Context, of *model.Tenant) (*model.TenantRecord, error) {
	found, err := t.control.Tenant(ctx, actorOf(ctx), of.ID)
	if errors.Is(err, control.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return recordOf(found), nil
}

// Tokens returns a page of the tokens of a tenant.
func (t tenant) Tokens(ctx context.Context, of *model.Tenant, first int, after *string) (*model.TokenPage, error) {
	return query(t).Tokens(ctx, &of.ID, first, after)
}
