package bucket

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/internal/state"
)

// MaxLeaseHolders is how many holders of a limit [LeaseReader] names at most.
const MaxLeaseHolders = 100

// LeaseReader is a store that says who leases parts of limits, for an operator who sees a refusal of a tenant whose limit is not used up: what one
// instance holds another one cannot use before it is given back. [Memory] and [Redis] are such. No client is told of holders.
type LeaseReader interface {
	// Leases returns those limits of the buckets of which instances lease parts, in the order of the buckets, as override records make them. It changes nothing. What is left and
	// who holds the rest is read one after the other, so that an exchange in between is in the second alone. The errors are those of [Store].
	Leases(ctx context.Context, tenant string, buckets []Bucket) ([]LimitLeases, error)
}

var (
	_ LeaseReader = (*Memory)(nil)
	_ LeaseReader = (*Redis)(nil)
)

// LimitLeases is how a limit is divided among the store and those who lease parts of it.
type LimitLeases struct {
	// Free is the limit with what is left in the store, which is what an instance can have that holds too little.
	Free LimitState
	// Holders is how many lease parts. Those whose leases have ended are among them until the store has taken their parts back.
	Holders int
	// Capacity, Refill and Level are the sums of all parts.
	Capacity, Level int64
	Refill          float64
	// Parts are the largest ones, at most [MaxLeaseHolders]: by capacity, or of a window by level.
	Parts []LeasedPart
}

// LeasedPart is what one instance leases of a limit.
type LeasedPart struct {
	// Holder is under which name. An instance draws one at random for each tenant when it begins to lease, and another one after a lease has ended unheard.
	Holder string
	// Capacity is how many tokens it can have at once, zero of a window. Level is how many it had after its last exchange: it has used
	// some since, and some came back.
	Capacity, Level int64
	// Refill is how many tokens come back to it in a second, zero of a window.
	Refill float64
	// Ends is when the lease ends, by the clock of the store, unless another exchange comes before, and EndsIn how long that is. EndsIn is negative after it has: the
	// part is taken back with the next exchange of another instance.
	Ends   time.Time
	EndsIn time.Duration
}

// Leases implements [LeaseReader].
func (s *core) Leases(ctx context.Context, tenant string, buckets []Bucket) ([]LimitLeases, error) {
	states, governed, now, err := s.peek(ctx, tenant, buckets)
	if err != nil {
		return nil, err
	}
	var all []LimitLeases
	for i := range governed {
		rules := governed[i].Limits.rules
		of := states[:len(rules)]
		states = states[len(rules):]
		stored, err := s.engine.read(ctx, tenant, holdingsAddress(&governed[i].Owner))
		if err != nil {
			return nil, err
		}
		ids := make([]uint16, len(rules))
		for j := range rules {
			ids[j] = rules[j].ID
		}
		holders, ok := state.ReadHolders(stored, ids)
		if !ok {
			return nil, fmt.Errorf("%w: who leases it is written by another version", ErrUnavailable)
		}
		for j := range rules {
			if l := leasesOfLimit(of[j], holders, j, now); l.Holders > 0 {
				all = append(all, l)
			}
		}
	}
	return all, nil
}

// leasesOfLimit collects what the holders have of the limit in a place.
func leasesOfLimit(free LimitState, holders []state.Holder, limit int, now int64) LimitLeases {
	l := LimitLeases{Free: free}
	for i := range holders {
		h := &holders[i]
		p := &h.Parts[limit]
		if p.Unit == 0 {
			continue
		}
		part := LeasedPart{
			Holder: hex.EncodeToString([]byte(h.Name)), Capacity: p.Capacity / p.Unit, Level: p.Level / p.Unit, Refill: float64(p.Rate) * 1000 / float64(p.Unit),
			Ends: time.UnixMilli(h.Ends).UTC(), EndsIn: time.Duration(h.Ends-now) * time.Millisecond,
		}
		l.Holders++
		l.Capacity += part.Capacity
		l.Level += part.Level
		l.Refill += part.Refill
		l.Parts = append(l.Parts, part)
	}
	slices.SortFunc(l.Parts, func(one, other LeasedPart) int {
		return cmp.Or(cmp.Compare(other.Capacity, one.Capacity), cmp.Compare(other.Level, one.Level), cmp.Compare(one.Holder, other.Holder))
	})
	l.Parts = l.Parts[:min(len(l.Parts), MaxLeaseHolders)]
	return l
}
