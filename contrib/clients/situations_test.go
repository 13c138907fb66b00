package clients_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
)

const (
	// apiKey is one of the example's, that of the tenant in policy.
	apiKey = "demo-free"
	// otherKey is that of another tenant.
	otherKey = "demo-pro"
	// budget is the capacity of the tenant in points.
	budget = 40
	// everything costs the whole budget, cheap a third, and tooMuch more than any budget.
	everything = `{ repositories(first: 37) { nodes { id name } } }`
	cheap      = `query Cheap { repositories(first: 10) { nodes { id name } } }`
	tooMuch    = `query TooMuch { repositories(first: 100) { nodes { id name } } }`
	// create costs half of the budget.
	create = `mutation Create { createIssue(input: {repositoryId: "R_1", title: "Once"}) { issue { id number } } }`

	// Types of answers that a client can ask for.
	mediaJSON     = "application/json"
	mediaResponse = "application/graphql-response+json"
	mediaEvents   = "text/event-stream"
)

// policy is that of the example server. Its number is the period: after everything, cheap passes in a third of it.
const policy = `
version: 1
default: small
tiers:
  small:
    mode: enforce
    failMode: closed
    limits:
      budget: {capacity: 40, per: %ds}
tenants:
  demo-free: {tier: small}
`

// Periods of the budget: cheap waits for 1.3 s or for more than a minute.
const (
	briefly = 4
	long    = 200
)

// setup is how a client is configured.
type setup string

const (
	// plain is the client as it comes, own its own retries with their defaults, and advised what docs/guide/clients.md
	// advises.
	plain   setup = "plain"
	own     setup = "own"
	advised setup = "advised"
)

// call is what a client is to send.
type call struct {
	URL      string            `json:"url"`
	Setup    setup             `json:"setup"`
	Document string            `json:"document"`
	Mutation bool              `json:"mutation"`
	Headers  map[string]string `json:"headers"`
}

// outcome is what the application sees.
type outcome struct {
	// Passed says that it got its data.
	Passed bool `json:"passed"`
	// Sees is the error that it got, and Code the extensions.code in it, if the client has taken it apart.
	Sees string `json:"sees"`
	Code string `json:"code"`
}

func (o outcome) String() string {
	switch {
	case o.Passed:
		return "passes"
	case o.Code != "":
		return "`" + o.Sees + "`, `" + o.Code + "`"
	default:
		return "`" + o.Sees + "`"
	}
}

// client is one that nobody here wrote.
type client struct {
	// name is that of the library.
	name string
	// setups are those that it has.
	setups []setup
	// obeys says that its own retries wait as long as they are told, however long that is.
	obeys bool
	// streams says that it accepts a stream of events as the answer to a query or mutation.
	streams bool
	// send sends one operation.
	send func(ctx context.Context, c call) (outcome, error)
}

// situation is something that happens to a client.
type situation struct {
	// name is what docs/reports/clients.md calls it.
	name string
	// document is what is sent, with the headers Accept, which is the client's own if empty, and
	// Idempotency-Key, which is absent if empty.
	document, accept, key string
	// flags are those of the example server.
	flags []string
	// streamed says that the answer is a stream of events, which only urql accepts.
	streamed bool
	// spent says that the budget is, lost that the first answer gets lost, and away that the store is away.
	spent, lost, away bool
}

var situations = []situation{
	{name: "query refused, nothing set", document: cheap, spent: true},
	{name: "mutation refused, nothing set", document: create, spent: true},
	{name: "429, `application/json`", document: cheap, accept: mediaJSON, spent: true},
	{name: "429, `application/graphql-response+json`", document: cheap, accept: mediaResponse, spent: true},
	{name: "`RATE_LIMITED` with status 200", document: cheap, accept: mediaJSON, spent: true, flags: []string{"-status-ok"}},
	{name: "`COST_LIMIT_EXCEEDED`, 400, `application/json`", document: tooMuch, accept: mediaJSON},
	{name: "store away, 503, `application/json`", document: cheap, accept: mediaJSON, away: true},
	{name: "mutation with a key, answer lost", document: create, accept: mediaJSON, key: "3f0c7a52-once", lost: true},
	{name: "mutation without a key, answer lost", document: create, accept: mediaJSON, lost: true},
	{name: "mutation refused, `Accept: text/event-stream` set", document: create, accept: mediaEvents, spent: true, streamed: true},
}

// refused says whether the situation is about refusals that pass with time.
func (s *situation) refused() bool { return s.spent || s.away }

// play lets the situation happen to a client, and returns what it sent and what the application saw.
func (s *situation) play(t *testing.T, c *client, with setup) ([]attempt, outcome) {
	t.Helper()
	g := &gate{t: t, spend: s.spent, lose: s.lost}
	// What does not come to pass in time is not waited for, unless a client waits as long as it is told.
	period := long
	if with == advised || with == own && c.obeys {
		period = briefly
	}
	path := filepath.Join(t.TempDir(), "policy.yaml")
	require.NoError(t, os.WriteFile(path, fmt.Appendf(nil, policy, period), 0o600))
	flags := append([]string{"-policy", path}, s.flags...)
	if s.away {
		store := redistest.StartProxy(t, redistest.Start(t).Addr)
		store.Cut()
		flags = append(flags, "-redis", store.Addr)
		if with == advised {
			g.store = store
		}
	}
	g.api = startExample(t, flags...)
	headers := map[string]string{"X-API-Key": apiKey}
	if s.accept != "" {
		headers["Accept"] = s.accept
	}
	if s.key != "" {
		headers["Idempotency-Key"] = s.key
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	saw, err := c.send(ctx, call{
		URL: g.serve(), Setup: with, Document: s.document, Mutation: s.document == create, Headers: headers,
	})
	require.NoError(t, err)
	return g.seen(), saw
}

// cell describes what was seen, in the words of the tables in docs/reports/clients.md.
func (s *situation) cell(with setup, seen []attempt, saw outcome) string {
	early, runs, charged := 0, runsOf(seen), int64(0)
	for _, a := range seen {
		charged += a.charged
		if a.early {
			early++
		}
	}
	said := []string{fmt.Sprintf("%d sent", len(seen))}
	if s.away && with == advised {
		// How many depends on the time that the server takes to notice.
		said[0] = "sent until it is back"
	}
	if s.spent && len(seen) > 1 {
		said[0] += fmt.Sprintf(", %d too early", early)
	}
	said = append(said, saw.String())
	if s.accept == "" {
		said = slices.Insert(said, 0, fmt.Sprintf("%s, %d, `%s`", seen[0].method, seen[0].status, seen[0].media))
	}
	switch {
	case s.streamed && runs > 1:
		// How often depends on what comes first.
		return "sent and **run more than once**; " + saw.String()
	case s.document == create:
		said = append(said, fmt.Sprintf("ran %d×, charged %d×", runs, charged/(budget/2)))
	}
	return strings.Join(said, "; ")
}

// runsOf counts the attempts that ran.
func runsOf(seen []attempt) int {
	runs := 0
	for _, a := range seen {
		if a.ran {
			runs++
		}
	}
	return runs
}

// requireBacksOff checks what docs/guide/clients.md promises of the settings that it advises.
func (s *situation) requireBacksOff(t *testing.T, seen []attempt, saw outcome) {
	t.Helper()
	require.False(t, slices.ContainsFunc(seen, func(a attempt) bool { return a.early }), "comes too early: %+v", seen)
	switch {
	case s.streamed:
		require.Greater(t, runsOf(seen), 1, "urql no longer yields the result of a stream twice: say so in docs/guide/clients.md")
	case s.refused():
		require.True(t, saw.Passed, "%+v after %+v", saw, seen)
		require.Greater(t, len(seen), 1, "it was refused once")
		require.Equal(t, 1, runsOf(seen), "%+v", seen)
	case s.key != "":
		require.True(t, saw.Passed, "%+v after %+v", saw, seen)
		require.Len(t, seen, 2)
		require.True(t, seen[0].ran)
		require.False(t, seen[1].ran, "the answer is replayed")
		require.Zero(t, seen[1].charged)
	default:
		require.False(t, saw.Passed)
		require.Len(t, seen, 1, "it would be refused, or run, once more")
	}
	if s.document == tooMuch {
		require.Equal(t, ratelimitclient.CodeCostLimitExceeded, seen[0].code)
	}
}

func TestClientsMeetEachSituationAsTheirPageSays(t *testing.T) {
	t.Parallel()
	for _, c := range clients() {
		met := c.situations()
		rows := make([]row, len(met))
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			// It runs when those of all situations have.
			t.Cleanup(func() {
				if !t.Failed() && whole(rows) {
					requireInPage(t, report, "measured "+c.name, table(c, rows))
				}
			})
			for i, s := range met {
				rows[i] = row{title: s.name, cells: make([]string, len(c.setups))}
				for j, with := range c.setups {
					t.Run(s.name+", "+string(with), func(t *testing.T) {
						t.Parallel()
						seen, saw := s.play(t, c, with)
						rows[i].cells[j] = s.cell(with, seen, saw)
						if with == advised {
							s.requireBacksOff(t, seen, saw)
						}
					})
				}
			}
		})
	}
}

// situations returns those that the client can get into.
func (c *client) situations() []situation {
	return slices.DeleteFunc(slices.Clone(situations), func(s situation) bool { return s.streamed && !c.streams })
}
