package graph

import (
	"context"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/control"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/graph/internal/model"
)

// Webhooks returns a page of the endpoints of a tenant.
func (q query) Webhooks(ctx context.Context, about string, first int, after *string) (*model.WebhookPage, error) {
	nodes, info, err := read(first, func(n int) ([]control.Webhook, error) {
		return q.control.Webhooks(ctx, actorOf(ctx), about, value(after), n)
	}, webhookOf)
	if err != nil {
		return nil, err
	}
	return &model.WebhookPage{Nodes: nodes, PageInfo: info}, nil
}

// FailedDeliveries returns what could not be brought to an endpoint.
func (q query) FailedDeliveries(ctx context.Context, about, id string, first int) ([]*model.FailedDelivery, error) {
	if err := checkFirst(first); err != nil {
		return nil, err
	}
	found, err := q.control.FailedDeliveries(ctx, actorOf(ctx), about, id, first)
	if err != nil {
		return nil, err
	}
	return each(found, func(d *control.FailedDelivery) *model.FailedDelivery {
		return &model.FailedDelivery{Message: d.Message, Type: d.Type, Attempts: d.Attempts, Failed: d.Failed, Reason: d.Reason, Status: given(d.Status)}
	}), nil
}

// RegisterWebhook registers an endpoint.
func (m mutation) RegisterWebhook(ctx context.Context, in model.RegisterWebhookInput) (*model.WebhookWithSecret, error) {
	answer, err := m.control.RegisterWebhook(ctx, request(ctx, in.Reason, in.Ticket, in.IdempotencyKey), control.RegisterWebhookInput{
		Tenant: in.Tenant, URL: in.URL, Description: in.Description, Types: in.Types,
	})
	return shown(answer, err, webhookSecretOf)
}

// ChangeWebhook changes an endpoint.
func (m mutation) ChangeWebhook(ctx context.Context, in model.ChangeWebhookInput) (*model.Webhook, error) {
	answer, err := m.control.ChangeWebhook(ctx, request(ctx, in.Reason, in.Ticket, in.IdempotencyKey), control.ChangeWebhookInput{
		WebhookInput: webhookIn(in.Tenant, in.ID, in.ExpectedRevision), URL: in.URL, Description: in.Description, Types: in.Types, Enabled: in.Enabled,
	})
	return shown(answer, err, webhookOf)
}

// RemoveWebhook removes an endpoint.
func (m mutation) RemoveWebhook(ctx context.Context, in model.RemoveWebhookInput) (*model.Webhook, error) {
	answer, err := m.control.RemoveWebhook(ctx, request(ctx, in.Reason, in.Ticket, in.IdempotencyKey), webhookIn(in.Tenant, in.ID, in.ExpectedRevision))
	return shown(answer, err, webhookOf)
}

// RotateWebhook changes the secret of an endpoint.
func (m mutation) RotateWebhook(ctx context.Context, in model.RotateWebhookInput) (*model.WebhookWithSecret, error) {
	answer, err := m.control.RotateWebhook(ctx, request(ctx, in.Reason, in.Ticket, in.IdempotencyKey), webhookIn(in.Tenant, in.ID, in.ExpectedRevision))
	return shown(answer, err, webhookSecretOf)
}

// TestWebhook sends an event that says nothing.
func (m mutation) TestWebhook(ctx context.Context, in model.TestWebhookInput) (*model.WebhookTest, error) {
	answer, err := m.control.TestWebhook(ctx, request(ctx, in.Reason, in.Ticket, in.IdempotencyKey), webhookIn(in.Tenant, in.ID, in.ExpectedRevision))
	return shown(answer, err, func(t *control.WebhookTest) *model.WebhookTest { return &model.WebhookTest{Message: t.Message} })
}

// ReplayWebhook has messages tried again.
func (m mutation) ReplayWebhook(ctx context.Context, in model.ReplayWebhookInput) (*model.WebhookReplay, error) {
	answer, err := m.control.ReplayWebhook(ctx, request(ctx, in.Reason, in.Ticket, in.IdempotencyKey), control.ReplayWebhookInput{
		WebhookInput: webhookIn(in.Tenant, in.ID, in.ExpectedRevision), Messages: in.Messages,
	})
	return shown(answer, err, func(r *control.WebhookReplay) *model.WebhookReplay { return &model.WebhookReplay{Replayed: r.Replayed} })
}

func webhookIn(of, id string, expected uint64) control.WebhookInput {
	return control.WebhookInput{Tenant: of, ID: id, Expected: expected}
}

func webhookOf(w *control.Webhook) *model.Webhook {
	return &model.Webhook{
		ID: w.ID, Tenant: w.Tenant, URL: given(w.URL), Description: w.Description, Types: some(w.Types), PublicKey: given(w.PublicKey),
		Disabled: given(word[model.WebhookDisabled](w.Disabled)), Waiting: w.Waiting, Dead: w.Dead, Oldest: instant(w.Oldest), Failing: given(w.Failing),
		OverlapUntil: instant(w.OverlapUntil), Created: w.Created, Revision: w.Revision, By: w.By, Reason: w.Reason, At: w.At,
	}
}

func webhookSecretOf(w *control.WebhookSecret) *model.WebhookWithSecret {
	return &model.WebhookWithSecret{Webhook: webhookOf(&w.Webhook), Secret: given(w.Secret)}
}
