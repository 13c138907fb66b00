package main

import (
	"fmt"
	"strings"
	"time"
)

// table is a table in Markdown. The first column is text, all others are numbers.
type table struct {
	title string
	// note stands above the table.
	note   string
	header []string
	rows   [][]string
}

func (t *table) add(cells ...string) {
	t.rows = append(t.rows, cells)
}

// String returns the table under its title.
func (t *table) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "### %s\n\n", t.title)
	if t.note != "" {
		fmt.Fprintf(&b, "%s\n\n", t.note)
	}
	fmt.Fprintf(&b, "| %s |\n|---|%s\n", strings.Join(t.header, " | "), strings.Repeat("---:|", len(t.header)-1))
	for _, row := range t.rows {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(row, " | "))
	}
	return b.String()
}

// duration shows a time that is given in nanoseconds with three digits.
func duration(nanos float64) string {
	switch {
	case nanos < float64(time.Microsecond):
		return digits(nanos) + " ns"
	case nanos < float64(time.Millisecond):
		return digits(nanos/float64(time.Microsecond)) + " µs"
	default:
		return digits(nanos/float64(time.Millisecond)) + " ms"
	}
}

// micros shows a time that is given in nanoseconds in microseconds, without the unit.
func micros(nanos float64) string {
	return digits(nanos / float64(time.Microsecond))
}

// inBytes shows a size.
func inBytes(n float64) string { return digits(n) + " B" }

// digits shows a number with about three digits and without an exponent.
func digits(n float64) string {
	switch magnitude := max(n, -n); {
	case magnitude >= 0.00005 && magnitude < 0.1:
		return fmt.Sprintf("%.4f", n)
	case magnitude < 10:
		return fmt.Sprintf("%.2f", n)
	case magnitude < 100:
		return fmt.Sprintf("%.1f", n)
	default:
		return fmt.Sprintf("%.0f", n)
	}
}
