package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/pricing"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/source"
	"github.com/gqlgen-ratelimit/ratelimit/cost"
)

// Costs is what the prices of operations are reported as.
type Costs struct {
	// Results are the operations in the order of the report.
	Results []pricing.Result
	// Broken are the files that cannot be read or parsed, so that nobody knows what stands in them.
	Broken []*source.FileError
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

// WriteTable writes a table: each operation with its price and below it the calls that cost the most.
func (c Costs) WriteTable(w io.Writer, style Style) error {
	var b strings.Builder
	b.WriteString(style.bold(row("POINTS", "TYPE", "FIELD", "OPERATION")) + "\n")
	writeBroken(&b, c.Broken, style)
	for _, r := range c.shown() {
		c.writeOperation(&b, r, style)
	}
	if hidden := len(c.Results) - len(c.shown()); hidden > 0 {
		b.WriteString(style.dim(row("", "", "", fmt.Sprintf("… and %s that cost less", count(hidden, "operation")))) + "\n")
	}
	b.WriteString("\n" + c.summary(style) + "\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// writeBroken writes a line for each file that has no operations because it cannot be read.
func writeBroken(b *strings.Builder, broken []*source.FileError, style Style) {
	for _, problem := range broken {
		b.WriteString(row(style.red(pad("-")), "", "", style.red("! "+problem.Error())) + "\n")
	}
}

// brokenFiles says in the summary how many files were left out.
func brokenFiles(broken []*source.FileError, style Style) string {
	if len(broken) == 0 {
		return ""
	}
	return ", " + style.red(count(len(broken), "file")+" left out")
}

func (c Costs) writeOperation(b *strings.Builder, r pricing.Result, style Style) {
	name := style.bold(source.Printable(r.Operation.Name))
	where := style.dim(source.Position(r.Operation.File, r.Operation.Line, 0, ""))
	if r.Fatal {
		b.WriteString(row(style.red(pad("-")), "", "", name+"  "+where) + "\n")
	} else {
		price := points(r.Points)
		if c.Over(r) {
			price = style.red(pad(price))
		}
		b.WriteString(row(price, number(r.Cost.Type), number(r.Cost.Field), name+"  "+where) + "\n")
	}
	for _, problem := range r.Problems {
		b.WriteString(row("", "", "", style.red("! "+problem.Error())) + "\n")
	}
	if c.Over(r) {
		b.WriteString(row("", "", "", style.red("! above the maximum of "+points(c.MaxCost)+remedy(r))) + "\n")
	}
	if r.Operation.Local {
		b.WriteString(row("", "", "", style.yellow("? nothing of it is sent: the client answers all")) + "\n")
	}
	if len(r.Assumed) > 0 {
		b.WriteString(row("", "", "", style.yellow("? no value for $"+strings.Join(r.Assumed, ", $")+
			": priced with what is required in it; optional inputs and elements of lists add to that")) + "\n")
	}
	if len(r.Chosen) > 0 {
		b.WriteString(row("", "", "", style.yellow("? no value for $"+strings.Join(r.Chosen, ", $")+": priced with the dearer value")) + "\n")
	}
	switch {
	case c.Unknown(r):
		b.WriteString(row("", "", "", style.red("! no value for $"+strings.Join(r.Missing, ", $")+
			": may be above the maximum of "+points(c.MaxCost))) + "\n")
	case len(r.Missing) > 0:
		b.WriteString(row("", "", "", style.yellow("? no value for $"+strings.Join(r.Missing, ", $")+": priced without, which is no upper bound")) + "\n")
	}
	if r.Cost.Approximate {
		b.WriteString(row("", "", "", style.yellow("? too large to merge: each selection was priced for itself, which is an upper bound")) + "\n")
	}
	if r.Unmerged {
		b.WriteString(row("", "", "", style.yellow("? too large to check whether its fields can be merged")) + "\n")
	}
	if !r.Fatal && c.Calls > 0 {
		writeCalls(b, r, c.Calls, style)
	}
}

// remedy says where an operation that costs too much can be made cheaper.
func remedy(r pricing.Result) string {
	call, list := r.Dearest()
	if call == nil {
		return ""
	}
	text := ": most by " + pathOf(call) + ", " + number(call.Type+call.Field)
	if list != nil {
		text += "; the longest list is " + pathOf(list) + ", " + number(list.List.Size) + " (" + list.List.String() + ")"
	}
	return text
}

func pathOf(e *cost.Entry) string { return cmp.Or(strings.Join(e.Path, "."), e.Coordinate) }

// writeCalls writes the dearest calls of an operation, and what the others add.
func writeCalls(b *strings.Builder, r pricing.Result, limit int, style Style) {
	if r.Cost.Base > 0 {
		b.WriteString(style.dim(row(number(r.Cost.Base), "", "", "  each "+string(r.Operation.Definition.Operation))) + "\n")
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
			b.WriteString(style.dim(row(number(e.Type+e.Field), number(e.Type), number(e.Field), line)) + "\n")
			continue
		}
		rest++
		typ += e.Type
		field += e.Field
	}
	if rest > 0 {
		b.WriteString(style.dim(row(number(typ+field), number(typ), number(field), "  "+count(rest, "other call"))) + "\n")
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

func (c Costs) summary(style Style) string {
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
	text := count(len(c.Results), "operation") + ", " + number(total) + " points in all"
	text += brokenFiles(c.Broken, style)
	if failed > 0 {
		text += ", " + style.red(fmt.Sprintf("%d with problems", failed))
	}
	if over > 0 {
		text += ", " + style.red(fmt.Sprintf("%d above the maximum of %s", over, points(c.MaxCost)))
	}
	if unknown > 0 {
		text += ", " + style.red(fmt.Sprintf("%d that may be above %s for want of variables", unknown, points(c.MaxCost)))
	}
	return text
}

// row writes three columns of numbers and a text.
func row(first, second, third, text string) string {
	return strings.TrimRight(pad(first)+" "+pad(second)+" "+pad(third)+"  "+text, " ")
}

// columnWidth holds a price of nine digits.
const columnWidth = 9

// pad aligns a number to the right. What is coloured was padded before.
func pad(text string) string {
	if strings.HasPrefix(text, "\x1b") {
		return text
	}
	return strings.Repeat(" ", max(0, columnWidth-len([]rune(text)))) + text
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}
