package graph_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/control"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/graph"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/storetest"
	"github.com/gqlgen-ratelimit/ratelimit/policy"
)

// document is a policy with limits at several levels.
const document = `version: 1
default: free
tiers:
  free:
    limits: {minute: {capacity: 1000, per: minute}}
    users: {limits: {minute: {capacity: 100, per: minute}}}
    operations: {Mutation.*: {limits: {minute: {unit: requests, capacity: 10, per: minute}}}}
  pro:
    limits: {minute: {capacity: 5000, per: minute}}
`

// knownActors is an authenticator for tests: it knows actors by the header Actor.
type knownActors map[string]access.Actor

func (k knownActors) Authenticate(r *http.Request) (access.Actor, error) {
	actor, ok := k[r.Header.Get("Actor")]
	if !ok {
		return actor, &access.UnauthenticatedError{Reason: access.ReasonMissing}
	}
	return actor, nil
}

// actors have a role each, by its name, and a few others.
func actors() knownActors {
	known := knownActors{
		"eve":           {Subject: "eve", Issuer: "https://login.example.org", Method: access.MethodOIDC, Roles: []access.Role{access.Publisher}},
		"nobody":        {Subject: "nobody", Issuer: "https://login.example.org", Method: access.MethodOIDC},
		"everything":    {Subject: "ada", Issuer: "https://login.example.org", Method: access.MethodOIDC, Roles: []access.Role{access.Operator, access.Publisher, access.Auditor}},
		"another-admin": {Subject: "admin2", Issuer: "https://login.example.org", Method: access.MethodOIDC, Roles: []access.Role{access.TenantAdmin}, Tenants: []string{"other"}},
	}
	for _, role := range access.Roles() {
		actor := access.Actor{Subject: string(role), Issuer: "https://login.example.org", Method: access.MethodOIDC, Roles: []access.Role{role}}
		if role == access.TenantAdmin {
			actor.Tenants = []string{"acme"}
		}
		known[string(role)] = actor
	}
	return known
}

// fleet are two instances, of which one refuses the newest revision.
type fleet struct{}

func (fleet) Instances(context.Context) ([]policy.Instance, error) {
	return []policy.Instance{
		{Name: "shop-1", Seen: time.Now(), Status: policy.Status{State: policy.Current, Number: 2, Changed: time.Now()}},
		{Name: "shop-2\n", Seen: time.Now(), Status: policy.Status{State: policy.Stale, Number: 1, Refused: &policy.Refused{Number: 2, Cause: policy.ReasonCheck, Error: "no store"}}},
	}, &policy.UnreadError{Instances: 1}
}

// lines keeps what is logged.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// scene is an API on a database of its own, in which something has happened already.
type scene struct {
	*testing.T
	db      *store.DB
	control *control.Control
	// budgets are those of the instances.
	budgets *bucket.Memory
	api     *graph.API
	log     *lines
	// acme, override and everywhere are the revisions of a record, an override and a switch, and token is the id of a token.
	acme, override, everywhere uint64
	token                      string
	// proposal is one of eve, and hook an endpoint of acme.
	proposal *control.Proposal
	hook     *control.WebhookSecret
}

func newScene(t *testing.T) *scene {
	t.Helper()
	s := &scene{T: t, log: &lines{}}
	db, err := store.Open(t.Context(), store.Config{URL: storetest.SQLite(t)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	s.db = db
	s.budgets = bucket.NewMemory(bucket.MemoryConfig{})
	s.control, err = control.New(control.Config{Store: db, Budgets: s.budgets, Webhooks: webhooks(t), Instances: fleet{}, Relay: func() control.RelayStatus {
		return control.RelayStatus{Leads: true, Holder: "here", Refused: []control.RelayRefusal{{Kind: "overrides", Name: "acme", Error: "too many"}}}
	}})
	require.NoError(t, err)
	s.serve(actors())
	s.happen()
	return s
}

// serve makes the API anew, for those who are known to an authenticator.
func (s *scene) serve(who graph.Authenticator) {
	s.Helper()
	var err error
	s.api, err = graph.New(graph.Config{Control: s.control, Authenticator: who, Logger: slog.New(slog.NewTextHandler(s.log, nil))})
	require.NoError(s, err)
	api := s.api
	s.Cleanup(func() { require.NoError(s, api.Close(s.Context())) })
}

// happen does once what changes are made of.
func (s *scene) happen() {
	s.Helper()
	ctx, r := s.Context(), control.Request{Actor: actors()["everything"], Reason: "before"}
	for n := range uint64(2) {
		_, err := s.control.Publish(ctx, r, control.PublishInput{Document: []byte(strings.Repeat("# again\n", int(n)) + document), Expected: n})
		require.NoError(s, err)
	}
	record, err := s.control.PutTenant(ctx, r, control.TenantInput{Tenant: "acme", Document: []byte(`{"tier":"pro"}`)})
	require.NoError(s, err)
	override, err := s.control.SetOverride(ctx, r, control.OverrideInput{Tenant: "acme", Override: bucket.Override{
		Limit: "minute", Capacity: 7000, Expires: time.Now().Add(time.Hour),
	}})
	require.NoError(s, err)
	everywhere, err := s.control.SwitchMode(ctx, r, control.SwitchInput{Scope: control.ScopeAll, Mode: bucket.Shadow, Until: time.Now().Add(time.Hour)})
	require.NoError(s, err)
	token, err := s.control.IssueToken(ctx, r, access.TokenRequest{Subject: "ci", Roles: []access.Role{access.TenantAdmin}, Tenants: []string{"acme"}})
	require.NoError(s, err)
	s.proposal, err = s.control.Propose(ctx, control.Request{Actor: actors()["eve"], Reason: "less"}, control.ProposeInput{Document: []byte(document), Expected: 2})
	require.NoError(s, err)
	s.hook, err = s.control.RegisterWebhook(ctx, r, control.RegisterWebhookInput{Tenant: "acme", URL: "https://hooks.example.com/in"})
	require.NoError(s, err)
	s.acme, s.override, s.everywhere, s.token = record.Revision, override.Revision, everywhere.Revision, token.ID
}

// packageName is the name of a package before what an error says.
var packageName = regexp.MustCompile(`(?m)(^|[:;] )(access|audit|bucket|control|graph|policy|preview|scalar|store|tiers): `)

// answer is what the API has answered.
type answer struct {
	Status int
	Header http.Header
	Body   string
	Data   map[string]any
	Errors []struct {
		Message    string
		Path       []any
		Extensions map[string]any
	}
}

// code is that of the first error, empty without one.
func (a *answer) code() string {
	if len(a.Errors) == 0 {
		return ""
	}
	return fmt.Sprint(a.Errors[0].Extensions["code"])
}

// post sends a body.
func (s *scene) post(actor, contentType, body string) *answer {
	s.Helper()
	r := httptest.NewRequestWithContext(s.Context(), http.MethodPost, "/graphql", strings.NewReader(body))
	r.Header.Set("Content-Type", contentType)
	r.Header.Set("Actor", actor)
	return s.send(r)
}

func (s *scene) send(r *http.Request) *answer {
	s.Helper()
	w := httptest.NewRecorder()
	s.api.ServeHTTP(w, r)
	a := &answer{Status: w.Code, Header: w.Header(), Body: w.Body.String()}
	require.NoError(s, json.Unmarshal(w.Body.Bytes(), a), a.Body)
	for _, e := range a.Errors {
		require.NotRegexp(s, packageName, e.Message, "clients read plain words")
	}
	return a
}

// ask sends a document with its variables.
func (s *scene) ask(actor, query string, variables map[string]any) *answer {
	s.Helper()
	body, err := json.Marshal(map[string]any{"query": query, "variables": variables})
	require.NoError(s, err)
	return s.post(actor, "application/json", string(body))
}

// entries is how many entries the audit log has.
func (s *scene) entries() int {
	s.Helper()
	found, err := s.control.FindAudit(s.Context(), actors()["auditor"], control.AuditFilter{}, 0, store.MaxPage)
	require.NoError(s, err)
	return len(found)
}
