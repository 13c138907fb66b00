package bucket

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
	"github.com/gqlgen-ratelimit/ratelimit/internal/state"
)

// Receipt is what a [Take] returns for settling: who was charged what, and when. It is opaque, may
// be copied, and belongs to the store that issued it. The zero Receipt is that of no charge.
//
// It refers to the buckets of the take, which must not change while it is in use.
type Receipt struct {
	// id names the marker that makes a settlement happen once.
	id      [16]byte
	tenant  string
	takenAt int64
	buckets []Bucket
	amounts receiptAmounts
	// short is which limits were charged less than amounts says.
	short state.Shortfall
	// counted says that the amounts were counted as usage.
	counted bool
	// local is what a local share has taken from each limit, in the order of the limits, if the receipt is that of
	// its settlement. Nothing was charged for it yet. What is negative was charged and comes back.
	local []int64
	// place is the store that it was charged in, where there are several: see [Receipt.At].
	place string
	// admitted is what the local share has admitted and is counted with its settlement, nil if nothing is.
	admitted *admitted
	// leased says which of the buckets was charged by a Leased.
	leased leasedCharge
	// others are those of the same take that a Leased has charged to other buckets, or had charged. They have no others.
	others []Receipt
}

// receiptAmounts copies the amounts of a take: a caller may use the slice again. The usual few units
// need no allocation.
type receiptAmounts struct {
	few [3]Amount
	n   int
	// many is a pointer because it is rare, and receipts are copied.
	many *Amounts
}

func (a *receiptAmounts) copyFrom(amounts Amounts) {
	if len(amounts) > len(a.few) {
		many := append(Amounts(nil), amounts...)
		a.many = &many
		return
	}
	a.n = copy(a.few[:], amounts)
}

func (a *receiptAmounts) all() Amounts {
	if a.many != nil {
		return *a.many
	}
	return a.few[:a.n]
}

// IsZero reports whether nothing was charged, so that there is nothing to settle.
func (r Receipt) IsZero() bool {
	return r.id == [16]byte{}
}

// Counted returns when the usage of its take was counted, by the clock of the store: in the minute that a settlement corrects. It returns false if
// it was not counted.
func (r Receipt) Counted() (at time.Time, counted bool) {
	if !r.counted {
		return time.Time{}, false
	}
	return time.UnixMilli(r.takenAt), true
}

// Clone returns a copy that refers to nothing of the take, so that keeping it keeps nothing else in memory.
func (r Receipt) Clone() Receipt {
	r.buckets = slices.Clone(r.buckets)
	if r.amounts.many != nil {
		many := slices.Clone(*r.amounts.many)
		r.amounts.many = &many
	}
	for i := range r.buckets {
		r.buckets[i].Amounts = slices.Clone(r.buckets[i].Amounts)
	}
	r.others = slices.Clone(r.others)
	for i := range r.others {
		r.others[i] = r.others[i].Clone()
	}
	return r
}

// issue makes it the receipt of a charge. Its id is random, within one millisecond, but no secret: it never leaves the store and
// its owner.
func (r *Receipt) issue(take *Take, takenAt int64, short state.Shortfall) {
	r.tenant, r.takenAt, r.buckets, r.short = take.Tenant, takenAt, take.Buckets, short
	r.counted = take.Usage != nil
	r.amounts.copyFrom(take.Amounts)
	r.name(takenAt)
}

// name gives the receipt its id.
func (r *Receipt) name(takenAt int64) {
	binary.NativeEndian.PutUint64(r.id[:8], rand.Uint64()) //nolint:gosec // Unique is enough, see issue.
	// An id of zeros would read as no receipt.
	binary.NativeEndian.PutUint64(r.id[8:], uint64(takenAt)|1<<63)
}

// Tenant returns the tenant that the settlement is about.
func (s *Settlement) Tenant() string {
	if s.Claim != nil {
		return s.Claim.Tenant
	}
	return s.Receipt.tenant
}

// maxReceiptAge is how long after a take its receipt can still be settled. It is the life of the
// marker that makes a settlement happen once, so that a late one cannot happen twice. With a claim
// there is no such bound: the record of the claim is the marker, and it lives longer.
const maxReceiptAge = state.MarkerLife * time.Millisecond

// Settlement says what an operation came to after it ran.
type Settlement struct {
	// Receipt is that of the take, which must be no older than a minute where there is no claim. A zero Receipt settles
	// only the claim.
	Receipt Receipt
	// Actual is what the operation was worth in the end, to every bucket alike: one that was asked for an amount of its own
	// is worth as much of that as Actual is of what the others were asked for, rounded up. A unit that is absent keeps its charge. Less
	// than was taken is given back, at most what was charged and the refill has not repaid since the take. More is
	// charged on, which cannot be refused and may overdraw to twice the capacity.
	Actual Amounts
	// Claim ends the claim of the operation. Nil means that there is none.
	Claim *ClaimSettlement
}

// ClaimSettlement ends a claim.
type ClaimSettlement struct {
	Tenant  string
	Claim   *idempotency.Claim
	Outcome idempotency.Outcome
	// Answer is stored for replays when Outcome is Done. Nil stores none.
	Answer []byte
}

// Settled is what a [Settlement] led to.
type Settled struct {
	// Applied says that this call settled. It is false when an earlier call had done so, when the
	// receipt was older than a minute, when another attempt holds the claim, or when its record
	// is gone.
	Applied bool
	// Limits holds the state of every limit of the receipt. It is empty when Applied is false.
	Limits []LimitState
}

// At returns the receipt of a take in one of several stores, and [Receipt.Place] returns which one it was.
func (r Receipt) At(place string) Receipt {
	if !r.IsZero() {
		r.place = place
	}
	return r
}

// Place is the store of [Receipt.At], empty if there is but one.
func (r Receipt) Place() string { return r.place }
