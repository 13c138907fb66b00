package graph

import (
	"encoding/base64"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/audit"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/control"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/graph/internal/model"
	"github.com/gqlgen-ratelimit/ratelimit/policy"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// given returns nil for what is zero.
func given[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

// value returns zero for nil.
func value[T any](v *T) T {
	var zero T
	if v == nil {
		return zero
	}
	return *v
}

// some returns an empty list for nil, which no list of the schema is.
func some[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// instant returns nil for a time that is none.
func instant(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// word writes a word of the library as the schema has it: tenant-admin is TENANT_ADMIN.
func word[E ~string](text string) E { return E(strings.ToUpper(strings.ReplaceAll(text, "-", "_"))) }

func rolesOf(roles []access.Role) []model.Role {
	words := make([]model.Role, len(roles))
	for i, role := range roles {
		words[i] = word[model.Role](string(role))
	}
	return words
}

var windows = map[bucket.WindowKind]model.Window{
	bucket.TokenBucket: model.WindowNone, bucket.FixedWindow: model.WindowFixed, bucket.SlidingWindow: model.WindowSliding,
	bucket.HourWindow: model.WindowHour, bucket.DayWindow: model.WindowDay, bucket.MonthWindow: model.WindowMonth,
	bucket.YearWindow: model.WindowYear,
}

func policyOf(r *policy.Revision) *model.Policy {
	return &model.Policy{
		Revision: r.Number, Hash: r.Hash.String(), Author: r.Author, Reason: r.Reason, Published: r.Published,
		Signature: given(base64.StdEncoding.EncodeToString(r.Signature)), Document: string(r.Document),
	}
}

func summaryOf(p *control.Published) *model.PolicySummary {
	summary := &model.PolicySummary{
		Revision: p.Number, Hash: p.Hash.String(), Author: p.Author, Reason: p.Reason, Published: p.Published,
		Signed: p.Signed, Warnings: mistakesOf(p.Warnings),
	}
	summary.Misfits, summary.Misfitting = misfitsOf(p.Misfits)
	return summary
}

func proposalOf(p *control.Proposal) *model.Proposal {
	proposal := &model.Proposal{
		ID: int64(p.ID), Hash: p.Hash.String(), ExpectedRevision: p.Expected, Document: given(string(p.Document)),
		Proposer: p.Proposer, Reason: p.Reason, Proposed: p.Proposed, Expires: p.Expires, State: word[model.ProposalState](string(p.State)),
		Approver: given(p.Approver), ApprovalReason: given(p.ApprovalReason), Approved: instant(p.Approved), Revision: given(p.Revision),
	}
	if p.Reach != nil {
		proposal.Reach = given(p.Reach.String())
	}
	proposal.Misfits, proposal.Misfitting = misfitsOf(p.Misfits)
	return proposal
}

func mistakesOf(warnings []tiers.Warning) []*model.Mistake {
	mistakes := make([]*model.Mistake, min(len(warnings), maxMistakes))
	for i := range mistakes {
		w := &warnings[i]
		mistakes[i] = &model.Mistake{Line: w.Line, Column: w.Column, Path: w.Path, Problem: w.Problem}
	}
	return mistakes
}

func recordOf(t *control.Tenant) *model.TenantRecord {
	record := &model.TenantRecord{
		Tenant: t.Tenant, Revision: t.Revision, Document: given(string(t.Document)), Oversubscribe: t.Oversubscribe,
		Allocations: []*model.Allocation{}, By: t.By, Reason: t.Reason, At: t.At, Warnings: some(t.Warnings),
	}
	if t.Allocations != nil {
		record.Allocations = append(allocationsOf(model.LevelTeam, t.Allocations.Teams), allocationsOf(model.LevelUser, t.Allocations.Users)...)
	}
	return record
}

func allocationsOf(level model.Level, owners map[string]map[string]*tiers.Limit) []*model.Allocation {
	list := []*model.Allocation{}
	for _, owner := range slices.Sorted(maps.Keys(owners)) {
		for _, name := range slices.Sorted(maps.Keys(owners[owner])) {
			l := owners[owner][name]
			list = append(list, &model.Allocation{
				Level: level, Owner: owner, Limit: name, Unit: l.Unit, Capacity: l.Capacity, Refill: l.Refill, Per: l.Per.String(),
				Window: l.Window, AnchorDay: int(l.AnchorDay), AnchorMonth: int(l.AnchorMonth), Zone: l.Zone,
			})
		}
	}
	return list
}

func ownerOf(o *bucket.Owner) *model.Owner {
	return &model.Owner{Level: word[model.Level](o.Level.String()), Name: o.Name, Part: o.Part}
}

func overrideOf(o *control.Override) *model.Override {
	r := &o.Override
	override := &model.Override{
		Tenant: o.Tenant, Owner: ownerOf(&r.Owner), Limit: given(r.Limit), Capacity: given(r.Capacity), Refill: given(r.Refill),
		PeriodMs: given(r.Period.Milliseconds()), Unlimited: r.Unlimited, Blocked: r.Blocked, Expires: instant(r.Expires),
		Removed: o.Removed, Revision: o.Revision, By: r.Actor, Reason: r.Reason, At: instant(r.SetAt),
		Managed: !o.Unmanaged, Found: instant(o.Found), Replaced: o.Replaced,
	}
	if r.Mode != nil {
		override.Mode = given(word[model.Mode](r.Mode.String()))
	}
	return override
}

func switchOf(s *control.ModeSwitch) *model.ModeSwitch {
	return &model.ModeSwitch{
		Scope: word[model.Scope](string(s.Scope)), Name: s.Name, Mode: word[model.Mode](s.Mode.String()), Until: instant(s.Until),
		Ended: s.Ended, Revision: s.Revision, By: s.By, Reason: s.Reason, At: instant(s.At),
		Managed: !s.Unmanaged, Found: instant(s.Found), Replaced: s.Replaced, Operation: given(s.Operation),
	}
}

func tokenOf(t *control.Token) *model.Token {
	return &model.Token{
		ID: t.ID, Subject: t.Subject, Owner: given(t.Owner), Roles: rolesOf(t.Roles), Tenants: some(t.Tenants), Bootstrap: t.Bootstrap,
		Issued: t.Issued, Expires: t.Expires, Used: instant(t.Used), Revoked: instant(t.Revoked),
	}
}

func effectiveOf(e *control.Effective) *model.Effective {
	effective := &model.Effective{
		Policy: e.Policy, Tier: e.Tier, TierFrom: e.TierFrom, Mode: word[model.Mode](e.Mode.String()),
		Blocked: e.Blocked, Unlimited: e.Unlimited, Misfit: given(e.Misfit), Counts: e.Counts, Limits: []*model.EffectiveLimit{},
	}
	for i := range e.Limits {
		effective.Limits = append(effective.Limits, limitOf(&e.Limits[i]))
	}
	return effective
}

func limitOf(e *control.EffectiveLimit) *model.EffectiveLimit {
	l, from := &e.Limit, &e.Provenance
	limit := &model.EffectiveLimit{
		Owner: ownerOf(&e.Owner), Name: l.Name, Unit: string(l.Unit), Capacity: l.Capacity, Refill: l.Refill,
		PeriodMs: given(l.Period.Milliseconds()), Window: windows[l.Window.Kind], Zone: given(l.Window.Zone),
		Mode: word[model.Mode](l.Mode.String()), EnforcedFrom: instant(e.EnforcedFrom),
		FailMode: word[model.FailMode](l.FailMode.String()), Soft: l.Soft,
		Provenance: &model.Provenance{Rule: some(from.Rule), Line: given(from.Line), Mode: from.Mode, FailMode: from.FailMode},
	}
	if limit.Unit == "" {
		limit.Unit = string(bucket.Points)
	}
	if limit.Refill == 0 {
		limit.Refill = l.Capacity
	}
	if e.Override != nil {
		limit.Override = overrideOf(e.Override)
	}
	return limit
}

func entryOf(e *audit.Entry) *model.AuditEntry {
	// It was read from a record, and is written again as the same bytes.
	record, _ := e.Record()
	return &model.AuditEntry{
		Sequence: e.Sequence, Time: e.Time, Subject: e.Actor.Subject, Issuer: e.Actor.Issuer, Method: e.Actor.Method, Owner: e.Actor.Owner,
		Address: e.Actor.Address, Agent: e.Actor.Agent, Action: e.Action, Target: e.Target, Tenant: given(e.Tenant),
		RevisionBefore: e.RevisionBefore, RevisionAfter: e.RevisionAfter, Before: given(string(e.Before)), After: given(string(e.After)),
		Reason: e.Reason, Ticket: e.Ticket, Approval: e.Approval, Request: e.Request, Record: string(record),
	}
}
