package preview_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/99designs/gqlgen/graphql/handler"
	"github.com/99designs/gqlgen/graphql/handler/transport"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/digest"
	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/preview"
	"github.com/gqlgen-ratelimit/ratelimit/internal/previewreport"
	"github.com/gqlgen-ratelimit/ratelimit/internal/testserver"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimittest"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// recorder has a collector count by the clock of the test.
type recorder struct {
	*digest.Collector
	clock *ratelimittest.Clock
}

func (r *recorder) Count(v event.Verdict) {
	v.At = r.clock.Now()
	r.Collector.Count(v)
}

// live is a server with the extension.
type live struct {
	http.Handler
	collector *digest.Collector
}

func newLive(t *testing.T, policy *tiers.Snapshot, clock *ratelimittest.Clock) *live {
	t.Helper()
	collector, err := digest.New(digest.Config{Users: digest.Plain})
	require.NoError(t, err)
	srv := handler.New(testserver.NewExecutableSchema(testserver.Config{Resolvers: &testserver.Resolver{}}))
	srv.AddTransport(transport.POST{})
	srv.Use(ratelimit.New(ratelimit.Config{
		Store: ratelimittest.NewStore(clock), Policy: policy,
		Subject: func(_ context.Context, r *ratelimit.Request) (ratelimit.Subject, error) {
			return ratelimit.Subject{
				Tenant: r.Header.Get("Tenant"), Team: r.Header.Get("Team"), User: r.Header.Get("User"), Tier: r.Header.Get("Tier"),
				Claims: &ratelimit.Claims{"plan": r.Header.Get("Plan")},
			}, nil
		},
		Observe: ratelimit.ObserveConfig{Observer: &recorder{collector, clock}},
	}))
	return &live{ratelimit.Handler(srv), collector}
}

// asked is an operation with what its request carries.
type asked struct {
	tiers.Subject
	query      string
	variables  map[string]any
	lang, plan string
}

// ask sends an operation, and returns whether it was refused.
func (l *live) ask(t *testing.T, subject asked) bool {
	t.Helper()
	body, err := json.Marshal(map[string]any{"query": subject.query, "variables": subject.variables})
	require.NoError(t, err)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/query", bytes.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	for name, value := range map[string]string{
		"Tenant": subject.Tenant, "Team": subject.Team, "User": subject.User, "Tier": subject.Tier, "X-Lang": subject.lang, "Plan": subject.plan,
	} {
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	l.ServeHTTP(w, r)
	var answer struct{ Errors []json.RawMessage }
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &answer), w.Body.String())
	return len(answer.Errors) > 0
}

// randomPolicy draws a policy of everything that prices, owners and operations decide about.
func randomPolicy(random *rand.Rand) string {
	modes := []string{"enforce", "enforce", "warn", "shadow", "off"}
	limit := func(most int) string {
		unit, capacity := "points", 1+random.IntN(most)
		if random.IntN(3) == 0 {
			unit, capacity = "requests", 1+random.IntN(6)
		}
		window := []string{"", "", ", window: fixed", ", window: sliding"}[random.IntN(4)]
		soft := ""
		if random.IntN(8) == 0 {
			soft = ", soft: true"
		}
		return fmt.Sprintf("{unit: %s, capacity: %d, per: minute, mode: %s%s%s}", unit, capacity, modes[random.IntN(len(modes))], window, soft)
	}
	hard := func(most int) string { return strings.Replace(limit(most), ", soft: true", "", 1) }
	var b strings.Builder
	b.WriteString("version: 1\ndefault: free\ntiers:\n")
	for _, tier := range []string{"free", "pro"} {
		fmt.Fprintf(&b, "  %s:\n    mode: %s\n    maxCost: %d\n    limits: {minute: %s, other: %s}\n", tier, modes[random.IntN(2)], 30+random.IntN(60), limit(300), limit(500))
		fmt.Fprintf(&b, "    teams: {limits: {team: %s}}\n    users: {limits: {user: %s}}\n", limit(200), limit(150))
		fmt.Fprintf(&b, "    operations:\n      Query.users: {maxCost: %d, %slimits: {lists: %s}}\n      Query.*: {limits: {queries: %s}}\n", 20+random.IntN(60), instead(random), hard(200), limit(250))
		fmt.Fprintf(&b, "      Query.search: {%slimits: {calls: {unit: requests, capacity: %d, per: minute}, found: %s}}\n", instead(random), 1+random.IntN(9), hard(100))
	}
	b.WriteString("  none: {unlimited: true}\n  barred: {blocked: true}\ntenants:\n")
	fmt.Fprintf(&b, "  t1: {times: %d, custom: {\"lang:de\": {%slimits: {own: %s}}}}\n", 1+random.IntN(3), instead(random), hard(200))
	fmt.Fprintf(&b, "  t2: {tier: %s}\n", []string{"pro", "none", "barred"}[random.IntN(3)])
	b.WriteString("parameters: {lang: {header: x-lang}, plan: {claim: plan}, n: {variable: n}}\ncustom:\n")
	for _, key := range []string{"lang:en", "lang:en,plan:gold", "plan:gold", "n:1", "lang:de,tenant:t0", "n:2,tier:pro"} {
		if random.IntN(2) == 0 {
			fmt.Fprintf(&b, "  %q: {%slimits: {keyed: %s}}\n", key, instead(random), hard(250))
		}
	}
	fmt.Fprintf(&b, "  \"lang:fr\": {limits: {keyed: %s}}\n", limit(50))
	return b.String()
}

// verdict is what both servers did with an operation.
type verdict struct {
	tenant     string
	was, would bool
}

// previewEach previews the first operation, the first two, and so on: what each preview has more than the one before is what it says of
// the last operation. It returns that of all.
func previewEach(t *testing.T, verdicts []verdict, chunks []digest.Chunk, cfg preview.Config) (report *previewreport.Report) {
	t.Helper()
	said := map[string]previewreport.Row{}
	for i, live := range verdicts {
		var err error
		report, err = preview.Run(t.Context(), each(chunks[:i+1]...), cfg)
		require.NoError(t, err)
		require.Empty(t, report.NotJudged)
		before, now := said[live.tenant], previewreport.Row{}
		for _, row := range report.Rows {
			if row.Tenant == live.tenant {
				now = row
			}
		}
		previewed := verdict{live.tenant, now.Before > before.Before, now.After > before.After}
		require.Equal(t, live, previewed, "operation %d", i)
		said[live.tenant] = now
	}
	return report
}

// instead has a rule stand in the place of limits, half of the time.
func instead(random *rand.Rand) string { return []string{"", "instead: true, "}[random.IntN(2)] }

// randomQuery draws an operation of one call or several, some of which are left out, or called under several names.
func randomQuery(random *rand.Rand) string {
	calls := []string{
		fmt.Sprintf("users(first: %d) { name }", random.IntN(60)), fmt.Sprintf("again: users(first: %d) { id friends(first: 2) { id } }", random.IntN(9)), "me { name }",
		"search(first: 3) { __typename }", "more: search(first: $n) { __typename }", fmt.Sprintf("page(first: %d) @skip(if: $no) { name }", random.IntN(40)),
	}
	random.Shuffle(len(calls), func(i, j int) { calls[i], calls[j] = calls[j], calls[i] })
	text := strings.Join(calls[:1+random.IntN(3)], " ")
	var declared []string
	for _, variable := range []string{"$n: Int! = 1", "$no: Boolean! = false"} {
		if name, _, _ := strings.Cut(variable, ":"); strings.Contains(text, name+")") {
			declared = append(declared, variable)
		}
	}
	if declared == nil {
		return "{ " + text + " }"
	}
	return "query (" + strings.Join(declared, ", ") + ") { " + text + " }"
}

// TestAPreviewIsWhatTheLiveExtensionRefuses has two servers answer the same operations, each under a policy of its own, and previews the
// second by what the first has recorded: the preview has to refuse what each of them has refused, operation by operation.
func TestAPreviewIsWhatTheLiveExtensionRefuses(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(15, 3))
	refused, newly := int64(0), int64(0)
	for round := range 16 {
		clock := &ratelimittest.Clock{}
		before, after := compiled(t, randomPolicy(random)), compiled(t, randomPolicy(random))
		if round%4 == 0 {
			// What no rule of the policy of now looks at is recorded for the one that may follow.
			before = compiled(t, "version: 1\ndefault: free\nparameters: {lang: {header: x-lang}, plan: {claim: plan}, n: {variable: n}}\n"+
				"tiers: {free: {limits: {minute: {capacity: 150, per: minute}}}, pro: {limits: {minute: {capacity: 90, per: minute}}}, none: {unlimited: true}, barred: {blocked: true}}\n")
		}
		now, then := newLive(t, before, clock), newLive(t, after, clock)
		var chunks []digest.Chunk
		var verdicts []verdict
		want := map[string]*previewreport.Row{}
		for range 60 {
			subject := tiers.Subject{
				Tenant: fmt.Sprint("t", random.IntN(4)), Team: []string{"", "blue"}[random.IntN(2)], User: []string{"", "mira", "joe"}[random.IntN(3)],
				Tier: []string{"", "", "pro"}[random.IntN(3)],
			}
			some := asked{
				Subject: subject, query: randomQuery(random), lang: []string{"", "en", "de", "fr", "xx"}[random.IntN(5)], plan: []string{"", "gold", "tin"}[random.IntN(3)],
				variables: map[string]any{"n": random.IntN(4), "no": random.IntN(2) == 0},
			}
			was, would := now.ask(t, some), then.ask(t, some)
			verdicts = append(verdicts, verdict{some.Tenant, was, would})
			row := want[subject.Tenant]
			if row == nil {
				row = &previewreport.Row{}
				want[subject.Tenant] = row
			}
			row.Operations++
			for _, counted := range []struct {
				n   *int64
				yes bool
			}{{&row.Live, was}, {&row.Before, was}, {&row.After, would}, {&row.NewlyRefused, would && !was}} {
				if counted.yes {
					*counted.n++
				}
			}
			chunks = append(chunks, *now.collector.Collect(clock.Now()).Chunk)
			clock.Advance(time.Duration(random.IntN(3000)) * time.Millisecond)
		}
		report := previewEach(t, verdicts, chunks, preview.Config{Before: before, After: after})
		for _, row := range report.Rows {
			refused, newly = refused+row.After, newly+row.NewlyRefused
			expected := *want[row.Tenant]
			expected.Tenant, expected.Tier, expected.By = row.Tenant, row.Tier, row.By
			require.Equal(t, expected, row)
			delete(want, row.Tenant)
		}
		for tenant, row := range want {
			require.Zero(t, row.Before+row.After, tenant)
		}
	}
	require.Greater(t, refused, int64(200))
	require.Greater(t, newly, int64(50), "the property says something")
}
