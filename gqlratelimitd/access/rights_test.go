package access_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
)

// matrix pins who may do what. A letter stands for a role: v viewer, o operator, a admin, and for what is not a role: s the control
// plane itself, b the bootstrap token. Own is about a tenant to which the actor is confined, other about another one, or all; all is what
// an actor may who is not confined.
var matrix = []struct {
	action          access.Action
	own, other, all string
}{
	{access.ReadPolicy, "", "", "voas"},
	{access.CheckPolicy, "", "", "voas"},
	{access.ReadFleet, "", "", "voas"},
	{access.ReadMetrics, "", "", "voa"},
	{access.ReadTenant, "voa", "", "voas"},
	{access.ReadOverride, "voa", "", "voas"},
	{access.ReadUsage, "voa", "", "voas"},
	{access.ReadDecision, "voa", "", "voas"},
	{access.ReadAudit, "", "", "a"},
	{access.ExportAudit, "", "", "a"},
	{access.ReadToken, "oa", "", "oa"},
	{access.ReadWebhook, "oa", "", "oa"},
	{access.PublishPolicy, "", "", "a"},
	{access.RevertPolicy, "", "", "oa"},
	{access.AssignTenant, "a", "", "oa"},
	{access.BlockTenant, "a", "", "oa"},
	{access.UnblockTenant, "a", "", "oa"},
	{access.SetOverride, "a", "", "oa"},
	{access.DeleteOverride, "a", "", "oas"},
	{access.ObserveOverride, "", "", "s"},
	{access.GrantBudget, "a", "", "oa"},
	{access.ResetBudget, "a", "", "oa"},
	{access.SetAllocations, "oa", "", "oa"},
	{access.SwitchMode, "a", "", "oa"},
	{access.EndModeSwitch, "a", "", "oas"},
	{access.ObserveModeSwitch, "", "", "s"},
	{access.IssueToken, "voa", "", "voab"},
	{access.RevokeToken, "oa", "", "oas"},
	{access.RegisterWebhook, "oa", "", "oa"},
	{access.ChangeWebhook, "oa", "", "oa"},
	{access.RemoveWebhook, "oa", "", "oa"},
	{access.RotateWebhook, "oa", "", "oa"},
	{access.TestWebhook, "oa", "", "oa"},
	{access.ReplayWebhook, "oa", "", "oa"},
	{access.DisableWebhook, "", "", "s"},
}

// letters are the actors of the matrix.
var letters = map[string]access.Actor{
	"v": {Method: access.MethodToken, Roles: []access.Role{access.Viewer}},
	"o": {Method: access.MethodOIDC, Roles: []access.Role{access.Operator}},
	"a": {Method: access.MethodToken, Roles: []access.Role{access.Admin}},
	"s": access.System("reconciler"),
	"b": {Method: access.MethodBootstrap},
}

func TestTheRightsAreThese(t *testing.T) {
	t.Parallel()
	for _, row := range matrix {
		for letter, actor := range letters {
			open, confined := actor, actor
			confined.Tenants = []string{"globex", "acme"}
			special := letter == "s" || letter == "b"
			for _, c := range []struct {
				name    string
				actor   access.Actor
				tenant  string
				allowed string
			}{
				{"about all tenants", open, "", row.all},
				{"about a tenant", open, "acme", row.all},
				{"confined, own tenant", confined, "acme", row.own},
				{"confined, another tenant", confined, "initech", row.other},
				{"confined, all tenants", confined, "", row.other},
			} {
				if special && c.actor.Confined() {
					continue
				}
				err := access.Authorize(c.actor, row.action, c.tenant)
				if strings.Contains(c.allowed, letter) {
					require.NoError(t, err, "%s: %s %s", letter, row.action, c.name)
					continue
				}
				var denied *access.DeniedError
				require.ErrorAs(t, err, &denied, "%s: %s %s", letter, row.action, c.name)
				require.ErrorIs(t, err, access.ErrDenied)
				require.Equal(t, row.action, denied.Action)
				inside := c.name == "confined, own tenant" && row.own != ""
				require.Equal(t, !special && !inside && strings.Contains(row.all, letter), denied.Confined, "%s: %s %s", letter, row.action, c.name)
			}
		}
	}
}

func TestEveryActionStandsInTheMatrixOnce(t *testing.T) {
	t.Parallel()
	pinned := make([]access.Action, len(matrix))
	for i, row := range matrix {
		pinned[i] = row.action
	}
	slices.Sort(pinned)
	require.Len(t, slices.Compact(slices.Clone(pinned)), len(matrix))
	actions := access.Actions()
	slices.Sort(actions)
	require.Equal(t, pinned, actions)
}

// TestEveryConstantThatIsAnActionHasARow reads the source: what is declared and has no row is denied to all, and it is
// found here.
func TestEveryConstantThatIsAnActionHasARow(t *testing.T) {
	t.Parallel()
	file, err := parser.ParseFile(token.NewFileSet(), "action.go", nil, 0)
	require.NoError(t, err)
	var declared []access.Action
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if typ, ok := spec.Type.(*ast.Ident); ok && typ.Name == "Action" {
			text, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			require.NoError(t, err)
			declared = append(declared, access.Action(text))
		}
		return true
	})
	require.Greater(t, len(declared), 30)
	require.ElementsMatch(t, declared, access.Actions())
}

// TestThePageHasTheTableOfRights holds docs/guide/control-plane-access.md to the matrix.
func TestThePageHasTheTableOfRights(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/guide/control-plane-access.md")
	require.NoError(t, err)
	for _, row := range matrix {
		line := "| `" + string(row.action) + "` |"
		for _, letter := range []string{"v", "o", "a", "s"} {
			switch {
			case letter == "s" && strings.Contains(row.all, letter), strings.Contains(row.own, letter):
				line += " yes |"
			case strings.Contains(row.all, letter):
				line += " all |"
			default:
				line += " |"
			}
		}
		require.Contains(t, string(page), line+"\n")
	}
	require.Equal(t, len(matrix), strings.Count(string(page), "\n| `")-strings.Count(string(page), "\n| `audit.Prove"))
}

func TestAnActionWithoutARowIsDeniedToAll(t *testing.T) {
	t.Parallel()
	for _, action := range access.Actions() {
		for _, wrong := range []access.Action{"", action + "x", action[:len(action)-1], access.Action(strings.ToUpper(string(action)))} {
			for letter, actor := range letters {
				actor.Roles = append(slices.Clone(actor.Roles), access.Roles()...)
				require.ErrorIs(t, access.Authorize(actor, wrong, "acme"), access.ErrDenied, "%s: %q", letter, wrong)
			}
		}
	}
}

func TestWhoHasShownNothingMayNothing(t *testing.T) {
	t.Parallel()
	for _, actor := range []access.Actor{
		{},
		{Roles: access.Roles()},
		{Method: "magic", Roles: access.Roles()},
		{Method: access.MethodOIDC},
		{Method: access.MethodOIDC, Roles: []access.Role{"", "root", "Operator", "operator "}},
		{Method: access.MethodOIDC, Roles: []access.Role{access.Admin}, Tenants: []string{""}},
	} {
		for _, action := range access.Actions() {
			for _, tenant := range []string{"", "acme"} {
				require.ErrorIs(t, access.Authorize(actor, action, tenant), access.ErrDenied, "%+v %s", actor, action)
			}
		}
	}
}

func TestWhoHasTwoRolesMayWhatEitherMay(t *testing.T) {
	t.Parallel()
	actor := access.Actor{Method: access.MethodOIDC, Roles: []access.Role{access.Viewer, access.Operator}}
	require.NoError(t, access.Authorize(actor, access.ReadPolicy, ""))
	require.NoError(t, access.Authorize(actor, access.GrantBudget, ""))
	require.EqualError(t, access.Authorize(actor, access.PublishPolicy, ""), "access: denied: policy.publish takes the role admin")
	viewer := access.Actor{Method: access.MethodOIDC, Roles: []access.Role{access.Viewer}}
	require.EqualError(t, access.Authorize(viewer, access.GrantBudget, ""), "access: denied: budget.grant takes the role operator or admin")
}

func TestEachRoleMayWhatTheOneBeforeMay(t *testing.T) {
	t.Parallel()
	for i, role := range access.Roles()[1:] {
		before := access.Roles()[i]
		for _, tenants := range [][]string{nil, {"acme"}} {
			for _, action := range access.Actions() {
				for _, about := range []string{"", "acme", "globex"} {
					less := access.Actor{Method: access.MethodToken, Roles: []access.Role{before}, Tenants: tenants}
					more := access.Actor{Method: access.MethodToken, Roles: []access.Role{role}, Tenants: tenants}
					if access.Authorize(less, action, about) == nil {
						require.NoError(t, access.Authorize(more, action, about), "%s %s %q %v", role, action, about, tenants)
					}
				}
			}
		}
	}
}

func TestNobodyIssuesATokenWithMoreRightsThanTheirs(t *testing.T) {
	t.Parallel()
	acme := []string{"acme"}
	for _, c := range []struct {
		issuer  access.Actor
		roles   []access.Role
		tenants []string
		allowed bool
	}{
		{letters["a"], []access.Role{access.Admin}, nil, true},
		{letters["a"], []access.Role{access.Viewer}, nil, true},
		{letters["a"], []access.Role{access.Operator}, acme, true},
		{letters["o"], []access.Role{access.Admin}, nil, false},
		{letters["o"], []access.Role{access.Viewer, access.Admin}, nil, false},
		{letters["v"], []access.Role{access.Viewer}, acme, true},
		{letters["v"], []access.Role{access.Operator}, acme, false},
		{letters["o"], []access.Role{access.Operator}, acme, true},
		// An operator of all may all that an admin of a tenant may.
		{letters["o"], []access.Role{access.Admin}, acme, true},
		{letters["o"], []access.Role{access.Viewer}, nil, true},
		{letters["b"], access.Roles(), acme, true},
		{letters["b"], []access.Role{access.Admin}, nil, true},
		{letters["b"], []access.Role{"root"}, nil, false},
		{letters["b"], nil, nil, false},
		{letters["s"], []access.Role{access.Viewer}, nil, false},
		{letters["a"], nil, nil, false},
		{confined(access.Operator), []access.Role{access.Operator}, acme, true},
		{confined(access.Operator), []access.Role{access.Viewer}, acme, true},
		{confined(access.Operator), []access.Role{access.Viewer}, nil, false},
		{confined(access.Operator), []access.Role{access.Operator}, nil, false},
		{confined(access.Operator), []access.Role{access.Operator}, []string{"acme", "globex"}, false},
		{confined(access.Operator), []access.Role{access.Operator}, []string{"acme", ""}, false},
		{confined(access.Operator), []access.Role{access.Admin}, acme, false},
		{confined(access.Admin), []access.Role{access.Admin}, nil, false},
		{confined(access.Admin), []access.Role{access.Admin}, acme, true},
		{confined(access.Admin), []access.Role{access.Admin}, []string{"globex"}, false},
	} {
		err := access.AuthorizeIssue(c.issuer, c.roles, c.tenants)
		if c.allowed {
			require.NoError(t, err, "%+v %v %v", c.issuer, c.roles, c.tenants)
		} else {
			require.ErrorIs(t, err, access.ErrDenied, "%+v %v %v", c.issuer, c.roles, c.tenants)
		}
	}
}

// confined is an actor with a role who is confined to acme.
func confined(role access.Role) access.Actor {
	return access.Actor{Method: access.MethodToken, Roles: []access.Role{role}, Tenants: []string{"acme"}}
}

func TestATokenCountsAsThePersonWhoIssuedIt(t *testing.T) {
	t.Parallel()
	ada := access.Actor{Subject: "ada", Issuer: "https://login.example.org", Method: access.MethodOIDC}
	robot := access.Actor{Subject: "0123", Issuer: access.LocalIssuer, Method: access.MethodToken, Owner: ada.Person()}
	require.Equal(t, ada.Person(), robot.Person())
	require.NotEqual(t, ada.Person(), access.Actor{Subject: "ada", Issuer: access.LocalIssuer}.Person())
	require.Equal(t, "https://login.example.org ada", robot.Audit().Owner)
}

// TestWhoMayChangeWhatBlocksMayBlock holds each action by which a block can come or go to the rights to block and to end a block.
func TestWhoMayChangeWhatBlocksMayBlock(t *testing.T) {
	t.Parallel()
	routes := []access.Action{
		access.PublishPolicy, access.RevertPolicy, access.AssignTenant, access.SetOverride, access.DeleteOverride, access.SwitchMode, access.EndModeSwitch,
	}
	for _, role := range access.Roles() {
		for _, tenants := range [][]string{nil, {"acme"}} {
			for _, about := range []string{"", "acme"} {
				actor := access.Actor{Method: access.MethodToken, Roles: []access.Role{role}, Tenants: tenants}
				for _, action := range routes {
					if access.Authorize(actor, action, about) == nil {
						require.NoError(t, access.Authorize(actor, access.BlockTenant, about), "%s %v %s", role, tenants, action)
						require.NoError(t, access.Authorize(actor, access.UnblockTenant, about), "%s %v %s", role, tenants, action)
					}
				}
			}
		}
	}
}

// comes returns the actor of a token that an actor issues, and the token.
func comes(t *testing.T, issuer access.Actor, role access.Role, tenants ...string) (access.Actor, *access.Token) {
	t.Helper()
	d := newDoor(t, access.AuthConfig{})
	token, text := d.tokens.add(t, issuer, access.TokenRequest{Subject: "program", Roles: []access.Role{role}, Tenants: tenants}, noon)
	actor, err := d.enter(text)
	require.NoError(t, err)
	return actor, token
}

func TestWhoIssuesATokenEndsIt(t *testing.T) {
	t.Parallel()
	ada := access.Actor{Subject: "ada", Issuer: "https://login.example.org", Method: access.MethodOIDC, Roles: []access.Role{access.Viewer}}
	program, first := comes(t, ada, access.Viewer)
	sibling, second := comes(t, ada, access.Viewer)
	child, third := comes(t, program, access.Viewer)
	customer, given := comes(t, administrator(), access.Viewer, "acme", "globex")
	theirs, below := comes(t, customer, access.Viewer, "acme")
	stranger := ada
	stranger.Subject = "eve"
	moved := ada
	moved.Tenants = []string{"acme"}
	for _, c := range []struct {
		name  string
		actor access.Actor
		token *access.Token
		may   bool
	}{
		{"the person who has issued it", ada, first, true},
		{"the person, of what was issued with it", ada, third, true},
		{"its bearer", program, first, true},
		{"the token that it was issued with", program, third, true},
		{"a token of the same issuer", program, second, false},
		{"a token of the same issuer, of a child of the other", sibling, third, false},
		{"a child, of its parent", child, first, false},
		{"somebody else", stranger, first, false},
		{"the person, who is confined now", moved, first, false},
		{"a customer, of a token that was issued with its own", customer, below, true},
		{"a token of a customer, of that of the customer", theirs, given, false},
		{"a customer, of a token of its issuer", customer, &access.Token{ID: "x", Owner: administrator().Person()}, false},
	} {
		err := access.AuthorizeRevoke(c.actor, c.token)
		require.Equal(t, c.may, err == nil, c.name)
		if !c.may {
			require.ErrorIs(t, err, access.ErrDenied, c.name)
		}
	}
}

func TestATokenThatIsGivenAwayAnswersForItself(t *testing.T) {
	t.Parallel()
	program, _ := comes(t, administrator(), access.Operator)
	customer, _ := comes(t, program, access.Operator, "acme")
	theirs, _ := comes(t, customer, access.Viewer, "acme")
	require.Equal(t, administrator().Person(), program.Person())
	require.Equal(t, access.LocalIssuer+" "+customer.Subject, customer.Person())
	require.Equal(t, customer.Person(), theirs.Person())
	require.Equal(t, program.Person(), customer.Audit().Owner, "the log says who has issued it")
}

func TestWhoIsConfinedIsToldNoIDOfOthers(t *testing.T) {
	t.Parallel()
	customer, token := comes(t, administrator(), access.Operator, "acme")
	for name, want := range map[string]string{
		"oncall#abcdefghij234": "oncall", "oncall#abcdefghij234 (gqlratelimitd #17)": "oncall (gqlratelimitd #17)", "oncall#abcd": "oncall",
		"ada (https://login.example.org)": "ada (https://login.example.org)", "": "", "program#" + token.ID: "program#" + token.ID,
	} {
		require.Equal(t, want, customer.Told(name))
		require.Equal(t, name, administrator().Told(name))
	}
}
