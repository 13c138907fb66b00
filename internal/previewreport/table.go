package previewreport

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
)

// String returns the table of [Report.WriteTable].
func (r *Report) String() string {
	var b strings.Builder
	// A strings.Builder takes everything.
	_ = r.WriteTable(&b)
	return b.String()
}

// WriteTable writes a line for each tenant and one for all, and then how sure it is. The error is that of the writer.
func (r *Report) WriteTable(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	// The writer of the table keeps the first error until Flush.
	_, _ = fmt.Fprintln(table, "TENANT\tTIER\tOPERATIONS\tREFUSED NOW\tREFUSED THEN\tNEWLY\tBY")
	for i := range r.Rows {
		r.Rows[i].write(table, cell(r.Rows[i].Tenant))
	}
	r.Total.write(table, "total")
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "newly refused: %s of tenants, %s of users; recorded: %.3g %% of tenants\n", r.Tenants.words(), r.Users.words(), 100*r.Share)
	if remark := r.Remark(); err == nil && remark != "" {
		_, err = fmt.Fprintln(w, remark)
	}
	if err == nil && len(r.NotJudged) > 0 {
		_, err = fmt.Fprintln(w, "not judged:", strings.Join(r.NotJudged, ", "))
	}
	return err
}

func (g *Group) words() string {
	return fmt.Sprintf("%.2f %% (%.2f to %.2f, %d of %d)", 100*g.Share, 100*g.Low, 100*g.High, g.NewlyRefused, g.Seen)
}

func (r *Row) write(w io.Writer, name string) {
	causes := make([]string, len(r.By))
	for i := range r.By {
		causes[i] = r.By[i].String()
	}
	_, _ = fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%d\t%s\n", name, cmp.Or(r.Tier, "-"), r.Operations, r.Before, r.After, r.NewlyRefused,
		cmp.Or(strings.Join(causes, ", "), "-"))
}

// cell returns a name that may hold any bytes in a form that keeps the table whole.
func cell(name string) string {
	const longest = 64
	shown := name
	if runes := []rune(name); len(runes) > longest {
		shown = string(runes[:longest-1]) + "…"
	}
	if quoted := strconv.Quote(shown); quoted != `"`+name+`"` {
		return quoted
	}
	return name
}
