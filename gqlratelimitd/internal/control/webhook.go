package control

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/event/stream"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/dispatch"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/seal"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/webhook"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// WebhookConfig is what endpoints of tenants take. All of it is required.
type WebhookConfig struct {
	// Box encrypts where endpoints are, and what signs.
	Box *seal.Box
	// CheckURL returns what is wrong with a URL, in words that a tenant may read: that of a *webhook.Sender.
	CheckURL func(url string) error
	// Changed is called after each change of an endpoint or of what is on its way. It does not block.
	Changed func()
}

// SecretOverlap is for how long messages are signed with the secret and the key before, too, after these were changed.
const SecretOverlap = 24 * time.Hour

// maxDescription is how many bytes the description of an endpoint has.
const maxDescription = 256

// Webhook is an endpoint that a tenant has registered for events about itself.
type Webhook struct {
	// ID names it.
	ID     string `json:"id"`
	Tenant string `json:"tenant"`
	// URL is where it is. It may be a secret, and is not in the answer to a repeat under an idempotency key.
	URL         string `json:"-"`
	Description string `json:"description,omitempty"`
	// Types are those of the events that it wants, see [WebhookTypes].
	Types []string `json:"types"`
	// Disabled is why it gets nothing: off, where somebody has said so, or gone, where it has answered 410. Empty while it gets events.
	Disabled string `json:"disabled,omitempty"`
	// Waiting and Dead are how many messages are on their way, and are tried no more. Oldest is since when the oldest one waits.
	Waiting int64     `json:"waiting"`
	Dead    int64     `json:"dead"`
	Oldest  time.Time `json:"oldest,omitzero"`
	// Failing is why the last attempt failed of the message that waits longest of those that were tried: url, unreachable, timeout, message, or status with the
	// number of the answer. Empty says that what waits was not tried yet.
	Failing string `json:"failing,omitempty"`
	// OverlapUntil is until when messages have signatures with the secret and the key before, too. Zero is that they do not.
	OverlapUntil time.Time `json:"overlapUntil,omitzero"`
	Created      time.Time `json:"created"`
	// Revision is the change that has written it, By who has made that, Reason why, and At when.
	Revision uint64    `json:"revision"`
	By       string    `json:"by"`
	Reason   string    `json:"reason"`
	At       time.Time `json:"at"`
}

// WebhookSecret is an endpoint with a secret that was just made.
type WebhookSecret struct {
	Webhook
	// Secret is for the receiver alone. It is shown nowhere else, and not in the answer to a repeat under an idempotency key: who has lost it changes it.
	Secret string `json:"-"`
}

// WebhookTypes returns the types of events that endpoints can have.
func WebhookTypes() []string { return dispatch.Types() }

// RegisterWebhookInput is an endpoint to be.
type RegisterWebhookInput struct {
	Tenant, URL, Description string
	// Types are those of the events that it wants. None is all of [WebhookTypes].
	Types []string
}

// RegisterWebhook registers an endpoint: [access.RegisterWebhook]. It gets what happens from then on. A tenant has at most [store.MaxWebhooks].
func (c *Control) RegisterWebhook(ctx context.Context, r Request, in RegisterWebhookInput) (*WebhookSecret, error) {
	next := store.Webhook{ID: strings.ToLower(rand.Text()), Tenant: in.Tenant, Subject: stream.Subject(in.Tenant), Description: in.Description}
	hold := holding{URL: in.URL}
	secret := hold.renew(time.Time{})
	check := func() (err error) {
		if err = checkName("tenant", in.Tenant, tiers.MaxLongName); err == nil {
			err = c.checkWebhook(in.URL, in.Description)
		}
		if err == nil {
			next.Types, err = webhookTypes(in.Types)
		}
		return err
	}
	return mutateWebhook(ctx, c, r, access.RegisterWebhook, in.Tenant, in, check, func(tx *store.Tx) (*WebhookSecret, done, error) {
		next.Sealed, next.By, next.Reason = c.seal(next.ID, &hold), r.by(maxBy), r.Reason
		if err := tx.AddWebhook(&next); err != nil {
			if errors.Is(err, store.ErrTooManyWebhooks) {
				err = invalid("tenant", "it has %d endpoints already, or there is no room for a further one: remove one", store.MaxWebhooks)
			}
			return nil, done{}, err
		}
		answer := webhookOf(&next, &hold, tx.Now())
		d := done{target: "webhook " + next.ID, after: c.noted(&next, &hold, false), revisionAfter: next.Revision}
		return &WebhookSecret{Webhook: answer, Secret: secret}, d, nil
	})
}

// mutateWebhook is mutate for what is about endpoints.
func mutateWebhook[T any](
	ctx context.Context, c *Control, r Request, what access.Action, tenant string, input any, check func() error, change func(tx *store.Tx) (*T, done, error),
) (*T, error) {
	if c.cfg.Webhooks == nil {
		if err := access.Authorize(r.Actor, what, tenant); err != nil {
			return nil, err
		}
		return nil, ErrNoRedis
	}
	answer, err := mutate(ctx, c, r, action{Action: what, tenant: tenant}, input, check, change)
	if err == nil {
		c.cfg.Webhooks.Changed()
	}
	return answer, err
}

// checkWebhook returns what is wrong with an endpoint.
func (c *Control) checkWebhook(where, description string) error {
	if err := checkName("url", where, webhook.MaxURL); err != nil {
		return err
	}
	if err := c.cfg.Webhooks.CheckURL(where); err != nil {
		return invalid("url", "%s", strings.TrimPrefix(err.Error(), "webhook: "))
	}
	return checkText("description", description, maxDescription)
}

// webhookTypes are those that were asked for, each once.
func webhookTypes(types []string) ([]string, error) {
	all := WebhookTypes()
	if len(types) == 0 {
		return all, nil
	}
	for _, t := range types {
		if !slices.Contains(all, t) {
			return nil, invalid("types", "there is no %.64q: there are %s", t, strings.Join(all, ", "))
		}
	}
	return slices.DeleteFunc(all, func(t string) bool { return !slices.Contains(types, t) }), nil
}

// WebhookInput says which endpoint is meant.
type WebhookInput struct {
	Tenant, ID string
	// Expected is the revision that the author has seen.
	Expected uint64
}

// expected finds an endpoint as it was seen.
func expected(tx *store.Tx, in WebhookInput) (*store.Webhook, error) {
	there, err := webhookIn(&tx.View, in.Tenant, in.ID)
	if err != nil {
		return nil, err
	}
	if there.Revision != in.Expected {
		return nil, &ConflictError{Current: there.Revision, By: there.By, At: there.At}
	}
	return there, nil
}

// webhook is expected, with what is encrypted.
func (c *Control) webhook(tx *store.Tx, in WebhookInput) (*store.Webhook, *holding, error) {
	there, err := expected(tx, in)
	if err != nil {
		return nil, nil, err
	}
	hold, err := c.unseal(there)
	return there, hold, err
}

// ChangeWebhookInput is what of an endpoint is changed. What is nil stays.
type ChangeWebhookInput struct {
	WebhookInput
	URL, Description *string
	Types            []string
	// Enabled switches it off or on. What waits stays meanwhile, and what happens meanwhile it is not given.
	Enabled *bool
}

// ChangeWebhook changes an endpoint: [access.ChangeWebhook]. There is [ErrNotFound] if the tenant has no such endpoint.
func (c *Control) ChangeWebhook(ctx context.Context, r Request, in ChangeWebhookInput) (*Webhook, error) {
	var types []string
	check := func() (err error) {
		if in.URL == nil && in.Description == nil && in.Types == nil && in.Enabled == nil {
			return invalid("url", "nothing is changed: say url, description, types or enabled")
		}
		where, description := "https://example.com/", ""
		if in.URL != nil {
			where = *in.URL
		}
		if in.Description != nil {
			description = *in.Description
		}
		if in.Types != nil {
			if types, err = webhookTypes(in.Types); err != nil {
				return err
			}
		}
		return c.checkWebhook(where, description)
	}
	return mutateWebhook(ctx, c, r, access.ChangeWebhook, in.Tenant, in, check, func(tx *store.Tx) (*Webhook, done, error) {
		was, hold, err := c.webhook(tx, in.WebhookInput)
		if err != nil {
			return nil, done{}, err
		}
		d := done{before: c.noted(was, hold, false)}
		next, moved := *was, false
		if in.URL != nil {
			moved = hold.URL != *in.URL
			hold.URL = *in.URL
		}
		if in.Description != nil {
			next.Description = *in.Description
		}
		if types != nil {
			next.Types = types
		}
		if in.Enabled != nil {
			next.Disabled = store.DisabledOff
			if *in.Enabled {
				next.Disabled = store.Enabled
			}
		}
		answer, err := c.putWebhook(tx, &r, &next, hold, in.Expected)
		if err != nil {
			return nil, d, err
		}
		d.target, d.after = "webhook "+next.ID, c.noted(&next, hold, moved)
		d.revisionBefore, d.revisionAfter = in.Expected, next.Revision
		return answer, d, nil
	})
}

// putWebhook writes an endpoint.
func (c *Control) putWebhook(tx *store.Tx, r *Request, next *store.Webhook, hold *holding, expected uint64) (*Webhook, error) {
	next.Sealed, next.By, next.Reason = c.seal(next.ID, hold), r.by(maxBy), r.Reason
	if err := tx.PutWebhook(next, expected); err != nil {
		return nil, err
	}
	return queued(&tx.View, webhookOf(next, hold, tx.Now()))
}

// queued adds what is on its way.
func queued(v *store.View, w Webhook) (*Webhook, error) {
	queue, err := v.WebhookQueue(w.ID)
	if err != nil {
		return nil, err
	}
	w.Waiting, w.Dead, w.Oldest = queue.Waiting, queue.Dead, queue.Oldest
	reason, status, err := v.WebhookFailure(w.ID)
	if w.Failing = reason; status != 0 {
		w.Failing = fmt.Sprintf("%s %d", reason, status)
	}
	return &w, err
}

// RemoveWebhook removes an endpoint with all that is on its way to it: [access.RemoveWebhook]. There is [ErrNotFound] if the tenant has no such endpoint.
func (c *Control) RemoveWebhook(ctx context.Context, r Request, in WebhookInput) (*Webhook, error) {
	return mutateWebhook(ctx, c, r, access.RemoveWebhook, in.Tenant, removeWebhookInput(in), unchecked, func(tx *store.Tx) (*Webhook, done, error) {
		was, err := expected(tx, in)
		if err != nil {
			return nil, done{}, err
		}
		hold, err := c.unseal(was)
		if err != nil {
			// Its key is lost: it can be removed all the same.
			hold = &holding{}
		}
		d := done{target: "webhook " + was.ID, before: c.noted(was, hold, false), revisionBefore: in.Expected}
		last, err := queued(&tx.View, webhookOf(was, hold, tx.Now()))
		if err != nil {
			return nil, d, err
		}
		was.By, was.Reason = r.by(maxBy), r.Reason
		if last.Revision, err = tx.RemoveWebhook(was, in.Expected); err != nil {
			return nil, d, err
		}
		last.By, last.Reason, last.At, d.revisionAfter = was.By, was.Reason, tx.Now(), last.Revision
		return last, d, nil
	})
}

// RotateWebhook gives an endpoint another secret and another key: [access.RotateWebhook]. Messages are signed with those before, too, for [SecretOverlap]. There is
// [ErrNotFound] if the tenant has no such endpoint.
func (c *Control) RotateWebhook(ctx context.Context, r Request, in WebhookInput) (*WebhookSecret, error) {
	return mutateWebhook(ctx, c, r, access.RotateWebhook, in.Tenant, rotateWebhookInput(in), unchecked, func(tx *store.Tx) (*WebhookSecret, done, error) {
		was, hold, err := c.webhook(tx, in)
		if err != nil {
			return nil, done{}, err
		}
		d := done{target: "webhook " + was.ID, before: c.noted(was, hold, false), revisionBefore: in.Expected}
		secret := hold.renew(tx.Now())
		answer, err := c.putWebhook(tx, &r, was, hold, in.Expected)
		if err != nil {
			return nil, d, err
		}
		d.after, d.revisionAfter = c.noted(was, hold, false), was.Revision
		return &WebhookSecret{Webhook: *answer, Secret: secret}, d, nil
	})
}

// Inputs of their own, because the same key is for the same method.
type (
	removeWebhookInput WebhookInput
	rotateWebhookInput WebhookInput
	testWebhookInput   WebhookInput
)

// unchecked is the check of what nothing can be wrong with.
func unchecked() error { return nil }

// notedWebhook is an endpoint as the audit log has it: that is kept for ever, and read by others. The URL is cut behind its host.
type notedWebhook struct {
	URL string `json:"url"`
	// Moved says that the URL is another one than before.
	Moved       bool     `json:"moved,omitempty"`
	Description string   `json:"description,omitempty"`
	Types       []string `json:"types"`
	Disabled    string   `json:"disabled,omitempty"`
}

func (c *Control) noted(w *store.Webhook, h *holding, moved bool) notedWebhook {
	return notedWebhook{
		URL: hostOf(h.URL), Moved: moved, Description: w.Description, Types: w.Types, Disabled: string(w.Disabled),
	}
}

// hostOf is a URL without what may be a secret in it.
func hostOf(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%s://%s/…", u.Scheme, u.Host)
}

// webhookOf is an endpoint as it is told, without what is on its way.
func webhookOf(w *store.Webhook, h *holding, now time.Time) Webhook {
	out := Webhook{
		ID: w.ID, Tenant: w.Tenant, URL: h.URL, Description: w.Description, Types: w.Types, Disabled: string(w.Disabled),
		Created: w.Created, Revision: w.Revision, By: w.By, Reason: w.Reason, At: w.At,
	}
	if h.Until.After(now) {
		out.OverlapUntil = h.Until
	}
	return out
}
