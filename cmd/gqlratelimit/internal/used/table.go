package used

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/cli"
	"github.com/gqlgen-ratelimit/ratelimit/usage"
)

// maxShown is how many rows a table has: nobody reads more.
const maxShown = 5000

// forms are how periods are written.
var forms = map[usage.Window]string{"minute": "2006-01-02 15:04", "hour": "2006-01-02 15:04", "day": time.DateOnly, "month": "2006-01"}

// numbers are the columns of numbers of rows, and what a row has in them.
func numbers(by usage.By) (columns []string, of func(*usage.Row) []*int64) {
	switch by {
	case usage.ByField:
		return []string{"CHARGED", "CALLS"}, func(r *usage.Row) []*int64 { return []*int64{r.Charged, r.Calls} }
	case usage.ByLimit:
		return []string{"REFUSED"}, func(r *usage.Row) []*int64 { return []*int64{r.Refused} }
	case usage.ByUnit:
	}
	return []string{"CHARGED", "GIVEN BACK", "NET"}, func(r *usage.Row) []*int64 { return []*int64{r.Charged, r.GivenBack, r.Net} }
}

// writeUsage writes a table, and below it what is to be known about it.
func writeUsage(c cli.Console, told *usage.Series) error {
	if len(told.Rows) > maxShown {
		return cli.Usagef("there are %d rows, and nobody reads more than %d: say a longer -window, or -json", len(told.Rows), maxShown)
	}
	zone, err := time.LoadLocation(told.Zone)
	if err != nil {
		zone = time.UTC
	}
	columns, of := numbers(told.By)
	head := []string{"PERIOD"}
	if told.Tenant == "" {
		head = append(head, "TENANT")
	}
	rows := [][]string{slices.Concat(head, []string{"NAME"}, columns, []string{"GRADE", ""})}
	for i := 0; i < len(told.Rows); i++ {
		r := &told.Rows[i]
		period := r.Begin.In(zone).Format(forms[told.Window])
		if last := unknownUntil(told.Rows, i); last > i {
			period, i = period+" to "+told.Rows[last].Begin.In(zone).Format(forms[told.Window]), last
		}
		line := []string{period}
		if told.Tenant == "" {
			line = append(line, r.Tenant)
		}
		line = append(line, r.Name)
		for _, n := range of(r) {
			text := "?"
			if n != nil {
				text = strconv.FormatInt(*n, 10)
			}
			line = append(line, text)
		}
		rows = append(rows, append(line, string(r.Grade), stateOf(r)))
	}
	cli.WriteTable(c.Stdout, rows)
	writeNotes(c, told)
	return nil
}

// unknownUntil returns the last of the rows from one on of which nobody knows anything: they are one line.
func unknownUntil(rows []usage.Row, from int) (last int) {
	for last = from; rows[from].Known == usage.KnownNone && last+1 < len(rows) && rows[last+1].Known == usage.KnownNone; last++ {
	}
	return last
}

// stateOf says what the numbers of a row lack.
func stateOf(r *usage.Row) string {
	switch {
	case r.Known == usage.KnownNone:
		return "nobody knows"
	case r.Known == usage.KnownPart && r.Open:
		return "at least, open"
	case r.Known == usage.KnownPart:
		return "at least"
	case r.Open:
		return "open"
	}
	return ""
}

// writeNotes says what is to be known about a table.
func writeNotes(c cli.Console, told *usage.Series) {
	fmt.Fprintln(c.Stdout)
	if told.Since.IsZero() {
		note(c, "Nothing was ever collected: the daemon needs -redis, and tiers that count usage.")
		return
	}
	note(c, "Collected from %s to %s. Times are of %s.", stamp(told.Since), stamp(told.Collected), told.Zone)
	if told.Kept.After(told.From) {
		note(c, "By the %s there is nothing from before %s: a longer -window has it.", told.Window, stamp(told.Kept))
	}
	if told.Counts == "none" {
		note(c, "The policy counts nothing of %s in the step that charges: its tier has no usage: totals or fields.", told.Tenant)
	}
	if told.Counts == "totals" && told.By == usage.ByField {
		note(c, "The policy counts no root fields of %s: its tier has usage: totals.", told.Tenant)
	}
}

// note writes a line below a table.
func note(c cli.Console, format string, args ...any) {
	fmt.Fprintln(c.Stdout, cli.Plain(fmt.Sprintf(format, args...)))
}

func stamp(at time.Time) string { return at.UTC().Format(time.RFC3339) }
