package cli

import (
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// WriteTable writes rows whose columns begin below each other. The last column is never filled up. What a terminal would
// take for an order is written as a question mark, because names and reasons come from outside.
func WriteTable(w io.Writer, rows [][]string) {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			line.WriteString(Plain(cell))
			if i < len(row)-1 {
				line.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+2))
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " "))
		b.WriteByte('\n')
	}
	// A terminal that has gone away takes no error messages either.
	_, _ = io.WriteString(w, b.String())
}

// Plain returns a text that came from outside with question marks in the place of what a terminal would take for an order.
func Plain(text string) string {
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, text)
}
