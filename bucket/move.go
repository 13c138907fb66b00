package bucket

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
	"github.com/gqlgen-ratelimit/ratelimit/internal/state"
)

// What follows moves tenants from one store to another. Package placement does it, and decides who moves where.

// Movable is a [Store] whose tenants can move to another one. [Memory] and [Redis] are.
//
// A move is agreed on by a number, the generation of a placement. A tenant leaves a store by it, and from then on every call of the store that judges
// the tenant fails with a [*MovedError], whoever makes it: an instance that does not know of the move charges nothing there. What it owed is carried
// on demand, and arrives once or several times with the same result: of two debts the larger one stays.
type Movable interface {
	Store
	OverrideStore
	UsageStore

	// Leave has the tenant leave the store by a generation, if it has not yet, and returns what the store has of the belongings.
	// It can be repeated. The error is a [*MovedError] if the tenant has left by a later generation.
	Leave(ctx context.Context, tenant string, belongings Belongings, generation uint64) (*Parcel, error)

	// Arrive has the tenant arrive with what parcels say. It can be repeated, and the order of parcels means nothing. The error is a [*MovedError] if the
	// tenant has left this store by this generation or a later one, and a [*StillLeasedError] if instances may still spend what they hold of it.
	Arrive(ctx context.Context, tenant string, parcels []*Parcel, generation uint64) error

	// Forget removes what the parcel has from the store that it is of, unless something else stands there by now. It is for after its arrival.
	Forget(ctx context.Context, tenant string, parcel *Parcel) error
}

var (
	_ Movable = (*Memory)(nil)
	_ Movable = (*Redis)(nil)
)

// MovedError says that a tenant has left the store, so that nothing was done. It is an [ErrUnavailable].
type MovedError struct {
	// Generation is that of the placement by which it has left.
	Generation uint64
}

// Error says by which generation.
func (e *MovedError) Error() string {
	return fmt.Sprintf("bucket: the tenant has left this store by generation %d of the placement", e.Generation)
}

// Is reports whether the target is [ErrUnavailable].
func (*MovedError) Is(target error) bool { return target == ErrUnavailable }

// StillLeasedError says that a tenant cannot arrive before instances have nothing more of it that they could spend. It is an [ErrUnavailable].
type StillLeasedError struct {
	// Wait is how long that takes at most.
	Wait time.Duration
}

// Error says how long it takes.
func (e *StillLeasedError) Error() string {
	return fmt.Sprintf("bucket: the tenant moves, and instances hold parts of its budget for %v more", e.Wait)
}

// Is reports whether the target is [ErrUnavailable].
func (*StillLeasedError) Is(target error) bool { return target == ErrUnavailable }

// Belongings are what of a tenant is carried together: those of one call. The zero value is nothing but its override records. They refer to the
// buckets that they were made of.
type Belongings struct {
	keys []address
	live []Bucket
}

// Belongings returns what the take is judged by.
func (t *Take) Belongings() Belongings {
	b := BelongingsOf(t.Buckets)
	if t.Candidate != nil {
		for i := range t.Candidate.Buckets {
			b.keys = append(b.keys, bucketAddress(&t.Candidate.Buckets[i].Owner, t.Candidate.ID))
		}
	}
	return b.with(t.Claim)
}

// Belongings returns what the settlement corrects.
func (s *Settlement) Belongings() Belongings {
	b := BelongingsOf(s.Receipt.buckets)
	if s.Claim == nil {
		return b
	}
	return b.with(s.Claim.Claim)
}

// Belongings returns what is leased.
func (e *Exchange) Belongings() Belongings { return BelongingsOf(e.buckets) }

// BelongingsOf returns the buckets of owners.
func BelongingsOf(buckets []Bucket) Belongings {
	b := Belongings{live: buckets, keys: make([]address, 0, len(buckets)+1)}
	for i := range buckets {
		b.keys = append(b.keys, bucketAddress(&buckets[i].Owner, ""))
	}
	return b
}

// BelongingsOfClaim returns the record of a claim.
func BelongingsOfClaim(claim *idempotency.Claim) Belongings { return Belongings{}.with(claim) }

func (b Belongings) with(claim *idempotency.Claim) Belongings {
	if claim != nil {
		b.keys = append(b.keys, recordAddress(claim))
	}
	return b
}

// Belonging is one of the [Belongings]: it is comparable, and tells each from all others of its tenant.
type Belonging struct{ of address }

// All returns each of them.
func (b Belongings) All() []Belonging {
	all := make([]Belonging, len(b.keys))
	for i := range b.keys {
		all[i].of = b.keys[i]
	}
	return all
}

// mostSwaps is how often something may be changed by others while it is read, before a call gives up.
const mostSwaps = 32

// swap is a call that reads, and with arguments writes.
func (s *core) swap(ctx context.Context, tenant string, keys []address, args []string) (values [][]byte, done bool, now int64, err error) {
	c := s.newCall(tenant, &s.scripts.Swap, len(keys), 1+2*len(keys))
	c.keys = append(c.keys, keys...)
	extra := int64(1)
	if args == nil {
		extra, args = 0, make([]string, 2*len(keys))
	}
	c.values(nil, extra, 0, nil)
	for _, arg := range args {
		c.arg(arg)
	}
	answer, err := c.do(ctx)
	if err != nil {
		return nil, false, 0, err
	}
	values, ok := state.ReadSwap(answer.rest, len(keys))
	if !ok || answer.check() != nil {
		return nil, false, 0, fmt.Errorf("%w: %w", ErrAmbiguous, errReply)
	}
	return values, answer.outcome == state.Applied, answer.now, nil
}

// withOverrides returns the keys of belongings, and that of the override records.
func withOverrides(keys []address) []address {
	return append(slices.Clone(keys), address{kind: overridesKey})
}

// Leave implements [Movable].
func (s *core) Leave(ctx context.Context, tenant string, belongings Belongings, generation uint64) (*Parcel, error) {
	keys := withOverrides(belongings.keys)
	last := len(belongings.keys)
	values, _, now, err := s.swap(ctx, tenant, keys, nil)
	for range mostSwaps {
		if err != nil {
			return nil, err
		}
		left, moved := state.ReadMoved(values[last])
		switch {
		case moved && uint64(left) > generation:
			return nil, &MovedError{Generation: uint64(left)}
		case moved && uint64(left) == generation:
			return &Parcel{keys: belongings.keys, values: values[:last], moved: values[last], now: now}, nil
		}
		args := make([]string, 2*last, 2*len(keys))
		moving := state.Moved(int64(generation), values[last])
		var done bool
		was := values[last]
		values, done, now, err = s.swap(ctx, tenant, keys, state.AppendSwap(args, was, moving, now+state.MovedLife))
		if err == nil && done {
			// It is told what stood there in the moment in which it was marked.
			return &Parcel{keys: belongings.keys, values: values[:last], moved: moving, now: now}, nil
		}
	}
	return nil, errSwaps(err)
}

// errSwaps is the error of a call that others were before too often.
func errSwaps(err error) error {
	if err != nil {
		return err
	}
	return fmt.Errorf("%w: what a tenant has was changed %d times while it moved", ErrBusy, mostSwaps)
}

// Arrive implements [Movable].
func (s *core) Arrive(ctx context.Context, tenant string, parcels []*Parcel, generation uint64) error {
	var keys []address
	for _, p := range parcels {
		for _, key := range p.keys {
			if !slices.Contains(keys, key) {
				keys = append(keys, key)
			}
		}
	}
	all := withOverrides(keys)
	values, _, now, err := s.swap(ctx, tenant, all, nil)
	for range mostSwaps {
		if err != nil {
			return err
		}
		if left, moved := state.ReadMoved(values[len(keys)]); moved && uint64(left) >= generation {
			return &MovedError{Generation: uint64(left)}
		}
		args, more, wrong := arrival(keys, values, parcels, now)
		if wrong != nil || !more {
			return wrong
		}
		var done bool
		if values, done, now, err = s.swap(ctx, tenant, all, args); done {
			return nil
		}
	}
	return errSwaps(err)
}

// arrival returns the arguments of the swap that has parcels arrive where such values stand under the keys, of which the last is that of the override
// records, and whether it changes anything.
func arrival(keys []address, values [][]byte, parcels []*Parcel, now int64) (args []string, more bool, err error) {
	_, left := state.ReadMoved(values[len(keys)])
	for i := range keys {
		next, expiry, grows, err := merged(&keys[i], values[i], parcels, now)
		if err != nil {
			return nil, false, arrivalError(err)
		}
		more = more || grows
		switch {
		case grows:
			args = state.AppendSwap(args, values[i], next, expiry)
		case left:
			// A mover of a generation before may be about to forget it.
			args = state.AppendSwap(args, values[i], nil, 0)
			args[len(args)-1] = ""
		default:
			args = append(args, "", "")
		}
	}
	records, expiry, changed, err := arrivingRecords(values[len(keys)], parcels, now)
	if err != nil {
		return nil, false, arrivalError(err)
	}
	// Whoever leaves meanwhile takes along what has not arrived.
	args = state.AppendSwap(args, values[len(keys)], records, expiry)
	if !changed {
		args[len(args)-1] = ""
	}
	return args, more || changed, nil
}

// merged returns what is to stand under a key where all parcels have arrived, and whether that is more than what stands there.
func merged(key *address, here []byte, parcels []*Parcel, now int64) (value []byte, expiry int64, more bool, err error) {
	value = here
	for _, p := range parcels {
		from := p.value(key, now)
		if from == nil {
			continue
		}
		was := p.now
		if was == 0 {
			was = now
		}
		merge := state.Merge
		if key.kind == recordKey {
			merge = state.MergeRecord
		}
		next, gone, grows, err := merge(value, from, was, now)
		if err != nil {
			return nil, 0, false, err
		}
		if grows {
			value, expiry, more = next, gone, true
		}
	}
	return value, expiry, more, nil
}

// arrivingRecords returns the override records with which a tenant arrives: those that are here, if it has not left, and else those of the first store
// that it left with any.
func arrivingRecords(here []byte, parcels []*Parcel, now int64) (records []byte, expiry int64, changed bool, err error) {
	_, left := state.ReadMoved(here)
	if here != nil && !left {
		return here, 0, false, nil
	}
	next := newGeneration()
	for _, p := range parcels {
		if len(p.moved) <= state.GenerationSize {
			continue
		}
		if records, expiry, err = state.RecordsOf(p.moved, string(next[:]), now); err != nil || records != nil {
			break
		}
	}
	if expiry == state.Forever {
		expiry = 0
	}
	return records, expiry, left || records != nil, err
}

// arrivalError is that of what cannot arrive.
func arrivalError(err error) error {
	var leased *state.LeasedError
	if errors.As(err, &leased) {
		return &StillLeasedError{Wait: time.Duration(leased.Wait) * time.Millisecond}
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}

// Forget implements [Movable].
func (s *core) Forget(ctx context.Context, tenant string, parcel *Parcel) error {
	if parcel.moved == nil {
		return nil
	}
	var args []string
	for i := range parcel.keys {
		args = state.AppendSwap(args, parcel.values[i], nil, 0)
	}
	left, _ := state.ReadMoved(parcel.moved)
	// The mark stays, and the records go: those that are cleared where the tenant is must not come back.
	args = state.AppendSwap(args, parcel.moved, state.Moved(left, nil), parcel.now+state.MovedLife)
	_, _, _, err := s.swap(ctx, tenant, withOverrides(parcel.keys), args)
	return err
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

// WithoutRefund returns a settlement that gives nothing back, and charges on as this one does.
func (s Settlement) WithoutRefund() Settlement {
	raised := func(actual, charged Amounts) Amounts {
		all := slices.Clone(actual)
		for i := range all {
			all[i].N = max(all[i].N, charged.Of(all[i].Unit))
		}
		return all
	}
	s.Actual = raised(s.Actual, s.Receipt.amounts.all())
	return s
}
