package incident

import (
	"slices"
	"strconv"

	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/cli"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/session"
	"github.com/gqlgen-ratelimit/ratelimit/event"
)

// beyondBackstop is the outcome of an operation that the backstop refuses.
const beyondBackstop = "backstop"

// held returns who leases parts of what has refused an operation, as of now: of the limits of its tenant, or of the backstop. It asks
// nothing about a refusal that neither of them has made.
func held(c cli.Console, live *session.Live, flags *session.PolicyFlags, d *event.Decided) (all session.Leases, err error) {
	own := slices.ContainsFunc(d.Limits, func(l event.LimitState) bool { return l.Refuses })
	if !own && d.Outcome != beyondBackstop {
		return all, nil
	}
	held, err := flags.Read(c, live)
	if err != nil {
		return all, err
	}
	tenant := spelt(d.Tenant)
	scope := session.NewScope(tenant, "", "", "", "")
	if held.HasTier(d.SubjectTier) {
		scope.Tier = d.SubjectTier
	}
	record, err := flags.Record(live, held, tenant)
	if err != nil {
		return all, err
	}
	h, err := held.Resolve(scope, record)
	if err != nil {
		return all, err
	}
	if all, err = live.Leases(h); err != nil {
		return session.Leases{}, err
	}
	if own {
		all.Backstop = nil
	} else {
		all.Own = nil
	}
	return all, nil
}

// spelt returns a name as the server spells it: reports have it as Go escapes strings.
func spelt(name string) string {
	if own, err := strconv.Unquote(`"` + name + `"`); err == nil {
		return own
	}
	return name
}
