package session

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/cli"
	"github.com/gqlgen-ratelimit/ratelimit/internal/policydiff"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// maxName is how many bytes the name of a tenant, team, user or operation has at most in an argument.
const maxName = 4 << 10

// Scope says who is meant.
type Scope struct {
	Tenant, Team, User, Operation, Part, Tier string
	// Parameters are values that a request carries, by the names that the policy has for them.
	Parameters map[string]string

	given bool
}

// NewScope returns the scope of a tenant, or of what is named in it; empty names are not.
func NewScope(tenant, team, user, operation, part string) Scope {
	return Scope{Tenant: tenant, Team: team, User: user, Operation: operation, Part: part, given: true}
}

// RegisterTenant adds the flag of the tenant alone.
func (s *Scope) RegisterTenant(flags *flag.FlagSet) {
	flags.Func("tenant", "the `name` of the tenant; '' for budgets that all tenants share", func(name string) error {
		s.Tenant, s.given = name, true
		return nil
	})
}

// Register adds the flags.
func (s *Scope) Register(flags *flag.FlagSet) {
	s.RegisterTenant(flags)
	flags.StringVar(&s.Team, "team", "", "the `name` of a team of the tenant")
	flags.StringVar(&s.User, "user", "", "the `name` of a user of the tenant")
	flags.StringVar(&s.Operation, "operation", "", "an operation `rule` as the policy spells it, such as Mutation.createOrder, or a root field")
	flags.StringVar(&s.Part, "part", "", "the `part` of an operation rule that belongs to a value, as an event names it")
	flags.Func("parameter", "`NAME=VALUE` of a parameter of the policy, as a request carries it, for custom limits; can be given several times", func(text string) error {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" || len(text) > maxName {
			return errors.New("it is not of the form NAME=VALUE")
		}
		if s.Parameters == nil {
			s.Parameters = make(map[string]string)
		}
		s.Parameters[name] = value
		return nil
	})
	flags.StringVar(&s.Tier, "tier", "", "the `tier` that callers of the tenant carry, in a token for example")
}

// Owner is whose budget is meant: the tenant's, or that of the team, the user, the operation, or the user's for an
// operation.
func (s *Scope) Owner() (bucket.Owner, error) {
	owner := bucket.Owner{Level: bucket.Tenant}
	switch {
	case !s.given:
		return owner, cli.Usagef("say -tenant NAME")
	case s.Part != "" && s.Operation == "":
		return owner, cli.Usagef("-part is a part of an -operation")
	case s.Part != "" && s.User != "":
		return owner, cli.Usagef("say either -part or -user")
	case s.Team != "" && (s.User != "" || s.Operation != ""):
		return owner, cli.Usagef("say one of -team, -user and -operation, or -user with -operation for a budget that each user has of an operation")
	case s.Operation != "":
		owner = bucket.Owner{Level: bucket.Operation, Name: s.Operation, Part: s.Part}
		if s.User != "" {
			owner.Part = tiers.UserPart(s.User)
		}
	case s.Team != "":
		owner = bucket.Owner{Level: bucket.Team, Name: s.Team}
	case s.User != "":
		owner = bucket.Owner{Level: bucket.User, Name: s.User}
	}
	for _, name := range []string{s.Tenant, s.Team, s.User, s.Operation, s.Part, s.Tier} {
		if len(name) > maxName {
			return owner, cli.Usagef("a name of %d bytes: at most %d fit", len(name), maxName)
		}
	}
	return owner, nil
}

// ScopeOf returns the scope of an owner.
func ScopeOf(tenant string, owner bucket.Owner) Scope {
	s := Scope{Tenant: tenant, given: true}
	switch owner.Level {
	case bucket.Team:
		s.Team = owner.Name
	case bucket.User:
		s.User = owner.Name
	case bucket.Operation:
		s.Operation, s.Part = owner.Name, owner.Part
		if user, ok := strings.CutPrefix(owner.Part, tiers.UserPart("")); ok {
			s.User, s.Part = user, ""
		}
	case bucket.Tenant:
	}
	return s
}

// subject is who would ask.
func (s *Scope) subject() tiers.Subject {
	return tiers.Subject{Tenant: s.Tenant, Team: s.Team, User: s.User, Tier: s.Tier}
}

// String names the scope for people.
func (s *Scope) String() string {
	owner, _ := s.Owner()
	if owner.Level == bucket.Tenant {
		return TenantName(s.Tenant)
	}
	return OwnerName(owner) + " of " + TenantName(s.Tenant)
}

// TenantName names a tenant for people.
func TenantName(tenant string) string {
	if tenant == "" {
		return "all tenants"
	}
	return cli.Plain(tenant)
}

// OwnerName names an owner for people.
func OwnerName(owner bucket.Owner) string {
	return cli.Plain(policydiff.Owner(owner))
}

// Holding is what holds for a scope.
type Holding struct {
	Policy  *Policy
	Scope   Scope
	Owner   bucket.Owner
	Subject tiers.Subject
	Record  *tiers.Record
	Rules   tiers.Rules

	carried carried
}

// carried are the values of parameters other than claims.
type carried map[tiers.Parameter]string

// Parameter implements tiers.Parameters.
func (c carried) Parameter(p tiers.Parameter) (value string, ok bool) {
	value, ok = c[p]
	return value, ok
}

// Resolve returns what holds for the scope. The error names a tier that the policy does not have.
func (p *Policy) Resolve(scope Scope, record *tiers.Record) (*Holding, error) {
	owner, err := scope.Owner()
	if err != nil {
		return nil, err
	}
	if scope.Tier != "" && !p.HasTier(scope.Tier) {
		return nil, cli.Unknown("tier", scope.Tier, p.tierNames())
	}
	h := &Holding{Policy: p, Scope: scope, Owner: owner, Subject: scope.subject(), Record: record}
	claims := make(tiers.Claims)
	h.carried, h.Subject.Claims = make(carried), &claims
	for name, value := range scope.Parameters {
		named := p.Written.Parameters
		from, ok := named[name]
		switch {
		case !ok:
			return nil, cli.Unknown("parameter", name, slices.Collect(maps.Keys(named)))
		case from.Claim != "":
			claims[from.Claim] = value
		default:
			h.carried[from] = value
		}
	}
	h.Rules = p.Rules(h.Subject, h.selection(scope.Operation))
	return h, nil
}

// Selection is the operation of the scope, if it names one.
func (h *Holding) Selection() tiers.Selection { return h.selection(h.Scope.Operation) }

// selection is an operation that falls under a rule, or selects a root field.
func (h *Holding) selection(operation string) tiers.Selection {
	selection := policydiff.Selecting(operation)
	selection.Record, selection.Parameters = h.Record, h.carried
	return selection
}

// Operations are the spellings of all operation rules that the tenant has budgets of, those of each user included if a
// user is named.
func (h *Holding) Operations() []string {
	return policydiff.Operations(&h.Policy.Written, h.Rules.Tier, h.Scope.Tenant)
}

// Blockable are what a record may block: the operation rules of the tenant, and root fields that a rule of anybody names.
func (h *Holding) Blockable() []string {
	own := h.Operations()
	return slices.DeleteFunc(h.Policy.Operations(), func(name string) bool { return !isRootField(name) && !slices.Contains(own, name) })
}

// All returns the budgets of the tenant and of all its operations, each once.
func (h *Holding) All() []bucket.Bucket {
	return policydiff.Buckets(h.Rules.Buckets, h.Operations(), h.RulesFor)
}

// Bucket returns the budgets of the owner. The error says why the policy has none, and what it has.
func (h *Holding) Bucket() (bucket.Bucket, error) {
	for _, b := range h.Rules.Buckets {
		if b.Owner == h.Owner {
			return b, nil
		}
	}
	who := h.Scope.String()
	switch {
	case h.Rules.Blocked:
		return bucket.Bucket{}, fmt.Errorf("the policy blocks %s (%s), which has no budgets then", TenantName(h.Scope.Tenant), strings.Join(h.Rules.Provenance(h.Subject).Rule, ", "))
	case h.Rules.Unlimited:
		return bucket.Bucket{}, fmt.Errorf("%s is unlimited in tier %s, and has no budgets", TenantName(h.Scope.Tenant), h.Rules.Tier)
	case h.Owner.Level != bucket.Operation:
		return bucket.Bucket{}, fmt.Errorf("tier %s gives %s no budget", h.Rules.Tier, who)
	}
	var under []string
	for _, b := range h.Rules.Buckets {
		if b.Owner.Level == bucket.Operation {
			under = append(under, b.Owner.Name)
		}
	}
	if len(under) > 0 {
		return bucket.Bucket{}, cli.Usagef("tier %s has no operation rule %q for %s; what falls under it: %s", h.Rules.Tier, h.Owner.Name, who, strings.Join(under, ", "))
	}
	return bucket.Bucket{}, cli.Unknown("operation rule with a budget in tier "+h.Rules.Tier, h.Owner.Name, h.Operations())
}

// CheckLimit returns an error if the budgets have no limit of this name.
func (h *Holding) CheckLimit(b bucket.Bucket, name string) error {
	var names []string
	for _, limit := range b.Limits.All() {
		names = append(names, limit.Name)
	}
	if slices.Contains(names, name) {
		return nil
	}
	return cli.Unknown("limit of "+h.Scope.String(), name, names)
}

// Notes are what a person should know before believing the rest: a tenant that nobody lists beside one of nearly its
// name, and a record that does not fit.
func (h *Holding) Notes() []string {
	var notes []string
	if h.Record == nil && h.Scope.Tenant != "" && !h.Policy.Lists(h.Scope.Tenant) {
		listed := slices.Collect(maps.Keys(h.Policy.Written.Tenants))
		if near, ok := cli.Nearest(h.Scope.Tenant, listed); ok {
			notes = append(notes, fmt.Sprintf("neither the policy nor the directory lists the tenant %s: did you mean %q?", cli.Plain(h.Scope.Tenant), near))
		}
	}
	if h.Rules.Misfit != nil {
		notes = append(notes, fmt.Sprintf("the record of the tenant does not fit the policy: %v", h.Rules.Misfit))
	}
	return notes
}

// RulesFor returns what holds for an operation that falls under a rule, or selects a root field.
func (h *Holding) RulesFor(operation string) tiers.Rules {
	return h.Policy.Rules(h.Subject, h.selection(operation))
}

// CheckOperation returns an error for what is neither a rule nor the coordinate of a root field. A root field that is nearly
// called like a rule may be another one, which is told.
func CheckOperation(c cli.Console, name string, rules []string) error {
	if slices.Contains(rules, name) {
		return nil
	}
	near, isNear := cli.Nearest(name, rules)
	if !isRootField(name) {
		if isNear {
			return cli.Usagef("-operation %.80q is neither a rule of the policy nor a root field: did you mean %q?", name, near)
		}
		return cli.Usagef("-operation %.80q is neither a rule of the policy nor a root field such as Mutation.createOrder", name)
	}
	if isNear {
		fmt.Fprintf(c.Stderr, "note: no rule of the policy is called %s: did you mean %q?\n", cli.Plain(name), near)
	}
	return nil
}

// isRootField reports whether a name is of the form of the coordinate of a root field.
func isRootField(name string) bool {
	root, field, ok := strings.Cut(name, ".")
	return ok && field != "" && !strings.ContainsAny(name, "* ") && slices.Contains([]string{"Query", "Mutation", "Subscription"}, root)
}

// Operations are the spellings of all operation rules of the policy, whoever has them.
func (p *Policy) Operations() []string {
	var all []string
	for _, tier := range p.Written.Tiers {
		all = slices.AppendSeq(all, maps.Keys(tier.Operations))
		if tier.Users != nil {
			all = slices.AppendSeq(all, maps.Keys(tier.Users.Operations))
		}
	}
	for _, exception := range p.Written.Tenants {
		all = slices.AppendSeq(all, maps.Keys(exception.Operations))
		if exception.Users != nil {
			all = slices.AppendSeq(all, maps.Keys(exception.Users.Operations))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
