package web

import (
	"strings"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
)

// Route is what the tests know of a route.
type Route struct {
	Method, Pattern string
	Public          bool
}

// Routes are those of the server.
func (s *Server) Routes() (routes []Route) {
	for _, r := range s.routes {
		routes = append(routes, Route{r.method, r.pattern, r.public})
	}
	return routes
}

// OpenAPI is the document.
func OpenAPI() []byte { return openAPI }

// MaxJSON is how many bytes a body of JSON has.
const MaxJSON = maxJSON

// Waiting is how many requests wait for a change.
func (s *Server) Waiting() int {
	s.gate.waits.mu.Lock()
	defer s.gate.waits.mu.Unlock()
	return s.gate.waits.inside
}

// LookingUp is how many requests wait until it is found out who asks.
func (s *Server) LookingUp() int {
	s.gate.lookups.mu.Lock()
	defer s.gate.lookups.mu.Unlock()
	return s.gate.lookups.inside
}

// LookingUpInReserve is how many requests with a token wait in its reserve until it is found out who asks.
func (s *Server) LookingUpInReserve(token string) int {
	s.gate.lookups.mu.Lock()
	defer s.gate.lookups.mu.Unlock()
	id, _, _ := strings.Cut(strings.TrimPrefix(token, access.TokenPrefix), "_")
	return s.gate.lookups.of["reserve of token "+id]
}

// Bounds of those who wait until it is found out who they are.
const (
	Lookups      = lookups
	TokenLookups = tokenLookups
)

// Tag is the ETag of a revision.
func Tag(revision uint64) string { return tag(revision) }

// Reading is how many bodies are read.
func (s *Server) Reading() int {
	s.gate.bodies.mu.Lock()
	defer s.gate.bodies.mu.Unlock()
	return s.gate.bodies.inside
}
