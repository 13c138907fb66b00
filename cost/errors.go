package cost

import (
	"errors"
	"fmt"
	"strings"
)

// Errors of [Estimator.Compile] and [Estimator.Plan], to be matched with errors.Is. A document that
// gqlparser has validated causes only ErrWorkLimit and ErrTooDeep.
var (
	// ErrWorkLimit says that the operation is too large: with [Config.RefuseOverWork] too large to
	// merge, without it too large even to sum.
	ErrWorkLimit = errors.New("cost: operation exceeds the work limit")
	// ErrCyclicFragment says that a fragment spreads itself, directly or through others.
	ErrCyclicFragment = errors.New("cost: fragment spreads itself")
	// ErrTooDeep says that selections or values are nested too deeply.
	ErrTooDeep = errors.New("cost: operation is nested too deeply")
	// ErrMalformed says that the document does not fit the schema: an unknown field, fragment or type.
	ErrMalformed = errors.New("cost: document does not fit the schema")
)

// SchemaError is a mistake in the directives of the schema or in the [Config]. [New] joins all of
// them; errors.As finds the first.
type SchemaError struct {
	// Coordinate is the schema coordinate of the mistake, such as Query.search(first:), or the name of
	// a field of the configuration, such as Config.WorkLimit.
	Coordinate string
	// Reason says what is wrong.
	Reason string
}

// Error returns the coordinate and the reason.
func (e *SchemaError) Error() string {
	return "cost: " + e.Coordinate + ": " + e.Reason
}

// ShapeError is what [Plan.Evaluate] reports when a request breaks one of the [Shape], or a rule of a
// field, such as the one that asks for exactly one slicing argument.
type ShapeError struct {
	// Rule says which limit or rule it is.
	Rule Rule
	// Coordinate is the field whose rule is broken, such as Query.search. It is empty for a limit of the
	// operation.
	Coordinate string
	// Path leads to the field in the response, by response names and without list indices. It is empty
	// for a limit of the operation.
	Path []string
	// Reason says what the rule asks for.
	Reason string
	// Given is what the request gave: the number of levels, aliases, slicing arguments and so on. One
	// above [MaxPoints] is given as that, or as the largest int.
	Given int
	// Allowed is what the rule allows.
	Allowed int
}

// Error says what is wrong, where, and what was given.
func (e *ShapeError) Error() string {
	if e.Coordinate == "" {
		return fmt.Sprintf("cost: %s: %d given, %d allowed", e.Reason, e.Given, e.Allowed)
	}
	return fmt.Sprintf("cost: %s at %s: %s, %d given", e.Coordinate, strings.Join(e.Path, "."), e.Reason, e.Given)
}

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrMalformed, fmt.Sprintf(format, args...))
}
