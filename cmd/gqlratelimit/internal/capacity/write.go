package capacity

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/cli"
)

// write writes a plan for people.
func write(w io.Writer, d *Demand, f *Figures, p *Plan) {
	callers := "alone"
	if d.Pipelined {
		callers = "in pipelines"
	}
	rows := [][]string{{"WORK OF REDIS", "A SECOND", "MEASURED, EACH " + strings.ToUpper(callers), "CORES"}}
	for _, one := range p.Work {
		rows = append(rows, []string{one.What, count(one.PerSecond), fmt.Sprintf("%.1f µs", one.Micros), fmt.Sprintf("%.2f", one.Cores)})
	}
	cli.WriteTable(w, append(rows, []string{"all", "", "", fmt.Sprintf("%.2f", p.Cores)}))
	fmt.Fprintln(w)
	rows = [][]string{{"MEMORY OF REDIS", "NUMBER", "MEASURED, EACH", "BYTES"}}
	for _, one := range p.Kept {
		rows = append(rows, []string{one.What, count(one.Number), fmt.Sprintf("%.0f B", one.Bytes), size(one.Total)})
	}
	cli.WriteTable(w, append(rows, []string{"all", "", "", size(p.Bytes)}))
	fmt.Fprintln(w)
	rows = [][]string{{"CALCULATED", ""}}
	if d.LeaseFrom > 0 {
		rows = append(rows, []string{"leased", fmt.Sprintf("%s tenants, %s of the decisions", count(p.LeasedTenants), cli.Percent(p.LeasedShare))})
	}
	rows = append(rows, []string{"busiest tenant", cli.Percent(p.BusiestTenant) + " of a core, on one node"},
		[]string{"masters", fmt.Sprintf("%s: %s for the work at %s of a core, %s for the memory at %s of %s", count(p.Masters),
			count(p.MastersForWork), cli.Percent(d.Busy), count(p.MastersForMemory), cli.Percent(d.Fill), size(float64(d.NodeMemory)))},
		[]string{"nodes", fmt.Sprintf("%s, with %d replicas of each master", count(p.Nodes), d.Replicas)})
	if d.Price > 0 {
		rows = append(rows, []string{"cost", fmt.Sprintf("%s, at %s a node", count(p.Cost), plain(d.Price))})
	}
	cli.WriteTable(w, rows)
	for _, remark := range p.Remarks {
		fmt.Fprintln(w, "! "+remark)
	}
	fmt.Fprintf(w, "\nMeasured: %s, %s, %s. Limits of the owners of a decision: %s.\n", cli.Plain(f.Server), cli.Plain(f.Machine), cli.Plain(f.Date), joined(d.Limits))
}

func joined(numbers []int) string {
	texts := make([]string, len(numbers))
	for i, n := range numbers {
		texts[i] = strconv.Itoa(n)
	}
	return strings.Join(texts, ", ")
}

// count writes a number with its thousands apart.
func count(n float64) string {
	if n < 10 && n != math.Trunc(n) {
		return fmt.Sprintf("%.1f", n)
	}
	digits := strconv.FormatFloat(math.Round(n), 'f', 0, 64)
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + " " + digits[at:]
	}
	return digits
}

// size writes bytes in the largest unit of which there is one.
func size(n float64) string {
	for _, unit := range []struct {
		name  string
		bytes float64
	}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if n >= unit.bytes {
			return fmt.Sprintf("%.4g %s", n/unit.bytes, unit.name)
		}
	}
	return fmt.Sprintf("%.0f B", n)
}
