package web

import (
	"net/http"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/control"
)

// tokenIn asks for a token.
type tokenIn struct {
	Subject string        `json:"subject"`
	Roles   []access.Role `json:"roles"`
	Tenants []string      `json:"tenants"`
	// Life is a duration, such as 720h. Empty is that of access.DefaultTokenLife.
	Life string `json:"life"`
}

// tokenOut is a token that was issued. Token is the secret: it is shown once, and missing in the answer to a repeat.
type tokenOut struct {
	access.Token

	Secret string `json:"token,omitempty"`
}

// tokens lists tokens, by ID. Nobody can read what a token is.
func (s *Server) tokens(c *call) error {
	n, err := c.paged("tenant", "parent", "after")
	if err != nil {
		return err
	}
	found, err := s.cfg.Control.Tokens(c.Context(), c.actor, control.TokenFilter{
		Tenant: c.query.Get("tenant"), Parent: c.query.Get("parent"), After: c.query.Get("after"), N: n,
	})
	return list(c, "tokens", found, err)
}

// issueToken issues a token, also in exchange for the bootstrap token.
func (s *Server) issueToken(c *call) error {
	if err := c.known("reason", "ticket"); err != nil {
		return err
	}
	r, err := c.request()
	if err != nil {
		return err
	}
	var in tokenIn
	if err := c.read(&in); err != nil {
		return err
	}
	request := access.TokenRequest{Subject: in.Subject, Roles: in.Roles, Tenants: in.Tenants}
	if in.Life != "" {
		if request.Life, err = time.ParseDuration(in.Life); err != nil {
			return badRequest("life is a duration, such as 720h")
		}
	}
	answer, err := s.cfg.Control.IssueToken(c.Context(), r, request)
	if err != nil {
		return err
	}
	return c.write(http.StatusCreated, tokenOut{answer.Token, answer.Secret})
}

// revokeToken ends a token for ever, with those that were issued with it.
func (s *Server) revokeToken(c *call) error {
	if err := c.known("reason", "ticket"); err != nil {
		return err
	}
	r, err := c.request()
	if err != nil {
		return err
	}
	answer, err := s.cfg.Control.RevokeToken(c.Context(), r, control.RevokeTokenInput{ID: c.PathValue("id")})
	return c.reply(http.StatusOK, answer, err)
}
