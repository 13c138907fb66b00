package statement

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Bounds of a statement.
const (
	// MaxName is how many bytes the name of a tenant, a unit or a root field has.
	MaxName = 2048
	// MaxLines is how many lines there are, and MaxBytes how many bytes the signed text has.
	MaxLines = 2000
	MaxBytes = 1_000_000
	// MaxCount is the largest number: all integers up to it are exact as numbers of JSON. A number that has reached it stands for at least so much.
	MaxCount = 1<<53 - 1
)

// Hash is the SHA-256 of the text of a statement, without its signature.
type Hash [sha256.Size]byte

// String returns it in hexadecimal digits.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// Reference names another statement by its number and its hash.
type Reference struct {
	Number uint64
	Hash   Hash
}

// Statement is what a tenant has used in a period.
type Statement struct {
	// Number counts the statements of a control plane from 1 on, whosever they are.
	Number uint64
	// Tenant is whose it is.
	Tenant string
	// From is the first day, and To the one after the last, each the midnight of UTC at which it begins.
	From, To time.Time
	// Frozen is when it was made, in UTC to the microsecond, and Collected up to when counts had been collected then.
	Frozen, Collected time.Time
	// Unknown is up to when not everything was collected: what was used before it may not be in here. Zero says that everything in the period was collected.
	Unknown time.Time
	// Previous is the statement of the tenant that was made before this one. The zero value says that this is the first.
	Previous Reference
	// Corrects is the statement of the same period in whose place this one is. The zero value says that it corrects none.
	Corrects Reference
	// Lines are the numbers, in the order of unit, root field and grade, each of them once.
	Lines []Line
	// Differences are what lines have here beyond those of the statement that is corrected, in the same order and without those that have not changed.
	// They may be negative. They are empty where nothing is corrected.
	Differences []Line
}

// Line is what was counted of a unit, or of a root field, at one grade.
type Line struct {
	// Unit is what was counted, and Field the coordinate of a root field: empty for the unit as a whole. Lines of root fields are shares of it.
	Unit, Field string
	// Grade is the word for how much it is to be believed: exact or local.
	Grade string
	// Charged and GivenBack are of the unit, and Calls is how often a root field was called.
	Charged, GivenBack, Calls int64
}

// Net is what was charged and not given back.
func (l *Line) Net() int64 { return l.Charged - l.GivenBack }

// compare orders lines.
func (l *Line) compare(other *Line) int {
	return cmp.Or(cmp.Compare(l.Unit, other.Unit), cmp.Compare(l.Field, other.Field), cmp.Compare(l.Grade, other.Grade))
}

// Error says why bytes are no statement, or why statements do not belong together.
type Error struct{ Problem string }

// Error says why.
func (e *Error) Error() string { return "statement: " + e.Problem }

func wrong(format string, args ...any) error { return &Error{fmt.Sprintf(format, args...)} }

// Check returns an [*Error] if it is no statement: a name or a number out of its bounds, a period that is not of whole days, lines that are not in their order,
// or differences of a statement that corrects none.
func (s *Statement) Check() error {
	switch {
	case s.Number == 0 || s.Number > MaxCount:
		return wrong("its number is not from 1 to 2^53 - 1")
	case !printable(s.Tenant) || s.Tenant == "":
		return wrong("its tenant is no name")
	case !day(s.From) || !day(s.To) || !s.From.Before(s.To):
		return wrong("its period is not of whole days")
	case s.Frozen.Before(s.To) || s.Frozen.Year() > lastYear:
		return wrong("it was frozen before its period was over")
	case len(s.Lines) > MaxLines || len(s.Differences) > 2*MaxLines:
		return wrong("it has more than %d lines", MaxLines)
	case s.Previous.Number >= s.Number || s.Corrects.Number > s.Previous.Number:
		return wrong("it names a statement that comes after it")
	case (s.Corrects == Reference{}) != (len(s.Differences) == 0):
		return wrong("a correction has differences, and nothing else has")
	}
	if err := checkLines(s.Lines, 0); err != nil {
		return err
	}
	return checkLines(s.Differences, -MaxCount)
}

// lastYear is the last one that is written with four digits.
const lastYear = 9999

// day reports whether a time is a midnight of UTC.
func day(t time.Time) bool {
	t = t.UTC()
	return t.Year() >= 1970 && t.Year() <= lastYear && t.Equal(time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC))
}

func checkLines(lines []Line, least int64) error {
	for i := range lines {
		l := &lines[i]
		if l.Unit == "" || !printable(l.Unit) || !printable(l.Field) || l.Grade != "exact" && l.Grade != "local" {
			return wrong("line %d has no unit, or another grade than exact and local", i+1)
		}
		if l.Field == "" && l.Calls != 0 {
			return wrong("line %d has calls, and is not of a root field", i+1)
		}
		if i > 0 && lines[i-1].compare(l) >= 0 {
			return wrong("line %d is not in its order", i+1)
		}
		for _, n := range [...]int64{l.Charged, l.GivenBack, l.Calls} {
			if n < least || n > MaxCount {
				return wrong("line %d has a number that none can be", i+1)
			}
		}
	}
	return nil
}

// printable reports whether a text can be shown, and fits.
func printable(text string) bool {
	return len(text) <= MaxName && utf8.ValidString(text) &&
		!strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) })
}

// Sort brings lines into their order.
func Sort(lines []Line) { slices.SortFunc(lines, func(a, b Line) int { return a.compare(&b) }) }

// Difference returns what lines have beyond those of an earlier statement: those that differ, in their order. Both are in their order.
func Difference(earlier, later []Line) (differences []Line) {
	for len(earlier) > 0 || len(later) > 0 {
		var before, after Line
		var order int
		switch {
		case len(earlier) == 0:
			order = 1
		case len(later) == 0:
			order = -1
		default:
			order = earlier[0].compare(&later[0])
		}
		if order <= 0 {
			before, earlier = earlier[0], earlier[1:]
		}
		if order >= 0 {
			after, later = later[0], later[1:]
		}
		d := after
		if order < 0 {
			d.Unit, d.Field, d.Grade = before.Unit, before.Field, before.Grade
		}
		d.Charged, d.GivenBack, d.Calls = after.Charged-before.Charged, after.GivenBack-before.GivenBack, after.Calls-before.Calls
		if d.Charged != 0 || d.GivenBack != 0 || d.Calls != 0 {
			differences = append(differences, d)
		}
	}
	return differences
}

// Check holds statements against each other, in any order: each is of the same tenant, names the one before by its number and hash where that is among them, and
// states exactly the difference from the one that it corrects. It returns the numbers that are named and not among them, each once. What does not belong together
// is an [*Error].
func Check(statements []*Statement) (missing []uint64, _ error) {
	if len(statements) == 0 {
		return nil, errors.New("statement: there are none")
	}
	sorted := slices.SortedFunc(slices.Values(statements), func(a, b *Statement) int { return cmp.Compare(a.Number, b.Number) })
	known := map[uint64]*Statement{}
	for i, s := range sorted {
		if s.Tenant != sorted[0].Tenant {
			return nil, wrong("statements %d and %d are of two tenants", sorted[0].Number, s.Number)
		}
		if known[s.Number] != nil {
			return nil, wrong("there are two statements %d", s.Number)
		}
		if i > 0 && s.Previous.Number < sorted[i-1].Number {
			return nil, wrong("statement %d leaves out statement %d, which was made before it", s.Number, sorted[i-1].Number)
		}
		known[s.Number] = s
		for _, named := range [...]Reference{s.Previous, s.Corrects} {
			if named.Number == 0 {
				continue
			}
			if there := known[named.Number]; there == nil {
				missing = append(missing, named.Number)
			} else if there.Hash() != named.Hash {
				return nil, wrong("statement %d names another statement %d than this one", s.Number, named.Number)
			}
		}
		if err := s.checkCorrection(known[s.Corrects.Number]); err != nil {
			return nil, err
		}
	}
	slices.Sort(missing)
	return slices.Compact(missing), nil
}

// checkCorrection holds a statement against the one that it corrects, nil for none that is known.
func (s *Statement) checkCorrection(of *Statement) error {
	if of == nil {
		return nil
	}
	if !s.From.Equal(of.From) || !s.To.Equal(of.To) {
		return wrong("statement %d corrects statement %d, which is of another period", s.Number, of.Number)
	}
	if !slices.Equal(s.Differences, Difference(of.Lines, s.Lines)) {
		return wrong("statement %d does not state the difference from statement %d", s.Number, of.Number)
	}
	return nil
}
