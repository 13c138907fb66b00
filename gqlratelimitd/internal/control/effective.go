package control

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// EffectiveInput says whose limits are asked for.
type EffectiveInput struct {
	Tenant string
	// Team and User are within the tenant. Operation is the coordinate of a root field, such as Mutation.createOrder. Empty leaves
	// out what is theirs.
	Team, User, Operation string
}

// Effective is what holds for a tenant at this moment, by the newest policy, its record, mode switches and overrides.
type Effective struct {
	// Policy is the number of the revision.
	Policy uint64
	// Tier is the tier, and TierFrom what has put the tenant into it.
	Tier, TierFrom string
	Mode           bucket.Mode
	// Blocked and Unlimited are those of the tenant as a whole.
	Blocked, Unlimited bool
	// Misfit says why the record of the tenant does not fit the policy, and so does not hold. Empty means that it does.
	Misfit string
	// Counts is what is counted in the step that charges, in the word of the policy: none, totals or fields.
	Counts string
	Limits []EffectiveLimit
}

// EffectiveLimit is a limit as it is judged by.
type EffectiveLimit struct {
	Owner bucket.Owner
	// Limit is the limit with what the override has changed.
	Limit bucket.Limit
	// EnforcedFrom is when a limit that warns begins to refuse, zero if nobody knows.
	EnforcedFrom time.Time
	// Provenance says where in the policy, or in the record, the limit stands.
	Provenance tiers.Provenance
	// Override is the one that holds for it, nil if none does.
	Override *Override
}

// Effective returns what holds for a tenant: [access.ReadTenant]. It is judged by as an instance does, with the same code. There
// is [ErrNotFound] before the first policy, and where this daemon cannot read the newest one, and [ErrAway] if the Redis does not answer that
// has the mode switches.
func (c *Control) Effective(ctx context.Context, actor access.Actor, in EffectiveInput) (*Effective, error) {
	if err := access.Authorize(actor, access.ReadTenant, in.Tenant); err != nil {
		return nil, err
	}
	if err := in.check(); err != nil {
		return nil, err
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
	var effective *Effective
	err = c.cfg.Store.Read(ctx, func(v *store.View) (err error) {
		effective, err = c.effective(v, newest, &in, easings)
		return err
	})
	if err != nil {
		return nil, err
	}
	for i := range effective.Limits {
		if o := effective.Limits[i].Override; o != nil {
			o.Override.Actor = actor.Told(o.Override.Actor)
		}
	}
	return effective, nil
}

func (in *EffectiveInput) check() error {
	if err := checkName("tenant", in.Tenant, tiers.MaxLongName); err != nil {
		return err
	}
	for _, text := range [...]struct{ field, value string }{{"team", in.Team}, {"user", in.User}, {"operation", in.Operation}} {
		if err := checkText(text.field, text.value, tiers.MaxLongName); err != nil {
			return err
		}
	}
	return nil
}

func (c *Control) effective(v *store.View, newest *compiled, in *EffectiveInput, easings []tiers.Easing) (*Effective, error) {
	h, err := c.hold(v, newest, in, easings)
	if err != nil {
		return nil, err
	}
	subject, rules := h.subject, h.rules
	e := &Effective{
		Policy: newest.Number, Tier: rules.Tier, TierFrom: rules.Provenance(subject).Tier,
		Mode: rules.Mode, Blocked: rules.Blocked, Unlimited: rules.Unlimited, Counts: rules.Usage.String(),
	}
	if rules.Misfit != nil {
		e.Misfit = rules.Misfit.Error()
	}
	whole, err := c.holding(v, OverrideKey{Tenant: in.Tenant})
	if err != nil {
		return nil, err
	}
	if whole != nil {
		e.Blocked = e.Blocked || whole.Override.Blocked
		e.Unlimited = e.Unlimited || whole.Override.Unlimited
	}
	for i := range rules.Buckets {
		if err := c.addLimits(v, e, &rules, subject, &rules.Buckets[i]); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// held is what holds for a tenant: the policy with the switches that are on, and what it says of the tenant.
type held struct {
	policy   *tiers.Snapshot
	subject  tiers.Subject
	selected tiers.Selection
	rules    tiers.Rules
}

// hold returns what holds for who is asked about, but for overrides.
func (c *Control) hold(v *store.View, newest *compiled, in *EffectiveInput, easings []tiers.Easing) (h held, err error) {
	if h.policy, err = eased(newest.snapshot, easings); err != nil {
		return h, err
	}
	h.subject = tiers.Subject{Tenant: in.Tenant, Team: in.Team, User: in.User}
	if in.Operation != "" {
		h.selected = selection(in.Operation)
	}
	t, err := v.Tenant(in.Tenant)
	if err != nil {
		return h, err
	}
	if t != nil && t.Record != nil {
		if h.selected.Record, err = tiers.ParseRecord(t.Record); err != nil {
			return h, fmt.Errorf("control: the record of the tenant: %w", err)
		}
	}
	h.rules = h.policy.Rules(h.subject, h.selected)
	return h, nil
}

// documentPrefix begins the id of a document, which names an operation rule as well.
const documentPrefix = "sha256:"

// selection is an operation that selects a root field, falls under a rule, or has the id of a document.
func selection(operation string) tiers.Selection {
	if strings.HasPrefix(operation, documentPrefix) {
		return tiers.Selection{Document: operation}
	}
	return tiers.Selection{Fields: []string{operation}}
}

// eased returns a policy with no mode stricter than the switches say.
func eased(policy *tiers.Snapshot, easings []tiers.Easing) (*tiers.Snapshot, error) {
	if len(easings) == 0 {
		return policy, nil
	}
	modes := tiers.NewModeSwitch(policy)
	if err := modes.Ease(easings); err != nil {
		return nil, fmt.Errorf("control: %w", err)
	}
	return modes.Snapshot(), nil
}

// holding returns the override of a key that holds, nil if none does. A record that nobody has set here holds in the place of one that
// was.
func (c *Control) holding(v *store.View, key OverrideKey) (*Override, error) {
	record, err := v.UnmanagedOverride(store.OverrideKey(key))
	if err != nil {
		return nil, err
	}
	if record != nil && record.Holds(c.now()) {
		found := unmanagedOf(record)
		return &found, nil
	}
	there, err := v.Override(store.OverrideKey(key))
	if err != nil || !there.Holds(c.now()) {
		return nil, err
	}
	found := overrideOf(there)
	return &found, nil
}

// addLimits adds the limits of a bucket, each with the override that holds for it: its own beats that of all of its owner.
func (c *Control) addLimits(v *store.View, e *Effective, rules *tiers.Rules, subject tiers.Subject, b *bucket.Bucket) error {
	all, err := c.holding(v, OverrideKey{Tenant: subject.Tenant, Owner: b.Owner})
	if err != nil {
		return err
	}
	for i, policy := range b.Limits.All() {
		override, err := c.holding(v, OverrideKey{Tenant: subject.Tenant, Owner: b.Owner, Limit: policy.Name})
		if err != nil {
			return err
		}
		// Whoever is unlimited as a whole is so whatever is said of a single limit.
		if override == nil || all != nil && all.Override.Unlimited {
			override = all
		}
		limit := EffectiveLimit{
			Owner: b.Owner, Limit: policy, EnforcedFrom: rules.LimitEnforcedFrom(b.Owner, policy.Name), Override: override,
		}
		limit.Provenance, _ = rules.LimitProvenance(subject, b.Owner, policy.Name)
		if override != nil {
			// One that does not fit the policy changes nothing, as in a store of budgets.
			if changed, err := override.Override.Apply(b.Limits); err == nil {
				limit.Limit = changed.All()[i]
			}
		}
		e.Limits = append(e.Limits, limit)
	}
	return nil
}
