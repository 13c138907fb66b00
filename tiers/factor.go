package tiers

import (
	"encoding/json"
	"errors"
	"maps"
	"math/bits"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// Factor is how many times, or how many hundredths of, the limits of its tier a tenant has, at least 1. The zero value
// changes nothing; a document or a record that writes 0 is wrong.
type Factor int64

// errFactor says what would fit.
var errFactor = errors.New("times and percent are whole numbers from 1 on; leave them out to change nothing")

// UnmarshalJSON reads a whole number from 1 on, and null as nothing.
func (f *Factor) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return nil
	}
	var n int64
	if err := json.Unmarshal(data, &n); err != nil || n < 1 {
		return errFactor
	}
	*f = Factor(n)
	return nil
}

// factor is what the limits of a tier are multiplied by: by over of. The zero value changes nothing.
type factor struct{ by, of int64 }

// factor returns that of an exception, none if it is wrong.
func (x *Exception) factor() factor {
	switch {
	case x.Times > 0:
		return factor{int64(x.Times), 1}
	case x.Percent > 0:
		return factor{int64(x.Percent), 100}
	default:
		return factor{}
	}
}

func (f factor) changes() bool { return f.by != f.of }

// factorKey is the key of the factor, empty if there is none.
func (x *Exception) factorKey() string {
	switch {
	case x.Times != 0:
		return "times"
	case x.Percent != 0:
		return "percent"
	default:
		return ""
	}
}

// maxScaled is the largest number that a product is, for which any refill fits.
const maxScaled = 1<<53 - 1

// number multiplies, rounded down, to no less than 1 and no more than any limit holds. Zero and what is wrong stay.
func (f factor) number(n int64) int64 {
	if n <= 0 {
		return n
	}
	hi, lo := bits.Mul64(uint64(n), uint64(f.by))
	if hi >= uint64(f.of) {
		return maxScaled
	}
	quotient, _ := bits.Div64(hi, lo, uint64(f.of))
	return max(1, int64(min(quotient, maxScaled)))
}

// tier returns the tier with its limits multiplied. It shares no limit with it.
func (f factor) tier(t Tier) Tier {
	t.Limits = f.limits(t.Limits)
	if t.Teams != nil {
		teams := f.owner(*t.Teams)
		t.Teams = &teams
	}
	if t.Users != nil {
		users := *t.Users
		users.Limits = f.limits(users.Limits)
		users.Operations = maps.Clone(users.Operations)
		for spelling, rule := range users.Operations {
			users.Operations[spelling] = f.owner(rule)
		}
		t.Users = &users
	}
	t.Operations = maps.Clone(t.Operations)
	for spelling, rule := range t.Operations {
		rule.Limits = f.limits(rule.Limits)
		t.Operations[spelling] = rule
	}
	return t
}

func (f factor) owner(rule OwnerRule) OwnerRule {
	rule.Limits = f.limits(rule.Limits)
	return rule
}

func (f factor) limits(limits map[string]*Limit) map[string]*Limit {
	limits = maps.Clone(limits)
	for name, l := range limits {
		// What all tenants share is not this one's to multiply.
		if l != nil && !l.Across {
			limits[name] = f.limit(l)
		}
	}
	return limits
}

// limit returns the limit multiplied: what can be taken at once, and what comes back in a period. A product that a store
// cannot count exactly is rounded down to a number with few digits, and what is too large altogether is the largest that fits.
func (f factor) limit(l *Limit) *Limit {
	scaled := *l
	scaled.Capacity, scaled.Refill = f.number(l.Capacity), f.number(l.Refill)
	if scaled.counts() || !l.counts() {
		// Of a limit that was wrong before, that is said.
		return &scaled
	}
	rounded := scaled
	for grain := int64(10); grain <= scaled.Capacity && grain < maxScaled/10; grain *= 10 {
		rounded.Capacity -= rounded.Capacity % grain
		if rounded.Refill > grain {
			rounded.Refill -= rounded.Refill % grain
		}
		if rounded.counts() {
			return &rounded
		}
	}
	if rounded.Window == "" && rounded.Refill == 0 {
		// From here on what can be taken at once is smaller than what comes back.
		rounded.Refill = rounded.Capacity
	}
	fits, most := int64(1), rounded.Capacity
	for fits < most {
		rounded.Capacity = fits + (most-fits+1)/2
		if rounded.counts() {
			fits = rounded.Capacity
		} else {
			most = rounded.Capacity - 1
		}
	}
	rounded.Capacity = fits
	return &rounded
}

// counts reports whether a store can count the limit.
func (l *Limit) counts() bool {
	_, err := bucket.Compile(l.resolve("scaled", setting{}))
	return err == nil
}

// factor checks what multiplies the limits of the tier.
func (c *checker) factor(at path, x *Exception) {
	for _, given := range []struct {
		key string
		n   Factor
	}{{"times", x.Times}, {"percent", x.Percent}} {
		if given.n < 0 {
			c.fail(at.to(given.key), "%d; at least 1 fits", given.n)
		}
	}
	if x.Times != 0 && x.Percent != 0 {
		c.fail(at.to("percent"), "stands beside times; one of the two fits")
	}
}
