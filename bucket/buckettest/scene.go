package buckettest

import (
	"context"
	"reflect"
	"testing"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
)

// Harness is a store under test and its clock.
type Harness struct {
	// Store is the store. It may hold state of other tenants.
	Store bucket.Store
	// Advance moves the time of the store, forwards or, if negative, backwards.
	Advance func(time.Duration)
}

func run(t *testing.T, open func(*testing.T) Harness, groups ...[]test) {
	t.Helper()
	for _, group := range groups {
		for _, test := range group {
			t.Run(test.rule, func(t *testing.T) {
				t.Parallel()
				// The name of the test is the tenant, so that tests do not meet in one store.
				test.check(&scene{T: t, Harness: open(t), tenant: t.Name(), ctx: context.Background()})
			})
		}
	}
}

// test is one rule of the contract.
type test struct {
	rule  string
	check func(*scene)
}

// scene is a store, a tenant, and what is done to them. Its methods fail the test on an error.
type scene struct {
	*testing.T
	Harness
	tenant string
	ctx    context.Context
	// probed is the hour in which a test of usage began.
	probed *bucket.UsageHour
}

func (s *scene) take(buckets []bucket.Bucket, amounts bucket.Amounts) bucket.Result {
	s.Helper()
	return s.takeKeyed(buckets, amounts, nil)
}

func (s *scene) takeKeyed(buckets []bucket.Bucket, amounts bucket.Amounts, claim *idempotency.Claim) bucket.Result {
	s.Helper()
	result, err := s.Store.Take(s.ctx, bucket.Take{Tenant: s.tenant, Buckets: buckets, Amounts: amounts, Claim: claim})
	s.ok(err)
	return result
}

func (s *scene) settle(settlement bucket.Settlement) bucket.Settled {
	s.Helper()
	settled, err := s.Store.Settle(s.ctx, settlement)
	s.ok(err)
	return settled
}

func (s *scene) peek(buckets ...bucket.Bucket) []bucket.LimitState {
	s.Helper()
	states, err := s.Store.Peek(s.ctx, s.tenant, buckets)
	s.ok(err)
	return states
}

// remaining returns what is left of each limit.
func (s *scene) remaining(buckets ...bucket.Bucket) []int64 {
	s.Helper()
	var left []int64
	for _, state := range s.peek(buckets...) {
		left = append(left, state.Remaining)
	}
	return left
}

func (s *scene) ok(err error) {
	s.Helper()
	if err != nil {
		s.Fatalf("unexpected error: %v", err)
	}
}

func (s *scene) equal(got, want any, what string) {
	s.Helper()
	if !reflect.DeepEqual(got, want) {
		s.Fatalf("%s: got %v, want %v", what, got, want)
	}
}

func (s *scene) verdict(result bucket.Result, want bucket.Verdict) {
	s.Helper()
	s.equal(result.Verdict.String(), want.String(), "verdict")
}

// compile returns the limits or fails the test.
func (s *scene) compile(limits ...bucket.Limit) *bucket.Limits {
	s.Helper()
	compiled, err := bucket.Compile(limits...)
	s.ok(err)
	return compiled
}

// tenantOf returns the bucket of the tenant under these limits.
func (s *scene) tenantOf(limits ...bucket.Limit) []bucket.Bucket {
	s.Helper()
	return []bucket.Bucket{{Limits: s.compile(limits...)}}
}

func points(n int64) bucket.Amounts {
	return bucket.Amounts{{Unit: bucket.Points, N: n}}
}

func perSecond(capacity int64) bucket.Limit {
	return bucket.Limit{Name: "second", Capacity: capacity, Period: time.Second}
}

func perMinute(capacity int64) bucket.Limit {
	return bucket.Limit{Name: "minute", Capacity: capacity, Period: time.Minute}
}

// shadow returns the limit in the mode that refuses nothing.
func shadow(limit bucket.Limit) bucket.Limit {
	limit.Mode = bucket.Shadow
	return limit
}
