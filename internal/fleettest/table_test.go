package fleettest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// reach is after how long one instance had what was due, and after how long the last one had.
type reach struct{ one, every []time.Duration }

// add takes what is due in each instance at once.
func (r *reach) add(took []time.Duration) {
	r.one = append(r.one, took...)
	r.every = append(r.every, slices.Max(took))
}

// reach is about the revisions from one to another.
func (fl *fleet) reach(from, to uint64) (r reach) {
	for number := from; number <= to; number++ {
		var took []time.Duration
		for _, i := range fl.followers {
			arrivals := i.said()
			first := slices.IndexFunc(arrivals, func(a arrival) bool { return a.number >= number })
			took = append(took, max(0, arrivals[first].at.Sub(fl.published[number])))
		}
		r.add(took)
	}
	return r
}

// timer is about the bare timers, at the ticks that no instance has missed.
func (fl *fleet) timer() (r reach) {
	ticks := map[int64][]time.Duration{}
	last := fl.published[fl.revisions-1].UnixNano()
	for _, i := range fl.followers {
		i.mu.Lock()
		for due, late := range i.late {
			// Afterwards they stood still.
			if due > fl.published[2].UnixNano() && due < last {
				ticks[due] = append(ticks[due], late)
			}
		}
		i.mu.Unlock()
	}
	for _, late := range ticks {
		if len(late) == len(fl.followers) {
			r.add(late)
		}
	}
	return r
}

// at returns the value that so large a share does not exceed.
func at(all []time.Duration, share float64) time.Duration {
	all = slices.Sorted(slices.Values(all))
	if len(all) == 0 {
		return 0
	}
	return all[int(share*float64(len(all)-1))]
}

// row is a row of the table, in milliseconds.
func (r *reach) row(what string) string {
	ms := func(d time.Duration) string { return fmt.Sprintf("%.1f", float64(d.Microseconds())/1000) }
	return fmt.Sprintf("| %s | %d | %s | %s | %s | %s | %s |\n", what, len(r.every), ms(at(r.one, 0.5)), ms(at(r.one, 0.99)),
		ms(at(r.every, 0.5)), ms(at(r.every, 0.99)), ms(at(r.every, 1)))
}

func renderReach(outcomes []*outcome) string {
	names := map[kind]string{follows: "hints", deaf: "hints cut"}
	var table strings.Builder
	table.WriteString("| run | processes | revisions | connections ended | stuck | backward steps | naive, only subscribes: behind | " +
		"naive, reads at the start and never polls: behind | load average before, after |\n|---|---|---|---|---|---|---|---|---|\n")
	for _, o := range outcomes {
		fmt.Fprintf(&table, "| %s | %d | %d | %d | %d | %d | %d of %d | %d of %d | %s, %s |\n", names[o.is], o.processes, o.revisions, o.killed,
			o.stuck, o.backs, o.subscribed, o.naive, o.read, o.naive, o.loadBefore, o.loadBehind)
	}
	fmt.Fprintf(&table, "\n| milliseconds | times | one process: p50 | p99 | all %d: p50 | p99 | at most |\n|---|---|---|---|---|---|---|\n",
		outcomes[0].processes)
	for _, o := range outcomes {
		name := names[o.is]
		table.WriteString(o.calm.row(name + ", nothing breaks"))
		table.WriteString(o.broken.row(name + ", connections end"))
		table.WriteString(o.gone.row(name + ", a restart, a flush and a failover besides"))
		table.WriteString(o.last.row(name + ", the last one"))
		table.WriteString(o.timer.row("a bare timer in the same processes, " + name))
	}
	return table.String()
}

// load is the load average of the last minute.
func load(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile("/proc/loadavg")
	require.NoError(t, err)
	return strings.Fields(string(text))[0]
}

// document is the page that has the tables.
var document = filepath.Join("..", "..", "docs", "reports", "control-plane.md")

// remake is the command that makes the tables.
const remake = "go test -count=1 -v -timeout 20m ./internal/fleettest -all -update"

func writeTable(t testing.TB, name, table string) {
	t.Helper()
	if !*update {
		return
	}
	require.True(t, *all, "-update needs -all")
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

func TestThePageHasTheTablesOfAWholeRun(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(document)
	require.NoError(t, err)
	require.Contains(t, string(text), remake)
	_, table, _ := parts(t, string(text), "reach")
	for _, row := range []string{"| hints | 50 | 200 |", "| hints cut | 50 | 200 |", "| hints, nothing breaks | 58 |"} {
		require.Contains(t, table, row, "the table is old: make it anew with %s", remake)
	}
	_, table, _ = parts(t, string(text), "cost")
	require.Contains(t, table, "| 1000 |", "the table is old: make it anew with %s", remake)
}
