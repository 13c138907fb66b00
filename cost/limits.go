package cost

import (
	"math"

	"github.com/vektah/gqlparser/v2/ast"
)

// Limits bound the shape of an operation beside its cost. Zero means no limit, so that the zero value
// bounds nothing.
//
// All but MaxListNodes are properties of the document: they are found when it is compiled, in one pass
// that reads each selection once, and count selections whatever @skip and @include say. What a fragment
// adds is added at each of its spreads. __typename counts neither for depth nor as a root field, because
// clients add it everywhere.
//
// An operation that breaks several limits is refused for the first of them, in the order of the fields
// here; the rules of fields, such as that of slicing arguments, come between MaxDirectives and
// MaxListNodes.
type Limits struct {
	// MaxDepth is how many fields may be nested: 1 for { a }, 2 for { a { b } }. Fragments are followed
	// and are no level of their own. What is selected below __schema and __type does not count here.
	MaxDepth int
	// MaxIntrospectionDepth is the same from __schema and __type on, which are the first level. The
	// query that tools send to read a whole schema needs 15.
	MaxIntrospectionDepth int
	// MaxAliases is how many fields may have an alias that differs from their name.
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

// Rule names what a [LimitError] is about. The values are part of the answer to clients.
type Rule string

// The rules. The first six are those of [Limits].
const (
	// RuleDepth is [Limits.MaxDepth].
	RuleDepth Rule = "depth"
	// RuleIntrospectionDepth is [Limits.MaxIntrospectionDepth].
	RuleIntrospectionDepth Rule = "introspectionDepth"
	// RuleAliases is [Limits.MaxAliases].
	RuleAliases Rule = "aliases"
	// RuleRootFields is [Limits.MaxRootFields].
	RuleRootFields Rule = "rootFields"
	// RuleDirectives is [Limits.MaxDirectives].
	RuleDirectives Rule = "directives"
	// RuleListNodes is [Limits.MaxListNodes].
	RuleListNodes Rule = "listNodes"
	// RuleSlicingArguments is [ListSize.RequireOneSlicingArgument].
	RuleSlicingArguments Rule = "slicingArguments"
	// RuleRepresentations is [Config.MaxRepresentations].
	RuleRepresentations Rule = "representations"
)

// limits returns the checked limits.
func (b *builder) limits(l Limits) Limits {
	for coordinate, limit := range map[string]int{
		"MaxDepth": l.MaxDepth, "MaxIntrospectionDepth": l.MaxIntrospectionDepth, "MaxAliases": l.MaxAliases,
		"MaxRootFields": l.MaxRootFields, "MaxDirectives": l.MaxDirectives, "MaxListNodes": l.MaxListNodes,
	} {
		b.count("Config.Limits."+coordinate, limit, 0)
	}
	return l
}

// maxCount is where counts saturate: no limit can be above it and mean anything.
const maxCount = min(math.MaxInt, MaxPoints)

// limitCheck is what a plan knows of the limits of its estimator.
type limitCheck struct {
	// broken is the limit that the document breaks whatever the variables are, nil if there is none.
	broken *LimitError
	// nodes prices the operation by its list nodes alone; nil does not limit them.
	nodes    *Plan
	maxNodes int
}

// check returns the first rule that is broken; called says which rule of a field is.
func (l *limitCheck) check(variables map[string]any, called error) error {
	switch {
	case l.broken != nil:
		return l.broken
	case called != nil || l.nodes == nil:
		return called
	}
	counted, _ := l.nodes.evaluate(variables)
	if counted.Type <= float64(l.maxNodes) {
		return nil
	}
	given := maxCount
	if counted.Type < maxCount {
		given = int(math.Ceil(counted.Type))
	}
	return &LimitError{Rule: RuleListNodes, Reason: "the lists have too many elements", Given: given, Allowed: l.maxNodes}
}

// first returns the first limit that the shape breaks, nil if it breaks none.
func (l *Limits) first(s shape, rootFields int) *LimitError {
	for _, rule := range []LimitError{
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

// limits finds out what the plan has to know of the limits, and returns the work that it took. It goes
// with the document and is not bounded by the work limit; counting nodes is, by one of its own.
func (c *compiler) limits(doc *ast.QueryDocument) (work int, err error) {
	limits := &c.e.options.limits
	if *limits == (Limits{}) {
		return 0, nil
	}
	m := measurer{fragments: c.fragments, known: make(map[*fragment]shape, len(c.fragments)), names: map[string]bool{}}
	measured := m.operation(c.op)
	if limits.MaxRootFields > 0 {
		m.root(c.op.SelectionSet, map[string]bool{})
	}
	check := &limitCheck{broken: limits.first(measured, len(m.names)), maxNodes: limits.MaxListNodes}
	if c.e.nodes != nil {
		if check.nodes, work, err = c.e.nodes.compile(doc, c.op); err != nil {
			return m.work + work, err
		}
		// The operation itself is in no list.
		check.nodes.weight = 0
	}
	c.plan.limits = check
	return m.work + work, nil
}
