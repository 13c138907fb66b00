package main

import (
	"bytes"
	"encoding/json"
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
func leaseParts(t *testing.T, address, tenant string) {
	t.Helper()
	leasePartsOf(t, address, tenant, bucket.Owner{})
}

// leasePartsOf is leaseParts of an owner. Without a tenant it is of a backstop.
func leasePartsOf(t *testing.T, address, tenant string, owner bucket.Owner) {
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
	require.Equal(t, 2, leases[0].Holders)
}

func TestWhoHoldsPartsOfALimitIsShownToTheOperator(t *testing.T) {
	t.Parallel()
	o, server := newOperator(t)
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	require.NoError(t, os.WriteFile(policy, []byte(leasedPolicy), 0o600))
	o.env["RATELIMIT_POLICY"] = policy
	for _, line := range []string{"budget show -tenant acme -timeout 1m", "policy explain -tenant acme -timeout 1m"} {
		_, stdout, _ := o.run(line)
		require.NotContains(t, stdout, "HOLDER", "while nobody holds anything: %s", line)
	}
	leaseParts(t, server.Addr, "acme")
	for _, line := range []string{"budget show -tenant acme -timeout 1m", "policy explain -tenant acme -timeout 1m"} {
		code, stdout, stderr := o.run(line + " -json")
		require.Equal(t, exitOK, code, stderr)
		var out struct{ Leases []session.LeasesJSON }
		require.NoError(t, json.Unmarshal([]byte(stdout), &out))
		require.Len(t, out.Leases, 1, line)
		l := out.Leases[0]
		require.Equal(t, "hour", l.Limit)
		require.Len(t, l.Parts, 2)
		require.Positive(t, l.Capacity)
		require.LessOrEqual(t, l.Free+l.Capacity, int64(36_000))
		require.Equal(t, l.Capacity, l.Parts[0].Capacity+l.Parts[1].Capacity)

		_, stdout, _ = o.run(line)
		require.Contains(t, stdout, "What one holds, no other one has")
		require.Regexp(t, `tenant +hour +\(store\) +\d+ +\d+\n`, stdout)
		for _, p := range l.Parts {
			require.Regexp(t, `tenant +hour +`+p.Holder+` +\d+ +[\d.]+ +\d+ +(ends in|ended) `, stdout)
		}
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

// explainRefusal returns what is said of a refusal, as JSON and as text.
func (o *operator) explainRefusal(t *testing.T) (leases []session.LeasesJSON, text, notes string) {
	t.Helper()
	code, stdout, stderr := o.run("refusal " + refusalID + " -timeout 1m -json")
	require.Equal(t, exitOK, code, stderr)
	var out struct{ Leases []session.LeasesJSON }
	require.NoError(t, json.Unmarshal([]byte(stdout), &out))
	code, text, notes = o.run("refusal " + refusalID + " -timeout 1m")
	require.Equal(t, exitOK, code, notes)
	return out.Leases, text, notes
}

func TestARefusalIsExplainedByWhoHoldsTheLimit(t *testing.T) {
	t.Parallel()
	o, server := newOperator(t)
	file := filepath.Join(t.TempDir(), "policy.yaml")
	require.NoError(t, os.WriteFile(file, []byte(leasedPolicy), 0o600))
	o.env["RATELIMIT_POLICY"] = file
	refused := event.Decided{
		At: time.Now(), RefusalID: refusalID, Outcome: "limited", Code: "RATE_LIMITED", Tenant: "ac\u00admé", Tier: "free", Kind: "query", Cost: 120,
		Limits: []event.LimitState{{
			Level: "tenant", Limit: "hour", Unit: "points", Capacity: 36_000, Asked: 120, Remaining: 150, Mode: "enforce", Exceeded: true, Refuses: true,
			Approximate: true, Held: 50,
		}},
	}
	keepRefusal(t, server.Addr, refused)
	leases, text, notes := o.explainRefusal(t)
	require.Empty(t, leases, "while nobody holds anything")
	require.NotContains(t, text, "HOLDER")
	require.Empty(t, notes)
	require.Contains(t, text, "150 (50 held here, 100 free)", "as it was then")

	leaseParts(t, server.Addr, refused.Tenant)
	leases, text, _ = o.explainRefusal(t)
	require.Len(t, leases, 1)
	require.Equal(t, "hour", leases[0].Limit)
	require.False(t, leases[0].Backstop)
	require.Len(t, leases[0].Parts, 2)
	require.Regexp(t, `tenant +hour +\(store\) +\d+ +\d+\n`, text)
	for _, p := range leases[0].Parts {
		require.Regexp(t, `tenant +hour +`+p.Holder+` +\d+ +[\d.]+ +\d+ +(ends in|ended) `, text)
	}

	o.env["RATELIMIT_POLICY"] = ""
	leases, text, notes = o.explainRefusal(t)
	require.Empty(t, leases)
	require.Contains(t, text, "150 (50 held here, 100 free)", "the refusal is explained without a policy as well")
	require.Contains(t, notes, "who leases parts of the limits is not known: no policy file is given")
}

func TestARefusalByTheBackstopIsExplainedByWhoHoldsIt(t *testing.T) {
	t.Parallel()
	o, server := newOperator(t)
	file := filepath.Join(t.TempDir(), "policy.yaml")
	require.NoError(t, os.WriteFile(file, []byte(leasedPolicy+`backstop:
  limits: {hour: {capacity: 36000, per: hour}}
  operations: {Query.orders: {limits: {hour: {capacity: 36000, per: hour}}}}
`), 0o600))
	o.env["RATELIMIT_POLICY"] = file
	orders := bucket.Owner{Level: bucket.Operation, Name: "Query.orders"}
	leasePartsOf(t, server.Addr, "", bucket.Owner{})
	leasePartsOf(t, server.Addr, "", orders)
	leaseParts(t, server.Addr, "acme")
	keepRefusal(t, server.Addr, event.Decided{
		At: time.Now(), RefusalID: refusalID, Outcome: "backstop", Code: "OVERLOADED", Tenant: "acme", Tier: "free", Kind: "query", Cost: 120,
	})
	leases, text, _ := o.explainRefusal(t)
	require.Len(t, leases, 2, "the tenant's own limits have not refused it")
	for _, l := range leases {
		require.True(t, l.Backstop)
		require.Len(t, l.Parts, 2)
	}
	require.Regexp(t, `backstop +hour +\(store\) +\d+ +\d+\n`, text)
	require.Regexp(t, `backstop of operation Query.orders +hour +\(store\) +\d+ +\d+\n`, text)

	for _, line := range []string{"budget show -tenant acme -timeout 1m", "policy explain -tenant acme -timeout 1m"} {
		code, text, stderr := o.run(line)
		require.Equal(t, exitOK, code, stderr)
		require.Regexp(t, `tenant +hour +\(store\)`, text, line)
		require.Regexp(t, `backstop +hour +`+leases[0].Parts[0].Holder, text, line)
	}
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
