package web

import (
	"net/http"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/control"
)

// webhookOut is an endpoint of a tenant. URL and Secret are missing in the answer to a repeat, and Secret everywhere but where it was made.
type webhookOut struct {
	control.Webhook

	URL    string `json:"url,omitempty"`
	Secret string `json:"secret,omitempty"`
}

// webhookIn is what is said of an endpoint.
type webhookIn struct {
	URL         *string  `json:"url"`
	Description *string  `json:"description"`
	Types       []string `json:"types"`
	Enabled     *bool    `json:"enabled"`
}

// webhookRoutes are those of endpoints of tenants.
func (s *Server) webhookRoutes(org string) []route {
	list, one := org+"/webhooks", org+"/webhooks/{id}"
	return []route{
		{method: http.MethodGet, pattern: list, handle: s.webhooks},
		{method: http.MethodPost, pattern: list, body: true, handle: s.registerWebhook},
		{method: http.MethodGet, pattern: one, handle: s.webhook},
		{method: http.MethodPatch, pattern: one, body: true, handle: s.changeWebhook},
		{method: http.MethodDelete, pattern: one, handle: s.removeWebhook},
		{method: http.MethodPost, pattern: one + "/secret", handle: s.rotateWebhook},
		{method: http.MethodPost, pattern: one + "/test", handle: s.testWebhook},
		{method: http.MethodGet, pattern: one + "/failures", handle: s.failedDeliveries},
		{method: http.MethodPost, pattern: one + "/replay", body: true, handle: s.replayWebhook},
	}
}

// writeWebhook answers with an endpoint.
func (c *call) writeWebhook(status int, w *control.Webhook, secret string) error {
	c.w.Header().Set("ETag", tag(w.Revision))
	return c.write(status, webhookOut{Webhook: *w, URL: w.URL, Secret: secret})
}

// webhooks lists the endpoints of a tenant.
func (s *Server) webhooks(c *call) error {
	n, err := c.paged("after")
	if err != nil {
		return err
	}
	found, err := s.cfg.Control.Webhooks(c.Context(), c.actor, c.PathValue("org"), c.query.Get("after"), n)
	if err != nil {
		return err
	}
	var out []webhookOut
	for i := range found {
		out = append(out, webhookOut{Webhook: found[i], URL: found[i].URL})
	}
	return list(c, "webhooks", out, nil)
}

// webhook serves an endpoint.
func (s *Server) webhook(c *call) error {
	if err := c.known(); err != nil {
		return err
	}
	found, err := s.cfg.Control.Webhook(c.Context(), c.actor, c.PathValue("org"), c.PathValue("id"))
	if err != nil {
		return err
	}
	return c.writeWebhook(http.StatusOK, found, "")
}

// registerWebhook registers an endpoint.
func (s *Server) registerWebhook(c *call) error {
	if err := access.Authorize(c.actor, access.RegisterWebhook, c.PathValue("org")); err != nil {
		return err
	}
	if err := c.known("reason", "ticket"); err != nil {
		return err
	}
	r, err := c.request()
	if err != nil {
		return err
	}
	var in webhookIn
	if err := c.read(&in); err != nil {
		return err
	}
	if in.Enabled != nil {
		return badRequest("an endpoint gets events once it is registered: leave enabled out")
	}
	register := control.RegisterWebhookInput{Tenant: c.PathValue("org"), Types: in.Types}
	if in.URL != nil {
		register.URL = *in.URL
	}
	if in.Description != nil {
		register.Description = *in.Description
	}
	answer, err := s.cfg.Control.RegisterWebhook(c.Context(), r, register)
	if err != nil {
		return err
	}
	return c.writeWebhook(http.StatusCreated, &answer.Webhook, answer.Secret)
}

// webhookChange reads what comes with a change of an endpoint. Who may not is told so before anything else.
func (c *call) webhookChange(what access.Action) (r control.Request, in control.WebhookInput, err error) {
	in = control.WebhookInput{Tenant: c.PathValue("org"), ID: c.PathValue("id")}
	if err = access.Authorize(c.actor, what, in.Tenant); err != nil {
		return r, in, err
	}
	if err = c.known("reason", "ticket"); err != nil {
		return r, in, err
	}
	if in.Expected, err = c.expected(); err != nil {
		return r, in, err
	}
	r, err = c.request()
	return r, in, err
}

// changeWebhook changes what the body says of an endpoint.
func (s *Server) changeWebhook(c *call) error {
	r, which, err := c.webhookChange(access.ChangeWebhook)
	if err != nil {
		return err
	}
	var in webhookIn
	if err := c.read(&in); err != nil {
		return err
	}
	answer, err := s.cfg.Control.ChangeWebhook(c.Context(), r, control.ChangeWebhookInput{
		WebhookInput: which, URL: in.URL, Description: in.Description, Types: in.Types, Enabled: in.Enabled,
	})
	if err != nil {
		return err
	}
	return c.writeWebhook(http.StatusOK, answer, "")
}

// removeWebhook removes an endpoint.
func (s *Server) removeWebhook(c *call) error {
	r, which, err := c.webhookChange(access.RemoveWebhook)
	if err != nil {
		return err
	}
	answer, err := s.cfg.Control.RemoveWebhook(c.Context(), r, which)
	if err != nil {
		return err
	}
	return c.writeWebhook(http.StatusOK, answer, "")
}

// rotateWebhook gives an endpoint another secret and another key.
func (s *Server) rotateWebhook(c *call) error {
	r, which, err := c.webhookChange(access.RotateWebhook)
	if err != nil {
		return err
	}
	answer, err := s.cfg.Control.RotateWebhook(c.Context(), r, which)
	if err != nil {
		return err
	}
	return c.writeWebhook(http.StatusOK, &answer.Webhook, answer.Secret)
}

// testWebhook sends an endpoint an event that says nothing.
func (s *Server) testWebhook(c *call) error {
	r, which, err := c.webhookChange(access.TestWebhook)
	if err != nil {
		return err
	}
	answer, err := s.cfg.Control.TestWebhook(c.Context(), r, which)
	return c.reply(http.StatusAccepted, answer, err)
}

// failedDeliveries lists what could not be brought to an endpoint.
func (s *Server) failedDeliveries(c *call) error {
	n, err := c.paged()
	if err != nil {
		return err
	}
	found, err := s.cfg.Control.FailedDeliveries(c.Context(), c.actor, c.PathValue("org"), c.PathValue("id"), n)
	return list(c, "failures", found, err)
}

// replayWebhook has messages tried again.
func (s *Server) replayWebhook(c *call) error {
	r, which, err := c.webhookChange(access.ReplayWebhook)
	if err != nil {
		return err
	}
	var in struct {
		Messages []string `json:"messages"`
	}
	if err := c.read(&in); err != nil {
		return err
	}
	answer, err := s.cfg.Control.ReplayWebhook(c.Context(), r, control.ReplayWebhookInput{WebhookInput: which, Messages: in.Messages})
	return c.reply(http.StatusAccepted, answer, err)
}
