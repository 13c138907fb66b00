package graph_test

import (
	"encoding/base64"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/audit"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/control"
)

func TestATenantHasWhatItsRecordItsOverridesAndSwitchesMakeOfThePolicy(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	a := s.ask("tenant-admin", `{ tenant(id: "acme") {
		effective { policy tier tierFrom mode blocked limits {
			owner { level name } name unit capacity refill periodMs window mode failMode soft provenance { rule line mode } override { capacity reason by }
		} }
		record { document revision }
	} }`, nil)
	require.Empty(t, a.Errors, a.Body)
	tenant := a.Data["tenant"].(map[string]any)
	require.Equal(t, map[string]any{"document": `{"tier":"pro"}`, "revision": float64(s.acme)}, tenant["record"])
	effective := tenant["effective"].(map[string]any)
	limits := effective["limits"].([]any)
	delete(effective, "limits")
	require.Equal(t, map[string]any{"policy": 2.0, "tier": "pro", "tierFrom": "record.tier", "mode": "SHADOW", "blocked": false}, effective)
	require.Equal(t, []any{map[string]any{
		"owner": map[string]any{"level": "TENANT", "name": ""}, "name": "minute", "unit": "points", "capacity": 7000.0, "refill": 7000.0,
		"periodMs": 60000.0, "window": "NONE", "mode": "SHADOW", "failMode": "OPEN", "soft": false,
		"provenance": map[string]any{"rule": []any{"tiers.pro.limits.minute"}, "line": 10.0, "mode": "(mode switch)"},
		"override":   map[string]any{"capacity": 7000.0, "reason": "before", "by": "ada (https://login.example.org)"},
	}}, limits)
}

func TestATenantOfWhichNothingIsWrittenHasWhatThePolicySays(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	a := s.ask("viewer", `{ tenant(id: "new") {
		record { revision } effective(user: "zoe", operation: "Mutation.pay") { tier tierFrom limits { owner { level name } capacity override { capacity } } }
	} }`, nil)
	require.Equal(t, map[string]any{"record": nil, "effective": map[string]any{
		"tier": "free", "tierFrom": "default", "limits": []any{
			map[string]any{"owner": map[string]any{"level": "TENANT", "name": ""}, "capacity": 1000.0, "override": nil},
			map[string]any{"owner": map[string]any{"level": "USER", "name": "zoe"}, "capacity": 100.0, "override": nil},
			map[string]any{"owner": map[string]any{"level": "OPERATION", "name": "Mutation.*"}, "capacity": 10.0, "override": nil},
		},
	}}, a.Data["tenant"], a.Body)
}

func TestPagesFollowEachOtherToTheEnd(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	for _, page := range []struct{ query, field, cursor string }{
		{`query($at: Revision) { page: policies(first: 1, before: $at) { nodes { revision } pageInfo { hasNextPage } } }`, "revision", "at"},
		{`query($at: Long) { page: audit(first: 1, after: $at) { nodes { sequence } pageInfo { hasNextPage } } }`, "sequence", "at"},
		{`query($at: Revision) { page: modeSwitches(first: 1, after: $at) { nodes { revision } pageInfo { hasNextPage } } }`, "revision", "at"},
		{`query($at: ID) { page: tenants(first: 1, after: $at) { nodes { tenant } pageInfo { hasNextPage } } }`, "tenant", "at"},
		{`query($at: ID) { page: tokens(first: 1, after: $at) { nodes { id } pageInfo { hasNextPage } } }`, "id", "at"},
	} {
		variables, seen := map[string]any{}, map[any]bool{}
		for more := true; more; {
			a := s.ask("auditor", page.query, variables)
			require.Empty(t, a.Errors, a.Body)
			read := a.Data["page"].(map[string]any)
			more = read["pageInfo"].(map[string]any)["hasNextPage"].(bool)
			nodes := read["nodes"].([]any)
			require.Len(t, nodes, 1, page.query)
			at := nodes[0].(map[string]any)[page.field]
			require.NotContains(t, seen, at, page.query)
			seen[at], variables[page.cursor] = true, at
		}
		a := s.ask("auditor", page.query, variables)
		require.Empty(t, a.Data["page"].(map[string]any)["nodes"], "after the last one there is none: %s", page.query)
	}
	require.Equal(t, 8, s.entries())
	none := s.ask("viewer", `{ policies(before: 0) { nodes { revision } } policy(revision: 0) { revision } missing: policy(revision: 99) { revision } }`, nil)
	require.Equal(t, map[string]any{"policies": map[string]any{"nodes": []any{}}, "policy": nil, "missing": nil}, none.Data, none.Body)
}

func TestEachEntryIsProvenToBeInTheLog(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	const query = `{ audit(first: 100, filter: {subject: "ada"}) { checkpoint nodes { sequence record proof { size hashes checkpoint } } } }`
	unsigned := s.ask("auditor", query, nil).Data["audit"].(map[string]any)
	require.Nil(t, unsigned["checkpoint"])
	require.Nil(t, unsigned["nodes"].([]any)[0].(map[string]any)["proof"], "nothing is signed yet")

	private, public, err := audit.NewKey("log.example.org")
	require.NoError(t, err)
	key, err := audit.ParseKey(private)
	require.NoError(t, err)
	signer, err := audit.NewSigner(s.control.AuditLog(), audit.SignerConfig{Key: key})
	require.NoError(t, err)
	_, err = signer.Sign(t.Context(), time.Now())
	require.NoError(t, err)
	// What comes after the checkpoint has no proof yet.
	_, err = s.control.RemoveTenant(t.Context(), control.Request{Actor: actors()["everything"], Reason: "after"}, control.RemoveTenantInput{Tenant: "acme", Expected: s.acme})
	require.NoError(t, err)

	a := s.ask("auditor", query, nil)
	require.Empty(t, a.Errors, a.Body)
	nodes := a.Data["audit"].(map[string]any)["nodes"].([]any)
	require.Len(t, nodes, 8)
	require.Nil(t, nodes[0].(map[string]any)["proof"])
	for _, node := range nodes[1:] {
		entry := node.(map[string]any)
		proof := entry["proof"].(map[string]any)
		require.Equal(t, a.Data["audit"].(map[string]any)["checkpoint"], proof["checkpoint"])
		checkpoint, err := audit.OpenCheckpoint([]byte(proof["checkpoint"].(string)), public)
		require.NoError(t, err)
		var hashes []tlog.Hash
		for _, text := range proof["hashes"].([]any) {
			raw, err := base64.StdEncoding.DecodeString(text.(string))
			require.NoError(t, err)
			hashes = append(hashes, tlog.Hash(raw))
		}
		sequence, record := int64(entry["sequence"].(float64)), entry["record"].(string)
		require.NoError(t, audit.CheckEntry(checkpoint, sequence, []byte(record), hashes))
		require.Error(t, audit.CheckEntry(checkpoint, sequence, fmt.Append([]byte(record), " "), hashes))
	}
}
