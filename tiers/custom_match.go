package tiers

import (
	"slices"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// keyValues are the values of one request that keys are made of, as far as somebody has asked.
type keyValues struct {
	subject Subject
	tier    string
	policy  map[string]Parameter
	from    Parameters
	known   []keyValue
}

type keyValue struct {
	name, value string
	ok          bool
}

// key appends the key that the request has of these names. It returns false if it has none, or one that no policy has.
func (v *keyValues) key(b []byte, names []string) ([]byte, bool) {
	for _, name := range names {
		value, ok := v.value(name)
		// Each byte is written as three at most.
		if !ok || len(b)+len(name)+2+len(value) > maxKey {
			return nil, false
		}
		if b = appendKeyPart(b, name, value); len(b) > maxKey {
			return nil, false
		}
	}
	return b, true
}

func (v *keyValues) value(name string) (value string, ok bool) {
	switch name {
	case parameterTenant:
		value = v.subject.Tenant
	case parameterTeam:
		value = v.subject.Team
	case parameterUser:
		value = v.subject.User
	case parameterTier:
		value = v.tier
	default:
		return v.parameter(name)
	}
	return value, value != ""
}

// parameter asks once for each.
func (v *keyValues) parameter(name string) (string, bool) {
	for i := range v.known {
		if v.known[i].name == name {
			return v.known[i].value, v.known[i].ok
		}
	}
	k := keyValue{name: name}
	k.value, k.ok = v.look(v.policy[name])
	v.known = append(v.known, k)
	return k.value, k.ok
}

// look asks for a parameter. It returns false where the request has none that a key could have.
func (v *keyValues) look(p Parameter) (value string, ok bool) {
	switch {
	case p.Claim != "" && v.subject.Claims != nil:
		value, ok = (*v.subject.Claims)[p.Claim]
	case p.Claim == "" && v.from != nil:
		value, ok = v.from.Parameter(p)
	}
	return value, ok && value != "" && len(value) <= maxKey
}

// customOf returns the custom rule that holds for a request, nil if there is none: the most specific of the policy and of the tenant, where the
// name of the tenant is a part of what stands under it. Of the same key the one of the policy holds.
func (s *Snapshot) customOf(set *ruleSet, subject Subject, carried Parameters) *customRule {
	if s.custom == nil && set.custom == nil || set.rules.Unlimited || set.rules.Blocked {
		return nil
	}
	v := &keyValues{subject: subject, tier: set.rules.Tier, policy: s.family.policy.Parameters, from: carried}
	general, own := s.custom.find(v), set.custom.find(v)
	if own == nil || general != nil && general.before(own, v) {
		return general
	}
	return own
}

// before reports whether a rule of the policy goes before one that stands under the tenant.
func (r *customRule) before(own *customRule, v *keyValues) bool {
	parts := len(own.names) + 1
	if len(r.names) != parts {
		return len(r.names) > parts
	}
	names := append(slices.Clone(own.names), parameterTenant)
	slices.Sort(names)
	key, ok := v.key(nil, names)
	return ok && r.key <= string(key)
}

// apply adds the bucket of the rule to those that hold for all operations, or puts it in their place.
func (r *customRule) apply(rules *Rules, set *ruleSet, buckets []bucket.Bucket) []bucket.Bucket {
	if r.across {
		rules.Across = append(rules.Across, r.Bucket)
		return buckets
	}
	if r.instead && r.strictest <= set.strictest {
		buckets = rules.spare(buckets)
	}
	return append(buckets, r.Bucket)
}

// custom follows what holds for requests of a key, which an owner is named by without the tenant.
func (t *trace) custom(tenant, name, limit string) {
	p := &t.from.family.policy
	general, own := spelledAs(p.Custom, func(k Key) bool {
		return k.Value(parameterTenant) == tenant && (k.Without(parameterTenant).String() == name || k.String() == name)
	}), spelledAs(t.exception.Custom, func(k Key) bool { return k.String() == name })
	if general == "" && own != "" {
		at, rule := t.exceptionAt.to("custom").to(own), t.exception.Custom[own]
		t.say(at, rule.Mode, rule.EnforceFrom, rule.FailMode)
		t.limit(at, rule.Limits, limit)
		return
	}
	if general == "" {
		general = spelledAs(p.Custom, func(k Key) bool { return k.String() == name })
	}
	// A key of the policy inherits from no tier.
	t.setting, t.modeSaid, t.failModeSaid = setting{}, false, false
	at, rule := path("").to("custom").to(general), p.Custom[general]
	t.say("", p.Mode, p.EnforceFrom, "")
	t.say(at, rule.Mode, rule.EnforceFrom, rule.FailMode)
	t.limit(at, rule.Limits, limit)
}

// spelledAs returns how a key is spelled in a policy, empty if none is the one.
func spelledAs(custom map[string]CustomRule, is func(Key) bool) string {
	for _, spelled := range sorted(custom) {
		if key, err := ParseKey(spelled); err == nil && is(key) {
			return spelled
		}
	}
	return ""
}
