package override

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/cli"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/session"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// check returns why a record would do nothing, or not what it says, under what holds.
func check(c cli.Console, h *session.Holding, o *bucket.Override) error {
	if h.Rules.Unlimited || !h.Rules.Blocked && len(h.Rules.Buckets) == 0 {
		return fmt.Errorf("the policy gives %s no limits, so that servers ask Redis nothing about it, and no record reaches it: "+
			"write an exception into the policy, tenants: {%q: {blocked: true}} for example", session.TenantName(h.Scope.Tenant), h.Scope.Tenant)
	}
	if o.Blocked && o.Owner.Level == bucket.Operation {
		return session.CheckOperation(c, o.Owner.Name, h.Blockable())
	}
	if o.Blocked {
		return nil
	}
	if o.Owner.Part != "" && !strings.HasPrefix(o.Owner.Part, tiers.UserPart("")) {
		// The budgets of values have no limits before a value is there. The rule is checked all the same.
		if !slices.Contains(h.Operations(), o.Owner.Name) {
			return cli.Unknown("operation rule in tier "+h.Rules.Tier, o.Owner.Name, h.Operations())
		}
		return nil
	}
	b, err := h.Bucket()
	if err != nil {
		return err
	}
	if o.Limit != "" {
		if err := h.CheckLimit(b, o.Limit); err != nil {
			return err
		}
	}
	probe := *o
	// Who sets it and why may not have been asked yet.
	probe.Reason, probe.Actor = "probe", "probe"
	_, err = probe.Apply(b.Limits)
	return err
}
