package used

import (
	"cmp"
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
func numbers(by usage.By) (columns []string, of func(*usage.Row) []**int64) {
	switch by {
	case usage.ByField:
		return []string{"CHARGED", "CALLS"}, func(r *usage.Row) []**int64 { return []**int64{&r.Charged, &r.Calls} }
	case usage.ByLimit:
		return []string{"REFUSED"}, func(r *usage.Row) []**int64 { return []**int64{&r.Refused} }
	case usage.ByUnit:
	}
	return []string{"CHARGED", "GIVEN BACK", "NET"}, func(r *usage.Row) []**int64 { return []**int64{&r.Charged, &r.GivenBack, &r.Net} }
}

// summed adds up all periods, the largest first. A sum is open or not known where one of its periods is.
func summed(rows []usage.Row) []usage.Row {
	type key struct {
		tenant, name string
		grade        usage.Grade
	}
	sums, unknown, open := map[key]*usage.Row{}, false, false
	var order []*usage.Row
	for i := range rows {
		r := &rows[i]
		unknown, open = unknown || r.Known != usage.KnownAll, open || r.Open
		k := key{r.Tenant, r.Name, r.Grade}
		if sums[k] == nil {
			sums[k] = &usage.Row{Tenant: r.Tenant, Name: r.Name, Grade: r.Grade}
			order = append(order, sums[k])
		}
		into, from := all(sums[k]), all(r)
		for j := range from {
			add(into[j], *from[j])
		}
	}
	if len(order) > 1 {
		// A period without a name had nothing.
		order = slices.DeleteFunc(order, func(r *usage.Row) bool { return r.Name == "" && r.Tenant == "" && empty(r) })
	}
	slices.SortStableFunc(order, func(a, b *usage.Row) int {
		return cmp.Or(cmp.Compare(size(b), size(a)), cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Name, b.Name))
	})
	found := []usage.Row{}
	for _, r := range order {
		r.Begin, r.End, r.Open, r.Known = rows[0].Begin, rows[len(rows)-1].End, open, usage.KnownAll
		if unknown {
			r.Known = usage.KnownPart
		}
		found = append(found, *r)
	}
	return found
}

// all are all numbers of a row.
func all(r *usage.Row) []**int64 {
	return []**int64{&r.Charged, &r.GivenBack, &r.Net, &r.Calls, &r.Refused}
}

// add adds a number, which stays one that nobody knows if there is none.
func add(into **int64, n *int64) {
	if n == nil {
		return
	}
	if *into == nil {
		*into = new(int64)
	}
	**into += *n
}

// empty reports whether a row has nothing.
func empty(r *usage.Row) bool {
	return !slices.ContainsFunc(all(r), func(n **int64) bool { return *n != nil && **n != 0 })
}

// size is by what rows are sorted: what is left of what was charged, or refusals.
func size(r *usage.Row) int64 {
	for _, n := range []*int64{r.Net, r.Refused} {
		if n != nil && *n != 0 {
			return *n
		}
	}
	return 0
}

// writeUsage writes a table, and below it what is to be known about it.
func writeUsage(c cli.Console, told *usage.Series, sum bool) error {
	if len(told.Rows) > maxShown {
		return cli.Usagef("there are %d rows, and nobody reads more than %d: say -sum, a longer -window, or -csv", len(told.Rows), maxShown)
	}
	zone, err := time.LoadLocation(told.Zone)
	if err != nil {
		zone = time.UTC
	}
	columns, of := numbers(told.By)
	head := []string{"PERIOD"}
	if sum {
		head = nil
	}
	if told.Tenant == "" {
		head = append(head, "TENANT")
	}
	head = append(head, "NAME")
	rows := [][]string{slices.Concat(head, columns, []string{"GRADE", ""})}
	for i := 0; i < len(told.Rows); i++ {
		r := &told.Rows[i]
		var line []string
		if !sum {
			period := r.Begin.In(zone).Format(forms[told.Window])
			if last := unknownUntil(told.Rows, i); last > i {
				period, i = period+" to "+told.Rows[last].Begin.In(zone).Format(forms[told.Window]), last
			}
			line = append(line, period)
		}
		if told.Tenant == "" {
			line = append(line, r.Tenant)
		}
		line = append(line, r.Name)
		for _, n := range of(r) {
			text := "?"
			if *n != nil {
				text = strconv.FormatInt(**n, 10)
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

func stamp(at time.Time) string { return at.UTC().Format(time.RFC3339) }
