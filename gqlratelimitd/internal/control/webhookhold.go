package control

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/webhook"
)

// holding is what of an endpoint is encrypted in the database.
type holding struct {
	URL string `json:"url"`
	// Secrets have the one of now first. The one before signs until Until.
	Secrets []string  `json:"secrets"`
	Until   time.Time `json:"until,omitzero"`
}

// renew makes another secret and returns it. The one before signs on for a while from a time on; the one before that does not.
func (h *holding) renew(now time.Time) string {
	secret := webhook.NewSecret()
	h.Secrets = append([]string{secret.Reveal()}, h.Secrets[:min(len(h.Secrets), 1)]...)
	if len(h.Secrets) > 1 {
		h.Until = now.Add(SecretOverlap)
	}
	return secret.Reveal()
}

// endpoint is what messages are sent to, and signed with, at a time.
func (h *holding) endpoint(now time.Time) (to webhook.Endpoint, _ error) {
	to.URL = h.URL
	sign := 1
	if h.Until.After(now) {
		sign = 2
	}
	for _, text := range h.Secrets[:min(len(h.Secrets), sign)] {
		secret, err := webhook.ParseSecret(text)
		if err != nil {
			return webhook.Endpoint{}, err
		}
		to.Secrets = append(to.Secrets, secret)
	}
	return to, nil
}

// sealedAs is what an endpoint is encrypted for.
func sealedAs(id string) string { return "webhook " + id }

func (c *Control) seal(id string, h *holding) []byte {
	// It is made of texts and a time.
	text, _ := json.Marshal(h)
	return c.cfg.Webhooks.Box.Seal(sealedAs(id), text)
}

func (c *Control) unseal(w *store.Webhook) (*holding, error) {
	text, err := c.cfg.Webhooks.Box.Open(sealedAs(w.ID), w.Sealed)
	if err != nil {
		return nil, fmt.Errorf("control: the endpoint %s: %w", w.ID, err)
	}
	h := &holding{}
	if err := json.Unmarshal(text, h); err != nil {
		return nil, fmt.Errorf("control: the endpoint %s cannot be read", w.ID)
	}
	return h, nil
}
