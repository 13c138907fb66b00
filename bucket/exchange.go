package bucket

import (
	"context"
	"errors"
	"fmt"

	"github.com/gqlgen-ratelimit/ratelimit/internal/lease"
	"github.com/gqlgen-ratelimit/ratelimit/internal/state"
)

// LeaseStore is a [Store] that leases parts of buckets, so that their holder decides without it: [Leased] does. [Memory] and [Redis] are such.
type LeaseStore interface {
	Store
	// Exchange takes back what a holder gives of the buckets of a tenant, gives it more, and extends its lease, in one step. An exchange
	// may be sent any number of times: it is booked once. The errors are those of [Store].
	Exchange(ctx context.Context, exchange Exchange) (Exchanged, error)
	// Beat says that the instance lives, and returns how many do, and whether this one was known before.
	Beat(ctx context.Context, instance [8]byte) (instances int, before bool, err error)
	// AllLease reports whether every instance that shares the store can lease, by what the last Beat was answered. One of an older version cannot read a
	// bucket of which something is leased.
	AllLease() bool
}

var (
	_ LeaseStore = (*Memory)(nil)
	_ LeaseStore = (*Redis)(nil)
)

// Exchange is what a holder of leases tells a store. It is opaque: [Leased] makes it.
type Exchange struct {
	tenant string
	// buckets are those that are leased, as the policy has them, and under as the holder knows them: as override records make them.
	buckets, under []Bucket
	message        lease.Message
	// clock is the time of the holder when it is sent, in milliseconds.
	clock int64
	// places are where the store keeps the records of the holder, one for each bucket, as far as it knows.
	places []int
}

// Tenant is whose buckets are leased.
func (e *Exchange) Tenant() string { return e.tenant }

// Exchanged is what a store answers to an [Exchange]. It is opaque.
type Exchanged struct {
	// now is the time of the store.
	now int64
	// answers has one for each bucket. It has none if the buckets are under other limits than the holder knows, or blocked: nothing was done then.
	answers []state.ExchangeAnswer
	// governed is what override records make of the buckets, and records are these, nil if there are none.
	governed governing
	records  *overrideSet
}

// errOtherLimits says that override records make other limits than an exchange is about.
var errOtherLimits = errors.New("bucket: leased under other limits")

// Exchange implements [LeaseStore].
func (s *core) Exchange(ctx context.Context, exchange Exchange) (Exchanged, error) {
	n := len(exchange.buckets)
	c := s.newCall(exchange.tenant, &s.scripts.Exchange, 2*n+1, n+2)
	c.bucketKeys(exchange.buckets, "")
	for i := range exchange.buckets {
		c.key(holdingsAddress(&exchange.buckets[i].Owner))
	}
	c.overrides()
	c.exchange = &exchange
	c.values(exchange.buckets, lease.Length/lease.Millisecond, state.ExchangeNumbers, nil)
	m := &exchange.message
	arg := state.AppendExchange(nil, m.Holder, m.Number, exchange.clock, m.Heard, m.Beat, m.Leaving)
	for _, place := range exchange.places {
		arg = state.AppendUint(arg, state.PlaceSize, place)
	}
	c.arg(arg)
	c.rules()
	reply, err := c.do(ctx)
	e := Exchanged{now: reply.now, governed: c.governed, records: c.records}
	switch {
	case errors.Is(err, errOtherLimits):
		// It was not sent, or not done: the holder learns under which limits the buckets are.
		e.now, err = c.estimate(), nil
	case err == nil:
		err = e.read(exchange.buckets, reply)
	}
	return e, err
}

// read reads the answers of a reply.
func (e *Exchanged) read(buckets []Bucket, r reply) error {
	ok := r.outcome == state.Applied
	rest := r.rest
	for i := range buckets {
		var a state.ExchangeAnswer
		if ok {
			a, rest, ok = state.ReadExchange(rest, e.governed.buckets[i].Limits.Len())
			e.answers = append(e.answers, a)
		}
	}
	if !ok || rest != "" {
		return fmt.Errorf("%w: %w", ErrAmbiguous, errReply)
	}
	return nil
}

// leasedAlike reports whether two policies of the same owners lease the same limits in the same units, so that what a holder has of them
// means the same under both.
func leasedAlike(one, other []Bucket) bool {
	for i := range one {
		these, those := one[i].Limits.rules, other[i].Limits.rules
		if len(these) != len(those) {
			return false
		}
		for j := range these {
			this, _, _ := these[j].Leasing()
			that, _, _ := those[j].Leasing()
			if these[j].ID != those[j].ID || these[j].Tag != those[j].Tag || this != that {
				return false
			}
		}
	}
	return true
}
