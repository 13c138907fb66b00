package e2e_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
)

// override makes a record of the tenant free in the store of the fixture.
func (f *fixture) override(o bucket.Override) {
	f.t.Helper()
	f.overrideOf("free", o)
}

// overrideOf makes a record of a tenant.
func (f *fixture) overrideOf(tenant string, o bucket.Override) {
	f.t.Helper()
	o.Reason, o.Actor = "audited-reason", "audited-actor"
	_, err := f.store.SetOverride(context.Background(), tenant, o)
	require.NoError(f.t, err)
}

func TestAClientSeesTheLimitThatAnOverrideMakes(t *testing.T) {
	t.Parallel()
	var last ratelimit.Decision
	f := newFixture(t, nil)
	see(f.server, func(d ratelimit.Decision) { last = d })
	minute := func(r reply) map[string]any {
		t.Helper()
		limits, _ := r.rateLimit(t)["limits"].([]any)
		require.NotEmpty(t, limits)
		first, _ := limits[0].(map[string]any)
		require.Equal(t, "minute", first["name"])
		return first
	}
	require.EqualValues(t, 100, minute(f.post(request{Query: half, Cost: "full"}))["capacity"])
	require.False(t, last.Overridden)

	f.override(bucket.Override{Limit: "minute", Capacity: 500})
	reply := f.post(request{Query: half, Cost: "full"})
	require.EqualValues(t, 500, minute(reply)["capacity"])
	require.EqualValues(t, 500-2*22, minute(reply)["remaining"], "what was spent is kept")
	require.Contains(t, reply.Header.Get("RateLimit-Policy"), `"minute";q=500`)
	require.True(t, last.Overridden)
	require.NotContains(t, reply.Body, "audited")

	f.override(bucket.Override{Limit: "minute", Capacity: 30})
	reply = f.post(request{Query: half})
	require.Equal(t, http.StatusTooManyRequests, reply.Status)
	require.Equal(t, ratelimitclient.CodeRateLimited, reply.errorCode(t))
	require.Contains(t, reply.Body, "of 30 left")
	require.NotContains(t, reply.Body, "audited")
}

func TestABlockedOwnerIsRefusedWhateverItsBudget(t *testing.T) {
	t.Parallel()
	for name, owner := range map[string]bucket.Owner{
		"tenant":    {},
		"team":      {Level: bucket.Team, Name: "core"},
		"user":      {Level: bucket.User, Name: "ann"},
		"operation": {Level: bucket.Operation, Name: "Query.users"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := &instruments{t: t}
			f := newFixture(t, i.configure)
			f.override(bucket.Override{Owner: owner, Blocked: true})
			reply := f.post(request{Query: half, Team: "core", User: "ann"})
			require.Equal(t, http.StatusForbidden, reply.Status)
			require.Equal(t, ratelimitclient.CodeTenantBlocked, reply.errorCode(t))
			require.NotContains(t, reply.Body, "audited")
			require.Equal(t, map[string]float64{"blocked": 1}, i.sums("ratelimit.decisions", "ratelimit.outcome"))

			_, err := f.store.ClearOverrides(context.Background(), "free")
			require.NoError(t, err)
			require.Equal(t, http.StatusOK, f.post(request{Query: half, Team: "core", User: "ann"}).Status)
		})
	}
}

func TestAChargeIsRefusedAsSoonAsItsOwnerIsBlocked(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	f.resolver.OnExport = func(ctx context.Context, _ int) error {
		f.override(bucket.Override{Blocked: true})
		return ratelimit.Charge(ctx, bucket.Points, 1)
	}
	require.Equal(t, ratelimitclient.CodeTenantBlocked, f.post(request{Query: `{ export(rows: 1) }`}).errorCode(t))
}

func TestUnlimitedByAnOverrideChargesNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	f.override(bucket.Override{Unlimited: true})
	for range 10 {
		reply := f.post(request{Query: half})
		require.Equal(t, http.StatusOK, reply.Status)
		require.EqualValues(t, 0, reply.rateLimit(t)["charged"])
	}
}

func TestNoDayIsPromisedOfALimitThatARecordKeepsInWarn(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	warn := bucket.Warn
	_, err := f.store.SetOverride(context.Background(), "warned", bucket.Override{Limit: "minute", Mode: &warn, Reason: "test", Actor: "test"})
	require.NoError(t, err)
	f.post(request{Query: half, Tenant: "warned"})
	over := f.post(request{Query: half, Tenant: "warned"})
	require.Equal(t, http.StatusOK, over.Status)
	require.Equal(t, `RATE_LIMITED;limit="minute"`, over.Header.Get("RateLimit-Warning"))
}
