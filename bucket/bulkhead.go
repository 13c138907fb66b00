package bucket

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"sync"

	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
)

// DefaultMaxConcurrent is how many calls of one tenant a [Bulkhead] lets the store have at once, unless told
// otherwise: less than go-redis keeps connections on four cores, and at a millisecond a call more than 30 000
// decisions a second.
const DefaultMaxConcurrent = 32

// bulkheadShards is how many locks the tenants of a Bulkhead share.
const bulkheadShards = 64

// BulkheadConfig configures a [Bulkhead]. The zero value is the default.
type BulkheadConfig struct {
	// MaxConcurrent is how many calls of one tenant may be under way at once. Choose it well below the
	// number of connections to the store. Zero means [DefaultMaxConcurrent].
	MaxConcurrent int
}

// Bulkhead stands before a [Store] and bounds how many calls of one tenant are under way in it at once, so
// that a tenant whose calls are slow does not take the connections, and with them the deadlines, of all
// others. A call beyond the bound fails at once with an error that matches [ErrBusy], which the extension
// makes a refusal whatever the fail mode and the modes of the limits: that the tenant is blocked, or under an
// override record that enforces, only the store knows.
//
// Settle and Renew belong to operations that run already: they count, and are let through always, because
// refusing them would lose what was admitted. It starts no goroutine, allocates nothing for a call, and is
// safe for concurrent use. It implements [OverrideStore] if the store does; records are not bounded.
type Bulkhead struct {
	decorator

	most   int
	seed   maphash.Seed
	shards [bulkheadShards]bulkheadShard
}

// bulkheadShard counts the calls that are under way by the hash of their tenant. Two tenants of one hash
// share a bound, which for a million tenants happens to one pair in 30 million processes.
type bulkheadShard struct {
	mu    sync.Mutex
	calls map[uint64]int
}

var (
	_ Store         = (*Bulkhead)(nil)
	_ OverrideStore = (*Bulkhead)(nil)
)

// NewBulkhead returns a bulkhead before the store. The error says what is wrong with the configuration.
func NewBulkhead(store Store, config BulkheadConfig) (*Bulkhead, error) {
	if store == nil {
		return nil, errors.New("bucket: a bulkhead needs a store; that of NewRedis fits")
	}
	if config.MaxConcurrent < 0 {
		return nil, fmt.Errorf("bucket: %d concurrent calls of a tenant; at least 1 fits", config.MaxConcurrent)
	}
	if config.MaxConcurrent == 0 {
		config.MaxConcurrent = DefaultMaxConcurrent
	}
	b := &Bulkhead{decorator: decorator{next: store}, most: config.MaxConcurrent, seed: maphash.MakeSeed()}
	for i := range b.shards {
		b.shards[i].calls = map[uint64]int{}
	}
	return b, nil
}

// enter counts a call of the tenant. It reports false, and counts nothing, if there is no place.
func (b *Bulkhead) enter(tenant string, always bool) (uint64, bool) {
	hash := maphash.String(b.seed, tenant)
	s := &b.shards[hash%bulkheadShards]
	s.mu.Lock()
	defer s.mu.Unlock()
	if !always && s.calls[hash] >= b.most {
		return hash, false
	}
	s.calls[hash]++
	return hash, true
}

func (b *Bulkhead) leave(hash uint64) {
	s := &b.shards[hash%bulkheadShards]
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calls[hash]--; s.calls[hash] == 0 {
		delete(s.calls, hash)
	}
}

func (b *Bulkhead) busy() error {
	return fmt.Errorf("%w: %d at once", ErrBusy, b.most)
}

// Take implements [Store].
func (b *Bulkhead) Take(ctx context.Context, take Take) (Result, error) {
	hash, ok := b.enter(take.Tenant, false)
	if !ok {
		return Result{}, b.busy()
	}
	defer b.leave(hash)
	return b.next.Take(ctx, take)
}

// Settle implements [Store].
func (b *Bulkhead) Settle(ctx context.Context, settlement Settlement) (Settled, error) {
	tenant := settlement.Receipt.tenant
	if settlement.Claim != nil {
		tenant = settlement.Claim.Tenant
	}
	hash, _ := b.enter(tenant, true)
	defer b.leave(hash)
	return b.next.Settle(ctx, settlement)
}

// Renew implements [Store].
func (b *Bulkhead) Renew(ctx context.Context, tenant string, claim *idempotency.Claim) (bool, error) {
	hash, _ := b.enter(tenant, true)
	defer b.leave(hash)
	return b.next.Renew(ctx, tenant, claim)
}

// Peek implements [Store].
func (b *Bulkhead) Peek(ctx context.Context, tenant string, buckets []Bucket) ([]LimitState, error) {
	hash, ok := b.enter(tenant, false)
	if !ok {
		return nil, b.busy()
	}
	defer b.leave(hash)
	return b.next.Peek(ctx, tenant, buckets)
}

// Grant implements [Store].
func (b *Bulkhead) Grant(ctx context.Context, tenant string, buckets []Bucket, amounts Amounts) ([]LimitState, error) {
	hash, ok := b.enter(tenant, false)
	if !ok {
		return nil, b.busy()
	}
	defer b.leave(hash)
	return b.next.Grant(ctx, tenant, buckets, amounts)
}

// Reset implements [Store].
func (b *Bulkhead) Reset(ctx context.Context, tenant string, buckets []Bucket) error {
	hash, ok := b.enter(tenant, false)
	if !ok {
		return b.busy()
	}
	defer b.leave(hash)
	return b.next.Reset(ctx, tenant, buckets)
}
