package faults_test

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit"
)

// noLog is told of each connection that a fault breaks.
type noLog struct{}

func (noLog) Printf(context.Context, string, ...any) {}

func TestMain(m *testing.M) {
	redis.SetLogger(noLog{})
	os.Exit(m.Run())
}

var (
	all    = flag.Bool("all", false, "make the whole table, and not a short form of it")
	update = flag.Bool("update", false, "write the whole table to docs/reports/faults.md")
)

const document = "../../docs/reports/faults.md"

// held returns how long a fault lasts.
func held() time.Duration {
	if *all {
		return time.Second
	}
	return 300 * time.Millisecond
}

// row is what came of a fault for one fail mode.
type row struct {
	fault, mode string
	seen        *seen
	told        *told
	// budget is what the limit permits in the time of the test, by the clock of Redis.
	budget int64
	// known is what the store knows in the end, and owed is the largest overdraft that was seen.
	known
	owed int64
}

// points turns operations into points.
func (r *row) points(operations int64) int64 { return operations * r.told.price }

// answered is what the store has admitted and said so, or has been told afterwards, in points.
func (r *row) answered() int64 {
	return r.points(r.seen.outcomes[ratelimit.OutcomeAdmitted] + r.seen.outcomes[ratelimit.OutcomeAdmittedLocally])
}

// beyond is what was admitted beyond the budget, whoever admitted it.
func (r *row) beyond() int64 { return max(0, r.points(r.seen.admitted())-r.budget) }

// lost is what the store has said that it admitted and does not know any more.
func (r *row) lost() int64 { return max(0, r.answered()-r.spent) }

func TestWhatIsAdmittedBeyondTheBudgetIsNothingOrReportedOrLostByTheStore(t *testing.T) {
	results := make([][]*row, len(faults))
	t.Run("faults", func(t *testing.T) {
		for i, f := range faults {
			if !*all && !f.short {
				continue
			}
			t.Run(f.name, func(t *testing.T) {
				t.Parallel()
				results[i] = f.run(t)
				for _, r := range results[i] {
					t.Run(r.mode, func(t *testing.T) { r.check(t, &f) })
				}
			})
		}
	})
	table := render(results)
	t.Log("\n" + table)
	if *update && !t.Failed() {
		require.True(t, *all, "-update needs -all")
		writeTable(t, table)
	}
}

// run puts a fleet under load, breaks its store, heals it, and counts.
func (f *fault) run(t *testing.T) []*row {
	t.Helper()
	var tenants []string
	for _, mode := range modes {
		tenants = append(tenants, mode+"-1")
	}
	s := f.start(t, tenants)
	begin := redisTime(t, s.admin(t))
	fleet := startFleet(t, s)
	load := startLoad(t, fleet, tenants)
	load.waitAround(t)
	s.begin(t)
	last(t, held())
	if !f.unfelt {
		load.waitAway(t, tenants...)
	}
	s.end(t)
	load.waitAround(t)
	admin := s.admin(t)
	owed := fleet.repaid(t, admin, tenants)
	load.end()
	require.Empty(t, load.errs)
	if !f.loses {
		load.waitSettled(t, fleet, admin)
	}
	fleet.settle()
	took := redisTime(t, admin).Sub(begin)
	var rows []*row
	for i, mode := range modes {
		rows = append(rows, &row{
			fault: f.name, mode: mode, seen: load.seen[tenants[i]], told: fleet.told[mode],
			// Redis counts whole milliseconds, of which both ends may be in.
			budget: capacity + (took.Milliseconds()+2)*refill/1000 + 1,
			known:  fleet.knows(t, admin, tenants[i]), owed: owed[tenants[i]],
		})
	}
	return rows
}

// repaid waits under load until nothing is overdrawn, for as long as the fault at least, in which servers tell the store what
// they have admitted without it. It returns the largest overdrafts.
func (f *fleet) repaid(t *testing.T, admin redis.UniversalClient, tenants []string) map[string]int64 {
	t.Helper()
	owed := map[string]int64{}
	first := time.Now()
	require.Eventually(t, func() bool {
		overdrawn := false
		for _, tenant := range tenants {
			overdraft := f.knows(t, admin, tenant).overdraft
			owed[tenant] = max(owed[tenant], overdraft)
			overdrawn = overdrawn || overdraft > 0
		}
		return !overdrawn && time.Since(first) > held()
	}, patience, 10*time.Millisecond)
	return owed
}

func redisTime(t *testing.T, client redis.UniversalClient) time.Time {
	t.Helper()
	now, err := client.Time(context.Background()).Result()
	require.NoError(t, err)
	return now
}

// check holds what DESIGN promises of a fault.
func (r *row) check(t *testing.T, f *fault) {
	t.Helper()
	seen := r.seen.outcomes
	require.True(t, maps.Equal(seen, r.told.outcomes), "clients saw %v, the fleet reported %v", seen, r.told.outcomes)
	require.Positive(t, seen[ratelimit.OutcomeLimited], "the clients ask for more than there is")
	judgedHere := r.mode == "bounded" || r.mode == "local"
	for outcome, may := range map[ratelimit.Outcome]bool{
		ratelimit.OutcomeUnjudged: r.mode == "open", ratelimit.OutcomeUnavailable: r.mode == "closed",
		ratelimit.OutcomeAdmittedLocally: judgedHere, ratelimit.OutcomeLimitedLocally: r.mode != "open",
	} {
		if !may {
			require.Zero(t, seen[outcome], outcome)
		}
	}
	locally := r.points(seen[ratelimit.OutcomeAdmittedLocally])
	require.LessOrEqual(t, locally, multiple*r.budget, "what is admitted without the store is at most the stated multiple")
	perhaps := r.points(r.told.ambiguous)
	require.LessOrEqual(t, r.spent, r.answered()+perhaps, "nothing was charged twice")
	within := r.budget + r.overdraft
	if judgedHere {
		// What the store has charged without an answer is judged locally as well, and then settled.
		within += perhaps
	}
	if r.mode == "bounded" {
		// The limit that decides forgets what exceeds twice its capacity.
		within += locally
	}
	require.LessOrEqual(t, r.spent, within, "what the store knows is within the budget, or owed")
	if !f.loses {
		require.GreaterOrEqual(t, r.spent, r.points(seen[ratelimit.OutcomeAdmitted]), "the store knows all that it has answered")
	}
	require.LessOrEqual(t, r.owed, locally, "what is owed was admitted locally")
	explained := r.overdraft + r.points(r.told.outcomes[ratelimit.OutcomeUnjudged])
	if r.mode == "bounded" {
		explained += locally
	}
	if f.loses {
		explained += r.lost()
	}
	require.LessOrEqual(t, r.beyond(), explained,
		"beyond the budget is what was reported as unjudged or admitted by the multiple, or what the store has lost")
}

// multiple is how many times a limit that fails bounded all servers together may admit by themselves: the default.
const multiple = 2

func render(results [][]*row) string {
	var text strings.Builder
	text.WriteString("| fault | fail mode | decisions | admitted | admitted unjudged | admitted locally | limited | limited locally | unavailable | longest | budget | beyond it | owed at most | lost by the store |\n")
	text.WriteString("|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n")
	for _, rows := range results {
		for _, r := range rows {
			of := r.seen.outcomes
			fmt.Fprintf(&text, "| %s | %s | %d | %d | %d | %d | %d | %d | %d | %.0f ms | %d | %d | %d | %d |\n", r.fault, r.mode, r.seen.decisions(),
				of[ratelimit.OutcomeAdmitted], of[ratelimit.OutcomeUnjudged], of[ratelimit.OutcomeAdmittedLocally], of[ratelimit.OutcomeLimited], of[ratelimit.OutcomeLimitedLocally],
				of[ratelimit.OutcomeUnavailable],
				float64(r.seen.slowest(1).Microseconds())/1000, r.budget, r.beyond(), r.owed, r.lost())
		}
	}
	return text.String()
}

func TestTheDocumentHasEachFaultInEachFailMode(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(document)
	require.NoError(t, err)
	_, table, found := strings.Cut(string(text), tableBegins)
	require.True(t, found)
	table, _, found = strings.Cut(table, tableEnds)
	require.True(t, found)
	for _, f := range faults {
		for _, mode := range modes {
			require.Contains(t, table, fmt.Sprintf("| %s | %s |", f.name, mode), "the table is old: make it anew with %s", remake)
		}
	}
	require.Equal(t, len(faults)*len(modes)+2, strings.Count(table, "\n"), "the table is old: make it anew with %s", remake)
	require.Contains(t, string(text), remake)
}

// remake is the command that makes the table.
const remake = "go test -count=1 -parallel=1 -v ./internal/faults -all -update"

// The table stands between these lines of the document.
const (
	tableBegins = "<!-- table -->\n"
	tableEnds   = "<!-- end of table -->\n"
)

func writeTable(t *testing.T, table string) {
	t.Helper()
	text, err := os.ReadFile(document)
	require.NoError(t, err)
	head, rest, found := strings.Cut(string(text), tableBegins)
	require.True(t, found)
	_, tail, found := strings.Cut(rest, tableEnds)
	require.True(t, found)
	require.NoError(t, os.WriteFile(document, []byte(head+tableBegins+table+tableEnds+tail), 0o600))
}
