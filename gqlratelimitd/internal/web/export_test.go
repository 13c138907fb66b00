package web

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

// Unseen is how many strangers wait until it is found out who they are.
func (s *Server) Unseen() int {
	s.gate.unseen.mu.Lock()
	defer s.gate.unseen.mu.Unlock()
	return s.gate.unseen.inside
}

// Bounds of those who wait until it is found out who they are.
const (
	Lookups       = lookups
	SenderLookups = senderLookups
)

// Tag is the ETag of a revision.
func Tag(revision uint64) string { return tag(revision) }

// Reading is how many bodies are read.
func (s *Server) Reading() int {
	s.gate.bodies.mu.Lock()
	defer s.gate.bodies.mu.Unlock()
	return s.gate.bodies.inside
}
