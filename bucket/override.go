package bucket

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/gqlgen-ratelimit/ratelimit/internal/state"
)

// Bounds of override records.
const (
	// maxOverrides is how many records a tenant may have.
	maxOverrides = 128
	// maxOverrideOwner is the length in bytes of the longest name of an owner that can have a record.
	maxOverrideOwner = 512
	// maxOverrideReason and maxOverrideActor are the lengths in bytes of the longest texts for auditors.
	maxOverrideReason = 256
	maxOverrideActor  = 128
)

// ErrOverridesFull says that a tenant, or a [Memory] as a whole, has no room for another override record.
// Nothing was changed.
var ErrOverridesFull = errors.New("bucket: no room for another override record")

var errExpired = fmt.Errorf("%w: an override record that has expired already, by the clock of the store", ErrInvalid)

// Override is a record in the store that beats the policy for one owner: for all limits of its bucket, or
// for a single one. It changes no bucket of another level. A field that is zero leaves what the policy
// says.
//
// Records are read in the same step as each take, so that a change holds from the next take on, in every
// replica. What was spent is kept, as it is when a policy changes. A record cannot add a limit: one that
// names a limit that the policy does not have is kept and changes nothing until the policy has it. The
// same holds for a record whose numbers make no limit together with those of the policy; [Override.Apply]
// tells before. It also holds for one that switches limits on, in a call that would then touch more than
// [MaxLimits].
//
// A take with neither limits nor a claim asks no store, and so no record either: what a policy leaves
// unlimited is blocked or limited in the policy.
type Override struct {
	// Owner is whose bucket the record changes. An operation is named as the policy spells its rule, or,
	// to block it, by the coordinate of its root field; its record holds for each part of it as well, whose own record
	// beats it. A name and a part have at most 512 bytes together.
	Owner Owner
	// Limit is the name of the limit that the record changes. Empty means all limits of the owner. The
	// record of a single limit beats that of all.
	Limit string

	// Capacity replaces that of the limit, and its Refill where that was the capacity. It needs Limit.
	Capacity int64
	// Refill replaces how much comes back in each period. It needs Limit, of a token bucket.
	Refill int64
	// Period replaces that of the limit: whole milliseconds. It needs Limit.
	Period time.Duration
	// Mode replaces the mode of the limits, but makes none stricter than [Limit.Strictest]. Nil leaves it.
	Mode *Mode
	// Unlimited says that nothing is judged or charged. It beats Mode, and that of a single limit.
	Unlimited bool
	// Blocked says that every take of the owner is refused, whatever the mode: also of an owner without
	// limits, if it stands in [Take.Owners]. It is of the owner as a whole. It does not reach takes that ask
	// no store, those of a tenant without any limit, nor a trusted document that has no rule of its own:
	// block such tenants with blocked: true in their tier or exception of the policy, which needs no store,
	// and the document by the coordinate of its root field.
	Blocked bool

	// Expires is when the record ceases to hold, by the clock of the store, in whole milliseconds. The
	// zero time is never.
	Expires time.Time
	// Reason and Actor are for those who have to know later why the record was made, and by whom. They
	// are required, of at most 256 and 128 bytes, and shown to nobody else: no client, no metric.
	Reason, Actor string
	// SetAt is when the record was made, by the clock of the store. It is set by the store.
	SetAt time.Time
}

// OverrideStore keeps override records. [Memory] and [Redis] implement it; buckettest runs one contract
// against both. Each call is one step. Of two calls at the same time the later one wins: what it replaced
// is returned, so that it can be seen. A tenant has room for 128 records, and for 32 KiB of them in their stored form.
//
// The errors are those of [Store], and [ErrOverridesFull].
type OverrideStore interface {
	// SetOverride makes or replaces the record of an owner, or of a limit of it. It returns what it
	// replaced, nil if there was none. A record that has expired by the clock of the store is
	// [ErrInvalid].
	SetOverride(ctx context.Context, tenant string, override Override) (replaced *Override, err error)

	// GetOverride returns the record of the owner, or of the limit if a name is given: nil if there is none.
	GetOverride(ctx context.Context, tenant string, owner Owner, limit string) (*Override, error)

	// ListOverrides returns the records of the tenant that have not expired, those changed first in front.
	ListOverrides(ctx context.Context, tenant string) ([]Override, error)

	// DeleteOverride removes a record and returns it, nil if there was none.
	DeleteOverride(ctx context.Context, tenant string, owner Owner, limit string) (removed *Override, err error)

	// ClearOverrides removes all records of the tenant and returns them. Records that cannot be read,
	// because another version wrote them, are removed too, and not returned.
	ClearOverrides(ctx context.Context, tenant string) (removed []Override, err error)
}

// Apply returns the limits of an owner as they are while the record holds. The error says what does not
// fit, as that of [Compile] does; a store would leave such a limit as the policy has it. Use it before
// [OverrideStore.SetOverride], which does not know the policy.
func (o *Override) Apply(limits *Limits) (*Limits, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	if limits == nil {
		return nil, fmt.Errorf("%w: an override record for no limits", ErrInvalid)
	}
	changed := limits.All()
	if o.Limit != "" && !slices.ContainsFunc(changed, func(l Limit) bool { return l.Name == o.Limit }) {
		return nil, fmt.Errorf("%w: an override record for limit %q, which the policy does not have", ErrInvalid, o.Limit)
	}
	for i := range changed {
		changed[i], _ = overridden(changed[i], []*Override{o})
	}
	return Compile(changed...)
}

// Check returns what is wrong with the record by itself, wrapped in [ErrInvalid], whatever the policy and the time.
func (o *Override) Check() error {
	numbers := o.Capacity != 0 || o.Refill != 0 || o.Period != 0
	switch {
	case !numbers && o.Mode == nil && !o.Unlimited && !o.Blocked:
		return fmt.Errorf("%w: an override record that changes nothing", ErrInvalid)
	case o.Unlimited && (o.Blocked || numbers || o.Mode != nil):
		return fmt.Errorf("%w: an override record with Unlimited has nothing beside it", ErrInvalid)
	case o.Limit == "" && numbers:
		return fmt.Errorf("%w: the numbers of an override record need the name of a limit", ErrInvalid)
	case o.Limit != "" && o.Blocked:
		return fmt.Errorf("%w: an override record blocks an owner and no single limit", ErrInvalid)
	case o.Mode != nil && *o.Mode > Off:
		return fmt.Errorf("%w: %v is unknown; enforce, warn, shadow or off fits", ErrInvalid, *o.Mode)
	}
	if err := checkOverrideKey(o.Owner, o.Limit); err != nil {
		return err
	}
	for _, text := range []struct {
		what, text string
		most       int
	}{{"Reason", o.Reason, maxOverrideReason}, {"Actor", o.Actor, maxOverrideActor}} {
		if text.text == "" || len(text.text) > text.most || !utf8.ValidString(text.text) {
			return fmt.Errorf("%w: %s of an override record: 1 to %d bytes of UTF-8 fit", ErrInvalid, text.what, text.most)
		}
	}
	return o.checkNumbers()
}

// checkNumbers checks each number for itself; what is missing is taken to be one that goes with
// everything.
func (o *Override) checkNumbers() error {
	if ms := o.Expires.UnixMilli(); !o.Expires.IsZero() && (ms < 1 || ms > maxDate) {
		return fmt.Errorf("%w: an override record that expires at %v", ErrInvalid, o.Expires)
	}
	limit := Limit{Name: "override", Unit: Points, Capacity: o.Capacity, Refill: o.Refill, Period: o.Period}
	if limit.Capacity == 0 {
		limit.Capacity = 1
	}
	if limit.Period == 0 {
		limit.Period = time.Millisecond
	}
	if limit.Refill == 0 {
		limit.Refill = limit.Period.Milliseconds()
	}
	if reasons := numberMistakes(limit); len(reasons) > 0 {
		return fmt.Errorf("%w: override record of limit %q: %s", ErrInvalid, o.Limit, reasons[0])
	}
	if limit.Capacity > state.MaxDebt {
		return fmt.Errorf("%w: override record of limit %q: the capacity is %d; at most %d fits", ErrInvalid, o.Limit, o.Capacity, int64(state.MaxDebt))
	}
	return nil
}

// checkOverrideKey returns what is wrong with what addresses a record.
func checkOverrideKey(owner Owner, limit string) error {
	switch {
	case owner.Level > Operation:
		return fmt.Errorf("%w: unknown %v", ErrInvalid, owner.Level)
	case owner.Level == Tenant && owner.Name != "":
		return fmt.Errorf("%w: the owner at the level of the tenant has a name", ErrInvalid)
	case owner.Level != Tenant && owner.Name == "":
		return fmt.Errorf("%w: the override record of a %v without a name", ErrInvalid, owner.Level)
	case owner.Level != Operation && owner.Part != "":
		return fmt.Errorf("%w: the override record of a part of a %v", ErrInvalid, owner.Level)
	case len(owner.Name)+len(owner.Part) > maxOverrideOwner:
		return fmt.Errorf("%w: the name of a %v is %d bytes long; at most %d fit in an override record",
			ErrInvalid, owner.Level, len(owner.Name)+len(owner.Part), maxOverrideOwner)
	case len(limit) > maxNameLength:
		return fmt.Errorf("%w: the name of a limit is %d bytes long; at most %d fit", ErrInvalid, len(limit), maxNameLength)
	}
	return nil
}

// overridden returns the limit as the records of its owner make it, and those of them that are about it, the
// later ones beating the earlier. Records that make no limit of it change nothing.
func overridden(limit Limit, records []*Override) (changed Limit, by []*Override) {
	changed, unlimited := limit, false
	for _, single := range []bool{false, true} {
		for _, o := range records {
			if single != (o.Limit != "") || single && o.Limit != limit.Name {
				continue
			}
			changed = o.change(changed)
			unlimited = unlimited || o.Unlimited
			if single || o.Mode != nil || o.Unlimited {
				by = append(by, o)
			}
		}
	}
	if unlimited {
		changed.Mode = Off
	}
	return changed, by
}

func (o *Override) change(limit Limit) Limit {
	if o.Capacity > 0 {
		if limit.Refill == limit.Capacity {
			limit.Refill = o.Capacity
		}
		limit.Capacity = o.Capacity
	}
	if o.Refill > 0 {
		limit.Refill = o.Refill
	}
	if o.Period > 0 {
		limit.Period = o.Period
	}
	if o.Mode != nil {
		limit.Mode = max(*o.Mode, limit.Strictest)
	}
	return limit
}

// maxDate is later than all dates in Unix milliseconds.
const maxDate = 1 << 47

// holds reports whether the record has not expired.
func (o *Override) holds(now int64) bool {
	return o.Expires.IsZero() || o.Expires.UnixMilli() > now
}

// clone returns a copy that shares nothing.
func (o *Override) clone() Override {
	c := *o
	if o.Mode != nil {
		mode := *o.Mode
		c.Mode = &mode
	}
	return c
}
