package tiers

import "github.com/gqlgen-ratelimit/ratelimit/bucket"

// Source gives the policy that holds now. It is asked for each decision. [*Snapshot] is a source of
// itself, [*File] one that follows a file. Implementations are safe for concurrent use.
type Source interface {
	// Snapshot returns the current policy. It is never nil.
	Snapshot() *Snapshot
}

// Snapshot is a compiled policy. It never changes, and may be shared by any number of goroutines. It
// is made by [Compile].
type Snapshot struct {
	generation uint64
	tiers      map[string]*ruleSet
	fallback   *ruleSet
	tenants    map[string]*tenant
}

var _ Source = (*Snapshot)(nil)

// tenant is what a policy says about one tenant.
type tenant struct {
	assigned *ruleSet
	// byTier are the rules in each tier that a subject may carry. It is nil if the tenant changes
	// nothing but the tier.
	byTier map[string]*ruleSet
}

// ruleSet is a tier, or what an exception makes of it.
type ruleSet struct {
	rules Rules
	// operations is nil if there are no operation rules.
	operations *operationRules
}

// Rules is what holds for one subject and operation. It is shared and must not be changed.
type Rules struct {
	// Tier is the tier whose rules these are. It differs from that of the subject if the policy does
	// not know the latter.
	Tier string
	// Mode is that of the maximum cost. Each limit carries its own.
	Mode bucket.Mode
	// FailMode is what happens while the store is away to a decision without limits. Each limit
	// carries its own.
	FailMode bucket.FailMode
	// MaxCost is the price in points of the most expensive operation that may run. Zero means none.
	MaxCost int64
	// Blocked says that the operation is refused, whatever the mode.
	Blocked bool
	// Unlimited says that nothing is charged. Only MaxCost can still refuse.
	Unlimited bool
	// Buckets are what to charge: that of the tenant first, unless it has no limits, then one for each
	// operation rule that matches and has limits, in the order of their spelling.
	Buckets []bucket.Bucket
}

// Snapshot returns the snapshot itself, which makes it a [Source].
func (s *Snapshot) Snapshot() *Snapshot {
	return s
}

// Generation counts the policies of a source: 1 for the first one, and one more each time that a
// [File] loads another.
func (s *Snapshot) Generation() uint64 {
	return s.generation
}

// Rules returns what holds for the subject when it runs an operation that selects the root fields,
// given as coordinates such as Mutation.createOrder. No root fields match no operation rule.
//
// The tier is the one that the subject carries if the policy knows it, else the one that the policy
// assigns to the tenant, else the default. An exempt subject has no limits and no maximum cost.
//
// Rules takes no lock. It allocates only for an operation that matches several operation rules in a
// combination that no single root field named by the policy matches.
func (s *Snapshot) Rules(subject Subject, rootFields []string) Rules {
	set := s.find(&subject)
	if subject.Exempt {
		return Rules{Tier: set.rules.Tier, Mode: bucket.Off, Unlimited: true}
	}
	rules := set.rules
	if set.operations != nil && len(rootFields) > 0 {
		set.operations.apply(&rules, rootFields)
	}
	return rules
}

func (s *Snapshot) find(subject *Subject) *ruleSet {
	tenant := s.tenants[subject.Tenant]
	if subject.Tier != "" {
		byTier := s.tiers
		if tenant != nil && tenant.byTier != nil {
			byTier = tenant.byTier
		}
		if set := byTier[subject.Tier]; set != nil {
			return set
		}
	}
	if tenant != nil {
		return tenant.assigned
	}
	return s.fallback
}
