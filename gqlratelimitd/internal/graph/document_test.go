package graph_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
)

var update = flag.Bool("update", false, "write the golden files anew")

// aliased calls a field many times.
func aliased(n int, call string) string {
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, " a%d: %s", i, call)
	}
	return text.String()
}

func TestADocumentThatAsksForTooMuchIsRefusedByItsPrice(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	before := s.entries()
	for name, query := range map[string]string{
		"aliases": "{" + aliased(40, `policies(first: 100) { nodes { reason } }`) + "}",
		"depth":   "{" + aliased(20, `tenant(id: "acme") { overrides(first: 100) { nodes { owner { name } } } tokens(first: 100) { nodes { id } } }`) + "}",
		"proofs":  `{ audit(first: 100) { nodes { proof { size } } } b: audit(first: 100) { nodes { proof { hashes } } } c: audit(first: 100) { nodes { proof { size } } } d: audit(first: 100) { nodes { proof { size } } } e: audit(first: 100) { nodes { proof { size } } } f: audit(first: 100) { nodes { proof { size } } } }`,
		"changes": "mutation {" + aliased(30, `revertPolicy(input: {to: 1, expectedRevision: 2, reason: "why"}) { revision }`) + "}",
	} {
		a := s.ask("auditor", query, nil)
		require.Equal(t, ratelimitclient.CodeCostLimitExceeded, a.code(), "%s: %s", name, a.Body)
		require.Nil(t, a.Data, name)
	}
	require.Equal(t, before, s.entries())
}

func TestChangesAreCountedHoweverManyStandInADocument(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	document := "mutation {" + aliased(40, `removeTenant(input: {tenant: "x", expectedRevision: 0, reason: "why"}) { revision }`) + "}"
	first := s.ask("auditor", document, nil)
	require.Equal(t, "FORBIDDEN", first.code(), first.Body)
	second := s.ask("auditor", document, nil)
	require.Equal(t, ratelimitclient.CodeRateLimited, second.code(), second.Body)
	require.Empty(t, s.ask("viewer", `{ me { subject } }`, nil).Errors, "somebody else has a budget of their own")
}

func TestHostileDocumentsAreRefusedAndNothingFails(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	before := s.entries()
	for name, query := range map[string]string{
		"tokens":        "{" + strings.Repeat(" me { subject }", 3000) + "}",
		"braces":        strings.Repeat("{ me ", 200) + strings.Repeat("}", 200),
		"cycle":         "{ ...a } fragment a on Query { ...b } fragment b on Query { ...a }",
		"operations":    strings.Repeat("query { me { subject } } ", 50),
		"unknown":       "{ " + strings.Repeat("x", 200) + " }",
		"name":          "{ " + strings.Repeat("x", 60_000) + " }",
		"large":         "{ me { subject } } #" + strings.Repeat("x", 70_000),
		"empty":         "",
		"subscription":  "subscription { me { subject } }",
		"first 0":       "{ policies(first: 0) { nodes { reason } } }",
		"first -1":      "{ policies(first: -1) { nodes { reason } } }",
		"first 101":     "{ policies(first: 101) { nodes { reason } } }",
		"first 2^31":    "{ policies(first: 2147483648) { nodes { reason } } }",
		"revision -1":   "{ policy(revision: -1) { reason } }",
		"revision 2^53": "{ policy(revision: 9007199254740992) { reason } }",
		"revision 2^64": "{ policy(revision: 18446744073709551616) { reason } }",
		"revision 1.5":  "{ policy(revision: 1.5) { reason } }",
		"revision x":    `{ policy(revision: "1") { reason } }`,
		"long x":        `{ audit(after: "1") { checkpoint } }`,
		"usage 1001":    `{ usageSeries(tenant: "acme", first: 1001) { next } }`,
		"usage of none": `{ usageSeries(tenant: "", window: DAY) { next } }`,
		"usage top 0":   `{ usageSeries(tenant: "acme", top: 0) { next } }`,
		"usage minutes": `{ usageSeries(tenant: "acme", window: MINUTE, from: "1999-01-01T00:00:00Z") { next } }`,
		"usage zone":    `{ usageSeries(tenant: "acme", window: DAY, zone: "../../etc/passwd") { next } }`,
		"usage cursor":  `{ usageSeries(tenant: "acme", after: "x") { next } }`,
		"usage names":   `{ usageSeries(tenant: "acme", names: ["\u0000"]) { next } }`,
		"cursor":        `{ overrides(after: "x") { next } }`,
		"by":            `{ overrides(filter: {by: "\u0000"}) { next } }`,
		"fleet 101":     `{ fleet(first: 101) { total } }`,
		"time":          `mutation { switchMode(input: {scope: ALL, atMost: OFF, until: "soon", expectedRevision: 0, reason: "why"}) { revision } }`,
		"no reason":     `mutation { removeTenant(input: {tenant: "acme", expectedRevision: 1}) { revision } }`,
		"blank reason":  `mutation { removeTenant(input: {tenant: "acme", expectedRevision: 1, reason: " "}) { revision } }`,
		"bidi":          `mutation { removeTenant(input: {tenant: "acme", expectedRevision: 1, reason: "\u202E"}) { revision } }`,
		"no tenant":     `{ tenant(id: "") { effective { tier } } }`,
		"control":       `{ tenant(id: "a\u0000") { effective { tier } } }`,
		"long tenant":   `{ tenant(id: "` + strings.Repeat("a", 5000) + `") { effective { tier } } }`,
		"capacity":      `mutation { setOverride(input: {tenant: "acme", limit: "minute", capacity: 0, expectedRevision: 0, reason: "why"}) { revision } }`,
		"period":        `mutation { setOverride(input: {tenant: "acme", limit: "minute", periodMs: 9007199254740991, expectedRevision: 0, reason: "why"}) { revision } }`,
		"life":          `mutation { issueToken(input: {subject: "x", roles: [VIEWER], lifeSeconds: 9007199254740991, reason: "why"}) { secret } }`,
		"level":         `mutation { allocate(input: {tenant: "acme", expectedRevision: 1, reason: "why", allocations: [{level: TENANT, owner: "", limit: "x", capacity: 1, per: "minute"}]}) { revision } }`,
		"twice":         `mutation { allocate(input: {tenant: "acme", expectedRevision: 1, reason: "why", allocations: [{level: TEAM, owner: "a", limit: "x", capacity: 1, per: "minute"}, {level: TEAM, owner: "a", limit: "x", capacity: 2, per: "minute"}]}) { revision } }`,
		"per":           `mutation { allocate(input: {tenant: "acme", expectedRevision: 1, reason: "why", allocations: [{level: TEAM, owner: "a", limit: "x", capacity: 1, per: "fortnight"}]}) { revision } }`,
		"signature":     `mutation { revertPolicy(input: {to: 1, expectedRevision: 2, reason: "why", signed: {author: "a", published: "2026-01-01T00:00:00Z", signature: "%"}}) { revision } }`,
	} {
		a := s.ask("everything", query, nil)
		require.NotEmpty(t, a.Errors, "%s: %s", name, a.Body)
		require.NotEqual(t, "INTERNAL", a.code(), "%s: %s", name, a.Body)
		require.NotEmpty(t, a.code(), "%s: %s", name, a.Body)
		require.Less(t, a.Status, 500, "%s: %s", name, a.Body)
		require.Less(t, len(a.Body), 40_000, name)
	}
	require.Equal(t, before, s.entries())
	require.NotContains(t, s.log.String(), "panicked")
}

func TestOnlyJSONByPOSTIsAnswered(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	const body = `{"query": "mutation { removeTenant(input: {tenant: \"acme\", expectedRevision: 1, reason: \"why\"}) { revision } }"}`
	before := s.entries()
	for _, contentType := range []string{"text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""} {
		a := s.post("operator", contentType, body)
		require.NotEmpty(t, a.Errors, "a page of another site can make a browser send %q", contentType)
		require.Contains(t, a.Errors[0].Message, "application/json")
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "/graphql?query=%7Bme%7Bsubject%7D%7D", nil)
	require.NoError(t, err)
	r.Header.Set("Actor", "operator")
	require.NotEmpty(t, s.send(r).Errors)
	for _, broken := range []string{"", "null", "[]", "{", `{"query": 1}`, `{"query": "{ me { subject } }", "variables": []}`, strings.Repeat("[", 100_000)} {
		a := s.post("operator", "application/json", broken)
		require.NotEmpty(t, a.Errors, broken)
		require.Less(t, a.Status, 500, broken)
	}
	require.Equal(t, before, s.entries())
}

func TestThePolicyOfTheLargestSizeCanBePublished(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	large := document + "# " + strings.Repeat("é", 250_000) + "\n"
	a := s.call("publisher", "publishPolicy", map[string]any{"document": large})
	require.Empty(t, a.Errors, "%.300s", a.Body)
	found := s.ask("viewer", `{ policy { document } }`, nil)
	require.Equal(t, large, found.Data["policy"].(map[string]any)["document"])
}

func TestTypicalDocumentsHaveThePricesThatAreWritten(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	typical := map[string]string{}
	for name, q := range questions {
		typical["Query."+name] = s.price(s.of(q.query), nil)
	}
	for name, c := range changes {
		// One change is in the way of another.
		s := newScene(t)
		input := c.input(s)
		input["reason"] = "why"
		query := fmt.Sprintf("mutation($in: %s%sInput!) { %s(input: $in) { %s } }", strings.ToUpper(name[:1]), name[1:], name, c.selected)
		typical["Mutation."+name] = s.price(query, map[string]any{"in": input})
	}
	typical["page of a tenant"] = s.price(`{ tenant(id: "acme") {
		effective(user: "zoe") { policy tier tierFrom limits { name unit capacity owner { level name } provenance { rule line } override { capacity expires by reason } } }
		record { revision document allocations { owner limit capacity per } } overrides(first: 20) { nodes { limit capacity } }
	} }`, nil)
	typical["overview"] = s.price(`{ me { roles } policy { revision author reason } policies(first: 10) { nodes { revision author reason } }
		overrides(first: 50, order: EXPIRES) { nodes { tenant limit managed expires } } modeSwitches(first: 10) { nodes { scope name mode until } } }`, nil)
	typical["fleet of 100 instances"] = s.price(`{ fleet(first: 100) { newest total nodes { name state revision since seen refused { revision error } } } relay { waiting lagMs } }`, nil)
	typical["usage of 30 days by unit"] = s.price(`{ usageSeries(tenant: "acme", window: DAY, by: UNIT, first: 90) { since collected nodes { begin open known name grade net } } }`, nil)
	typical["a thousand rows of usage"] = s.price(`{ usageSeries(tenant: "acme", by: USER, first: 1000) { nodes { begin name admitted refused points } next } }`, nil)
	typical["100 entries with proofs"] = s.price(`{ audit(first: 100) { nodes { sequence action target record proof { size hashes checkpoint } } } }`, nil)
	got, err := json.MarshalIndent(typical, "", "\t")
	require.NoError(t, err)
	path := filepath.Join("testdata", "prices.json")
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, append(got, '\n'), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got)+"\n")
}

// price is what the API says that a document costs.
func (s *scene) price(query string, variables map[string]any) string {
	s.Helper()
	a := s.ask("everything", query, variables)
	require.Empty(s, a.Errors, a.Body)
	var told struct {
		Extensions struct{ RateLimit struct{ Cost int64 } }
	}
	require.NoError(s, json.Unmarshal([]byte(a.Body), &told))
	return fmt.Sprint(told.Extensions.RateLimit.Cost)
}
