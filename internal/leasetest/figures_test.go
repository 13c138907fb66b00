package leasetest_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
)

var (
	all    = flag.Bool("all", false, "measure everything that docs/reports/scale.md has of leases, in some ten minutes")
	update = flag.Bool("update", false, "write the tables of docs/reports/scale.md; needs -all")
)

// kinds are in the order of the tables.
var kinds = []kind{leased, postPaid, prePaid, static}

const (
	// warm is how long a fleet runs before it is measured, measured how long then, and moveEvery after how long the load moves.
	warm      = 3 * time.Second
	measured  = 10 * time.Second
	moveEvery = 5 * time.Second
)

// shape is how the load is spread, and how it moves.
type shape struct {
	name    string
	weights func(move int) []float64
}

var shapes = []shape{
	{"even", func(int) []float64 { return even() }},
	{"Zipf", func(int) []float64 { return zipf() }},
	{"60 % on one, which moves every 5 s", func(move int) []float64 { return onOne(3 * move % fleetSize) }},
}

// run has a fleet decide for so long, with so many times the refill asked for.
func (s shape) run(t testing.TB, of setting, times float64, length time.Duration) (v verdictsOf, reached float64) {
	t.Helper()
	fl := newFleet(t, redistest.Start(t), of, true)
	points := times * float64(of.Refill)
	fl.load(points, s.weights(0))
	pass(warm)
	from, before, done := fl.clock.after(), calls(t, fl.server.Addr), operations(fl.count())
	for begin, move := time.Now(), 1; time.Since(begin) < length; move++ {
		fl.load(points, s.weights(move))
		pass(min(moveEvery, max(0, length-time.Since(begin))))
	}
	reached = float64(operations(fl.count())-done) / (float64(fl.clock.after()-from) / second)
	return fl.judge(from, before), reached
}

func operations(all []counted) (sum int64) {
	for i := range all {
		sum += all[i].Operations
	}
	return sum
}

// percent is a part of the capacity.
func percent(points, capacity int64) float64 { return 100 * float64(points) / float64(capacity) }

// strategiesTable compares ways to decide on the same load.
func strategiesTable(t testing.TB) string {
	t.Helper()
	var table strings.Builder
	table.WriteString("| load | times the refill | decided by | beyond the limit, % of the capacity | used, % of one bucket | calls a second | decisions a second |\n" +
		"|---|---:|---|---:|---:|---:|---:|\n")
	for _, s := range shapes {
		for _, times := range []float64{0.9, 1.5} {
			for _, k := range kinds {
				of := setting{Kind: k, Seed: seed(t), Capacity: 50_000, Refill: 50_000, Costs: mixed}
				v, reached := s.run(t, of, times, measured)
				over := max(0, v.over-v.inexact)
				fmt.Fprintf(&table, "| %s | %.1f | %s | %.1f | %.2f | %.0f | %.0f |\n",
					s.name, times, k, percent(over, of.Capacity), v.used(), v.perSecond, reached)
			}
		}
	}
	return table.String()
}

// savedTable says how many calls leases save at rates of an instance.
func savedTable(t testing.TB) string {
	t.Helper()
	var table strings.Builder
	table.WriteString("| decisions a second and instance, wanted | reached | calls a second of all | fewer calls than decisions, % | beyond the limit | used, % |\n" +
		"|---:|---:|---:|---:|---:|---:|\n")
	for _, rate := range []int64{1000, 20_000} {
		// The load is one and a half times the refill.
		refill := rate * fleetSize * 445 / 150
		of := setting{Kind: leased, Seed: seed(t), Capacity: refill, Refill: refill, Costs: mixed}
		v, reached := shapes[0].run(t, of, 1.5, measured)
		fmt.Fprintf(&table, "| %d | %.0f | %.1f | %.3f | %d | %.2f |\n",
			rate, reached/fleetSize, v.perSecond, 100*(1-v.perSecond/reached), max(0, v.over-v.inexact), v.used())
	}
	return table.String()
}

// scalingTable says what instances decide for one tenant, each of which asks for as much.
func scalingTable(t testing.TB) string {
	t.Helper()
	var table strings.Builder
	table.WriteString("| instances | decisions a second | calls a second | beyond the limit | used, % |\n|---:|---:|---:|---:|---:|\n")
	for _, instances := range []int64{1, 2, 4, 8} {
		const rate = 20_000
		// The load is one and a half times the refill.
		refill := rate * instances * 445 / 150
		of := setting{Kind: leased, Seed: seed(t), Capacity: refill, Refill: refill, Instances: instances, Costs: mixed}
		v, reached := shape{weights: func(int) []float64 { return even()[:instances] }}.run(t, of, 1.5, measured)
		fmt.Fprintf(&table, "| %d | %.0f | %.1f | %d | %.2f |\n", instances, reached, v.perSecond, max(0, v.over-v.inexact), v.used())
	}
	return table.String()
}

// faultsTable says what is admitted when one kind of thing breaks.
func faultsTable(t testing.TB) string {
	t.Helper()
	var table strings.Builder
	table.WriteString("| what breaks, again and again | times | beyond the limit, points of 20 000 | used, % | calls a second |\n|---|---:|---:|---:|---:|\n")
	names := []string{
		"kill", "stop", "stop for longer than a lease", "cut off while it serves", "lost replies", "ended connections", "frozen Redis", "CLIENT PAUSE",
	}
	for _, name := range names {
		fl := newFleet(t, redistest.Start(t), ordinary(t), false)
		fl.load(1.5*float64(fl.Refill), onOne(0))
		pass(warm)
		from, before := fl.clock.after(), calls(t, fl.server.Addr)
		happened := fl.breaks(newRandom(fl.Seed), measured, name)
		v := fl.judge(from, before)
		fmt.Fprintf(&table, "| %s | %d | %d | %.1f | %.0f |\n", name, happened[name], max(0, v.over-v.inexact), v.used(), v.perSecond)
	}
	for _, lag := range []time.Duration{10 * time.Millisecond, 100 * time.Millisecond, time.Second} {
		v, most := failOver(t, ordinary(t), lag)
		fmt.Fprintf(&table, "| failover to a replica that lacks %v: at most %d | 1 | %d | %.1f | |\n", lag, most, max(0, v.over-v.inexact), v.used())
	}
	stepped, times := backAndOn(t, measured)
	fmt.Fprintf(&table, "| the clock of the scripts steps back by 1 to 5 s, and on again | %d | %d | %.1f | %.0f |\n", times, max(0, stepped.over-stepped.inexact), stepped.used(), stepped.perSecond)
	for range 3 {
		if v := onlyOn(t); v.over >= stepped.over {
			stepped = v
		}
	}
	fmt.Fprintf(&table, "| it steps on by 30 s, the worst of 3 | 1 | %d | %.1f | |\n", max(0, stepped.over-stepped.inexact), stepped.used())
	v := loseAll(t, ordinary(t))
	fmt.Fprintf(&table, "| a Redis that comes back with nothing | 1 | %d | %.1f | |\n", v.over, v.used())
	return table.String()
}

// processorTime is what this process has taken so far.
func processorTime(t testing.TB) time.Duration {
	t.Helper()
	var used syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// mallocs is how many things were allocated so far.
func mallocs() uint64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.Mallocs
}

// processorTable says what a decision takes of a processor in each way.
func processorTable(t testing.TB) string {
	t.Helper()
	const rounds, decisions = 5, 1_000_000
	took, allocations := map[kind][]float64{}, map[kind]float64{}
	server := redistest.Start(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr, ContextTimeoutEnabled: true})
	t.Cleanup(func() { _ = client.Close() })
	for range rounds {
		for _, k := range kinds {
			i := &instance{setting: setting{Kind: k, Capacity: 1 << 40, Refill: 1 << 40, Instances: 1}}
			d, err := i.newDecider(client)
			require.NoError(t, err)
			require.Equal(t, admitted, d.decide(tenantName(0), 1))
			pass(200 * time.Millisecond)
			ns, made := processorTime(t), mallocs()
			for range decisions {
				if d.decide(tenantName(0), 1) != admitted {
					t.Fatal(k, " refuses what there is")
				}
			}
			took[k] = append(took[k], float64(processorTime(t)-ns)/decisions)
			allocations[k] = max(allocations[k], float64(mallocs()-made)/decisions)
			d.end()
		}
	}
	var table strings.Builder
	table.WriteString("| decided by | processor time of a decision, ns | decisions a second and core | allocations |\n|---|---:|---:|---:|\n")
	for _, k := range kinds {
		slices.Sort(took[k])
		ns := took[k][rounds/2]
		fmt.Fprintf(&table, "| %s | %.0f | %.1f M | %.3f |\n", k, ns, 1000/ns, allocations[k])
	}
	return table.String()
}

// blocksTable says how long a block takes to be in force.
func blocksTable(t testing.TB) string {
	t.Helper()
	reached := blockEach(t, 40)
	return fmt.Sprintf("| blocks | instances | median, ms | most, ms |\n|---:|---:|---:|---:|\n| %d | %d | %d | %d |\n",
		len(reached), fleetSize, reached[len(reached)/2].Milliseconds(), reached[len(reached)-1].Milliseconds())
}

// tables are those of the page, in the order in which they are measured.
var tables = []struct {
	name    string
	measure func(testing.TB) string
}{
	{"processor", processorTable},
	{"strategies", strategiesTable},
	{"saved", savedTable},
	{"scaling", scalingTable},
	{"faults", faultsTable},
	{"blocks", blocksTable},
}

// document is the page that has the tables.
var document = filepath.Join("..", "..", "docs", "reports", "scale.md")

// remake is the command that makes the tables. With -run Tables/processor and the like it makes one.
const remake = "go test -tags long -count=1 -v -timeout 30m ./internal/leasetest -run Tables -all -update"

// writeTable writes a table, between two marks of the page.
func writeTable(t testing.TB, name, table string) {
	t.Helper()
	t.Log("\n" + table)
	if !*update {
		return
	}
	text, err := os.ReadFile(document)
	require.NoError(t, err)
	head, _, tail := parts(t, string(text), name)
	require.NoError(t, os.WriteFile(document, []byte(head+table+tail), 0o600))
}

// parts cuts a page at the table of that name.
func parts(t testing.TB, text, name string) (head, table, tail string) {
	t.Helper()
	begins, ends := "<!-- "+name+" -->\n", "<!-- end of "+name+" -->\n"
	head, rest, found := strings.Cut(text, begins)
	require.True(t, found)
	table, tail, found = strings.Cut(rest, ends)
	require.True(t, found)
	return head + begins, table, ends + tail
}
