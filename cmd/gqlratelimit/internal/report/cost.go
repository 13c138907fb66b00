// Package report writes what the command found in schemas, operations and servers: as text for people, as JSON for programs.
package report

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/cli"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/pricing"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/source"
	"github.com/gqlgen-ratelimit/ratelimit/cost"
)

// Costs is what the prices of operations are reported as.
type Costs struct {
	// Results are the operations in the order of the report.
	Results []pricing.Result
	// Broken are the files that cannot be read or parsed, so that nobody knows what stands in them.
	Broken []*cli.FileError
	// Top is how many of them are shown, 0 for all. All are counted in the summary.
	Top int
	// Calls is how many calls of each operation the table shows.
	Calls int
	// MaxCost is the largest price allowed, 0 for no bound.
	MaxCost int64
}

// SortByPrice puts the dearest operations first and those without a price before them, because somebody
// has to look at them.
func SortByPrice(results []pricing.Result) {
	slices.SortStableFunc(results, func(x, y pricing.Result) int {
		if x.Fatal != y.Fatal {
			if x.Fatal {
				return -1
			}
			return 1
		}
		return cmp.Compare(y.Points, x.Points)
	})
}

// Over says whether a result has a price above the bound.
func (c Costs) Over(r pricing.Result) bool {
	return c.MaxCost > 0 && !r.Fatal && r.Points > c.MaxCost
}

// Unknown says whether a result cannot be held against the bound, because variables that have no value
// decide what it costs.
func (c Costs) Unknown(r pricing.Result) bool {
	return c.MaxCost > 0 && !r.Fatal && len(r.Missing) > 0 && !c.Over(r)
}

// Failed says whether a file is broken or something is wrong with any operation: it has no price, breaks a rule,
// is above the bound, or may be.
func (c Costs) Failed() bool {
	return len(c.Broken) > 0 || slices.ContainsFunc(c.Results, func(r pricing.Result) bool {
		return len(r.Problems) > 0 || c.Over(r) || c.Unknown(r)
	})
}

// shown returns the dearest operations, and those that may be dearer than they seem.
func (c Costs) shown() []pricing.Result {
	if c.Top <= 0 || c.Top >= len(c.Results) {
		return c.Results
	}
	shown := slices.Clone(c.Results[:c.Top])
	for _, r := range c.Results[c.Top:] {
		if c.Unknown(r) {
			shown = append(shown, r)
		}
	}
	return shown
}

// Write writes JSON with every call, or a table with the calls of each operation that cost the most. It returns
// [cli.ErrFound] if something is wrong.
func (c Costs) Write(to cli.Console, asJSON bool) error {
	return to.Report(asJSON, c.json(), c.Failed(), func(w io.Writer) error {
		var b strings.Builder
		row(&b, "POINTS", "TYPE", "FIELD", "OPERATION")
		writeBroken(&b, c.Broken)
		for _, r := range c.shown() {
			c.writeOperation(&b, r)
		}
		if hidden := len(c.Results) - len(c.shown()); hidden > 0 {
			say(&b, "… and %s that cost less", cli.Count(hidden, "operation"))
		}
		b.WriteString("\n" + c.summary() + "\n")
		_, err := io.WriteString(w, b.String())
		return err
	})
}

// writeBroken writes a line for each file that has no operations because it cannot be read.
func writeBroken(b *strings.Builder, broken []*cli.FileError) {
	for _, problem := range broken {
		row(b, "-", "", "", "! "+problem.Error())
	}
}

// brokenFiles says in the summary how many files were left out.
func brokenFiles(broken []*cli.FileError) string {
	if len(broken) == 0 {
		return ""
	}
	return ", " + cli.Count(len(broken), "file") + " left out"
}

// title names an operation and its place.
func title(op *source.Operation) string {
	return cli.Plain(op.Name) + "  " + cli.Position(op.File, op.Line, 0, "")
}

func (c Costs) writeOperation(b *strings.Builder, r pricing.Result) {
	if r.Fatal {
		row(b, "-", "", "", title(r.Operation))
	} else {
		row(b, points(r.Points), number(r.Cost.Type), number(r.Cost.Field), title(r.Operation))
	}
	for _, problem := range r.Problems {
		say(b, "! %v", problem)
	}
	if c.Over(r) {
		say(b, "! above the maximum of %s", points(c.MaxCost))
	}
	if len(r.Assumed) > 0 {
		say(b, "? no value for %s: priced with what is required in it; optional inputs and elements of lists add to that", variables(r.Assumed))
	}
	if len(r.Chosen) > 0 {
		say(b, "? no value for %s: priced with the dearer value", variables(r.Chosen))
	}
	switch {
	case c.Unknown(r):
		say(b, "! no value for %s: may be above the maximum of %s", variables(r.Missing), points(c.MaxCost))
	case len(r.Missing) > 0:
		say(b, "? no value for %s: priced without, which is no upper bound", variables(r.Missing))
	}
	if r.Cost.Approximate {
		say(b, "? too large to merge: each selection was priced for itself, which is an upper bound")
	}
	if r.Unmerged {
		say(b, "? too large to check whether its fields can be merged")
	}
	if !r.Fatal && c.Calls > 0 {
		writeCalls(b, r, c.Calls)
	}
}

func variables(names []string) string { return "$" + strings.Join(names, ", $") }

func pathOf(e *cost.Entry) string { return cmp.Or(strings.Join(e.Path, "."), e.Coordinate) }

// writeCalls writes the dearest calls of an operation, and what the others add.
func writeCalls(b *strings.Builder, r pricing.Result, limit int) {
	if r.Cost.Base > 0 {
		row(b, number(r.Cost.Base), "", "", "  each "+string(r.Operation.Definition.Operation))
	}
	entries := slices.Clone(r.Breakdown.Entries)
	slices.SortStableFunc(entries, func(x, y cost.Entry) int {
		return cmp.Compare(y.Type+y.Field, x.Type+x.Field)
	})
	entries = slices.DeleteFunc(entries, func(e cost.Entry) bool { return e.Type == 0 && e.Field == 0 })
	times := map[string]int{}
	for i := range entries {
		times[pathOf(&entries[i])]++
	}
	rest, typ, field := r.Breakdown.Omitted, r.Breakdown.OmittedType, r.Breakdown.OmittedField
	for i, e := range entries {
		if i < limit {
			line := "  " + pathOf(&e)
			if times[pathOf(&e)] > 1 {
				// Of an abstract type one object type may be the dearest to return and another the dearest to call.
				line += "  of " + strings.SplitN(e.Coordinate, ".", 2)[0]
			}
			if why := explain(e); why != "" {
				line += "  " + why
			}
			row(b, number(e.Type+e.Field), number(e.Type), number(e.Field), line)
			continue
		}
		rest++
		typ += e.Type
		field += e.Field
	}
	if rest > 0 {
		row(b, number(typ+field), number(typ), number(field), "  "+cli.Count(rest, "other call"))
	}
}

// explain says in a few words why an entry costs what it does.
func explain(e cost.Entry) string {
	var parts []string
	if e.Calls != 1 {
		parts = append(parts, number(e.Calls)+" calls")
	}
	if e.List != nil {
		parts = append(parts, "list of "+number(e.List.Size)+" ("+e.List.String()+")")
	}
	if e.Weight != 0 && e.Weight != 1 {
		parts = append(parts, "weight "+number(e.Weight))
	}
	if e.TypeWeight != 0 && e.TypeWeight != 1 {
		parts = append(parts, "type weight "+number(e.TypeWeight))
	}
	if e.Arguments != 0 {
		parts = append(parts, "arguments "+number(e.Arguments))
	}
	if e.TypeClamped || e.FieldClamped {
		parts = append(parts, "not below 0")
	}
	if e.Whole {
		parts = append(parts, "with all below")
	}
	return strings.Join(parts, ", ")
}

func (c Costs) summary() string {
	var failed, over, unknown int
	var total float64
	for _, r := range c.Results {
		switch {
		case len(r.Problems) > 0:
			failed++
		case c.Over(r):
			over++
		case c.Unknown(r):
			unknown++
		}
		if !r.Fatal {
			total += float64(r.Points)
		}
	}
	text := cli.Count(len(c.Results), "operation") + ", " + number(total) + " points in all" + brokenFiles(c.Broken)
	if failed > 0 {
		text += fmt.Sprintf(", %d with problems", failed)
	}
	if over > 0 {
		text += fmt.Sprintf(", %d above the maximum of %s", over, points(c.MaxCost))
	}
	if unknown > 0 {
		text += fmt.Sprintf(", %d that may be above %s for want of variables", unknown, points(c.MaxCost))
	}
	return text
}

// row writes three columns of numbers, each wide enough for a price of nine digits, and a text.
func row(b *strings.Builder, first, second, third, text string) {
	b.WriteString(strings.TrimRight(fmt.Sprintf("%9s %9s %9s  %s", first, second, third, text), " ") + "\n")
}

// say writes a text below the numbers.
func say(b *strings.Builder, format string, args ...any) {
	row(b, "", "", "", fmt.Sprintf(format, args...))
}

// number writes a cost with at most two decimals. What is infinite, or too large for a price, is ∞.
func number(x float64) string {
	if x >= cost.MaxPoints {
		return "∞"
	}
	return strconv.FormatFloat(math.Round(x*100)/100, 'f', -1, 64)
}

// points writes a price. The largest is one that overflowed.
func points(p int64) string { return number(float64(p)) }

// finite returns what JSON can carry: the largest price in place of an infinite cost.
func finite(x float64) float64 {
	return max(-cost.MaxPoints, min(cost.MaxPoints, x))
}
