package control

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/event/stream"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/dispatch"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/webhook"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/webhook/delivery"
)

// Webhooks returns at most n endpoints of a tenant after an ID, by ID: [access.ReadWebhook].
func (c *Control) Webhooks(ctx context.Context, actor access.Actor, tenant, after string, n int) (found []Webhook, _ error) {
	err := c.readWebhooks(ctx, actor, tenant, func(v *store.View) error {
		there, err := v.Webhooks(tenant, after, n)
		if err != nil {
			return err
		}
		for i := range there {
			w, err := c.shownWebhook(v, &there[i])
			if err != nil {
				return err
			}
			w.By = actor.Told(w.By)
			found = append(found, *w)
		}
		return nil
	})
	return found, err
}

// Webhook returns an endpoint of a tenant: [access.ReadWebhook]. There is [ErrNotFound] if it has no such endpoint.
func (c *Control) Webhook(ctx context.Context, actor access.Actor, tenant, id string) (found *Webhook, _ error) {
	err := c.readWebhooks(ctx, actor, tenant, func(v *store.View) error {
		there, err := webhookIn(v, tenant, id)
		if err != nil {
			return err
		}
		if found, err = c.shownWebhook(v, there); err == nil {
			found.By = actor.Told(found.By)
		}
		return err
	})
	return found, err
}

// readWebhooks reads what is about endpoints of a tenant, for who may.
func (c *Control) readWebhooks(ctx context.Context, actor access.Actor, tenant string, read func(*store.View) error) error {
	if err := access.Authorize(actor, access.ReadWebhook, tenant); err != nil {
		return err
	}
	if c.cfg.Webhooks == nil {
		return ErrNoRedis
	}
	return c.cfg.Store.Read(ctx, read)
}

func webhookIn(v *store.View, tenant, id string) (*store.Webhook, error) {
	there, err := v.Webhook(id)
	if err == nil && (there == nil || there.Tenant != tenant) {
		err = ErrNotFound
	}
	return there, err
}

// shownWebhook is an endpoint as it is told. One that this daemon has not the key of is told without what is encrypted: it can be removed.
func (c *Control) shownWebhook(v *store.View, w *store.Webhook) (*Webhook, error) {
	hold, err := c.unseal(w)
	if err != nil {
		hold = &holding{}
	}
	return queued(v, webhookOf(w, hold, c.now()))
}

// FailedDelivery is a message that is tried no more, unless it is replayed.
type FailedDelivery struct {
	// Message is its webhook-id, and Type that of the event.
	Message string `json:"message"`
	Type    string `json:"type"`
	// Attempts is how many were made, and Failed when the last one was.
	Attempts int       `json:"attempts"`
	Failed   time.Time `json:"failed"`
	// Reason is why the last one failed: status, url, unreachable, timeout or message. Status is that of the answer, 0 if there was none.
	Reason string `json:"reason"`
	Status int    `json:"status,omitempty"`
}

// FailedDeliveries returns at most n messages that could not be brought to an endpoint, the latest first: [access.ReadWebhook]. The last [store.MaxDead] are kept, while they are not too old.
func (c *Control) FailedDeliveries(ctx context.Context, actor access.Actor, tenant, id string, n int) (found []FailedDelivery, _ error) {
	err := c.readWebhooks(ctx, actor, tenant, func(v *store.View) error {
		if _, err := webhookIn(v, tenant, id); err != nil {
			return err
		}
		dead, err := v.DeadDeliveries(id, n)
		for i := range dead {
			d := &dead[i].Delivery
			var e stream.Envelope
			// It was written by this program.
			_ = json.Unmarshal(d.Body, &e)
			found = append(found, FailedDelivery{d.ID, e.Type, d.Attempts, d.Due, string(d.Reason), d.Status})
		}
		return err
	})
	return found, err
}

// WebhookTest is an event that says nothing, on its way.
type WebhookTest struct {
	// Message is its webhook-id.
	Message string `json:"message"`
}

// TestWebhook sends an endpoint an event of the type ratelimit.webhook.test.v1: [access.TestWebhook]. It is brought like any other. There is [ErrNotFound] if the
// tenant has no such endpoint.
func (c *Control) TestWebhook(ctx context.Context, r Request, in WebhookInput) (*WebhookTest, error) {
	id := strings.ToLower(rand.Text())
	return mutateWebhook(ctx, c, r, access.TestWebhook, in.Tenant, testWebhookInput(in), unchecked, func(tx *store.Tx) (*WebhookTest, done, error) {
		there, err := expected(tx, in)
		if err == nil && there.Disabled != store.Enabled {
			err = invalid("id", "the endpoint is switched off: switch it on first")
		}
		if err != nil {
			return nil, done{}, err
		}
		e := stream.Envelope{
			ID: id, Source: "gqlratelimitd", Type: dispatch.TestType, Subject: there.Subject, Time: tx.Now(), Data: json.RawMessage(`{"test":true}`),
		}
		body, err := json.Marshal(e)
		if err != nil {
			return nil, done{}, fmt.Errorf("control: %w", err)
		}
		m := webhook.Message{ID: delivery.MessageID(&e), Body: body}
		if err := tx.PutDelivery(delivery.Record{Endpoint: there.ID, Delivery: webhook.Begin(m, tx.Now())}); err != nil {
			return nil, done{}, full(err)
		}
		return &WebhookTest{m.ID}, done{target: "webhook " + there.ID, after: WebhookTest{m.ID}}, nil
	})
}

// full says of what finds no room that there is none.
func full(err error) error {
	if errors.Is(err, delivery.ErrFull) {
		return invalid("id", "there is no room for a further message to this endpoint: %d wait, or too many for all", store.MaxWaiting)
	}
	return err
}

// ReplayWebhookInput says what is tried again.
type ReplayWebhookInput struct {
	WebhookInput
	// Messages are those of [FailedDelivery.Message]. None is all that have failed.
	Messages []string
}

// WebhookReplay is what is tried again.
type WebhookReplay struct {
	Replayed int `json:"replayed"`
}

// ReplayWebhook has messages tried again, under their ids, that could not be brought: [access.ReplayWebhook]. There is [ErrNotFound] if the tenant has no such
// endpoint, or one of the messages has not failed.
func (c *Control) ReplayWebhook(ctx context.Context, r Request, in ReplayWebhookInput) (*WebhookReplay, error) {
	check := func() error {
		if len(in.Messages) > store.MaxDead {
			return invalid("messages", "there are more than %d", store.MaxDead)
		}
		return nil
	}
	return mutateWebhook(ctx, c, r, access.ReplayWebhook, in.Tenant, in, check, func(tx *store.Tx) (*WebhookReplay, done, error) {
		there, err := expected(tx, in.WebhookInput)
		if err != nil {
			return nil, done{}, err
		}
		n, err := tx.ReplayDeliveries(there.ID, in.Messages)
		if errors.Is(err, delivery.ErrNotDead) {
			err = ErrNotFound
		}
		if err != nil {
			return nil, done{}, full(err)
		}
		return &WebhookReplay{n}, done{target: "webhook " + there.ID, after: WebhookReplay{n}}, nil
	})
}

// WebhookEndpoint returns an endpoint as messages are sent to it now. It is for the daemon itself: nobody is asked whether they may.
func (c *Control) WebhookEndpoint(ctx context.Context, id string) (to webhook.Endpoint, _ error) {
	err := c.cfg.Store.Read(ctx, func(v *store.View) error {
		there, err := v.Webhook(id)
		if err == nil && there == nil {
			err = ErrNotFound
		}
		if err != nil {
			return err
		}
		hold, err := c.unseal(there)
		if err == nil {
			to, err = hold.endpoint(c.now())
		}
		return err
	})
	return to, err
}

// CheckWebhookKey returns an error if the key of this daemon is not the one that an endpoint is encrypted with. It is for the daemon itself.
func (c *Control) CheckWebhookKey(ctx context.Context) error {
	return c.cfg.Store.Read(ctx, func(v *store.View) error {
		there, err := v.NewestWebhook()
		if err == nil && there != nil {
			_, err = c.unseal(there)
		}
		return err
	})
}

// WebhookGone switches an endpoint off that has answered that it wants no message any more, with an entry in the audit log by [access.System]. It is for the daemon itself.
// What is switched off, or is not there, stays as it is.
func (c *Control) WebhookGone(ctx context.Context, id string) error {
	return c.cfg.Store.Change(ctx, func(tx *store.Tx) error {
		there, err := tx.Webhook(id)
		if err != nil || there == nil || there.Disabled != store.Enabled {
			return err
		}
		r := Request{Actor: access.System("webhooks"), Reason: "the endpoint has answered 410 Gone"}
		a := action{Action: access.DisableWebhook, tenant: there.Tenant}
		if err := a.authorize(r.Actor); err != nil {
			return err
		}
		hold, err := c.unseal(there)
		if err != nil {
			return err
		}
		d := done{target: "webhook " + id, before: c.noted(there, hold, false), revisionBefore: there.Revision}
		next := *there
		next.Disabled = store.DisabledGone
		if _, err := c.putWebhook(tx, &r, &next, hold, there.Revision); err != nil {
			return err
		}
		d.after, d.revisionAfter = c.noted(&next, hold, false), next.Revision
		return note(ctx, tx, &r, a, &d)
	})
}
