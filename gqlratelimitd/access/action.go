package access

// Action is a kind of thing that is done or read. Its text is what the audit log calls it.
type Action string

// What is read.
const (
	// ReadPolicy reads the policy document, its revisions, what differs between them, and the bundle that instances fetch.
	ReadPolicy Action = "policy.read"
	// CheckPolicy compiles and lints a document that is not published.
	CheckPolicy Action = "policy.check"
	// ReadFleet reads which instance serves which revision.
	ReadFleet Action = "fleet.read"
	// ReadMetrics reads the metrics of the control plane.
	ReadMetrics Action = "metrics.read"
	// ReadTenant reads the record of a tenant, its effective limits and its allocations; without a tenant, of all.
	ReadTenant Action = "tenant.read"
	// ReadOverride reads the overrides of a tenant; without a tenant, of all.
	ReadOverride Action = "override.read"
	// ReadUsage reads what a tenant has used; without a tenant, what all have.
	ReadUsage Action = "usage.read"
	// ReadDecision reads refusals, the live tail and who is hottest: of a tenant, or of all.
	ReadDecision Action = "decision.read"
	// ReadAudit reads entries of the audit log.
	ReadAudit Action = "audit.read"
	// ExportAudit exports the audit log.
	ExportAudit Action = "audit.export"
	// ReadToken reads which tokens there are, of a tenant or all; what a token is nobody can read.
	ReadToken Action = "token.read"
	// ReadWebhook reads which endpoints a tenant has registered for events, and what could not be brought to them.
	ReadWebhook Action = "webhook.read"
)

// What is done.
const (
	// PublishPolicy publishes a revision.
	PublishPolicy Action = "policy.publish"
	// RevertPolicy publishes an earlier document again, as a revision of its own.
	RevertPolicy Action = "policy.revert"
	// AssignTenant writes the record of a tenant: tier, exception, custom limits, quota.
	AssignTenant Action = "tenant.assign"
	// BlockTenant blocks a tenant, team or user.
	BlockTenant Action = "tenant.block"
	// UnblockTenant ends a block.
	UnblockTenant Action = "tenant.unblock"
	// SetOverride sets an override.
	SetOverride Action = "override.set"
	// DeleteOverride ends an override.
	DeleteOverride Action = "override.delete"
	// ObserveOverride notes an override that was set without the control plane.
	ObserveOverride Action = "override.observe"
	// ObserveModeSwitch notes a mode switch that was set without the control plane.
	ObserveModeSwitch Action = "mode.observe"
	// GrantBudget gives an owner some of a limit back, or on top.
	GrantBudget Action = "budget.grant"
	// ResetBudget makes a budget full.
	ResetBudget Action = "budget.reset"
	// SetAllocations divides limits of a tenant among its teams and users.
	SetAllocations Action = "allocation.set"
	// SwitchMode switches modes in an emergency, for a time.
	SwitchMode Action = "mode.switch"
	// EndModeSwitch ends such a switch before, or at, its time.
	EndModeSwitch Action = "mode.end"
	// IssueToken issues a token with no more rights than its issuer's. See [AuthorizeIssue].
	IssueToken Action = "token.issue"
	// RevokeToken revokes a token of somebody else. Everybody may revoke their own.
	RevokeToken Action = "token.revoke"
	// RegisterWebhook registers an endpoint of a tenant for events about it.
	RegisterWebhook Action = "webhook.register"
	// ChangeWebhook changes what an endpoint is, or switches it off or on.
	ChangeWebhook Action = "webhook.change"
	// RemoveWebhook removes an endpoint, with all that is on its way to it.
	RemoveWebhook Action = "webhook.remove"
	// RotateWebhook changes the secret and the key of an endpoint.
	RotateWebhook Action = "webhook.rotate"
	// TestWebhook sends an event to an endpoint that says nothing.
	TestWebhook Action = "webhook.test"
	// ReplayWebhook has messages tried again that could not be brought.
	ReplayWebhook Action = "webhook.replay"
	// DisableWebhook switches an endpoint off that has answered that it wants no message any more.
	DisableWebhook Action = "webhook.disable"
)

// row is a row of the table of rights.
type row struct {
	action Action
	// least is the least role that may do it to every tenant. Empty: nobody may by request.
	least Role
	// own is the least role that may do it where the actor is confined to the tenant that it is about. Empty: it takes an actor who is not confined.
	own Role
	// system: the control plane may do it by itself.
	system bool
}

// rights is the table: all that anybody may do. See docs/adr/0028-commit-a-change-with-its-audit-entry.md.
var rights = []row{
	{ReadPolicy, Viewer, "", true},
	{CheckPolicy, Viewer, "", true},
	{ReadFleet, Viewer, "", true},
	{ReadMetrics, Viewer, "", false},
	{ReadTenant, Viewer, Viewer, true},
	{ReadOverride, Viewer, Viewer, true},
	{ReadUsage, Viewer, Viewer, true},
	{ReadDecision, Viewer, Viewer, true},
	{ReadAudit, Admin, "", false},
	{ExportAudit, Admin, "", false},
	{ReadToken, Operator, Operator, false},
	{ReadWebhook, Operator, Operator, false},

	{PublishPolicy, Admin, "", false},
	{RevertPolicy, Operator, "", false},
	{AssignTenant, Operator, Admin, false},
	{BlockTenant, Operator, Admin, false},
	{UnblockTenant, Operator, Admin, false},
	{SetOverride, Operator, Admin, false},
	{DeleteOverride, Operator, Admin, true},
	{ObserveOverride, "", "", true},
	{GrantBudget, Operator, Admin, false},
	{ResetBudget, Operator, Admin, false},
	{SetAllocations, Operator, Operator, false},
	{SwitchMode, Operator, Admin, false},
	{EndModeSwitch, Operator, Admin, true},
	{ObserveModeSwitch, "", "", true},
	{IssueToken, Viewer, Viewer, false},
	{RevokeToken, Operator, Operator, true},
	{RegisterWebhook, Operator, Operator, false},
	{ChangeWebhook, Operator, Operator, false},
	{RemoveWebhook, Operator, Operator, false},
	{RotateWebhook, Operator, Operator, false},
	{TestWebhook, Operator, Operator, false},
	{ReplayWebhook, Operator, Operator, false},
	{DisableWebhook, "", "", true},
}

// rowOf finds the row of an action.
var rowOf = func() map[Action]row {
	rows := make(map[Action]row, len(rights))
	for _, r := range rights {
		rows[r.action] = r
	}
	return rows
}()

// Actions returns all actions.
func Actions() []Action {
	all := make([]Action, len(rights))
	for i, r := range rights {
		all[i] = r.action
	}
	return all
}
