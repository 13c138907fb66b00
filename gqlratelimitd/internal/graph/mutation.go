package graph

import (
	"context"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/control"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/graph/internal/model"
)

// shown shows what control has answered, unless it has failed.
func shown[T, M any](answer *T, err error, show func(*T) *M) (*M, error) {
	if err != nil {
		return nil, err
	}
	return show(answer), nil
}

// PublishPolicy publishes a document.
func (m mutation) PublishPolicy(ctx context.Context, in model.PublishPolicyInput) (*model.PolicySummary, error) {
	signed, err := signedIn(in.Signed)
	if err != nil {
		return nil, err
	}
	answer, err := m.control.Publish(ctx, request(ctx, in.Reason, in.Ticket, in.IdempotencyKey), control.PublishInput{
		Document: []byte(in.Document), Expected: in.ExpectedRevision, Signed: signed,
	})
	return shown(answer, err, summaryOf)
}

// RevertPolicy publishes an earlier document again.
func (m mutation) RevertPolicy(ctx context.Context, in model.RevertPolicyInput) (*model.PolicySummary, error) {
	signed, err := signedIn(in.Signed)
	if err != nil {
		return nil, err
	}
	answer, err := m.control.Revert(ctx, request(ctx, in.Reason, in.Ticket, in.IdempotencyKey), control.RevertInput{
		To: in.To, Expected: in.ExpectedRevision, Signed: signed,
	})
	return shown(answer, err, summaryOf)
}

// ProposePolicy asks a second person.
func (m mutation) ProposePolicy(ctx context.Context, in model.ProposePolicyInput) (*model.Proposal, error) {
	answer, err := m.control.Propose(ctx, request(ctx, in.Reason, in.Ticket, in.IdempotencyKey), control.ProposeInput{
		Document: []byte(in.Document), Expected: in.ExpectedRevision,
	})
	return shown(answer, err, proposalOf)
}

// ApprovePolicy approves a proposal.
func (m mutation) ApprovePolicy(ctx context.Context, in model.ApprovePolicyInput) (*model.Proposal, error) {
	approved := control.ApproveInput{ID: uint64(max(in.ID, 0)), Expected: in.ExpectedRevision}
	if err := approved.Hash.UnmarshalText([]byte(in.Hash)); err != nil {
		return nil, invalid("hash", "it is not the SHA-256 of a document in hexadecimal digits")
	}
	answer, err := m.control.Approve(ctx, request(ctx, in.Reason, in.Ticket, in.IdempotencyKey), approved)
	return shown(answer, err, proposalOf)
}

// WithdrawProposal ends a proposal.
func (m mutation) WithdrawProposal(ctx context.Context, in model.WithdrawProposalInput) (*model.Proposal, error) {
	answer, err := m.control.Withdraw(ctx, request(ctx, in.Reason, in.Ticket, in.IdempotencyKey), control.WithdrawInput{ID: uint64(max(in.ID, 0))})
	return shown(answer, err, proposalOf)
}

// PutTenant writes the record of a tenant.
func (m mutation) PutTenant(ctx context.Context, in model.PutTenantInput) (*model.TenantRecord, error) {
	answer, err := m.control.PutTenant(ctx, request(ctx, in.Reason, in.Ticket, in.IdempotencyKey), control.TenantInput{
		Tenant: in.Tenant, Document: []byte(in.Document), Oversubscribe: in.Oversubscribe, Expected: in.ExpectedRevision,
	})
	return shown(answer, err, recordOf)
}

// RemoveTenant removes the record of a tenant.
func (m mutation) RemoveTenant(ctx context.Context, in model.RemoveTenantInput) (*model.TenantRecord, error) {
	answer, err := m.control.RemoveTenant(ctx, request(ctx, in.Reason, in.Ticket, in.IdempotencyKey), control.RemoveTenantInput{
		Tenant: in.Tenant, Expected: in.ExpectedRevision,
	})
	return shown(answer, err, recordOf)
}

// Allocate divides limits of a tenant.
func (m mutation) Allocate(ctx context.Context, in model.AllocateInput) (*model.TenantRecord, error) {
	allocations, err := allocationsIn(in.Allocations)
	if err != nil {
		return nil, err
	}
	answer, err := m.control.Allocate(ctx, request(ctx, in.Reason, in.Ticket, in.IdempotencyKey), control.AllocateInput{
		Tenant: in.Tenant, Allocations: allocations, Expected: in.ExpectedRevision,
	})
	return shown(answer, err, recordOf)
}

// SetOverride sets an override.
func (m mutation) SetOverride(ctx context.Context, in model.SetOverrideInput) (*model.Override, error) {
	override, err := overrideIn(&in)
	if err != nil {
		return nil, err
	}
	answer, err := m.control.SetOverride(ctx, request(ctx, in.Reason, in.Ticket, in.IdempotencyKey), control.OverrideInput{
		Tenant: in.Tenant, Override: override, Expected: in.ExpectedRevision,
	})
	return shown(answer, err, overrideOf)
}

// ClearOverride removes an override.
func (m mutation) ClearOverride(ctx context.Context, in model.ClearOverrideInput) (*model.Override, error) {
	answer, err := m.control.ClearOverride(ctx, request(ctx, in.Reason, in.Ticket, in.IdempotencyKey), control.ClearOverrideInput{
		OverrideKey: control.OverrideKey{Tenant: in.Tenant, Owner: ownerIn(in.Owner), Limit: value(in.Limit)}, Expected: in.ExpectedRevision,
	})
	return shown(answer, err, overrideOf)
}

// SwitchMode eases modes.
func (m mutation) SwitchMode(ctx context.Context, in model.SwitchModeInput) (*model.ModeSwitch, error) {
	answer, err := m.control.SwitchMode(ctx, request(ctx, in.Reason, in.Ticket, in.IdempotencyKey), control.SwitchInput{
		Scope: scopeIn(in.Scope), Name: in.Name, Mode: modes[in.AtMost], Until: in.Until, Expected: in.ExpectedRevision,
	})
	return shown(answer, err, switchOf)
}

// EndModeSwitch ends a switch.
func (m mutation) EndModeSwitch(ctx context.Context, in model.EndModeSwitchInput) (*model.ModeSwitch, error) {
	answer, err := m.control.EndModeSwitch(ctx, request(ctx, in.Reason, in.Ticket, in.IdempotencyKey), control.EndSwitchInput{
		Scope: scopeIn(in.Scope), Name: in.Name, Expected: in.ExpectedRevision,
	})
	return shown(answer, err, switchOf)
}

// IssueToken issues a token.
func (m mutation) IssueToken(ctx context.Context, in model.IssueTokenInput) (*model.IssuedToken, error) {
	wanted, err := tokenIn(&in)
	if err != nil {
		return nil, err
	}
	answer, err := m.control.IssueToken(ctx, request(ctx, in.Reason, in.Ticket, in.IdempotencyKey), wanted)
	return shown(answer, err, func(t *control.IssuedToken) *model.IssuedToken {
		return &model.IssuedToken{Token: tokenOf(&t.Token), Secret: given(t.Secret)}
	})
}

// RevokeToken ends a token.
func (m mutation) RevokeToken(ctx context.Context, in model.RevokeTokenInput) (*model.Token, error) {
	answer, err := m.control.RevokeToken(ctx, request(ctx, in.Reason, in.Ticket, in.IdempotencyKey), control.RevokeTokenInput{ID: in.ID})
	return shown(answer, err, tokenOf)
}
