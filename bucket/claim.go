package bucket

import (
	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
	"github.com/gqlgen-ratelimit/ratelimit/internal/state"
)

// How claims are held and what a lost reply does to them is in package internal/claims; here they are packed.

// leaseAndTTL returns the durations of a claim in milliseconds, the defaults filled in.
func leaseAndTTL(claim *idempotency.Claim) (lease, ttl int64) {
	lease, ttl = claim.Lease.Milliseconds(), claim.TTL.Milliseconds()
	if claim.Lease == 0 {
		lease = idempotency.DefaultLease.Milliseconds()
	}
	if claim.TTL == 0 {
		ttl = idempotency.DefaultMutationTTL.Milliseconds()
	}
	// Less than a millisecond is still some time.
	return max(lease, 1), max(ttl, 1)
}

// claimOf is a claim of a take from these buckets as the scripts know it, the defaults filled in.
func claimOf(claim *idempotency.Claim, buckets []Bucket) state.Claim {
	c := state.Claim{
		Attempt: claim.Attempt, Fingerprint: claim.Fingerprint,
		RunAgain: claim.RunAgain, RefuseAbandoned: claim.RefuseAbandoned, Sum: sumOf(buckets),
	}
	c.Lease, c.Life = leaseAndTTL(claim)
	return c
}

// packEnd says how a settlement ends a record.
func packEnd(end *ClaimSettlement) string {
	as := byte(state.Answered)
	switch {
	case end.Outcome == idempotency.Released:
		as = 0
	case end.Answer == nil:
		as = state.Done
	}
	return string(append(end.Claim.Attempt[:], as))
}
