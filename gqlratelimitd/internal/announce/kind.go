package announce

import "github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"

// otherType is that of an action that this version does not know, which a newer daemon has done.
const otherType = "ratelimit.audit.entry.v1"

// types are those of events, by what was done. docs/reference/streams.md has them.
var types = map[access.Action]string{
	access.PublishPolicy:     "ratelimit.policy.published.v1",
	access.RevertPolicy:      "ratelimit.policy.reverted.v1",
	access.AssignTenant:      "ratelimit.tenant.assigned.v1",
	access.BlockTenant:       "ratelimit.tenant.blocked.v1",
	access.UnblockTenant:     "ratelimit.tenant.unblocked.v1",
	access.SetOverride:       "ratelimit.override.set.v1",
	access.DeleteOverride:    "ratelimit.override.deleted.v1",
	access.ObserveOverride:   "ratelimit.override.observed.v1",
	access.GrantBudget:       "ratelimit.budget.granted.v1",
	access.ResetBudget:       "ratelimit.budget.reset.v1",
	access.SetAllocations:    "ratelimit.allocation.set.v1",
	access.SwitchMode:        "ratelimit.mode.switch_set.v1",
	access.EndModeSwitch:     "ratelimit.mode.switch_ended.v1",
	access.ObserveModeSwitch: "ratelimit.mode.switch_observed.v1",
	access.IssueToken:        "ratelimit.token.issued.v1",
	access.RevokeToken:       "ratelimit.token.revoked.v1",
	access.RegisterWebhook:   "ratelimit.webhook.registered.v1",
	access.ChangeWebhook:     "ratelimit.webhook.changed.v1",
	access.RemoveWebhook:     "ratelimit.webhook.removed.v1",
	access.RotateWebhook:     "ratelimit.webhook.rotated.v1",
	access.TestWebhook:       "ratelimit.webhook.tested.v1",
	access.ReplayWebhook:     "ratelimit.webhook.replayed.v1",
	access.DisableWebhook:    "ratelimit.webhook.disabled.v1",
}
