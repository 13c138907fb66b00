package control

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// Budgets is the store in which the instances have their budgets: a *bucket.Redis. It is only read.
type Budgets interface {
	bucket.LeaseReader
	// Peek is that of [bucket.Store].
	Peek(ctx context.Context, tenant string, buckets []bucket.Bucket) ([]bucket.LimitState, error)
	// ListOverrides is that of [bucket.OverrideStore].
	ListOverrides(ctx context.Context, tenant string) ([]bucket.Override, error)
}

// budgetPatience is for how long a store of budgets is asked about one tenant.
const budgetPatience = 5 * time.Second

// Usage is what the budgets of a tenant have at one moment, by the store in which the instances judge. It is no count of what was used:
// budgets refill, are given back, and are forgotten once they are full.
type Usage struct {
	// Policy is the number of the revision whose limits are asked for.
	Policy uint64
	// Tier and TierFrom, Mode, Blocked, Unlimited and Misfit are those of [Effective], with the override records that the store has.
	Tier, TierFrom     string
	Mode               bucket.Mode
	Blocked, Unlimited bool
	Misfit             string
	// At is when the store had answered, by the clock of the daemon.
	At      time.Time
	Budgets []Budget
	// Backstop are the budgets over all tenants that its operations are charged to first. It is empty for whoever may not read the fleet.
	Backstop []Budget
}

// Budget is a limit of an owner, and what is left of it.
type Budget struct {
	Owner bucket.Owner
	// Limit is the limit as the store judges it, with what override records make of it.
	Limit bucket.Limit
	// Used is what counts as spent at this moment, Remaining what anybody could take of the store, and Overdraft how much of Used is
	// beyond the capacity.
	Used, Remaining, Overdraft int64
	// Held is what instances lease, as of the last exchange of each: neither used nor left in the store. Holders are how many they are.
	Held    int64
	Holders int
	// HeldBy are the largest ones, at most [bucket.MaxLeaseHolders]. It is empty for whoever may not read the fleet.
	HeldBy []bucket.LeasedPart
	// FullAt is when nothing will count as spent if nothing else is taken, by the clock of the daemon. It is zero where nothing is.
	FullAt time.Time
	// WindowEnd is when the window ends that is open, by the clock of the store. It is zero where there is none.
	WindowEnd time.Time
	// Overridden says that an override record makes the limit what it is.
	Overridden bool
}

// Usage returns what the budgets of a tenant have now: [access.ReadUsage]. Without an operation it has those of all operation rules of
// the tenant besides; custom limits and budgets that tenants share are not among them. There is [ErrNotFound] before the first policy,
// and where this daemon cannot read the newest one; [ErrNoRedis]; and [ErrAway].
func (c *Control) Usage(ctx context.Context, actor access.Actor, in EffectiveInput) (*Usage, error) {
	if err := access.Authorize(actor, access.ReadUsage, in.Tenant); err != nil {
		return nil, err
	}
	if err := in.check(); err != nil {
		return nil, err
	}
	if c.cfg.Budgets == nil {
		return nil, ErrNoRedis
	}
	newest, err := c.current(ctx)
	if err != nil {
		return nil, err
	}
	if newest.rules() == nil {
		return nil, ErrNotFound
	}
	easings, err := c.easings(ctx)
	if err != nil {
		return nil, err
	}
	var h held
	err = c.cfg.Store.Read(ctx, func(v *store.View) (err error) {
		h, err = c.hold(v, newest, &in, easings)
		return err
	})
	if err != nil {
		return nil, err
	}
	if h.rules.Store != "" {
		return nil, invalid("tenant", "its budgets are in the store %.64q, which the daemon does not know", h.rules.Store)
	}
	u := &Usage{
		Policy: newest.Number, Tier: h.rules.Tier, TierFrom: h.rules.Provenance(h.subject).Tier,
		Mode: h.rules.Mode, Blocked: h.rules.Blocked, Unlimited: h.rules.Unlimited,
	}
	if h.rules.Misfit != nil {
		u.Misfit = h.rules.Misfit.Error()
	}
	buckets := h.rules.Buckets
	if in.Operation == "" {
		buckets = h.all(newest.rulesOf)
	}
	fleet := access.Authorize(actor, access.ReadFleet, "") == nil
	return u, c.readBudgets(ctx, u, &in, buckets, h.rules.Backstop, fleet)
}

// readBudgets asks the store.
func (c *Control) readBudgets(ctx context.Context, u *Usage, in *EffectiveInput, buckets, backstop []bucket.Bucket, fleet bool) error {
	ctx, cancel := context.WithTimeout(ctx, budgetPatience)
	defer cancel()
	records, err := c.cfg.Budgets.ListOverrides(ctx, in.Tenant)
	if err == nil {
		u.Budgets, err = c.peek(ctx, in.Tenant, buckets, fleet)
	}
	if err == nil && fleet {
		u.Backstop, err = c.peek(ctx, everybody, backstop, fleet)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrAway, err)
	}
	u.At = c.now()
	for i := range records {
		if o := &records[i]; o.Limit == "" && in.isAbout(o.Owner) {
			u.Blocked = u.Blocked || o.Blocked
			u.Unlimited = u.Unlimited || o.Unlimited && o.Owner.Level == bucket.Tenant
		}
	}
	return nil
}

// everybody is the tenant to whom the backstop belongs.
const everybody = ""

// peek returns what a tenant has of budgets, in as many calls as their number needs.
func (c *Control) peek(ctx context.Context, tenant string, buckets []bucket.Bucket, names bool) ([]Budget, error) {
	var states []bucket.LimitState
	for rest := buckets; len(rest) > 0; {
		n, limits := 0, 0
		for n < len(rest) && (n == 0 || limits+len(rest[n].Limits.All()) <= bucket.MaxLimits) {
			limits += len(rest[n].Limits.All())
			n++
		}
		some, err := c.cfg.Budgets.Peek(ctx, tenant, rest[:n])
		if err != nil {
			return nil, err
		}
		states, rest = append(states, some...), rest[n:]
	}
	at := c.now()
	var budgets []Budget
	for i := range states {
		budgets = append(budgets, budgetOf(&states[i], at))
	}
	return budgets, c.readLeases(ctx, budgets, tenant, buckets, names)
}

// isAbout reports whether what is recorded of an owner is about who is asked about.
func (in *EffectiveInput) isAbout(owner bucket.Owner) bool {
	switch owner.Level {
	case bucket.Team:
		return owner.Name == in.Team
	case bucket.User:
		return owner.Name == in.User
	case bucket.Operation:
		return owner.Name == in.Operation
	case bucket.Tenant:
	}
	return true
}

func budgetOf(s *bucket.LimitState, at time.Time) Budget {
	b := Budget{
		Owner: s.Owner, Limit: *s.Limit, Used: s.Limit.Capacity - s.Remaining + s.Overdraft, Remaining: s.Remaining, Overdraft: s.Overdraft,
		Overridden: s.Overridden,
	}
	if s.ResetAfter > 0 {
		b.FullAt = at.Add(s.ResetAfter)
	}
	if s.WindowEnd > 0 {
		b.WindowEnd = time.UnixMilli(s.WindowEnd).UTC()
	}
	return b
}

// all returns the budgets of the tenant and of all of its operation rules, of which a policy has a bounded number, each once.
func (h *held) all(rulesOf *ruleIndex) []bucket.Bucket {
	all := slices.Clone(h.rules.Buckets)
	for _, operation := range rulesOf.operations(h) {
		selected := selection(operation)
		selected.Record = h.selected.Record
		rules := h.policy.Rules(h.subject, selected)
		for i := range rules.Buckets {
			b := &rules.Buckets[i]
			if !slices.ContainsFunc(all, func(there bucket.Bucket) bool { return there.Owner == b.Owner }) {
				all = append(all, *b)
			}
		}
	}
	return all
}

// ruleIndex has the spellings of operation rules: of each tier, and of each tenant that the policy lists.
type ruleIndex struct{ tiers, tenants map[string][]string }

// newRuleIndex returns that of a policy.
func newRuleIndex(p *tiers.Policy) *ruleIndex {
	index := &ruleIndex{tiers: map[string][]string{}, tenants: map[string][]string{}}
	for name, tier := range p.Tiers {
		var users map[string]tiers.OwnerRule
		if tier.Users != nil {
			users = tier.Users.Operations
		}
		if spellings := spelt(tier.Operations, users); len(spellings) > 0 {
			index.tiers[name] = spellings
		}
	}
	for name := range p.Tenants {
		x := p.Tenants[name]
		if spellings := speltBy(&x); len(spellings) > 0 {
			index.tenants[name] = spellings
		}
	}
	return index
}

// operations are the spellings of the rules that a tenant may have budgets of, sorted.
func (r *ruleIndex) operations(h *held) []string {
	all := slices.Concat(r.tiers[h.rules.Tier], r.tenants[h.subject.Tenant])
	if h.selected.Record != nil {
		var d tiers.RecordDocument
		// It was parsed before.
		_ = json.Unmarshal([]byte(h.selected.Record.Document()), &d)
		all = append(all, speltBy(&d.Exception)...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// speltBy returns the spellings of the rules of an exception.
func speltBy(x *tiers.Exception) []string {
	if x.Users == nil {
		return slices.Collect(maps.Keys(x.Operations))
	}
	return spelt(x.Operations, x.Users.Operations)
}

func spelt[A, B any](own map[string]A, users map[string]B) []string {
	return slices.AppendSeq(slices.Collect(maps.Keys(own)), maps.Keys(users))
}
