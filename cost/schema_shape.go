package cost

import "math"

// Shape bounds the shape of an operation beside its cost. Zero means no limit, but for MaxAliases, which has a
// default.
//
// All but MaxListNodes are properties of the document: they are found when it is compiled, in one pass
// that reads each selection once, and count selections whatever @skip and @include say. What a fragment
// adds is added at each of its spreads. __typename counts neither for depth nor as a root field, because
// clients add it everywhere.
//
// An operation that breaks several limits is refused for the first of them, in the order of the fields
// here; the rules of fields, such as that of slicing arguments, come between MaxDirectives and
// MaxListNodes.
type Shape struct {
	// MaxDepth is how many fields may be nested: 1 for { a }, 2 for { a { b } }. Fragments are followed
	// and are no level of their own. What is selected below __schema and __type does not count here.
	MaxDepth int
	// MaxIntrospectionDepth is the same from __schema and __type on, which are the first level. The
	// query that tools send to read a whole schema needs 15.
	MaxIntrospectionDepth int
	// MaxAliases is how many fields may have an alias that differs from their name. Zero means 200, [None] no limit.
	MaxAliases int
	// MaxRootFields is how many calls the operation may make on its root type. Fields of one response
	// name are one call.
	MaxRootFields int
	// MaxDirectives is how many directives may be used: on the operation and its variables, on fields,
	// on fragments and where they are spread.
	MaxDirectives int
	// MaxListNodes is how many objects may be asked for in lists: each element of each list of objects
	// or abstract types counts, and lists in lists multiply. Lists are as long as their price takes them
	// to be, by the variables of the request, and selections are merged and excluded as they are there.
	// Representations of _entities count; lists of scalars, of enums and of introspection do not. GitHub
	// allows 500 000.
	MaxListNodes int
}

// Rule names what a [ShapeError] is about. The values are part of the answer to clients.
type Rule string

// The rules. The first six are those of [Shape].
const (
	// RuleDepth is [Shape.MaxDepth].
	RuleDepth Rule = "depth"
	// RuleIntrospectionDepth is [Shape.MaxIntrospectionDepth].
	RuleIntrospectionDepth Rule = "introspectionDepth"
	// RuleAliases is [Shape.MaxAliases].
	RuleAliases Rule = "aliases"
	// RuleRootFields is [Shape.MaxRootFields].
	RuleRootFields Rule = "rootFields"
	// RuleDirectives is [Shape.MaxDirectives].
	RuleDirectives Rule = "directives"
	// RuleListNodes is [Shape.MaxListNodes].
	RuleListNodes Rule = "listNodes"
	// RuleSlicingArguments is [ListSize.RequireOneSlicingArgument].
	RuleSlicingArguments Rule = "slicingArguments"
	// RuleRepresentations is [Config.MaxRepresentations].
	RuleRepresentations Rule = "representations"
)

// limits returns the checked limits.
func (b *builder) limits(l Shape) Shape {
	for coordinate, limit := range map[string]int{
		"MaxDepth": l.MaxDepth, "MaxIntrospectionDepth": l.MaxIntrospectionDepth, "MaxAliases": l.MaxAliases,
		"MaxRootFields": l.MaxRootFields, "MaxDirectives": l.MaxDirectives, "MaxListNodes": l.MaxListNodes,
	} {
		if coordinate != "MaxAliases" || limit != None {
			b.count("Config.Shape."+coordinate, limit, 0)
		}
	}
	switch l.MaxAliases {
	case 0:
		l.MaxAliases = defaultMaxAliases
	case None:
		l.MaxAliases = 0
	}
	return l
}

// maxCount is where counts saturate: no limit can be above it and mean anything.
const maxCount = min(math.MaxInt, MaxPoints)

// shape is what a selection set, with all fragments in it, counts for the limits. Sums saturate.
type shape struct {
	// depth and introspection are the longest paths of fields, outside introspection and inside.
	depth, introspection int
	aliases, directives  int
}

// beside is the shape of two parts next to each other.
func (s shape) beside(t shape) shape {
	return shape{
		depth:         max(s.depth, t.depth),
		introspection: max(s.introspection, t.introspection),
		aliases:       saturate(s.aliases, t.aliases),
		directives:    saturate(s.directives, t.directives),
	}
}

// saturate adds two counts.
func saturate(a, b int) int {
	if a > maxCount-b {
		return maxCount
	}
	return a + b
}

// first returns the first limit that the shape breaks, nil if it breaks none.
func (l *Shape) first(s shape, rootFields int) *ShapeError {
	if *l == (Shape{}) {
		return nil
	}
	for _, rule := range []ShapeError{
		{Rule: RuleDepth, Given: s.depth, Allowed: l.MaxDepth, Reason: "fields are nested too deeply"},
		{Rule: RuleIntrospectionDepth, Given: s.introspection, Allowed: l.MaxIntrospectionDepth, Reason: "introspection is nested too deeply"},
		{Rule: RuleAliases, Given: s.aliases, Allowed: l.MaxAliases, Reason: "there are too many aliases"},
		{Rule: RuleRootFields, Given: rootFields, Allowed: l.MaxRootFields, Reason: "there are too many root fields"},
		{Rule: RuleDirectives, Given: s.directives, Allowed: l.MaxDirectives, Reason: "there are too many directives"},
	} {
		if rule.Allowed > 0 && rule.Given > rule.Allowed {
			return &rule
		}
	}
	return nil
}
