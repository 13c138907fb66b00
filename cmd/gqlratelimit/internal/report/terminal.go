// Package report writes what the command found: as tables for people, as JSON for programs, and, while it
// works, how far it is.
package report

import (
	"io"
	"math"
	"os"
	"strconv"

	"github.com/gqlgen-ratelimit/ratelimit/cost"
)

// IsTerminal says whether a writer is a terminal, or another device that a person may look at.
func IsTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// Style colours text. The zero value leaves it as it is.
type Style struct {
	// Colour turns colours on.
	Colour bool
}

// StyleFor returns the style for a writer: colours on a terminal, unless the environment variable
// NO_COLOR is set to anything (https://no-color.org) or the terminal is a dumb one.
func StyleFor(w io.Writer, getenv func(string) string) Style {
	return Style{Colour: IsTerminal(w) && getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"}
}

func (s Style) paint(code, text string) string {
	if !s.Colour || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (s Style) bold(text string) string   { return s.paint("1", text) }
func (s Style) dim(text string) string    { return s.paint("2", text) }
func (s Style) red(text string) string    { return s.paint("31", text) }
func (s Style) yellow(text string) string { return s.paint("33", text) }
func (s Style) green(text string) string  { return s.paint("32", text) }

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
