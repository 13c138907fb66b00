package graph

import (
	"context"
	"errors"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/control"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/graph/internal/model"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/statement"
)

// Statements returns a page of statements.
func (q query) Statements(ctx context.Context, about *string, first int, before *int64) (*model.StatementPage, error) {
	if err := allOrNamed(about); err != nil {
		return nil, err
	}
	nodes, info, err := read(first, func(n int) ([]control.StatementHead, error) {
		found, err := q.control.Statements(ctx, actorOf(ctx), value(about), uint64(max(value(before), 0)), n)
		if before != nil && *before <= 0 {
			// Nothing is before the first statement.
			found = nil
		}
		return found, err
	}, statementSummaryOf)
	if err != nil {
		return nil, err
	}
	return &model.StatementPage{Nodes: nodes, PageInfo: info}, nil
}

// Statement returns a statement of a tenant.
func (q query) Statement(ctx context.Context, about string, number int64) (*model.Statement, error) {
	found, err := q.control.Statement(ctx, actorOf(ctx), about, uint64(max(number, 0)))
	if errors.Is(err, control.ErrNotFound) {
		return nil, nil
	}
	return shown(found, err, statementOf)
}

// Freezing says how far freezing has come.
func (q query) Freezing(ctx context.Context) (*model.Freezing, error) {
	status, err := q.control.FreezeStatus(ctx, actorOf(ctx))
	return shown(status, err, freezingOf)
}

// FreezeUsage makes statements.
func (m mutation) FreezeUsage(ctx context.Context, in model.FreezeUsageInput) (*model.FrozenUsage, error) {
	if err := allOrNamed(in.Tenant); err != nil {
		return nil, err
	}
	answer, err := m.control.FreezeUsage(ctx, request(ctx, in.Reason, in.Ticket, in.IdempotencyKey), control.FreezeInput{
		Tenant: value(in.Tenant), Month: value(in.Month), From: value(in.From), To: value(in.To), After: value(in.After), N: in.First, Incomplete: in.Incomplete,
	})
	return shown(answer, err, frozenOf)
}

func freezingOf(s *control.FreezeStatus) *model.Freezing {
	f := &model.Freezing{
		Every: word[model.FreezeEvery](string(s.Schedule.Every)), DelaySeconds: int64(s.Schedule.Delay / time.Second), Due: instant(s.Due),
	}
	if !s.Frozen.IsZero() {
		f.Frozen, f.From, f.To = dayOf(s.Frozen), dayOf(s.Next.From), dayOf(s.Next.To)
	}
	if s.Wait != nil {
		f.Reason, f.Problem = given(word[model.FreezeReason](string(s.Wait.Reason))), given(s.Wait.Problem)
	}
	return f
}

// dayOf writes a day.
func dayOf(t time.Time) *string { return given(t.Format(time.DateOnly)) }

func statementSummaryOf(h *control.StatementHead) *model.StatementSummary {
	return &model.StatementSummary{
		Number: int64(h.Number), Tenant: h.Tenant, From: h.From.Format(time.DateOnly), To: h.To.Format(time.DateOnly), Frozen: h.Frozen,
		Hash: h.Hash.String(), Corrects: given(int64(h.Corrects)), New: h.New,
	}
}

func statementOf(s *control.Statement) *model.Statement {
	return &model.Statement{
		Summary: statementSummaryOf(&s.StatementHead), Collected: s.Content.Collected, Unknown: instant(s.Content.Unknown),
		Previous: given(int64(s.Content.Previous.Number)), Lines: each(s.Content.Lines, statementLineOf), Differences: each(s.Content.Differences, statementLineOf),
		Signed: string(s.Signed),
	}
}

func statementLineOf(l *statement.Line) *model.StatementLine {
	line := &model.StatementLine{Unit: l.Unit, Field: given(l.Field), Grade: l.Grade, Charged: l.Charged, GivenBack: l.GivenBack, Net: l.Net()}
	if l.Field != "" {
		line.Calls = &l.Calls
	}
	return line
}

func frozenOf(f *control.Frozen) *model.FrozenUsage {
	return &model.FrozenUsage{
		Statements: each(f.Statements, statementSummaryOf),
		Left: each(f.Left, func(u *control.Unfrozen) *model.UnfrozenTenant {
			return &model.UnfrozenTenant{Tenant: u.Tenant, Problem: u.Problem}
		}),
		Next: given(f.Next),
	}
}
