package bucket

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
	"github.com/gqlgen-ratelimit/ratelimit/internal/state"
)

const (
	// DefaultRegionalLease is for how long a [Regional] leases.
	DefaultRegionalLease = 15 * time.Second
	// leastRegionalLease and mostRegionalLease are for how long it can.
	leastRegionalLease = 2 * time.Second
	mostRegionalLease  = state.MaxLease * time.Millisecond
)

// RegionalConfig configures a [Regional]. Shares and Lease have to be the same in all instances of all regions.
type RegionalConfig struct {
	// Region is the name of this region.
	Region string
	// Shares are what each region has for itself of each limit of a tenant, in percent, by the names of the regions: at least 1 for each, and 99 for all
	// together. The rest is what home leases to all of them.
	Shares map[string]int
	// Lease is for how long a region goes on by what it holds while home is away: 2 s to 60 s. What an instance held that was killed comes back
	// after that time. Zero means [DefaultRegionalLease].
	Lease time.Duration
}

// check returns everything that is wrong.
func (c *RegionalConfig) check() error {
	var mistakes []error
	fail := func(format string, args ...any) {
		mistakes = append(mistakes, fmt.Errorf("%w: "+format, append([]any{ErrInvalid}, args...)...))
	}
	sum := 0
	for _, name := range slices.Sorted(maps.Keys(c.Shares)) {
		share := c.Shares[name]
		if share < 1 || share > 99 {
			fail("the share of region %.64q is %d %%; 1 to 99 fit", name, share)
		}
		sum += min(max(0, share), 100)
	}
	if sum > 99 {
		fail("the shares of all regions are %d %% together; at most 99 fit, because the rest is what home leases", sum)
	}
	if _, found := c.Shares[c.Region]; !found {
		fail("region %.64q has no share; name it in Shares with its percentage", c.Region)
	}
	if c.Lease != 0 && (c.Lease < leastRegionalLease || c.Lease > mostRegionalLease) {
		fail("the lease is %v; %v to %v fit", c.Lease, leastRegionalLease, mostRegionalLease)
	}
	return errors.Join(mistakes...)
}

// Regional is the store of an instance in one of several regions that share the budgets of tenants. Each region has a store near it, and one home store is
// shared by all. Of each limit of a tenant a region has a share for itself, which stands in its own store, whoever is away; home leases the rest to
// the instances of all regions, a [Leased] in front of the Regional is what holds it. So no take waits for home, and all regions together admit in
// any interval of time what the limit admits, or less: the shares and the rest are no more than the whole, and what home has leased is partitioned as
// every leased bucket is.
//
// The region has all other owners, claims and counts for itself: users, operations, keys and usage are those of the region. A tenant of which nothing
// is leased has the share of the region. An amount has to fit into the share, or into what an instance holds: more than both is refused. Limits so small that a part of
// them is less than 1 are [ErrInvalid]; package ratelimit loads no policy with such limits.
//
// Nothing else may take from the home store: give it a namespace, or a database, of its own. Override records are not divided: one in the store of
// the region changes the share, and one in the home store what home leases. See docs/guide/regions.md.
//
// It starts no goroutine and is safe for concurrent use. Its errors are those of the store of the region.
type Regional struct {
	// region is the store near this instance.
	region LeaseStore
	home   LeaseStore
	parts  divider
	share  int
	// least is the smallest share of all regions, in percent.
	least  int64
	length time.Duration
}

var (
	_ LeaseStore      = (*Regional)(nil)
	_ EvictionCounter = (*Regional)(nil)
	_ LimitsChecker   = (*Regional)(nil)
	_ lender          = (*Regional)(nil)
)

// NewRegional returns the store of an instance of a region, which has a store there and shares another one, home, with all regions. The errors are
// [ErrInvalid], one for each mistake, joined.
func NewRegional(region, home LeaseStore, cfg RegionalConfig) (*Regional, error) {
	err := cfg.check()
	if region == nil || home == nil || region == home {
		err = errors.Join(err, fmt.Errorf("%w: a region needs a store of its own, and a home store besides", ErrInvalid))
	}
	if err != nil {
		return nil, err
	}
	if cfg.Lease == 0 {
		cfg.Lease = DefaultRegionalLease
	}
	rest, least := int64(100), int64(100)
	for _, share := range cfg.Shares {
		rest, least = rest-int64(share), min(least, int64(share))
	}
	r := &Regional{region: region, home: home, share: cfg.Shares[cfg.Region], least: least, length: cfg.Lease}
	r.parts.share, r.parts.lent = int64(r.share), rest
	return r, nil
}

// Share returns what the region has of each limit for itself, in percent.
func (r *Regional) Share() int { return r.share }

// Check reports whether limits of a tenant can be divided, with an error that says which one cannot.
func (r *Regional) Check(limits *Limits) error { return r.parts.divide(limits).err }

// CheckLimits implements [LimitsChecker]. What any of the regions cannot divide does not fit, so that all of them load a policy or none. A warning is about tenants of which nothing is leased: they have the share of the region alone.
func (r *Regional) CheckLimits(limits *Limits, lease LeaseMode) (warning string, err error) {
	err = r.Check(limits)
	if err == nil {
		_, err = limits.part(r.least, sharePart)
	}
	if err != nil {
		return "", err
	}
	switch lease {
	case LeaseOff:
		return fmt.Sprintf("nothing is leased, so that they have the %d %% of this region and never the %d %% of home: say lease: always", r.share, r.parts.lent), nil
	case LeaseAuto:
		return fmt.Sprintf("they have the %d %% of this region until they are busy there: say lease: always for the %d %% of home as well", r.share, r.parts.lent), nil
	case LeaseAlways:
	}
	return "", nil
}

func (r *Regional) lent(limits *Limits) *Limits { return r.parts.divide(limits).lent }

func (r *Regional) leaseLength() int64 { return r.length.Microseconds() }

// ofRegion returns the buckets as the region has them.
func (r *Regional) ofRegion(buckets []Bucket) ([]Bucket, error) {
	for i := range buckets {
		b := &buckets[i]
		if b.Owner.Level != Tenant || b.Limits == nil || b.Limits.is != wholePart || b.Limits.Len() == 0 {
			continue
		}
		parts := r.parts.divide(b.Limits)
		if parts.err != nil {
			return nil, parts.err
		}
		buckets = slices.Clone(buckets)
		buckets[i].Limits = parts.share
		// A tenant has one bucket.
		return buckets, nil
	}
	return buckets, nil
}

// Take implements [Store] by the share of the region.
func (r *Regional) Take(ctx context.Context, take Take) (Result, error) {
	var err error
	if take.Buckets, err = r.ofRegion(take.Buckets); err != nil {
		return Result{}, err
	}
	if take.Candidate != nil {
		candidate := *take.Candidate
		if candidate.Buckets, err = r.ofRegion(candidate.Buckets); err != nil {
			return Result{}, err
		}
		take.Candidate = &candidate
	}
	// What is remembered of a verdict is about the share, and whoever remembers it knows the whole.
	take.Observe, take.ObserveAdmitted = false, false
	return r.region.Take(ctx, take)
}

// Settle implements [Store]. What was charged to a lease and was worth more is charged to the share; what is left of a window that was leased stays
// used.
func (r *Regional) Settle(ctx context.Context, settlement Settlement) (Settled, error) {
	receipt := &settlement.Receipt
	var err error
	if receipt.buckets, err = r.ofRegion(receipt.buckets); err != nil {
		return Settled{}, err
	}
	if len(receipt.buckets) == 1 && receipt.buckets[0].Limits.is == lentPart && !r.toShare(receipt) {
		return Settled{Applied: true}, nil
	}
	return r.region.Settle(ctx, settlement)
}

// toShare makes a receipt of what is charged on to what was leased one of the share. It returns false if nothing is left of it.
func (r *Regional) toShare(receipt *Receipt) bool {
	b := &receipt.buckets[0]
	was, share := b.Limits, r.parts.divide(b.Limits.whole).share
	amounts, some := make([]int64, share.Len()), false
	for i := range share.rules {
		for j := range min(len(receipt.local), len(was.rules)) {
			if was.rules[j].ID == share.rules[i].ID && receipt.local[j] > 0 {
				amounts[i], some = receipt.local[j], true
			}
		}
	}
	receipt.buckets = []Bucket{{Owner: b.Owner, Limits: share, Amounts: b.Amounts}}
	receipt.local = amounts
	return some
}

// Renew implements [Store].
func (r *Regional) Renew(ctx context.Context, tenant string, claim *idempotency.Claim) (bool, error) {
	return r.region.Renew(ctx, tenant, claim)
}

// Peek implements [Store]: it shows the share of the region.
func (r *Regional) Peek(ctx context.Context, tenant string, buckets []Bucket) ([]LimitState, error) {
	own, err := r.ofRegion(buckets)
	if err != nil {
		return nil, err
	}
	return r.region.Peek(ctx, tenant, own)
}

// Grant implements [Store]: it gives to the share of the region.
func (r *Regional) Grant(ctx context.Context, tenant string, buckets []Bucket, amounts Amounts) ([]LimitState, error) {
	own, err := r.ofRegion(buckets)
	if err != nil {
		return nil, err
	}
	return r.region.Grant(ctx, tenant, own, amounts)
}

// Reset implements [Store]: it makes the share of the region full. What home leases stays as it is.
func (r *Regional) Reset(ctx context.Context, tenant string, buckets []Bucket) error {
	own, err := r.ofRegion(buckets)
	if err != nil {
		return err
	}
	return r.region.Reset(ctx, tenant, own)
}

// Exchange implements [LeaseStore]: home leases.
func (r *Regional) Exchange(ctx context.Context, exchange Exchange) (Exchanged, error) {
	return r.home.Exchange(ctx, exchange)
}

// Beat implements [LeaseStore]: the instances are those of the region. Home is told as well, which does not have to answer.
func (r *Regional) Beat(ctx context.Context, instance [8]byte) (instances int, before bool, err error) {
	instances, before, err = r.region.Beat(ctx, instance)
	if err == nil {
		_, _, _ = r.home.Beat(ctx, instance)
	}
	return instances, before, err
}

// AllLease implements [LeaseStore]: all instances of this region can, and of all others, by what home said last.
func (r *Regional) AllLease() bool { return r.region.AllLease() && r.home.AllLease() }

// Evicted implements [EvictionCounter]: it is that of the store of the region.
func (r *Regional) Evicted() uint64 {
	if counter, ok := r.region.(EvictionCounter); ok {
		return counter.Evicted()
	}
	return 0
}
