package simulate

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// ReplayConfig says how a [Replay] judges. The zero value judges as a server does whose tenants have no records.
type ReplayConfig struct {
	// Enforced has what is in mode shadow or warn count as enforced.
	Enforced bool
	// Record returns what is known of a tenant beside the policy, nil for nothing, as a [tiers.Preparer] does. It is asked about
	// each operation. Nil knows of no tenant.
	Record func(tenant string) *tiers.Record
	// Value returns what stands in records for a value of a parameter ([tiers.Parameter.String]), such as a hash that report.HashValue makes: the
	// replay looks for it among the keys of the policy and of tenants' records. Nil means that records have the values themselves.
	Value func(parameter, value string) string
}

// Replay judges operations one after the other, each at its time, as a server with an empty store judges them: what is
// admitted is charged, and what is refused is not. It is made by [NewReplay], for one goroutine.
type Replay struct {
	cfg    ReplayConfig
	policy *tiers.Snapshot
	now    time.Time
	// stores are those that the policy names, the default one under no name.
	stores map[string]*bucket.Memory
	// enforced has the limits of the policy with shadow turned into enforce.
	enforced map[*bucket.Limits]*bucket.Limits
	// room is for the buckets of one record, and members for those whom an override may block.
	room    [8]bucket.Bucket
	members []bucket.Owner
	carried carried
	calls   tiers.Counted
}

// Judgment is what a policy makes of an operation.
type Judgment struct {
	// Tier is the tier whose rules applied.
	Tier string
	// Refused says that the operation does not run: because its tenant is Blocked by the policy, because it is TooExpensive,
	// or because of Limits.
	Refused, Blocked, TooExpensive bool
	// Limits are those that judged, as [bucket.Result] has them. They are empty where no store was asked.
	Limits []bucket.LimitState
}

// NewReplay returns a replay of a policy, which is required.
func NewReplay(policy *tiers.Snapshot, cfg ReplayConfig) (*Replay, error) {
	if policy == nil {
		return nil, errNoPolicy
	}
	return &Replay{
		cfg: cfg, policy: policy, now: time.UnixMilli(1),
		stores: make(map[string]*bucket.Memory), enforced: make(map[*bucket.Limits]*bucket.Limits), carried: newCarried(policy, &cfg),
	}, nil
}

// store returns the store of a name.
func (r *Replay) store(name string) *bucket.Memory {
	store := r.stores[name]
	if store == nil {
		// No owner may make room for another, or it would be full again.
		store = bucket.NewMemory(bucket.MemoryConfig{
			Clock:      func() time.Time { return r.now },
			MaxEntries: math.MaxInt,
			MaxBytes:   math.MaxInt,
		})
		r.stores[name] = store
	}
	return store
}

// SetOverride has an override hold for a tenant in all that is judged from now on, whatever it says of its end. The error is
// that of [bucket.Memory.SetOverride].
func (r *Replay) SetOverride(ctx context.Context, tenant string, override bucket.Override) error {
	override.Expires = time.Time{}
	for _, name := range append(r.policy.Stores(), "") {
		if _, err := r.store(name).SetOverride(ctx, tenant, override); err != nil {
			return fmt.Errorf("simulate: %w", err)
		}
	}
	return nil
}

// Judge judges an operation. A time before that of the one before counts as the same. The error says what is wrong with the record, or is
// that of the context.
func (r *Replay) Judge(ctx context.Context, record *Record) (Judgment, error) {
	if err := record.check(); err != nil {
		return Judgment{}, fmt.Errorf("simulate: %w", err)
	}
	if record.At.After(r.now) {
		r.now = record.At
	}
	subject := tiers.Subject{Tenant: record.Tenant, Team: record.Team, User: record.User, Tier: record.Tier}
	selected := tiers.Selection{Fields: record.Operations, Document: record.Document}
	if r.cfg.Record != nil {
		selected.Record = r.cfg.Record(record.Tenant)
	}
	if len(record.Parameters) > 0 {
		subject.Claims = r.carried.of(record.Parameters, selected.Record)
		selected.Parameters = &r.carried
	}
	if record.Parts != nil {
		r.calls = record.calls(r.calls)
		selected.Calls = r.calls
	}
	rules := r.policy.RulesInto(r.room[:], subject, selected)
	judgment := Judgment{Tier: rules.Tier}
	switch {
	case rules.Blocked:
		judgment.Refused, judgment.Blocked = true, true
		return judgment, nil
	case r.tooExpensive(&rules.MaxCost, record.Points):
		judgment.Refused, judgment.TooExpensive = true, true
		return judgment, nil
	case rules.Unlimited || !haveLimits(rules.Buckets):
		return judgment, nil
	}
	result, err := r.store(rules.Store).Take(ctx, bucket.Take{
		Tenant: record.Tenant, Buckets: r.judged(rules.Buckets), Owners: r.owners(record), Amounts: record.amounts(&rules),
	})
	if err != nil {
		return Judgment{}, fmt.Errorf("simulate: %w", err)
	}
	judgment.Refused, judgment.Limits = result.Verdict != bucket.Admitted, result.Limits
	return judgment, nil
}

func haveLimits(buckets []bucket.Bucket) bool {
	for i := range buckets {
		if buckets[i].Limits.Len() > 0 {
			return true
		}
	}
	return false
}

func (r *Replay) tooExpensive(most *tiers.MaxCost, points int64) bool {
	_, mode := most.Exceeded(points)
	return mode == bucket.Enforce || r.cfg.Enforced && mode != bucket.Off
}

// owners are those whom an override may block, whether or not they have limits.
func (r *Replay) owners(record *Record) []bucket.Owner {
	r.members = append(r.members[:0], bucket.Owner{})
	if record.Team != "" {
		r.members = append(r.members, bucket.Owner{Level: bucket.Team, Name: record.Team})
	}
	if record.User != "" {
		r.members = append(r.members, bucket.Owner{Level: bucket.User, Name: record.User})
	}
	for _, field := range record.Operations {
		r.members = append(r.members, bucket.Owner{Level: bucket.Operation, Name: field})
	}
	return r.members
}

// judged returns the buckets, with shadow and warn turned into enforce if all counts as enforced.
func (r *Replay) judged(buckets []bucket.Bucket) []bucket.Bucket {
	if !r.cfg.Enforced {
		return buckets
	}
	enforced := make([]bucket.Bucket, len(buckets))
	for i, b := range buckets {
		limits := r.enforced[b.Limits]
		if limits == nil {
			all := b.Limits.All()
			for i := range all {
				if all[i].Mode != bucket.Off {
					all[i].Mode = bucket.Enforce
				}
			}
			// They have compiled before: the mode is no part of what can be wrong.
			limits, _ = bucket.Compile(all...)
			r.enforced[b.Limits] = limits
		}
		b.Limits = limits
		enforced[i] = b
	}
	return enforced
}

// amounts is what the operation asks for: its points, itself as a request, and what else was recorded of it.
func (r *Record) amounts(rules *tiers.Rules) bucket.Amounts {
	asked := bucket.Amounts{{Unit: bucket.Points, N: r.Points}}
	for unit, n := range r.Units {
		if unit != bucket.Points && n > 0 {
			asked = append(asked, bucket.Amount{Unit: unit, N: n})
		}
	}
	for _, amount := range rules.Amounts {
		if asked.Of(amount.Unit) == 0 {
			asked = append(asked, amount)
		}
	}
	if asked.Of(bucket.Requests) == 0 {
		asked = append(asked, bucket.Amount{Unit: bucket.Requests, N: 1})
	}
	return asked
}

// NotJudged returns what of the policies a replay of records does not judge as a server does, because nobody knows what is asked of it
// ([tiers.Snapshot.Unrecorded]), and the units that they count and no record has: at most 32 things, sorted.
func NotJudged(known tiers.Recorded, recorded map[bucket.Unit]bool, policies ...*tiers.Snapshot) []string {
	const shown = 32
	var all []string
	for _, policy := range policies {
		all = append(all, policy.Unrecorded(known)...)
		for _, unit := range policy.Counted() {
			if unit != bucket.Points && unit != bucket.Requests && !recorded[unit] {
				all = append(all, fmt.Sprintf("limits in %s", unit))
			}
		}
	}
	slices.Sort(all)
	all = slices.Compact(all)
	return all[:min(shown, len(all))]
}
