package graph_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/control"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/graph/internal/generated"
)

// schema is that of the API.
func schema() *ast.Schema { return generated.NewExecutableSchema(generated.Config{}).Schema() }

// change is how a mutation is called.
type change struct {
	// action is what the audit log calls it.
	action access.Action
	// input is all but its reason.
	input func(s *scene) map[string]any
	// selected is of the answer.
	selected string
	// roles may do it.
	roles []access.Role
}

// inAnHour is the same in a repeat.
var inAnHour = time.Now().Add(time.Hour).UTC().Format(time.RFC3339)

// changes are one for each mutation.
var changes = map[string]change{
	"publishPolicy": {access.PublishPolicy, func(*scene) map[string]any {
		return map[string]any{"document": document + "# new\n", "expectedRevision": 2}
	}, "revision", []access.Role{access.Publisher}},
	"revertPolicy": {access.RevertPolicy, func(*scene) map[string]any {
		return map[string]any{"to": 1, "expectedRevision": 2}
	}, "revision", []access.Role{access.Operator, access.Publisher}},
	"proposePolicy": {access.ProposePolicy, func(*scene) map[string]any {
		return map[string]any{"document": document + "# other\n", "expectedRevision": 2}
	}, "id state", []access.Role{access.Publisher}},
	"approvePolicy": {access.ApprovePolicy, func(s *scene) map[string]any {
		return map[string]any{"id": s.proposal.ID, "hash": s.proposal.Hash.String(), "expectedRevision": 2}
	}, "state approver", []access.Role{access.Publisher}},
	"withdrawProposal": {access.ApprovePolicy, func(s *scene) map[string]any {
		return map[string]any{"id": s.proposal.ID}
	}, "state", []access.Role{access.Publisher}},
	"putTenant": {access.AssignTenant, func(s *scene) map[string]any {
		return map[string]any{"tenant": "acme", "document": `{"tier":"free"}`, "expectedRevision": s.acme}
	}, "revision", []access.Role{access.Operator, access.Publisher}},
	"removeTenant": {access.AssignTenant, func(s *scene) map[string]any {
		return map[string]any{"tenant": "acme", "expectedRevision": s.acme}
	}, "revision", []access.Role{access.Operator, access.Publisher}},
	"allocate": {access.SetAllocations, func(s *scene) map[string]any {
		return map[string]any{"tenant": "acme", "expectedRevision": s.acme, "allocations": []map[string]any{
			{"level": "TEAM", "owner": "web", "limit": "minute", "capacity": 100, "per": "minute"},
		}}
	}, "revision allocations { level owner limit capacity per }", []access.Role{access.TenantAdmin, access.Operator}},
	"setOverride": {access.SetOverride, func(*scene) map[string]any {
		return map[string]any{
			"tenant": "acme", "owner": map[string]any{"level": "USER", "name": "zoe"}, "mode": "SHADOW",
			"expires": inAnHour, "expectedRevision": 0,
		}
	}, "revision mode owner { level name }", []access.Role{access.Operator}},
	"clearOverride": {access.DeleteOverride, func(s *scene) map[string]any {
		return map[string]any{"tenant": "acme", "limit": "minute", "expectedRevision": s.override}
	}, "revision removed", []access.Role{access.Operator}},
	"switchMode": {access.SwitchMode, func(*scene) map[string]any {
		return map[string]any{"scope": "TENANT", "name": "acme", "atMost": "WARN", "until": inAnHour, "expectedRevision": 0}
	}, "revision mode", []access.Role{access.Operator}},
	"endModeSwitch": {access.EndModeSwitch, func(s *scene) map[string]any {
		return map[string]any{"scope": "ALL", "expectedRevision": s.everywhere}
	}, "revision ended", []access.Role{access.Operator}},
	"issueToken": {access.IssueToken, func(*scene) map[string]any {
		return map[string]any{"subject": "page", "roles": []string{"TENANT_ADMIN"}, "tenants": []string{"acme"}, "lifeSeconds": 3600}
	}, "token { id }", []access.Role{access.TenantAdmin, access.Operator}},
	"revokeToken": {access.RevokeToken, func(s *scene) map[string]any {
		return map[string]any{"id": s.token}
	}, "id revoked", []access.Role{access.TenantAdmin, access.Operator}},
	"registerWebhook": {access.RegisterWebhook, func(*scene) map[string]any {
		return map[string]any{"tenant": "acme", "url": "https://hooks.example.com/other", "types": control.WebhookTypes()[:2]}
	}, "webhook { id types publicKey disabled }", own},
	"changeWebhook": {access.ChangeWebhook, func(s *scene) map[string]any {
		return s.onHook(map[string]any{"enabled": false, "description": "ours"})
	}, "id description disabled revision", own},
	"removeWebhook": {access.RemoveWebhook, func(s *scene) map[string]any { return s.onHook(nil) }, "id revision", own},
	"rotateWebhook": {access.RotateWebhook, func(s *scene) map[string]any { return s.onHook(nil) }, "webhook { publicKey overlapUntil }", own},
	"testWebhook":   {access.TestWebhook, func(s *scene) map[string]any { return s.onHook(nil) }, "message", own},
	"replayWebhook": {access.ReplayWebhook, func(s *scene) map[string]any { return s.onHook(nil) }, "replayed", own},
}

// call makes a change.
func (s *scene) call(actor, field string, also map[string]any) *answer {
	s.Helper()
	c := changes[field]
	input := c.input(s)
	input["reason"] = "why"
	maps.Copy(input, also)
	name := strings.ToUpper(field[:1]) + field[1:] + "Input"
	return s.ask(actor, fmt.Sprintf("mutation($in: %s!) { answer: %s(input: $in) { %s } }", name, field, c.selected), map[string]any{"in": input})
}

// mutations are the fields of Mutation.
func mutations() (fields []*ast.FieldDefinition) { return schema().Mutation.Fields }

func TestEachMutationOfTheSchemaLeavesOneEntryInTheAuditLog(t *testing.T) {
	t.Parallel()
	require.Len(t, mutations(), len(changes))
	for _, field := range mutations() {
		t.Run(field.Name, func(t *testing.T) {
			t.Parallel()
			require.Contains(t, changes, field.Name, "the schema has a mutation that this test does not call")
			s := newScene(t)
			before := s.entries()
			key := map[string]any{"idempotencyKey": "once", "ticket": "T-1"}
			a := s.call("everything", field.Name, key)
			require.Empty(t, a.Errors, a.Body)
			require.Equal(t, before+1, s.entries())
			newest, err := s.control.FindAudit(t.Context(), actors()["auditor"], control.AuditFilter{}, 0, 1)
			require.NoError(t, err)
			require.Equal(t, string(changes[field.Name].action), newest[0].Action)
			require.Equal(t, "why", newest[0].Reason)
			require.Equal(t, "T-1", newest[0].Ticket)
			require.Equal(t, "ada", newest[0].Actor.Subject)
			require.NotEmpty(t, newest[0].Request)

			again := s.call("everything", field.Name, key)
			require.Equal(t, a.Data, again.Data, "a repeat is answered as the first one was")
			require.Equal(t, before+1, s.entries())
		})
	}
}

func TestAMutationThatExpectsAnotherRevisionIsToldWhichOneIsThere(t *testing.T) {
	t.Parallel()
	for _, field := range mutations() {
		input := schema().Types[field.Arguments[0].Type.Name()]
		if input.Fields.ForName("expectedRevision") == nil {
			require.Contains(t, []string{"issueToken", "revokeToken", "withdrawProposal", "registerWebhook"}, field.Name, "every other mutation says what its author has seen")
			continue
		}
		require.True(t, input.Fields.ForName("expectedRevision").Type.NonNull)
		t.Run(field.Name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			before := s.entries()
			a := s.call("everything", field.Name, map[string]any{"expectedRevision": 999})
			if field.Name == "approvePolicy" {
				require.Equal(t, "NOT_APPROVED", a.code(), "what was approved is something else: %s", a.Body)
				require.Equal(t, before, s.entries())
				return
			}
			require.Equal(t, "CONFLICT", a.code(), a.Body)
			require.Equal(t, []any{"answer"}, a.Errors[0].Path)
			extensions := a.Errors[0].Extensions
			require.Contains(t, extensions, "currentRevision")
			if extensions["currentRevision"] != 0.0 {
				require.Regexp(t, "ada", extensions["by"])
				require.NotEmpty(t, extensions["at"])
			}
			require.Equal(t, before, s.entries())
		})
	}
}

func TestEachMutationTakesAReasonAndAnIdempotencyKey(t *testing.T) {
	t.Parallel()
	for _, field := range mutations() {
		require.Len(t, field.Arguments, 1, field.Name)
		input := schema().Types[field.Arguments[0].Type.Name()]
		require.True(t, input.Fields.ForName("reason").Type.NonNull, field.Name)
		require.NotNil(t, input.Fields.ForName("idempotencyKey"), field.Name)
		require.NotNil(t, input.Fields.ForName("ticket"), field.Name)
	}
}

func TestAKeyThatWasUsedForAnotherChangeIsRefused(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	require.Empty(t, s.call("operator", "putTenant", map[string]any{"idempotencyKey": "k"}).Errors)
	a := s.call("operator", "putTenant", map[string]any{"idempotencyKey": "k", "document": `{"tier":"pro"}`})
	require.Equal(t, "IDEMPOTENCY_KEY_REUSED", a.code(), a.Body)
	other := s.call("publisher", "putTenant", map[string]any{"idempotencyKey": "k", "expectedRevision": 0})
	require.Equal(t, "CONFLICT", other.code(), "the key of somebody else is another one: %s", other.Body)
}

func TestWhatDoesNotCompileIsToldWithAllMistakes(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	wrong := map[string]any{"document": "version: 1\ndefault: none\ntiers: {a: {limits: {x: {capacity: -1, per: minute}}}}\n"}
	for _, a := range []*answer{
		s.call("publisher", "publishPolicy", wrong),
		s.ask("viewer", `query($document: String!) { checkPolicy(document: $document) { warnings { problem } } }`, wrong),
	} {
		require.Equal(t, "INVALID", a.code(), a.Body)
		require.Equal(t, "document", a.Errors[0].Extensions["field"])
		mistakes := a.Errors[0].Extensions["mistakes"].([]any)
		require.GreaterOrEqual(t, len(mistakes), 2, a.Body)
		require.NotZero(t, mistakes[0].(map[string]any)["line"], a.Body)
	}
}

func TestAPolicyThatReachesFarIsToldToTakeASecondPerson(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	lower := map[string]any{"document": strings.ReplaceAll(document, "capacity: 1000", "capacity: 1")}
	a := s.call("publisher", "publishPolicy", lower)
	require.Equal(t, "SECOND_PERSON", a.code(), a.Body)
	require.Equal(t, []any{}, a.Errors[0].Extensions["proposals"])
	proposal, err := s.control.Propose(t.Context(), control.Request{Actor: actors()["publisher"], Reason: "less"}, control.ProposeInput{
		Document: []byte(lower["document"].(string)), Expected: 2,
	})
	require.NoError(t, err)
	a = s.call("publisher", "publishPolicy", lower)
	require.Equal(t, []any{float64(proposal.ID)}, a.Errors[0].Extensions["proposals"], a.Body)
}

func TestASecondPersonApprovesWhatSomebodyElseThenPublishes(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	lower := map[string]any{"document": strings.ReplaceAll(document, "capacity: 1000", "capacity: 1")}
	proposed := s.ask("publisher", `mutation($document: String!) { proposePolicy(input: {document: $document, expectedRevision: 2, reason: "less"}) { id hash } }`, lower)
	require.Empty(t, proposed.Errors, proposed.Body)
	proposal := proposed.Data["proposePolicy"].(map[string]any)
	approval := map[string]any{"id": proposal["id"], "hash": proposal["hash"]}
	require.Equal(t, "NOT_APPROVED", s.call("publisher", "approvePolicy", approval).code(), "nobody is their own second person")
	require.Equal(t, "INVALID", s.call("eve", "approvePolicy", map[string]any{"id": proposal["id"], "hash": "x"}).code())
	a := s.call("eve", "approvePolicy", approval)
	require.Empty(t, a.Errors, a.Body)
	a = s.call("publisher", "publishPolicy", lower)
	require.Empty(t, a.Errors, a.Body)
}

func TestASecretIsToldOnceAndStandsNowhereElse(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	issue := func() *answer {
		return s.ask("operator", `mutation { issueToken(input: {subject: "x", roles: [VIEWER], reason: "why", idempotencyKey: "k"}) { secret token { id } } }`, nil)
	}
	first, again := issue(), issue()
	require.Empty(t, first.Errors, first.Body)
	issued, repeated := first.Data["issueToken"].(map[string]any), again.Data["issueToken"].(map[string]any)
	require.True(t, strings.HasPrefix(issued["secret"].(string), access.TokenPrefix))
	require.Nil(t, repeated["secret"])
	require.Equal(t, issued["token"], repeated["token"])
	log := s.ask("auditor", `{ audit(first: 100) { nodes { record } } tokens(first: 100) { nodes { id subject } } }`, nil)
	require.Empty(t, log.Errors, log.Body)
	require.NotContains(t, log.Body, issued["secret"])
	require.NotContains(t, s.log.String(), issued["secret"])
	require.Equal(t, "no-store", first.Header.Get("Cache-Control"))
}
