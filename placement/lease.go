package placement

import (
	"context"
	"errors"
	"sync"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// leasing is what a member can do whose buckets are leased.
type leasing interface {
	Exchange(ctx context.Context, exchange bucket.Exchange) (bucket.Exchanged, error)
	Beat(ctx context.Context, instance [8]byte) (instances int, before bool, err error)
	AllLease() bool
}

// errNoLeases says that a store leases nothing.
var errNoLeases = errors.New("placement: the store of the tenant leases nothing")

// Exchange implements bucket.LeaseStore: it is the exchange of the store that the tenant is in. One that knows nothing of what a holder had of the store before
// says so, and the holder begins anew.
func (s *Store) Exchange(ctx context.Context, exchange bucket.Exchange) (exchanged bucket.Exchanged, err error) {
	err = s.asked(exchange.Tenant(), func(m *member) (err error) {
		store, ok := m.Backend.(leasing)
		if !ok {
			return errNoLeases
		}
		exchanged, err = store.Exchange(ctx, exchange)
		return err
	})
	return exchanged, err
}

// beatsAtOnce is how many stores are told at a time that the instance lives.
const beatsAtOnce = 16

// beaten is what a store answered to a beat.
type beaten struct {
	instances int
	before    bool
	err       error
}

// Beat implements bucket.LeaseStore: it says in each store that the instance lives, because each has tenants of its own to lease. The stores are told beside each
// other, so that none waits for one that is slow; Beat returns when all have answered or failed. How many instances there are says the first of the map that answers.
func (s *Store) Beat(ctx context.Context, instance [8]byte) (instances int, before bool, err error) {
	members := s.current.Load().members
	answers := make([]beaten, len(members))
	slots := make(chan struct{}, beatsAtOnce)
	var beating sync.WaitGroup
	for i, m := range members {
		store, ok := m.Backend.(leasing)
		if !ok {
			answers[i].err = ErrNowhere
			continue
		}
		slots <- struct{}{}
		beating.Go(func() {
			defer func() { <-slots }()
			a := &answers[i]
			a.instances, a.before, a.err = store.Beat(ctx, instance)
		})
	}
	beating.Wait()
	err = ErrNowhere
	for i := range answers {
		a := &answers[i]
		if a.err == nil {
			return a.instances, a.before, nil
		}
		if !errors.Is(a.err, ErrNowhere) {
			err = a.err
		}
	}
	return 0, false, err
}

// AllLease implements bucket.LeaseStore: it reports whether every instance can lease that any store of the map knows.
func (s *Store) AllLease() bool {
	members := s.current.Load().members
	for _, m := range members {
		if store, ok := m.Backend.(leasing); !ok || !store.AllLease() {
			return false
		}
	}
	return len(members) > 0
}

// Leases implements bucket.LeaseReader: it says who leases parts of limits in the store that the tenant is in.
func (s *Store) Leases(ctx context.Context, tenant string, buckets []bucket.Bucket) (all []bucket.LimitLeases, err error) {
	err = s.asked(tenant, func(m *member) (err error) {
		store, ok := m.Backend.(bucket.LeaseReader)
		if !ok {
			return nil
		}
		all, err = store.Leases(ctx, tenant, buckets)
		return err
	})
	return all, err
}
