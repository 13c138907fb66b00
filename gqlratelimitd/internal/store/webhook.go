package store

import (
	"errors"
	"time"
)

// Bounds of endpoints.
const (
	// MaxWebhooks is how many endpoints a tenant registers.
	MaxWebhooks = 10
	// MaxWebhooksInAll is how many all tenants do.
	MaxWebhooksInAll = 10_000
)

// ErrTooManyWebhooks says that a tenant has [MaxWebhooks] endpoints, or all have [MaxWebhooksInAll].
var ErrTooManyWebhooks = errors.New("store: there is no room for a further endpoint")

// Disabled is why an endpoint gets nothing.
type Disabled string

// Reasons.
const (
	// Enabled is an endpoint that gets events.
	Enabled Disabled = ""
	// DisabledOff is one that somebody has switched off.
	DisabledOff Disabled = "off"
	// DisabledGone is one that has answered that it wants no message any more.
	DisabledGone Disabled = "gone"
)

// Webhook is an endpoint that a tenant has registered for events about itself.
type Webhook struct {
	// ID names it. It is random, and no secret.
	ID string
	// Tenant is whose it is, and Subject the same as events call it.
	Tenant, Subject string
	Description     string
	// Types are those of the events that it wants.
	Types []string
	// Sealed is where it is and what signs, which nobody can read here.
	Sealed   []byte
	Disabled Disabled
	// Created is when it was registered.
	Created time.Time
	Written
}

const webhookColumns = "id, tenant, subject, description, types, sealed, disabled, created, revision, author, reason, at"

func scanWebhook(row scanner, w *Webhook) error {
	return row.Scan(&w.ID, &w.Tenant, &w.Subject, &w.Description, names{&w.Types}, &w.Sealed, &w.Disabled,
		instant{&w.Created}, &w.Revision, &w.By, &w.Reason, instant{&w.At})
}

// Webhook returns an endpoint, nil if there is none.
func (v *View) Webhook(id string) (*Webhook, error) {
	return one(v, scanWebhook, "SELECT "+webhookColumns+" FROM webhook WHERE id = $1", id)
}

// Webhooks returns at most n endpoints of a tenant after an ID, by ID.
func (v *View) Webhooks(tenant, after string, n int) ([]Webhook, error) {
	return many(v, scanWebhook, "SELECT "+webhookColumns+" FROM webhook WHERE tenant = $1 AND id > $2 ORDER BY id LIMIT $3", []byte(tenant), after, page(n))
}

// NewestWebhook returns the endpoint that was written last, of all tenants, nil if there is none.
func (v *View) NewestWebhook() (*Webhook, error) {
	return one(v, scanWebhook, "SELECT "+webhookColumns+" FROM webhook ORDER BY revision DESC LIMIT 1")
}

// AddWebhook adds an endpoint, or returns [ErrTooManyWebhooks]. It sets when and under which revision.
func (tx *Tx) AddWebhook(w *Webhook) error {
	of, err := one(&tx.View, scanNumber, "SELECT count(*) FROM webhook WHERE tenant = $1", []byte(w.Tenant))
	if err != nil {
		return err
	}
	all, err := one(&tx.View, scanNumber, "SELECT count(*) FROM webhook")
	if err != nil {
		return err
	}
	if *of >= MaxWebhooks || *all >= MaxWebhooksInAll {
		return ErrTooManyWebhooks
	}
	w.Created = tx.now
	return tx.putWebhook(w, nil, 0)
}

// PutWebhook writes an endpoint that is there, if its revision is the expected one, and otherwise returns a [*ConflictError]. It sets when and under
// which revision.
func (tx *Tx) PutWebhook(w *Webhook, expected uint64) error {
	there, err := tx.Webhook(w.ID)
	if err != nil {
		return err
	}
	var was *Written
	if there != nil {
		was = &there.Written
	}
	return tx.putWebhook(w, was, expected)
}

func (tx *Tx) putWebhook(w *Webhook, was *Written, expected uint64) (err error) {
	if w.Written, err = tx.write(was, expected, w.By, w.Reason); err != nil {
		return err
	}
	return tx.exec(`INSERT INTO webhook (`+webhookColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
		ON CONFLICT (id) DO UPDATE SET description = excluded.description, types = excluded.types, sealed = excluded.sealed, disabled = excluded.disabled,
		revision = excluded.revision, author = excluded.author, reason = excluded.reason, at = excluded.at`,
		w.ID, []byte(w.Tenant), w.Subject, w.Description, list(w.Types), stored(w.Sealed), string(w.Disabled), micros(w.Created),
		w.Revision, w.By, w.Reason, micros(w.At))
}

// RemoveWebhook removes an endpoint with all that is on its way to it, if its revision is the expected one, and otherwise returns a [*ConflictError].
// The revision of the removal is returned.
func (tx *Tx) RemoveWebhook(w *Webhook, expected uint64) (uint64, error) {
	written, err := tx.write(&w.Written, expected, w.By, w.Reason)
	if err != nil {
		return 0, err
	}
	// Who puts something meanwhile finds no endpoint afterwards.
	if err := tx.lockDeliveries(); err != nil {
		return 0, err
	}
	if err := tx.exec("DELETE FROM webhook_delivery WHERE webhook = $1", w.ID); err != nil {
		return 0, err
	}
	return written.Revision, tx.exec("DELETE FROM webhook WHERE id = $1", w.ID)
}

// WebhookQueue is what is on its way to an endpoint.
type WebhookQueue struct {
	// Waiting and Dead are how many messages wait, and are tried no more.
	Waiting, Dead int64
	// Oldest is when the oldest one that waits was put. It is zero if none waits.
	Oldest time.Time
}

const queueSQL = `SELECT CAST(coalesce(sum(1 - dead), 0) AS bigint), CAST(coalesce(sum(dead), 0) AS bigint),
	coalesce(min(CASE dead WHEN 0 THEN began END), 0) FROM webhook_delivery`

func scanQueue(row scanner, q *WebhookQueue) error {
	return row.Scan(&q.Waiting, &q.Dead, instant{&q.Oldest})
}

// WebhookQueue returns what is on its way to an endpoint.
func (v *View) WebhookQueue(id string) (WebhookQueue, error) {
	found, err := one(v, scanQueue,
		queueSQL+" WHERE webhook = $1", id)
	if err != nil {
		return WebhookQueue{}, err
	}
	return *found, nil
}

// WebhookFailure returns what the last attempt came to of the message that waits longest of those that were tried: a reason as [webhook.Result] has it, and the
// status of the answer, 0 if there was none. It is empty where none has failed.
func (v *View) WebhookFailure(id string) (reason string, status int, _ error) {
	_, err := one(v, func(row scanner, _ *int64) error { return row.Scan(&reason, &status) },
		"SELECT reason, status FROM webhook_delivery WHERE webhook = $1 AND dead = 0 AND attempts > 0 ORDER BY began, id LIMIT 1", id)
	return reason, status, err
}

// WebhookTotals are those of all endpoints.
type WebhookTotals struct {
	WebhookQueue
	// Enabled and Disabled are how many endpoints there are.
	Enabled, Disabled int64
	// Due is since when the message waits for its next attempt that waits longest, of endpoints that are enabled. It is zero if none is due.
	Due time.Time
}

// WebhookTotals returns what there is of all endpoints, as of a time.
func (v *View) WebhookTotals(now time.Time) (t WebhookTotals, _ error) {
	queue, err := one(v, scanQueue,
		queueSQL)
	if err != nil {
		return t, err
	}
	t.WebhookQueue = *queue
	_, err = one(v, func(row scanner, _ *int64) error { return row.Scan(&t.Enabled, &t.Disabled) },
		"SELECT count(CASE disabled WHEN '' THEN 1 END), count(CASE disabled WHEN '' THEN NULL ELSE 1 END) FROM webhook")
	if err != nil {
		return t, err
	}
	_, err = one(v, func(row scanner, _ *int64) error { return row.Scan(instant{&t.Due}) },
		`SELECT coalesce(min(d.due), 0) FROM webhook_delivery d JOIN webhook w ON w.id = d.webhook
		WHERE d.dead = 0 AND d.due <= $1 AND w.disabled = ''`, micros(now))
	return t, err
}

// HasWebhooks reports whether any endpoint gets events.
func (v *View) HasWebhooks() (bool, error) {
	n, err := one(v, scanNumber, "SELECT count(*) FROM (SELECT id FROM webhook WHERE disabled = '' LIMIT 1) found")
	return err == nil && *n > 0, err
}
