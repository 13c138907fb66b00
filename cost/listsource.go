package cost

import (
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
)

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
	// IntrospectionSize is the fixed size of the lists of introspection.
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

// size returns how many elements a call has, 1 if it returns no list, and why.
func (r *reading) size(c *outlineCall, parent parentSizes) ListSource {
	info := c.info
	if info.depth == 0 {
		return ListSource{Size: 1}
	}
	if parent.sizes != nil && slices.Contains(parent.sizes.sized, info.name) {
		source := parent.source
		source.Size, source.Inherited = times(source.Size, info.scale), true
		return source
	}
	if info.sizes != nil && info.sizes.sizesOwn() {
		if source, ok := r.slices(c); ok {
			source.Size = times(source.Size, info.scale)
			return source
		}
	}
	return ListSource{Size: times(r.o.e.options.listSize, info.scale), Rule: DefaultSize}
}

// gives returns what a call says about the lists in its value.
func (r *reading) gives(c *outlineCall) parentSizes {
	if c.info.sizes == nil || len(c.info.sizes.sized) == 0 {
		return parentSizes{}
	}
	source, ok := r.slices(c)
	if !ok {
		return parentSizes{}
	}
	return parentSizes{c.info.sizes, source}
}

// slices returns the size that the list size of a call's field gives, if it gives one.
func (r *reading) slices(c *outlineCall) (largest ListSource, ok bool) {
	sizes := c.info.sizes
	for _, s := range sizes.slicers {
		value, source := r.slice(c.members[0].field, s)
		if value == nil {
			continue
		}
		if size, numeric := sizeOf(value, s.list); numeric && (!ok || size > largest.Size) {
			source.Size, source.Rule, source.Argument = size, SlicingArgument, s.name()
			largest, ok = source, true
		}
	}
	if !ok && sizes.assumed >= 0 {
		largest, ok = ListSource{Size: sizes.assumed, Rule: AssumedSize}, true
	}
	if strings.HasPrefix(c.info.coordinate, "__") {
		largest.Rule = IntrospectionSize
		return largest, ok
	}
	largest.Coordinate, largest.Configured = c.info.coordinate, sizes.configured
	return largest, ok
}

// name is the path of the slicing argument as it was declared.
func (s *slicer) name() string {
	name := s.arg.name
	for _, in := range s.path {
		name += "." + in.name
	}
	return name
}

// slice returns the value of a slicing argument, nil if it is absent or null, and where it came from.
func (r *reading) slice(field *ast.Field, s *slicer) (any, ListSource) {
	var literal *ast.Value
	if arg := field.Arguments.ForName(s.arg.name); arg != nil {
		literal = arg.Value
	}
	steps := s.steps
	fallback, defaults := s.arg.value, s.arg.literal != nil
	for {
		source := ListSource{Source: FromLiteral}
		switch {
		case literal == nil && !defaults:
			return nil, source
		case literal == nil:
			value, _ := follow(fallback, steps)
			return value, ListSource{Source: FromSchema}
		case literal.Kind == ast.Variable:
			value, present := r.variable(literal.Raw)
			source = ListSource{Source: FromVariable, Variable: literal.Raw}
			if !present {
				if !defaults {
					return nil, source
				}
				value, source = fallback, ListSource{Source: FromSchema}
			}
			value, _ = follow(value, steps)
			return value, source
		case len(steps) == 0 && literal.Kind == ast.ListValue:
			// Only the length counts, whatever the elements are; a list of nothing takes no memory.
			return make([]struct{}, len(literal.Children)), source
		case len(steps) == 0 && literal.Kind == ast.ObjectValue:
			return nil, source
		case len(steps) == 0:
			return literalValue(literal, 0), source
		case literal.Kind != ast.ObjectValue:
			return nil, source
		}
		literal = literal.Children.ForName(steps[0].name)
		fallback, defaults = steps[0].fallback, steps[0].defaults
		steps = steps[1:]
	}
}
