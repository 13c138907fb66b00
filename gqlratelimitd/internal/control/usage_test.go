package control_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/control"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// left is what the operator is told of budgets, by owner and limit.
func (s *scene) left(in control.EffectiveInput) (*control.Usage, map[string]control.Budget) {
	s.Helper()
	u, err := s.Usage(s.ctx(), operator, in)
	require.NoError(s, err)
	named := map[string]control.Budget{}
	for _, b := range u.Budgets {
		named[strings.Join([]string{b.Owner.Level.String(), b.Owner.Name, b.Limit.Name}, " ")] = b
	}
	require.Len(s, named, len(u.Budgets))
	return u, named
}

func TestUsageIsAskedByWhoMayReadTheTenant(t *testing.T) {
	t.Parallel()
	in := control.EffectiveInput{Tenant: "acme"}
	s := newScene(t, control.Config{})
	_, err := s.Usage(s.ctx(), operator, in)
	require.ErrorIs(t, err, control.ErrNoRedis)
	s = newScene(t, control.Config{Budgets: bucket.NewMemory(bucket.MemoryConfig{})})
	_, err = s.Usage(s.ctx(), operator, in)
	require.ErrorIs(t, err, control.ErrNotFound, "there is no policy")
	s.publish(document, 0)
	_, err = s.Usage(s.ctx(), customer("acme"), in)
	require.NoError(t, err)
	for _, nobody := range []access.Actor{customer("other"), actor("nobody"), {}} {
		_, err = s.Usage(s.ctx(), nobody, in)
		require.ErrorIs(t, err, access.ErrDenied)
	}
	_, err = s.Usage(s.ctx(), operator, control.EffectiveInput{})
	requireInvalid(t, err, "tenant", "missing")
}

func TestUsageIsWhatTheInstancesJudgeBy(t *testing.T) {
	t.Parallel()
	clock := time.Date(2026, 11, 22, 3, 0, 0, 0, time.UTC)
	budgets := bucket.NewMemory(bucket.MemoryConfig{Clock: func() time.Time { return clock }})
	s := newScene(t, control.Config{Budgets: budgets})
	s.publish(document, 0)
	policy, err := tiers.Load([]byte(document), 1)
	require.NoError(t, err)
	rules := policy.Snapshot().Rules(tiers.Subject{Tenant: "acme", User: "jo"}, tiers.Selection{Fields: []string{"Mutation.pay"}})
	_, err = budgets.Take(s.ctx(), bucket.Take{
		Tenant: "acme", Buckets: rules.Buckets, Amounts: bucket.Amounts{{Unit: bucket.Points, N: 60}, {Unit: bucket.Requests, N: 1}},
	})
	require.NoError(t, err)
	// Support has raised it without the daemon, and blocked somebody.
	for _, o := range []bucket.Override{
		{Limit: "minute", Capacity: 2000, Reason: "why", Actor: "eve", Expires: clock.Add(time.Hour)},
		{Owner: bucket.Owner{Level: bucket.User, Name: "jo"}, Blocked: true, Reason: "why", Actor: "eve"},
	} {
		_, err = budgets.SetOverride(s.ctx(), "acme", o)
		require.NoError(t, err)
	}
	u, left := s.left(control.EffectiveInput{Tenant: "acme", User: "jo"})
	require.True(t, u.Blocked, "the user is")
	require.Equal(t, "free", u.Tier)
	require.Equal(t, uint64(1), u.Policy)
	minute := left["tenant  minute"]
	require.Equal(t, []int64{2000, 60, 1940, 0}, []int64{minute.Limit.Capacity, minute.Used, minute.Remaining, minute.Overdraft})
	require.True(t, minute.Overridden)
	require.Equal(t, u.At.Add(1800*time.Millisecond), minute.FullAt, "sixty of two thousand a minute")
	require.Equal(t, time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC), left["tenant  month"].WindowEnd)
	require.Equal(t, int64(60), left["user jo minute"].Used)
	require.Equal(t, int64(1), left["operation Mutation.* minute"].Used, "nobody had to ask for it")
	u, left = s.left(control.EffectiveInput{Tenant: "acme", Operation: "Query.me"})
	require.False(t, u.Blocked)
	require.NotContains(t, left, "operation Mutation.* minute", "the operation has none")
	require.NotContains(t, left, "user jo minute")
	_, left = s.left(control.EffectiveInput{Tenant: "other"})
	require.Zero(t, left["tenant  minute"].Used)
	require.Zero(t, left["tenant  minute"].FullAt)
}

func TestUsageHasAllOperationsOfTheTierAndOfTheRecord(t *testing.T) {
	t.Parallel()
	s := newScene(t, control.Config{Budgets: bucket.NewMemory(bucket.MemoryConfig{})})
	var many strings.Builder
	for i := range 60 {
		fmt.Fprintf(&many, "      %q: {limits: {minute: {unit: requests, capacity: 10, per: minute}, hour: {unit: requests, capacity: 90, per: hour}}}\n", tiers.DocumentID(fmt.Sprintf("{ f%d }", i)))
	}
	s.publish(document+"  many:\n    limits: {minute: {capacity: 10, per: minute}}\n    operations:\n"+many.String(), 0)
	for tenant, record := range map[string]string{
		"acme": `{"operations": {"Query.own": {"limits": {"minute": {"unit": "requests", "capacity": 3, "per": "minute"}}}}}`,
		"huge": `{"tier": "many"}`,
	} {
		_, err := s.PutTenant(s.ctx(), by(operator), control.TenantInput{Tenant: tenant, Document: []byte(record)})
		require.NoError(t, err)
	}
	_, left := s.left(control.EffectiveInput{Tenant: "acme"})
	require.Equal(t, int64(3), left["operation Query.own minute"].Limit.Capacity)
	_, left = s.left(control.EffectiveInput{Tenant: "huge"})
	require.Len(t, left, 121, "more than one call of a store takes")
	_, left = s.left(control.EffectiveInput{Tenant: "huge", Operation: tiers.DocumentID("{ f59 }")})
	require.Contains(t, left, "operation "+tiers.DocumentID("{ f59 }")+" minute")
}

// awayBudgets are a store that does not answer.
type awayBudgets struct{ *bucket.Memory }

func (awayBudgets) ListOverrides(ctx context.Context, _ string) ([]bucket.Override, error) {
	if _, bounded := ctx.Deadline(); !bounded {
		panic("it is waited for without an end")
	}
	return nil, bucket.ErrUnavailable
}

func TestUsageOfAStoreThatIsAwayOrAnotherOneIsNone(t *testing.T) {
	t.Parallel()
	s := newScene(t, control.Config{Budgets: awayBudgets{bucket.NewMemory(bucket.MemoryConfig{})}})
	s.publish(document+"  far: {store: eu, limits: {minute: {capacity: 10, per: minute}}}\n", 0)
	_, err := s.Usage(s.ctx(), operator, control.EffectiveInput{Tenant: "acme"})
	require.ErrorIs(t, err, control.ErrAway)
	_, err = s.PutTenant(s.ctx(), by(operator), control.TenantInput{Tenant: "acme", Document: []byte(`{"tier": "far"}`)})
	require.NoError(t, err)
	_, err = s.Usage(s.ctx(), operator, control.EffectiveInput{Tenant: "acme"})
	requireInvalid(t, err, "tenant", `"eu"`)
}

const leasedDocument = `version: 1
default: free
backstop:
  limits: {second: {capacity: 50000, per: second}}
  operations: {Query.orders: {limits: {second: {capacity: 9000, per: second}}}}
tiers:
  free: {lease: always, limits: {hour: {capacity: 36000, per: hour}}}
`

// leaseOf has an instance lease parts of buckets, and take of them.
func leaseOf(t *testing.T, store bucket.LeaseStore, tenant string, buckets []bucket.Bucket) {
	t.Helper()
	l := bucket.NewLeased(store, bucket.LeasedConfig{Patience: time.Minute})
	l.Allow(true)
	for l.Stats().Exchanges["beat"]+l.Stats().Exchanges["miss"] == 0 {
		_, err := l.Take(t.Context(), bucket.Take{Tenant: tenant, Buckets: buckets, Amounts: bucket.Amounts{{Unit: bucket.Points, N: 20}}, Lease: bucket.LeaseAlways, LeaseEach: tenant == ""})
		require.NoError(t, err)
		l.Tend(t.Context())
	}
}

func TestWhatInstancesLeaseIsNotCountedAsUsed(t *testing.T) {
	t.Parallel()
	moment := time.Date(2026, 11, 22, 3, 0, 0, 0, time.UTC)
	budgets := bucket.NewMemory(bucket.MemoryConfig{Clock: func() time.Time { return moment }})
	s := newScene(t, control.Config{Budgets: budgets})
	s.publish(leasedDocument, 0)
	policy, err := tiers.Load([]byte(leasedDocument), 1)
	require.NoError(t, err)
	rules := policy.Snapshot().Rules(tiers.Subject{Tenant: "acme"}, tiers.Selection{})
	in := control.EffectiveInput{Tenant: "acme"}
	_, left := s.left(in)
	require.Zero(t, left["tenant  hour"].Held)
	require.Empty(t, left["tenant  hour"].HeldBy)

	leaseOf(t, budgets, "acme", rules.Buckets)
	leaseOf(t, budgets, "acme", rules.Buckets)
	leaseOf(t, budgets, "", rules.Backstop)
	u, left := s.left(in)
	hour := left["tenant  hour"]
	require.Equal(t, 2, hour.Holders)
	require.Positive(t, hour.Held)
	require.Equal(t, int64(36_000), hour.Used+hour.Held+hour.Remaining)
	require.Less(t, hour.Used, hour.Held, "what they took is little")
	require.Len(t, hour.HeldBy, 2)
	require.Equal(t, hour.Held, hour.HeldBy[0].Level+hour.HeldBy[1].Level)
	require.Positive(t, hour.HeldBy[0].EndsIn)
	require.Len(t, u.Backstop, 1)
	require.Equal(t, "second", u.Backstop[0].Limit.Name)
	require.Len(t, u.Backstop[0].HeldBy, 1)

	orders := policy.Snapshot().Rules(tiers.Subject{Tenant: "acme"}, tiers.Selection{Fields: []string{"Query.orders"}}).Backstop[1:]
	leaseOf(t, budgets, "", orders)
	u, _ = s.left(control.EffectiveInput{Tenant: "acme", Operation: "Query.orders"})
	require.Len(t, u.Backstop, 2)
	require.Equal(t, "Query.orders", u.Backstop[1].Owner.Name)
	require.Len(t, u.Backstop[1].HeldBy, 1, "that of one operation is leased by itself")

	u, err = s.Usage(s.ctx(), customer("acme"), in)
	require.NoError(t, err)
	require.Equal(t, hour.Held, u.Budgets[0].Held)
	require.Empty(t, u.Budgets[0].HeldBy, "a tenant is not told who holds it")
	require.Empty(t, u.Backstop, "nor what all together have")
}
