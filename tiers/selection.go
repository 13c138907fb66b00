package tiers

import (
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// Selection is what an operation selects, as operation rules look at it. The zero value matches none.
type Selection struct {
	// Fields are the coordinates of the root fields that it can select, such as Mutation.createOrder, each once.
	Fields []string
	// Document is the [DocumentID] of the document that it came in. Empty matches no rule for a document.
	Document string
	// Calls are its calls of root fields. They are asked about where a rule that matches counts calls, or reads their
	// arguments. Nil means one call for each of Fields, of which nobody knows the arguments: what is divided by them or
	// computed from them is left out, and a field may stand among Fields as often as it is called.
	Calls Calls
	// Parameters are what the request carries, for custom limits. Nil is nothing.
	Parameters Parameters
	// Record is what a [Preparer] knows of the tenant beside the policy. Nil is nothing.
	Record *Record
}

// calls returns how many calls there are.
func (s *Selection) calls() int {
	if s.Calls == nil {
		return len(s.Fields)
	}
	return s.Calls.Len()
}

// call returns the coordinate of the field that a call calls.
func (s *Selection) call(i int) string {
	if s.Calls == nil {
		return s.Fields[i]
	}
	return s.Calls.Field(i)
}

// Calls are the calls of root fields that an operation makes with its variables; [cost.Calls] are. They are numbered
// from 0 to Len-1, and asked about by one goroutine at a time.
//
// [cost.Calls]: https://pkg.go.dev/github.com/gqlgen-ratelimit/ratelimit/cost#Calls
type Calls interface {
	// Len returns how many there are.
	Len() int
	// Field returns the coordinate of the field that a call calls.
	Field(i int) string
	// Values yields the values that a call is given at a dotted path into its arguments, until yield returns false:
	// the elements of a list, and nil for what is absent. It returns false if there are more values than it may read.
	Values(i int, path string, yield func(value any) bool) bool
	// Size returns what a call asks for at a dotted path into its arguments: the length of a list, or a number.
	Size(i int, path string) float64
}

// Counted are calls of which nobody knows the arguments, by the coordinates of their fields. What limits that are divided by an
// argument and computed units would do is left out, as where there are no [Calls].
type Counted []string

var _ Calls = Counted(nil)

// Len implements [Calls].
func (c Counted) Len() int { return len(c) }

// Field implements [Calls].
func (c Counted) Field(i int) string { return c[i] }

// Values implements [Calls]: there are none.
func (Counted) Values(int, string, func(any) bool) bool { return true }

// Size implements [Calls]: each is one.
func (Counted) Size(int, string) float64 { return 1 }

// arguments returns the calls if their arguments are known, nil if they are not.
func (s *Selection) arguments() Calls {
	if _, counted := s.Calls.(Counted); counted {
		return nil
	}
	return s.Calls
}

// TooManyValues says that an operation gives more or longer values to an argument than it may where a limit has a
// bucket for each. It is refused as an operation that breaks a rule of its shape is.
type TooManyValues struct {
	// Operation is the spelling of the operation rule, Limit the name of the limit, and By the path of the argument.
	Operation, Limit, By string
	// Most is how much fits, in words: how many different values, how many in all, or how many bytes.
	Most string
	// Mode is that of the limit, the strictest if several have too many.
	Mode bucket.Mode
	// EnforceFrom is when Mode becomes enforced if it is warn. It is zero if nobody knows.
	EnforceFrom time.Time
}
