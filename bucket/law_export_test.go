package bucket

import (
	"errors"
	"math/big"

	"github.com/gqlgen-ratelimit/ratelimit/internal/luatest"
	"github.com/gqlgen-ratelimit/ratelimit/internal/state"
)

// Stored is what is stored of one limit. The zero value is nothing.
type Stored struct{ state.Entry }

// Level is what it counts at the time, in tokens.
func (s Stored) Level(now int64) *big.Rat {
	if s.Entry == (state.Entry{}) || s.Entry.Gone() <= now {
		return new(big.Rat)
	}
	e := s.At(now)
	level := big.NewRat(e.Debt, e.Unit())
	if overlap := e.Overlap(now); overlap > 0 {
		level.Add(level, new(big.Rat).Mul(new(big.Rat).SetInt64(e.Previous), big.NewRat(overlap, e.Length)))
	}
	return level
}

// LevelUnder is what it counts at the time for a limit, in tokens: less by the faster of the two refills since its date.
func (s Stored) LevelUnder(limit *Limit, now int64) *big.Rat {
	level := s.Level(now)
	if s.Tag != state.TokenBucket || limit.Window.Kind != TokenBucket || level.Sign() == 0 {
		return level
	}
	repaid := big.NewRat(limit.Refill, limit.Period.Milliseconds())
	repaid.Mul(repaid, new(big.Rat).SetInt64(max(0, now-s.Date)))
	under := big.NewRat(s.Debt, s.Unit())
	if under.Sub(under, repaid); under.Sign() < 0 {
		under.SetInt64(0)
	}
	if under.Cmp(level) < 0 {
		return under
	}
	return level
}

// Gone is when it counts nothing any more.
func (s Stored) Gone() int64 {
	if s.Entry == (state.Entry{}) {
		return 0
	}
	return s.Entry.Gone()
}

// SameTerms reports whether it comes back as the other does.
func (s Stored) SameTerms(other Stored) bool { return s.Terms == other.Terms }

// Foreign reports whether it is in other terms than those of the limit in the buckets.
func (s Stored) Foreign(buckets []Bucket) bool {
	for i := range buckets {
		for j := range buckets[i].Limits.rules {
			if rule := &buckets[i].Limits.rules[j]; rule.ID == s.ID && s.Debt+s.Previous > 0 {
				return rule.Tag != s.Tag || rule.Tag == state.TokenBucket && (rule.P != s.P || rule.R != s.R)
			}
		}
	}
	return false
}

// Stored returns what is stored of a limit.
func (m *Memory) Stored(tenant string, owner Owner, unit Unit, name string) Stored {
	s, kept, _ := m.lock(tenant)
	defer s.mu.Unlock()
	key := s.key(kept, keyKind(owner.Level), owner.Name)
	if _, e := s.lookup(&key); e != nil {
		stored, _ := ReadStored(string(s.valueOf(e)), unit, name)
		return stored
	}
	return Stored{}
}

// ReadStored returns what a state in Redis holds of a limit.
func ReadStored(text string, unit Unit, name string) (Stored, error) {
	owner, err := state.ReadOwner([]byte(text))
	if err != nil {
		return Stored{}, err
	}
	if e := owner.Find(stateID(unit, name), 0); e != nil {
		return Stored{*e}, nil
	}
	return Stored{}, nil
}

// BucketsOf returns the buckets of a receipt.
func BucketsOf(r Receipt) []Bucket { return r.buckets }

// LocalReceipt is the receipt of what a Local has taken from the limits of the buckets.
func LocalReceipt(tenant string, takenAt int64, buckets []Bucket, taken []int64) Receipt {
	r := Receipt{tenant: tenant, takenAt: takenAt, buckets: buckets, local: taken}
	r.name(takenAt)
	return r
}

// Mutate changes the text of a script: each old one, of which there has to be one, becomes the new one.
func (r *Redis) Mutate(script, old, changed string) error {
	for _, s := range r.scripts.All() {
		if s.Name == script {
			return luatest.Replace(s, old, changed)
		}
	}
	return errors.New("no script " + script)
}

// Cap cuts what is stored of the limits of the buckets to twice their capacity, as a store would that keeps what
// it judges.
func (m *Memory) Cap(tenant string, buckets []Bucket) {
	m.spoil(tenant, buckets, func(rule *rule, e *state.Entry, _ int64) {
		e.Debt = min(e.Debt, state.Product(2*rule.Capacity, e.Unit()))
	})
}

// Adopt puts what is stored of the limits of the buckets into their terms, as a store would that keeps none.
func (m *Memory) Adopt(tenant string, buckets []Bucket) {
	m.spoil(tenant, buckets, func(rule *rule, e *state.Entry, now int64) {
		if rule.Tag == state.TokenBucket && e.Tag == state.TokenBucket {
			is := e.At(now)
			e.Debt, e.Date, e.Terms = rule.Convert(is.Debt, e.P), is.Date, rule.Terms(now)
		}
	})
}

func (m *Memory) spoil(tenant string, buckets []Bucket, change func(rule *rule, e *state.Entry, now int64)) {
	s, kept, now := m.lock(tenant)
	defer s.mu.Unlock()
	for i := range buckets {
		key := s.key(kept, keyKind(buckets[i].Owner.Level), buckets[i].Owner.Name)
		at, was := s.lookup(&key)
		if at == 0 {
			continue
		}
		// What cannot be read is left as it is.
		owner, _ := state.ReadOwner(s.valueOf(was))
		expires := was.expires()
		for j := range buckets[i].Limits.rules {
			rule := &buckets[i].Limits.rules[j]
			if found := owner.Find(rule.ID, j); found != nil && found.Debt > 0 {
				change(rule, found, now)
				expires = max(expires, found.Gone())
			}
		}
		s.put(&key, at, owner.Pack(buckets[i].Limits.compiled, now), expires)
	}
}

// FullAt returns when nothing of a stored state counts any more.
func FullAt(text string) (int64, error) {
	owner, err := state.ReadOwner([]byte(text))
	full := int64(0)
	for i := range owner.Entries {
		full = max(full, owner.Entries[i].Gone())
	}
	return full, err
}
