package tiers

import (
	"unicode/utf8"
)

// Enforcement is how far a tier has come on the way from a mode that refuses nothing to one that does. The zero value enforces for nobody.
type Enforcement struct {
	// Share is for how many percent of the tenants of the tier that is enforced which is in mode shadow or warn: 0 to 100. For the others each mode
	// holds as it stands. A larger share has all tenants of a smaller one. A tenant whose exception or record has a mode of its own is in no share.
	Share int64 `yaml:"share,omitempty" json:"share,omitempty"`
	// Seed decides, with the names of the tier and of a tenant, whose turn comes first: at most 64 bytes of UTF-8. Another one chooses other tenants, so that
	// not each roll-out begins with the same ones. Leave it as it is while the share grows.
	Seed string `yaml:"seed,omitempty" json:"seed,omitempty"`
}

// percentOfAll is the share of all tenants.
const percentOfAll = 100

// enforcement checks that of a tier.
func (c *checker) enforcement(at path, e *Enforcement) {
	if e == nil {
		return
	}
	at = at.to("enforcement")
	if e.Share < 0 || e.Share > percentOfAll {
		c.fail(at.to("share"), "a share of %d percent of the tenants; 0 to %d fit", e.Share, percentOfAll)
	}
	switch {
	case len(e.Seed) > maxName:
		c.fail(at.to("seed"), "%s", tooLong("a seed", e.Seed, maxName))
	case !utf8.ValidString(e.Seed):
		c.fail(at.to("seed"), "a seed is valid UTF-8")
	}
}

// has returns whether the turn of a tenant of a tier has come. A text that is no name of a tenant is in the share of all alone. It allocates nothing.
func (e *Enforcement) has(tier, tenant string) bool {
	if e == nil || e.Share >= percentOfAll || tenant == "" || len(tenant) > MaxLongName {
		return e != nil && e.Share >= percentOfAll
	}
	// FNV-1a over the three texts, each with its end, and the last step of SplitMix64, so that each bit of it decides.
	const basis, prime = 0xcbf29ce484222325, 0x100000001b3
	hash := uint64(basis)
	for _, text := range [...]string{e.Seed, tier, tenant} {
		for i := range len(text) {
			hash = (hash ^ uint64(text[i])) * prime
		}
		hash *= prime
	}
	hash = (hash ^ hash>>30) * 0xbf58476d1ce4e5b9
	hash = (hash ^ hash>>27) * 0x94d049bb133111eb
	hash ^= hash >> 31
	return hash%percentOfAll < uint64(max(e.Share, 0))
}

// turned returns the snapshot in which the share of a tier is enforced, for a tenant that is in it, and else this one.
func (s *Snapshot) turned(set *ruleSet, tenant string) *Snapshot {
	if !set.enforcement.has(set.rules.Tier, tenant) {
		return s
	}
	return s.family.member(s.phase, true, s.strictest)
}
