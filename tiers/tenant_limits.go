package tiers

import (
	"iter"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// TenantLimits are the limits that each tenant of a tier has a bucket of, or each one that the policy makes an exception for, or all
// tenants together.
type TenantLimits struct {
	// Place is where they stand in the policy: tiers.free, tenants in the tier free, or backstop.
	Place string
	// Store names the store that has the buckets. It is empty for the default store.
	Store string
	// Lease says whether parts of the buckets are leased.
	Lease  bucket.LeaseMode
	Limits *bucket.Limits
	// Least are the limits as small as the throttle can make them, nil where it leaves them as they are.
	Least *bucket.Limits
}

// TenantLimits yields the limits of all tiers, of the exceptions of tenants in each tier that these may carry, and of the backstop, for
// whoever has to know what a store will be asked about before the policy holds. Records of tenants ([Record]) are not in a policy. Of two policies of which
// one takes the place of the other it yields those of both. It compiles exceptions, as loading the policy does.
func (s *Snapshot) TenantLimits() iter.Seq[TenantLimits] {
	return func(yield func(TenantLimits) bool) {
		if s.eased != nil {
			s = s.eased.base
		}
		if backstop := s.backstops(); backstop != nil {
			rules := backstop.of(s, nil)
			rules.Lease, rules.Throttle = bucket.LeaseAlways, Shedding{}
			if !rules.yieldTenant("backstop", yield) {
				return
			}
		}
		if !s.yieldTenants(yield) {
			return
		}
		if g := s.family.staged; g != nil {
			g.following(s).yieldTenants(yield)
		}
	}
}

// yieldTenants yields those of tiers and exceptions. It returns false if nobody wants more.
func (s *Snapshot) yieldTenants(yield func(TenantLimits) bool) bool {
	tiers := sorted(s.tiers)
	for _, tier := range tiers {
		rules := s.tiers[tier].of(s, nil)
		if !rules.yieldTenant("tiers."+tier, yield) {
			return false
		}
	}
	for place := range s.family.listed.kinds {
		k := &s.family.listed.kinds[place]
		if k.text == "" {
			continue
		}
		for _, tier := range tiers {
			rules := s.passing(k, tier).of(s, nil)
			if !rules.yieldTenant("tenants in the tier "+tier, yield) {
				return false
			}
		}
	}
	return true
}

// passing returns the rules of a kind of exceptions in a tier, and does not keep them: most of them nobody will ask for.
func (s *Snapshot) passing(k *kind, tier string) *ruleSet {
	s.making.Lock()
	defer s.making.Unlock()
	return s.compiler().ruleSet("", tier, merge(s.family.policy.Tiers[tier], k.exception()))
}

// yieldTenant yields the limits of the tenant, if there are any. It returns false if nobody wants more.
func (r *Rules) yieldTenant(place string, yield func(TenantLimits) bool) bool {
	for i := range r.Buckets {
		b := &r.Buckets[i]
		if b.Owner.Level != bucket.Tenant || b.Limits.Len() == 0 {
			continue
		}
		t := TenantLimits{Place: place, Store: r.Store, Lease: r.Lease, Limits: b.Limits}
		if r.Throttle.Acts == ThrottleLimits {
			const whole = 100
			if least := r.Shrunk(float64(whole-int(r.Throttle.Floor)) / whole).Buckets[i].Limits; least != b.Limits {
				t.Least = least
			}
		}
		return yield(t)
	}
	return true
}
