package bucket

import (
	"context"
	"fmt"

	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
)

// maxTTL bounds the durations of a claim, so that no sum of dates leaves the exact integers.
const maxTTL = maxPeriod

// checkContext returns the error of a call whose caller has gone before anything was done.
func checkContext(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return nil
}

// Check returns what is wrong with the take, as an error that matches [ErrInvalid]. Every store calls it.
func (t *Take) Check() error {
	if err := checkBuckets(t.Buckets); err != nil {
		return err
	}
	if err := checkAmounts(t.Amounts); err != nil {
		return err
	}
	if t.Usage != nil {
		if err := t.Usage.check(t.Amounts); err != nil {
			return err
		}
	}
	if t.Candidate != nil {
		if err := t.Candidate.Check(); err != nil {
			return err
		}
	}
	return checkClaim(t.Claim)
}

func checkBuckets(buckets []Bucket) error {
	limits := 0
	for i := range buckets {
		b := &buckets[i]
		switch {
		case b.Limits == nil:
			return fmt.Errorf("%w: the bucket of a %v has no compiled limits", ErrInvalid, b.Owner.Level)
		case b.Owner.Level > Operation:
			return fmt.Errorf("%w: unknown %v", ErrInvalid, b.Owner.Level)
		case b.Owner.Level == Tenant && b.Owner.Name != "":
			return fmt.Errorf("%w: the owner at the level of the tenant has a name", ErrInvalid)
		case b.Owner.Level != Operation && b.Owner.Part != "":
			return fmt.Errorf("%w: a part of a %v", ErrInvalid, b.Owner.Level)
		}
		if err := checkAmounts(b.Amounts); err != nil {
			return err
		}
		for j := range i {
			if buckets[j].Owner == b.Owner {
				return fmt.Errorf("%w: two buckets of one %v", ErrInvalid, b.Owner.Level)
			}
		}
		limits += len(b.Limits.rules)
		// Buckets without limits count as well, since each is a key to be named.
		if limits > MaxLimits || i >= MaxLimits {
			return fmt.Errorf("%w: more than %d limits in one call", ErrInvalid, MaxLimits)
		}
	}
	return nil
}

func checkAmounts(amounts Amounts) error {
	for i := range amounts {
		if amounts[i].N < 0 {
			return fmt.Errorf("%w: %d of %.64q", ErrInvalid, amounts[i].N, amounts[i].Unit)
		}
		for j := range i {
			if amounts[j].Unit == amounts[i].Unit {
				return fmt.Errorf("%w: two amounts of %.64q", ErrInvalid, amounts[i].Unit)
			}
		}
	}
	return nil
}

func checkClaim(claim *idempotency.Claim) error {
	switch {
	case claim == nil:
		return nil
	case claim.Lease < 0 || claim.Lease > maxTTL:
		return fmt.Errorf("%w: a lease of %v", ErrInvalid, claim.Lease)
	case claim.TTL < 0 || claim.TTL > maxTTL:
		return fmt.Errorf("%w: a claim that lives %v", ErrInvalid, claim.TTL)
	}
	return nil
}

func checkRenewal(claim *idempotency.Claim) error {
	if claim == nil {
		return fmt.Errorf("%w: the renewal of no claim", ErrInvalid)
	}
	return checkClaim(claim)
}

// check returns what is wrong with the settlement, wrapped in ErrInvalid.
func (s *Settlement) check() error {
	if err := checkAmounts(s.Actual); err != nil {
		return err
	}
	c := s.Claim
	switch {
	case c == nil:
		return nil
	case c.Claim == nil:
		return fmt.Errorf("%w: the settlement of a claim without the claim", ErrInvalid)
	case c.Outcome != idempotency.Done && c.Outcome != idempotency.Released:
		return fmt.Errorf("%w: unknown outcome %d", ErrInvalid, c.Outcome)
	case !s.Receipt.IsZero() && c.Tenant != s.Receipt.tenant:
		return fmt.Errorf("%w: the receipt and the claim are of different tenants", ErrInvalid)
	}
	return checkClaim(c.Claim)
}

// Check returns what is wrong with the candidate, as an error that matches [ErrInvalid]. No candidate is fine.
func (c *Candidate) Check() error {
	if c == nil {
		return nil
	}
	if !literal(c.ID) {
		return fmt.Errorf("%w: candidate %.80q: 1 to %d characters of A-Z a-z 0-9 _ . - fit", ErrInvalid, c.ID, maxLiteralBytes)
	}
	return checkBuckets(c.Buckets)
}
