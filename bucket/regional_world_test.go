package bucket_test

import (
	"context"
	"fmt"
	"math/big"
	"math/rand/v2"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// flakyStore is a store that loses calls and answers, and may be away. Its clock may have stepped from that of its world.
type flakyStore struct {
	*bucket.Memory
	w    *regionsWorld
	step time.Duration
	away time.Duration
	// ppm is by how many millionths its clock runs faster.
	ppm int64
}

func (w *regionsWorld) store() *flakyStore {
	s := &flakyStore{w: w}
	s.Memory = bucket.NewMemory(bucket.MemoryConfig{Clock: func() time.Time { return w.begin.Add(w.now + w.now*time.Duration(s.ppm)/1_000_000 + s.step) }})
	return s
}

// answers reports whether a call arrives, and whether its answer does.
func (s *flakyStore) answers() (arrives, returns bool) {
	if s.w.now < s.away || s.w.IntN(100) < s.w.loss {
		return false, false
	}
	return true, s.w.IntN(100) >= s.w.loss
}

func (s *flakyStore) Take(ctx context.Context, take bucket.Take) (result bucket.Result, err error) {
	arrives, returns := s.answers()
	if !arrives {
		return result, bucket.ErrUnavailable
	}
	if result, err = s.Memory.Take(ctx, take); err == nil && !returns {
		return bucket.Result{}, bucket.ErrAmbiguous
	}
	return result, err
}

func (s *flakyStore) Exchange(ctx context.Context, e bucket.Exchange) (x bucket.Exchanged, err error) {
	arrives, returns := s.answers()
	if !arrives {
		return x, bucket.ErrUnavailable
	}
	if x, err = s.Memory.Exchange(ctx, e); err == nil && !returns {
		return bucket.Exchanged{}, bucket.ErrAmbiguous
	}
	return x, err
}

// regionsWorld is some regions with instances, which share a home, and what they have admitted together, in exact numbers.
type regionsWorld struct {
	*rand.Rand
	begin time.Time
	now   time.Duration
	loss  int
	home  *flakyStore
	// homes are home as each region sees it, and regions their own stores.
	homes, regions []*flakyStore
	instances      []*regionInstance
	shares         map[string]int
	lease          time.Duration
	limits         *bucket.Limits
	limit          bucket.Limit
	// debt is, in 1/1000 token, the most by which what was admitted exceeds what came back, over all intervals that end now.
	debt     *big.Int
	at       time.Duration
	excess   *big.Int
	admitted int64
	// mistake is a deliberate one.
	mistake string
}

type regionInstance struct {
	region int
	leased *bucket.Leased
	// ppm is by how many millionths its clock is wrong, and paused until when it does nothing.
	ppm    int64
	paused time.Duration
}

// newRegionsWorld has regions by their shares, each with so many instances.
func newRegionsWorld(seed uint64, limit bucket.Limit, lease time.Duration, instances int, shares ...int) *regionsWorld {
	w := &regionsWorld{
		Rand: rand.New(rand.NewPCG(seed, 91)), begin: time.UnixMilli(1 << 41), shares: map[string]int{}, lease: lease, limit: limit,
		debt: new(big.Int), excess: new(big.Int),
	}
	w.home = w.store()
	for i, share := range shares {
		w.shares[fmt.Sprint("region ", i)] = share
		w.regions = append(w.regions, w.store())
		w.homes = append(w.homes, &flakyStore{Memory: w.home.Memory, w: w})
	}
	for i := range shares {
		for range instances {
			w.instances = append(w.instances, &regionInstance{region: i, ppm: w.Int64N(1001) - 500})
		}
	}
	return w
}

// start begins all instances.
func (w *regionsWorld) start() error {
	var err error
	if w.limits, err = bucket.Compile(w.limit); err != nil {
		return err
	}
	for _, i := range w.instances {
		if err := w.restart(i); err != nil {
			return err
		}
	}
	return nil
}

// restart makes an instance one that has just begun: the one before has died with what it held.
func (w *regionsWorld) restart(i *regionInstance) error {
	cfg := bucket.RegionalConfig{Region: fmt.Sprint("region ", i.region), Shares: w.shares, Lease: w.lease}
	if w.mistake == "home leases what others have for themselves" {
		cfg.Shares = map[string]int{cfg.Region: w.shares[cfg.Region]}
	}
	store, err := bucket.NewRegional(w.regions[i.region], w.homes[i.region], cfg)
	if err != nil {
		return err
	}
	var leases bucket.LeaseStore = store
	if w.mistake == "the share is the whole" {
		leases = wholeTakes{store, w.regions[i.region]}
	}
	i.leased = bucket.NewLeased(leases, bucket.LeasedConfig{Patience: time.Minute, Clock: func() time.Duration {
		return w.now + w.now*time.Duration(i.ppm)/1_000_000
	}})
	i.leased.Allow(true)
	return nil
}

// wholeTakes is a mistake: takes of a region that are not divided.
type wholeTakes struct {
	*bucket.Regional
	region *flakyStore
}

func (s wholeTakes) Take(ctx context.Context, take bucket.Take) (bucket.Result, error) {
	return s.region.Take(ctx, take)
}

// take has an instance take, and notes what it was admitted.
func (w *regionsWorld) take(i *regionInstance, n int64) (bucket.Result, error) {
	result, err := i.leased.Take(context.Background(), bucket.Take{
		Tenant: "acme", Buckets: []bucket.Bucket{{Limits: w.limits}}, Amounts: bucket.Amounts{{Unit: bucket.Points, N: n}}, Lease: bucket.LeaseAlways,
	})
	if err == nil && result.Verdict == bucket.Admitted {
		w.admit(n)
	}
	return result, err
}

// admit notes that so much was admitted.
func (w *regionsWorld) admit(n int64) {
	w.admitted += n
	back := new(big.Int).Mul(big.NewInt(w.limit.Refill), big.NewInt((w.now - w.at).Milliseconds()))
	w.free(back)
	w.at = w.now
	// A refill of so many a second is as many thousandths a millisecond.
	w.debt.Add(w.debt, new(big.Int).Mul(big.NewInt(n), big.NewInt(1000)))
	if over := new(big.Int).Sub(w.debt, new(big.Int).Mul(big.NewInt(w.limit.Capacity), big.NewInt(1000))); over.Cmp(w.excess) > 0 {
		w.excess = over
	}
}

func (w *regionsWorld) free(back *big.Int) {
	if w.debt.Sub(w.debt, back); w.debt.Sign() < 0 {
		w.debt.SetInt64(0)
	}
}

// stepHome has the clock of home step. What comes back to it by a step forward it has in the terms of every central bucket.
func (w *regionsWorld) stepHome(step time.Duration) {
	w.home.step += step
	if step > 0 {
		w.free(new(big.Int).Mul(big.NewInt(w.limit.Refill), big.NewInt(step.Milliseconds())))
	}
}

// cut has home away from some regions until a time.
func (w *regionsWorld) cut(until time.Duration, regions ...int) {
	for _, i := range regions {
		w.homes[i].away = until
	}
}

// trouble has something fail, at times.
func (w *regionsWorld) trouble() error {
	if w.IntN(400) > 0 {
		return nil
	}
	some := w.instances[w.IntN(len(w.instances))]
	switch w.IntN(5) {
	case 0:
		return w.restart(some)
	case 1:
		some.paused = w.now + time.Duration(w.IntN(9000))*time.Millisecond
	case 2:
		w.cut(w.now+time.Duration(w.Int64N(2*w.lease.Milliseconds()))*time.Millisecond, some.region, w.IntN(len(w.homes)))
	case 3:
		w.regions[some.region].away = w.now + time.Duration(w.IntN(5000))*time.Millisecond
	case 4:
		w.stepHome([]time.Duration{40 * time.Millisecond, 500 * time.Millisecond, 5 * time.Second, -40 * time.Millisecond, -5 * time.Second}[w.IntN(5)])
	}
	return nil
}

// run has operations come, of which most come to one region for a while.
func (w *regionsWorld) run(operations int) error {
	most := 0
	for range operations {
		w.now += time.Duration(w.IntN(20)) * time.Millisecond
		if w.IntN(500) == 0 {
			most = w.IntN(len(w.instances))
		}
		i := w.instances[most]
		if w.IntN(3) == 0 {
			i = w.instances[w.IntN(len(w.instances))]
		}
		if w.now >= i.paused {
			_, _ = w.take(i, []int64{1, 1, 5, 20, 200}[w.IntN(5)])
		}
		for _, i := range w.instances {
			if w.IntN(3) == 0 && w.now >= i.paused {
				i.leased.Tend(context.Background())
			}
		}
		if err := w.trouble(); err != nil {
			return err
		}
	}
	return nil
}
