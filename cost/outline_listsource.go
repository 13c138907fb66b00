package cost

import "strings"

// SizeRule names the rule that gave a list its size.
type SizeRule string

// The rules by which lists are sized.
const (
	// SlicingArgument is the largest slicing argument that is given.
	SlicingArgument SizeRule = "slicingArgument"
	// AssumedSize is the assumedSize of a list size.
	AssumedSize SizeRule = "assumedSize"
	// DefaultSize is [Config.DefaultListSize]: nothing sizes the list.
	DefaultSize SizeRule = "defaultListSize"
	// Representations are the representations given to an _entities field.
	Representations SizeRule = "representations"
	// IntrospectionSize is how long a list of introspection is on average in the schema.
	IntrospectionSize SizeRule = "introspection"
)

// ValueSource says where the value of a slicing argument came from.
type ValueSource string

// The sources of a value.
const (
	// FromLiteral is a value that the document spells out.
	FromLiteral ValueSource = "literal"
	// FromVariable is the value of a variable, or the default that the operation gives it.
	FromVariable ValueSource = "variable"
	// FromSchema is the default of the argument, or of an input field, in the schema.
	FromSchema ValueSource = "schemaDefault"
)

// ListSource says how long a list was taken to be, and why.
type ListSource struct {
	// Size is the number of elements. In a list of lists each inner list has the default size, and Size
	// is the product.
	Size float64 `json:"size"`
	// Rule is the rule that gave the size.
	Rule SizeRule `json:"rule"`
	// Coordinate is the field whose list size was used: that of the list, or, if Inherited, that of the
	// parent whose sizedFields name the list. It is empty for rules that are no field's.
	Coordinate string `json:"coordinate,omitempty"`
	Inherited  bool   `json:"inherited,omitempty"`
	// Argument is the slicing argument, or the path to it, such as page.first.
	Argument string `json:"argument,omitempty"`
	// Source says where the value of the argument came from, and Variable from which variable.
	Source   ValueSource `json:"source,omitempty"`
	Variable string      `json:"variable,omitempty"`
	// Configured says that the list size comes from [Config.ListSizes] or [Config.Connections], and not from a
	// directive.
	Configured bool `json:"configured,omitempty"`
}

// String says in a few words where the size came from, such as "first from $n" or "assumedSize of
// Query.feed".
func (s ListSource) String() string {
	var b strings.Builder
	switch {
	case s.Argument == "":
		b.WriteString(string(s.Rule))
	case s.Source == FromVariable:
		b.WriteString(s.Argument + " from $" + s.Variable)
	case s.Source == FromSchema:
		b.WriteString(s.Argument + " by default")
	default:
		b.WriteString(s.Argument)
	}
	if s.Inherited {
		b.WriteString(" of " + s.Coordinate)
	}
	if s.Configured {
		b.WriteString(", configured")
	}
	return b.String()
}
