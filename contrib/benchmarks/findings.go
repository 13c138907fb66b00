package main

import (
	"fmt"
	"strings"
)

// findings are what a section found: its tables, and what was reached of the aims that they are about.
type findings struct {
	tables []*table
	aims   []aim
}

// String returns the tables.
func (f *findings) String() string {
	texts := make([]string, len(f.tables))
	for i, t := range f.tables {
		texts[i] = t.String()
	}
	return strings.Join(texts, "\n")
}

// aim is a bound that was set before it was measured, and what was reached.
type aim struct {
	what, bound, reached string
	// missed says by how much, empty where nothing was missed.
	missed string
	// unknown says why nobody knows, empty where what was reached is what is measured and not the machine.
	unknown string
}

// unless says that a timer alone was later than the aim permits: a machine that is so busy shows nothing of what it runs.
func (a aim) unless(timer, bound float64) aim {
	if timer > bound {
		a.unknown = fmt.Sprintf("not shown: a bare timer came %s late", duration(timer))
	}
	return a
}

// atMost is an aim that something has at most a value. Show writes such values.
func atMost(what string, bound, reached float64, show func(float64) string) aim {
	a := aim{what: what, bound: "≤ " + show(bound), reached: show(reached)}
	if !(reached <= bound) {
		a.missed = beyond(reached-bound, bound)
	}
	return a
}

// atLeast is an aim that something has at least a value.
func atLeast(what string, bound, reached float64, show func(float64) string) aim {
	a := aim{what: what, bound: "≥ " + show(bound), reached: show(reached)}
	if !(reached >= bound) {
		a.missed = beyond(bound-reached, bound)
	}
	return a
}

// beyond says by how much a bound was missed.
func beyond(by, bound float64) string {
	if bound == 0 {
		return "missed"
	}
	return fmt.Sprintf("missed by %s %%", digits(100*by/bound))
}

// times shows a ratio.
func times(n float64) string { return digits(n) + " ×" }

// aimsTable shows what was reached of all aims.
func aimsTable(aims []aim) *table {
	t := &table{title: "Aims", header: []string{"", "aim", "reached", ""}}
	for _, a := range aims {
		verdict := "yes"
		switch {
		case a.unknown != "":
			verdict = a.unknown
		case a.missed != "":
			verdict = "**" + a.missed + "**"
		}
		t.add(a.what, a.bound, a.reached, verdict)
	}
	return t
}
