package main

import (
	"encoding/json"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket/redisclient"
	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/observe/report"
	"github.com/gqlgen-ratelimit/ratelimit/policy/directory/redisdirectory"
)

const recordedPolicy = `
version: 1
default: free
parameters: {lang: {header: X-Lang}, plan: {claim: plan}}
tiers:
  free:
    limits: {minute: {capacity: 100, per: minute}}
    operations: {Query.search: {instead: true, limits: {minute: {capacity: 50, per: minute}}}}
  pro: {limits: {minute: {capacity: 1000, per: minute}}}
custom:
  lang:de: {limits: {minute: {capacity: 30, per: minute}}}
`

// carrying is the detail of an operation.
type carrying struct {
	parts []event.Part
	lang  string
}

func (d carrying) Parts() []event.Part { return d.parts }

func (d carrying) Carried() []event.Carried {
	return []event.Carried{{Parameter: "header:X-Lang", Value: d.lang}}
}

// record has an instance write what it was asked for: five times 20 points in German, ten times 20 by a tenant of the directory, and two searches beside
// another call.
func (o *operator) record(t *testing.T, redis, key string) {
	t.Helper()
	client, err := redisclient.Open(redis, redisclient.Config{DialTimeout: patience, SocketTimeout: patience})
	require.NoError(t, err)
	defer func() { _ = client.Close() }()
	directory, err := redisdirectory.New(redisdirectory.Config{Client: client})
	require.NoError(t, err)
	_, err = directory.Put(t.Context(), "gold", []byte(`{"tier": "pro"}`), 0)
	require.NoError(t, err)
	reporter, err := report.Start(report.Config{Place: report.Place{Client: client}, Key: []byte(key), Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	count := func(tenant string, n int, cost int64, fields []string, detail carrying) {
		for range n {
			reporter.Count(event.Verdict{At: time.Now(), Tenant: tenant, Outcome: "admitted", Cost: cost, RootFields: fields, Detail: detail})
		}
	}
	count("acme", 5, 20, []string{"Query.orders"}, carrying{lang: "de"})
	count("gold", 10, 20, []string{"Query.orders"}, carrying{lang: "secret-token"})
	count("globex", 2, 45, []string{"Query.orders", "Query.search"}, carrying{parts: []event.Part{{Calls: 1}, {Calls: 2}}})
	require.NoError(t, reporter.Close())
}

// replayed is the JSON of policy simulate.
type replayed struct {
	Report struct {
		Total   struct{ Operations, Refused int64 }
		Tenants []struct {
			Tenant, Tier string
			Refused      int64
		}
	}
	Recorded  struct{ Share float64 }
	NotJudged []string
}

func TestWhatInstancesHaveRecordedIsReplayedWithKeysPartsAndTheDirectory(t *testing.T) {
	t.Parallel()
	o, server := newOperator(t)
	delete(o.env, "RATELIMIT_POLICY")
	const key = "a key of sixteen bytes"
	o.record(t, server.Addr, key)
	dir := files(t, map[string]string{
		"policy.yaml": recordedPolicy, "key": key + "\n",
		"next.yaml": "version: 1\ndefault: free\ntiers: {free: {limits: {minute: {capacity: 20, per: minute}}}, pro: {limits: {minute: {capacity: 1000, per: minute}}}}\n",
	})
	flags := []string{"-policy", filepath.Join(dir, "policy.yaml"), "-report-key", filepath.Join(dir, "key")}
	code, stdout, stderr := o.run("policy simulate -recorded -json -timeout 1m", flags...)
	require.Equal(t, exitOK, code, stderr)
	require.NotContains(t, stdout, "secret")
	var out replayed
	require.NoError(t, json.Unmarshal([]byte(stdout), &out))
	refused, tiers := map[string]int64{}, map[string]string{}
	for _, tenant := range out.Report.Tenants {
		refused[tenant.Tenant], tiers[tenant.Tenant] = tenant.Refused, tenant.Tier
	}
	require.Equal(t, map[string]int64{"acme": 4, "gold": 0, "globex": 1}, refused, "by the key, by the directory, by the rule")
	require.Equal(t, "pro", tiers["gold"])
	require.InDelta(t, 1, out.Recorded.Share, 0)
	require.Equal(t, []string{"parameters.plan"}, out.NotJudged, "no instance has looked at it")

	code, stdout, _ = o.run("policy simulate -recorded -timeout 1m -max-refused 10%", flags...)
	require.Equal(t, exitFound, code)
	require.Contains(t, stdout, "recorded: 100% of tenants, from 20")
	require.Contains(t, stdout, "\nnot judged: parameters.plan\n")

	code, stdout, stderr = o.run("policy plan -recorded -timeout 1m", "-old", filepath.Join(dir, "policy.yaml"), "-new", filepath.Join(dir, "next.yaml"), "-report-key", filepath.Join(dir, "key"))
	require.Equal(t, exitOK, code, stderr)
	require.Contains(t, stdout, "Of 17 recorded operations 1 would be newly refused")
	require.Regexp(t, `globex +free +2 +1 +→ +2`, stdout)
	require.Contains(t, stdout, "recorded: 100% of tenants")
}

func TestWhatIsReplayedIsAskedForInOneWay(t *testing.T) {
	t.Parallel()
	o, server := newOperator(t)
	dir := files(t, map[string]string{
		"policy.yaml": recordedPolicy,
		"costs.jsonl": `{"at":"2026-06-01T12:00:00Z","tenant":"gold","operations":["Query.orders"],"points":150}` + "\n",
	})
	policy, costs := filepath.Join(dir, "policy.yaml"), filepath.Join(dir, "costs.jsonl")
	for line, want := range map[string]string{
		"policy simulate":                              "say -records FILE, or -recorded",
		"policy simulate -recorded -records x":         "say one of -records and -recorded",
		"policy simulate -records x -since 1m":         "go with -recorded",
		"policy simulate -recorded -since 2h":          "1s to 1h fit",
		"policy plan -new x -recorded -since 1ms":      "1s to 1h fit",
		"policy plan -new x -records y -report-key z":  "go with -recorded",
		"policy plan -new x -recorded -records y":      "say one of",
		"policy simulate -recorded -report-key absent": "absent: cannot be read",
	} {
		code, _, stderr := o.run(line + " -timeout 1m")
		require.Equal(t, exitUsage, code, line)
		require.Contains(t, stderr, want, line)
	}
	code, _, stderr := o.run("policy simulate -recorded -timeout 1m", "-policy", policy)
	require.NotEqual(t, exitOK, code)
	require.Contains(t, stderr, "no instance has recorded anything in the namespace main for 15m0s")

	o.record(t, server.Addr, "a key of sixteen bytes")
	code, _, stderr = o.run("policy simulate -recorded -timeout 1m", "-policy", policy)
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, "say -report-key FILE")
	code, stdout, stderr := o.run("policy simulate -timeout 1m", "-policy", policy, "-records", costs)
	require.Equal(t, exitOK, code, stderr)
	require.Regexp(t, `gold +free +1 +150 .*100.0%`, stdout, "the directory is not asked")
	require.Contains(t, stdout, "not judged: parameters.lang, parameters.plan")
}
