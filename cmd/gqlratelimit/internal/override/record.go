package override

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/cli"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/session"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// recordJSON is an override record as list writes it and set -file reads it.
type recordJSON struct {
	Tenant    string       `json:"tenant"`
	Team      string       `json:"team,omitempty"`
	User      string       `json:"user,omitempty"`
	Operation string       `json:"operation,omitempty"`
	Part      string       `json:"part,omitempty"`
	Limit     string       `json:"limit,omitempty"`
	Capacity  int64        `json:"capacity,omitempty"`
	Refill    int64        `json:"refill,omitempty"`
	Period    tiers.Period `json:"per,omitzero"`
	Mode      string       `json:"mode,omitempty"`
	Unlimited bool         `json:"unlimited,omitempty"`
	Blocked   bool         `json:"blocked,omitempty"`
	Expires   time.Time    `json:"expires,omitzero"`
	Reason    string       `json:"reason"`
	Actor     string       `json:"actor"`
	// SetAt is what the store says; it is not read.
	SetAt time.Time `json:"setAt,omitzero"`
}

func newRecordJSON(tenant string, o *bucket.Override) recordJSON {
	scope := session.ScopeOf(tenant, o.Owner)
	r := recordJSON{
		Tenant: tenant, Team: scope.Team, User: scope.User, Operation: scope.Operation, Part: scope.Part, Limit: o.Limit,
		Capacity: o.Capacity, Refill: o.Refill, Period: tiers.Period(o.Period), Unlimited: o.Unlimited, Blocked: o.Blocked,
		Expires: o.Expires, Reason: o.Reason, Actor: o.Actor, SetAt: o.SetAt,
	}
	if o.Mode != nil {
		r.Mode = o.Mode.String()
	}
	return r
}

// override returns the record for a store. Whom it is for, the scope says.
func (r *recordJSON) override(owner bucket.Owner) (bucket.Override, error) {
	o := bucket.Override{
		Owner: owner, Limit: r.Limit, Capacity: r.Capacity, Refill: r.Refill, Period: time.Duration(r.Period),
		Unlimited: r.Unlimited, Blocked: r.Blocked, Expires: r.Expires, Reason: r.Reason, Actor: r.Actor,
	}
	if r.Capacity < 0 || r.Refill < 0 || r.Period < 0 {
		return o, cli.Usagef("capacity, refill and period are not negative")
	}
	if r.Mode != "" {
		mode, err := parseMode(r.Mode)
		if err != nil {
			return o, err
		}
		o.Mode = &mode
	}
	return o, nil
}

func parseMode(word string) (bucket.Mode, error) {
	modes := []string{bucket.Enforce.String(), bucket.Warn.String(), bucket.Shadow.String(), bucket.Off.String()}
	at := slices.Index(modes, word)
	if at < 0 {
		return 0, cli.Unknown("mode", word, modes)
	}
	return bucket.Mode(at), nil
}

// check returns why a record would do nothing, or not what it says, under what holds.
func check(h *session.Holding, o *bucket.Override) error {
	if h.Rules.Unlimited || !h.Rules.Blocked && len(h.Rules.Buckets) == 0 {
		return fmt.Errorf("the policy gives %s no limits, so that servers ask Redis nothing about it, and no record reaches it: "+
			"write an exception into the policy, tenants: {%q: {blocked: true}} for example", session.TenantName(h.Scope.Tenant), h.Scope.Tenant)
	}
	if o.Blocked && o.Owner.Level == bucket.Operation {
		return checkRoot(o.Owner.Name, h.Operations())
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

// checkRoot returns an error for what is neither a rule nor the coordinate of a root field.
func checkRoot(name string, rules []string) error {
	if slices.Contains(rules, name) {
		return nil
	}
	root, field, ok := strings.Cut(name, ".")
	if !ok || field == "" || strings.ContainsAny(name, "* ") || !slices.Contains([]string{"Query", "Mutation", "Subscription"}, root) {
		if near, ok := cli.Nearest(name, rules); ok {
			return cli.Usagef("-operation %.80q is neither a rule of the policy nor a root field: did you mean %q?", name, near)
		}
		return cli.Usagef("-operation %.80q is neither a rule of the policy nor a root field such as Mutation.createOrder", name)
	}
	return nil
}

// says returns what a record does, in words.
func says(o *bucket.Override) string {
	var parts []string
	add := func(is bool, format string, args ...any) {
		if is {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	add(o.Blocked, "blocked")
	add(o.Unlimited, "unlimited")
	add(o.Capacity > 0, "capacity %d", o.Capacity)
	add(o.Refill > 0, "refill %d", o.Refill)
	add(o.Period > 0, "per %s", tiers.Period(o.Period))
	if o.Mode != nil {
		add(true, "mode %s", *o.Mode)
	}
	return strings.Join(parts, ", ")
}

// ends says when a record ends.
func ends(o *bucket.Override) string {
	if o.Expires.IsZero() {
		return "never"
	}
	return o.Expires.UTC().Format(time.RFC3339)
}

func limitName(o *bucket.Override) string {
	if o.Limit == "" {
		return "(all)"
	}
	return o.Limit
}

// writeRecords writes records as a table.
func writeRecords(c cli.Console, records []bucket.Override) {
	rows := [][]string{{"OWNER", "LIMIT", "SAYS", "ENDS", "SET", "BY", "REASON"}}
	for i := range records {
		o := &records[i]
		rows = append(rows, []string{
			session.OwnerName(o.Owner), limitName(o), says(o), ends(o), o.SetAt.UTC().Format(time.RFC3339), o.Actor, o.Reason,
		})
	}
	cli.WriteTable(c.Stdout, rows)
}
