package tiers

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// PolicyError is everything that is wrong with a policy. It never holds the text of the document
// beyond names and values of at most 64 characters each.
type PolicyError struct {
	// File is the path of the document, or what its feed is called. It is empty for a policy of neither.
	File string
	// Mistakes are in the order of their lines, or of their paths where there are no lines. There is
	// at least one.
	Mistakes []Mistake
}

// Mistake is one thing that is wrong with a policy.
type Mistake struct {
	// Line and Column are where it stands in the document, counted from 1. They are 0 for a policy of
	// Go values. What is missing is reported where it should stand.
	Line   int `json:"line,omitempty"`
	Column int `json:"column,omitempty"`
	// Path leads to it, such as tiers.free.limits.minute.capacity. It is empty for the document as a
	// whole.
	Path string `json:"path,omitempty"`
	// Problem says what is wrong and what would fit.
	Problem string `json:"problem"`
}

// String returns position, path and problem.
func (m Mistake) String() string {
	var b strings.Builder
	if m.Line > 0 {
		fmt.Fprintf(&b, "line %d, column %d: ", m.Line, m.Column)
	}
	if m.Path != "" {
		b.WriteString(m.Path)
		b.WriteString(": ")
	}
	b.WriteString(m.Problem)
	return b.String()
}

// Warning is something that is odd about a policy and holds all the same. Its fields are those of a
// [Mistake].
type Warning Mistake

// String returns position, path and problem.
func (w Warning) String() string {
	return Mistake(w).String()
}

// maxListed is how many mistakes the text of an error lists. All are in its Mistakes.
const maxListed = 100

// Error names the file, if there is one, and lists the mistakes, one a line, at most 100 of them.
func (e *PolicyError) Error() string {
	var b strings.Builder
	if len(e.Mistakes) == 1 {
		b.WriteString("tiers: 1 mistake in the policy")
	} else {
		fmt.Fprintf(&b, "tiers: %d mistakes in the policy", len(e.Mistakes))
	}
	if e.File != "" {
		b.WriteString(" " + e.File)
	}
	b.WriteByte(':')
	for i, mistake := range e.Mistakes {
		if i == maxListed {
			fmt.Fprintf(&b, "\n  and %d more", len(e.Mistakes)-maxListed)
			break
		}
		b.WriteString("\n  ")
		b.WriteString(mistake.String())
	}
	return b.String()
}

// path leads to a part of a policy: its keys from the root on, each followed by a NUL, which no
// valid key holds.
type path string

func (p path) to(key string) path {
	return p + path(key) + "\x00"
}

// parent returns the path without its last key.
func (p path) parent() path {
	i := strings.LastIndexByte(strings.TrimSuffix(string(p), "\x00"), 0)
	return p[:i+1]
}

// String returns the path as people write it, with bounded keys, those that are no words quoted in
// brackets.
func (p path) String() string {
	if p == "" {
		return ""
	}
	var b strings.Builder
	for _, key := range strings.Split(strings.TrimSuffix(string(p), "\x00"), "\x00") {
		switch {
		case isWord(key) && len(key) <= maxEcho:
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(key)
		default:
			b.WriteString("[" + echo(key) + "]")
		}
	}
	return b.String()
}

// maxEcho is how many characters of a name or value an error repeats.
const maxEcho = 64

// echo quotes a text from outside, at most 64 characters of it.
func echo(text string) string {
	if utf8.RuneCountInString(text) <= maxEcho {
		if quoted := strconv.Quote(text); utf8.RuneCountInString(quoted) <= maxEcho+2 {
			return quoted
		}
	}
	// Quoting makes text longer, so that what is left out is found rune by rune.
	const dots = "…"
	var b strings.Builder
	room := maxEcho - 1
	for i := 0; i < len(text); {
		_, size := utf8.DecodeRuneInString(text[i:])
		quoted := strconv.Quote(text[i : i+size])
		quoted = quoted[1 : len(quoted)-1]
		room -= utf8.RuneCountInString(quoted)
		if room < 0 {
			break
		}
		b.WriteString(quoted)
		i += size
	}
	return `"` + b.String() + dots + `"`
}

// isWord reports whether the text is letters, digits, _ and - only.
func isWord(text string) bool {
	for i := range len(text) {
		if c := text[i]; !isLetter(c) && !isDigit(c) && c != '_' && c != '-' {
			return false
		}
	}
	return text != ""
}

func isLetter(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

func isDigit(c byte) bool {
	return '0' <= c && c <= '9'
}

// finding is a mistake before it is known where it stands.
type finding struct {
	path    path
	problem string
	kind    findingKind
	// at is where it stands, if that is not where the path leads.
	at position
}

// findingKind says what a finding follows from, so that one slip of a document is one mistake.
type findingKind uint8

const (
	// wrong is what stands there but does not fit.
	wrong findingKind = iota
	// missing is a key that is required.
	missing
	// empty is a mapping that says nothing.
	empty
)

// policyError returns the error of the findings, in order, or nil if there are none.
func policyError(mistakes []Mistake) error {
	if len(mistakes) == 0 {
		return nil
	}
	slices.SortStableFunc(mistakes, func(a, b Mistake) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return &PolicyError{Mistakes: mistakes}
}
