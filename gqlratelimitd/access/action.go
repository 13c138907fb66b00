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

// reach is about what an action is.
type reach uint8

const (
	// fleet: about everything. An actor who is confined to tenants may not.
	fleet reach = iota
	// tenant: about one tenant, or about all if none is named.
	tenant
)

// row is a row of the table of rights.
type row struct {
	action Action
	reach  reach
	// roles may do it to every tenant, except the tenant admin: to their own.
	roles []Role
	// system: the control plane may do it by itself.
	system bool
}

// rights is the table: all that anybody may do. ADR 0057 says why the rows are as they are.
var rights = []row{
	{ReadPolicy, fleet, []Role{Viewer, Operator, Publisher, Auditor}, true},
	{CheckPolicy, fleet, []Role{Viewer, Operator, Publisher, Auditor}, true},
	{ReadFleet, fleet, []Role{Viewer, Operator, Publisher, Auditor}, true},
	{ReadMetrics, fleet, []Role{Viewer, Operator, Publisher, Auditor}, false},
	{ReadTenant, tenant, []Role{Viewer, TenantAdmin, Operator, Publisher, Auditor}, true},
	{ReadOverride, tenant, []Role{Viewer, TenantAdmin, Operator, Publisher, Auditor}, true},
	{ReadUsage, tenant, []Role{Viewer, TenantAdmin, Operator, Publisher, Auditor}, true},
	{ReadDecision, tenant, []Role{Viewer, TenantAdmin, Operator, Publisher, Auditor}, true},
	{ReadAudit, fleet, []Role{Auditor}, false},
	{ExportAudit, fleet, []Role{Auditor}, false},
	{ReadToken, tenant, []Role{TenantAdmin, Operator, Auditor}, false},
	{ReadWebhook, tenant, []Role{TenantAdmin, Operator}, false},

	{PublishPolicy, fleet, []Role{Publisher}, false},
	{RevertPolicy, fleet, []Role{Operator, Publisher}, false},
	{AssignTenant, tenant, []Role{Operator, Publisher}, false},
	{BlockTenant, tenant, []Role{Operator}, false},
	{UnblockTenant, tenant, []Role{Operator}, false},
	{SetOverride, tenant, []Role{Operator}, false},
	{DeleteOverride, tenant, []Role{Operator}, true},
	{ObserveOverride, tenant, nil, true},
	{GrantBudget, tenant, []Role{Operator}, false},
	{ResetBudget, tenant, []Role{Operator}, false},
	{SetAllocations, tenant, []Role{TenantAdmin, Operator}, false},
	{SwitchMode, tenant, []Role{Operator}, false},
	{EndModeSwitch, tenant, []Role{Operator}, true},
	{ObserveModeSwitch, tenant, nil, true},
	{IssueToken, tenant, []Role{Viewer, TenantAdmin, Operator, Publisher, Auditor}, false},
	{RevokeToken, tenant, []Role{TenantAdmin, Operator}, true},
	{RegisterWebhook, tenant, []Role{TenantAdmin, Operator}, false},
	{ChangeWebhook, tenant, []Role{TenantAdmin, Operator}, false},
	{RemoveWebhook, tenant, []Role{TenantAdmin, Operator}, false},
	{RotateWebhook, tenant, []Role{TenantAdmin, Operator}, false},
	{TestWebhook, tenant, []Role{TenantAdmin, Operator}, false},
	{ReplayWebhook, tenant, []Role{TenantAdmin, Operator}, false},
	{DisableWebhook, tenant, nil, true},
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
