package main

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/bucket/redisclient"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/cli"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/session"
	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/observe/report"
)

const leasedPolicy = `version: 1
default: free
tiers:
  free: {lease: always, limits: {hour: {capacity: 36000, per: hour}}}
`

// leaseParts has two instances lease parts of the limit of leasedPolicy, of a tenant.
func leaseParts(t *testing.T, address, tenant string) []bucket.LeasedPart {
	t.Helper()
	return leasePartsOf(t, address, tenant, bucket.Owner{})
}

// leasePartsOf is leaseParts of an owner. Without a tenant it is of a backstop.
func leasePartsOf(t *testing.T, address, tenant string, owner bucket.Owner) []bucket.LeasedPart {
	t.Helper()
	client, err := redisclient.Open("", redisclient.Config{Addresses: []string{address}, DialTimeout: time.Minute, SocketTimeout: time.Minute})
	require.NoError(t, err)
	store, err := bucket.NewRedis(bucket.RedisConfig{Client: client, Timeout: time.Minute, AdminTimeout: time.Minute, Patience: time.Minute})
	require.NoError(t, err)
	t.Cleanup(func() { _ = store.Close(); _ = client.Close() })
	limits, err := bucket.Compile(bucket.Limit{Name: "hour", Capacity: 36_000, Refill: 36_000, Period: time.Hour})
	require.NoError(t, err)
	buckets := []bucket.Bucket{{Owner: owner, Limits: limits}}
	for range 2 {
		l := bucket.NewLeased(store, bucket.LeasedConfig{Patience: time.Minute})
		l.Allow(true)
		for l.Stats().Exchanges["beat"]+l.Stats().Exchanges["miss"] == 0 {
			_, err := l.Take(t.Context(), bucket.Take{
				Tenant: tenant, Buckets: buckets, Amounts: bucket.Amounts{{Unit: bucket.Points, N: 20}}, Lease: bucket.LeaseAlways, LeaseEach: tenant == "",
			})
			require.NoError(t, err)
			l.Tend(t.Context())
		}
	}
	leases, err := store.Leases(t.Context(), tenant, buckets)
	require.NoError(t, err)
	require.Len(t, leases, 1)
	require.Len(t, leases[0].Parts, 2)
	return leases[0].Parts
}

func TestWhoHoldsPartsOfALimitIsShownToTheOperator(t *testing.T) {
	t.Parallel()
	o, server := newOperator(t)
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	require.NoError(t, os.WriteFile(policy, []byte(leasedPolicy), 0o600))
	o.env["RATELIMIT_POLICY"] = policy
	const line = "budget show -tenant acme -timeout 1m"
	_, stdout, _ := o.run(line)
	require.NotContains(t, stdout, "HOLDER", "while nobody holds anything")
	parts := leaseParts(t, server.Addr, "acme")
	code, stdout, stderr := o.run(line)
	require.Equal(t, exitOK, code, stderr)
	require.Contains(t, stdout, "What one holds, no other one has")
	require.Regexp(t, `tenant +hour +\(store\) +\d+ +\d+\n`, stdout)
	for _, p := range parts {
		require.Regexp(t, `tenant +hour +`+p.Holder+` +\d+ +[\d.]+ +\d+ +(ends in|ended) `, stdout)
	}
}

// keepRefusal writes a refusal as an instance does.
func keepRefusal(t *testing.T, address string, refused event.Decided) {
	t.Helper()
	client, err := redisclient.Open(address, redisclient.Config{DialTimeout: patience, SocketTimeout: patience})
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	place := report.Place{Client: client}
	reporter, err := report.Start(report.Config{Place: place, Instance: "web-1", Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	t.Cleanup(func() { _ = reporter.Close() })
	reporter.Observe(t.Context(), refused)
	reader, err := report.NewReader(place)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		_, err := reader.Refusal(t.Context(), refused.RefusalID)
		return err == nil
	}, patience, 10*time.Millisecond)
}

func TestARefusalSaysWhatTheInstanceHeldThen(t *testing.T) {
	t.Parallel()
	o, server := newOperator(t)
	keepRefusal(t, server.Addr, event.Decided{
		At: time.Now(), RefusalID: refusalID, Outcome: "limited", Code: "RATE_LIMITED", Tenant: "ac\u00admé", Tier: "free", Kind: "query", Cost: 120,
		Limits: []event.LimitState{{
			Level: "tenant", Limit: "hour", Unit: "points", Capacity: 36_000, Asked: 120, Remaining: 150, Mode: "enforce", Exceeded: true, Refuses: true,
			Approximate: true, Held: 50,
		}},
	})
	o.env["RATELIMIT_POLICY"] = ""
	code, text, notes := o.run("refusal " + refusalID + " -timeout 1m")
	require.Equal(t, exitOK, code, notes)
	require.Contains(t, text, "150 (50 held here, 100 free)", "without a policy as well")
}

func TestWhoHoldsTheBackstopIsShownToTheOperator(t *testing.T) {
	t.Parallel()
	o, server := newOperator(t)
	file := filepath.Join(t.TempDir(), "policy.yaml")
	require.NoError(t, os.WriteFile(file, []byte(leasedPolicy+`backstop:
  limits: {hour: {capacity: 36000, per: hour}}
  operations: {Query.orders: {limits: {hour: {capacity: 36000, per: hour}}}}
`), 0o600))
	o.env["RATELIMIT_POLICY"] = file
	parts := leasePartsOf(t, server.Addr, "", bucket.Owner{})
	leasePartsOf(t, server.Addr, "", bucket.Owner{Level: bucket.Operation, Name: "Query.orders"})
	leaseParts(t, server.Addr, "acme")
	code, text, stderr := o.run("budget show -tenant acme -timeout 1m")
	require.Equal(t, exitOK, code, stderr)
	require.Regexp(t, `tenant +hour +\(store\)`, text)
	require.Regexp(t, `backstop +hour +\(store\) +\d+ +\d+\n`, text)
	require.Regexp(t, `backstop of operation Query.orders +hour +\(store\) +\d+ +\d+\n`, text)
	require.Regexp(t, `backstop +hour +`+parts[0].Holder, text)
}

func TestATableNamesTwentyHoldersAndCountsTheOthers(t *testing.T) {
	t.Parallel()
	limit := bucket.Limit{Name: "second", Capacity: 5000}
	l := bucket.LimitLeases{Free: bucket.LimitState{Limit: &limit}, Holders: 150}
	for range bucket.MaxLeaseHolders {
		l.Parts = append(l.Parts, bucket.LeasedPart{Holder: "0123456789abcdef"})
	}
	var out bytes.Buffer
	session.WriteLeases(cli.Console{Stdout: &out}, &session.Leases{Own: []bucket.LimitLeases{l}})
	require.Equal(t, 20, strings.Count(out.String(), "0123456789abcdef"))
	require.Contains(t, out.String(), "and 130 more")
}
