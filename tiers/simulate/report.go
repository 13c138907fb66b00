package simulate

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// Report is the outcome of [Run].
type Report struct {
	// From and To are the times of the first and the last record. They are zero if there was none.
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
	// Tenants are all tenants, the largest refused share first, then by name.
	Tenants []TenantReport `json:"tenants"`
	// Total is all tenants together. Its name and tier are empty.
	Total TenantReport `json:"total"`
}

// TenantReport is what the operations of a tenant cost, and what a policy would refuse of them.
type TenantReport struct {
	Tenant string `json:"tenant,omitempty"`
	// Tier is that of the last operation.
	Tier string `json:"tier,omitempty"`
	// Operations is how many there were, Points what they cost in all, refused ones included.
	Operations int64 `json:"operations"`
	Points     int64 `json:"points"`
	// P50, P95, P99 and Max are the prices that as many percent of the operations did not exceed.
	P50 int64 `json:"p50"`
	P95 int64 `json:"p95"`
	P99 int64 `json:"p99"`
	Max int64 `json:"max"`
	// Refused is how many operations would be refused, for whatever reason, and RefusedShare which
	// share of them all, 0 to 1.
	Refused      int64   `json:"refused"`
	RefusedShare float64 `json:"refusedShare"`
	// TooExpensive is how many of them exceed a maximum cost, Blocked how many fall to a block. These
	// do not reach the limits.
	TooExpensive int64 `json:"tooExpensive,omitempty"`
	Blocked      int64 `json:"blocked,omitempty"`
	// Limits are the limits that judged, those that refuse most first. An operation that several
	// limits refuse counts for each of them.
	Limits []LimitReport `json:"limits,omitempty"`
}

// LimitReport is how often one limit would refuse.
type LimitReport struct {
	// Level says whose limit it is: that of the tenant, of its teams or users, which are counted
	// together, or of an operation rule, whose spelling is the owner.
	Level string      `json:"level"`
	Owner string      `json:"owner,omitempty"`
	Name  string      `json:"name"`
	Unit  bucket.Unit `json:"unit"`
	// Refused is how often the limit did not have the amount, and RefusedShare which share that is of
	// all operations of the report, 0 to 1. The shares of several limits can add up to more than that
	// of the tenant.
	Refused      int64   `json:"refused"`
	RefusedShare float64 `json:"refusedShare"`
	// Never is how many of these exceed the capacity, so that no waiting helps.
	Never int64 `json:"never,omitempty"`
}

// String returns the table of [Report.WriteTable].
func (r Report) String() string {
	var b strings.Builder
	// A strings.Builder takes everything.
	_ = r.WriteTable(&b)
	return b.String()
}

// WriteTable writes a line for each tenant and one for all, with what refuses at the end. The error
// is that of the writer.
func (r Report) WriteTable(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	// The writer of the table keeps the first error until Flush.
	_, _ = fmt.Fprintln(table, "TENANT\tTIER\tOPERATIONS\tPOINTS\tP50\tP95\tP99\tMAX\tREFUSED\tSHARE\tREFUSED BY")
	for i := range r.Tenants {
		r.Tenants[i].writeRow(table, cell(r.Tenants[i].Tenant))
	}
	r.Total.writeRow(table, "total")
	return table.Flush()
}

func (t *TenantReport) writeRow(w io.Writer, name string) {
	tier := t.Tier
	if tier == "" {
		tier = "-"
	}
	_, _ = fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%.1f%%\t%s\n",
		name, tier, t.Operations, t.Points, t.P50, t.P95, t.P99, t.Max, t.Refused, 100*t.RefusedShare, t.reasons())
}

// share returns which share of all operations n are.
func (t *TenantReport) share(n int64) float64 {
	if t.Operations == 0 {
		return 0
	}
	return float64(n) / float64(t.Operations)
}

// reasons lists what refuses, how often and which share.
func (t *TenantReport) reasons() string {
	var reasons []string
	add := func(what string, n, never int64) {
		if n == 0 {
			return
		}
		reason := fmt.Sprintf("%s %d (%.1f%%", what, n, 100*t.share(n))
		if never > 0 {
			reason += fmt.Sprintf(", never %d", never)
		}
		reasons = append(reasons, reason+")")
	}
	add("blocked", t.Blocked, 0)
	add("maxCost", t.TooExpensive, 0)
	for _, limit := range t.Limits {
		name := limit.Name
		switch {
		case limit.Owner != "":
			name = limit.Owner + "/" + name
		case limit.Level != bucket.Tenant.String():
			name = limit.Level + "/" + name
		}
		add(name, limit.Refused, limit.Never)
	}
	if len(reasons) == 0 {
		return "-"
	}
	return strings.Join(reasons, ", ")
}

// maxCell is how many characters of a name the table has.
const maxCell = 64

// cell returns a name that may hold any bytes in a form that keeps the table whole.
func cell(name string) string {
	shown := name
	if runes := []rune(name); len(runes) > maxCell {
		shown = string(runes[:maxCell-1]) + "…"
	}
	if quoted := strconv.Quote(shown); quoted != `"`+name+`"` {
		return quoted
	}
	return name
}
