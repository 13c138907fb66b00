package cost

// Plan is an operation compiled for pricing. It is immutable, safe for concurrent use, and holds
// nothing of the document but strings, and the arguments that [Config.Complexity] is given.
//
// Only what depends on variables is in it: the rest is folded into constants.
type Plan struct {
	base        float64
	free        bool
	approximate bool
	fields      []string

	variables []variable
	// conditions are a Boolean circuit; the first is true.
	conditions []condition
	entities   []entityCall
	functions  []functionCall
	terms      []term
	insides    []inside
	extras     []extra
	lookups    []lookup
	sizes      []sizeExpr

	// program computes as many registers; result is what is selected on the root type.
	program   []instruction
	registers int
	forms     []form
	addends   []addend
	owns      []ownExpr
	rules     []rule
	result    form
	// weight is that of the root type.
	weight float64

	// nodes are what the program was made from, each after the nodes that it reads, and root is the
	// result. They stay only where a request can break a rule, to find the call that does, and where
	// there are functions, to ask them only about calls that happen.
	nodes []node
	calls []call
	edges []edge
	root  ref
	// values is how many values one evaluation may read.
	values int
	// limits is nil if the estimator has none.
	limits *limitCheck

	outline planOutline
}

// variable is a variable that the plan reads, with the default that the operation gives it.
type variable struct {
	name     string
	fallback any
	defaults bool
	// values is how many values the default consists of.
	values int
}

// ref is a constant, or a constant and the result of a node added to it.
type ref struct {
	constant pair
	// node is -1 for a constant.
	node int32
}

func fixed(p pair) ref { return ref{constant: p, node: -1} }

func (r ref) isFixed() bool { return r.node < 0 }

// nodeKind says what a node is.
type nodeKind uint8

const (
	// nodeSum adds the edges.
	nodeSum nodeKind = iota
	// nodeMax takes the component-wise maximum of the edges.
	nodeMax
	// nodeCall is calls[lo].
	nodeCall
	// nodeEntities is entities[lo].
	nodeEntities
	// nodeFunction is functions[lo].
	nodeFunction
	// nodeGate is its only edge if the condition holds, else nothing.
	nodeGate
	// nodeSized is its first edge plus the second times sizes[size], or its third edge if there is no
	// such size.
	nodeSized
)

type node struct {
	kind      nodeKind
	lo, hi    int32
	condition int32
	size      int32
}

type edge = ref

// call is a field call some part of which depends on variables.
type call struct {
	info      *fieldInfo
	key       string
	condition int32
	// own is the constant part of what the call itself costs; terms and extras add to it.
	own     float64
	termsLo int32
	termsHi int32
	// extrasLo and extrasHi are the directives of the merged selections, the most expensive of which
	// counts. They are equal when there are none.
	extrasLo int32
	extrasHi int32
	// n is the number of elements, unless size is an index: then it is sizes[size] × n.
	n      float64
	size   int32
	weight float64
	child  ref
	// rule asks for exactly one slicing argument: given of them are constant, the lookups add to them.
	rule      bool
	given     int32
	lookupsLo int32
	lookupsHi int32
}

// entityCall is a call of _entities. Its representations are a list in a variable, or a literal list
// of which each element, or each __typename, is a constant or in a variable.
type entityCall struct {
	call call
	// whole is the variable that carries the list, -1 if the list is a literal.
	whole int32
	// names are the constant typenames of a literal list, found those in variables: lookups of the
	// typename itself.
	names []string
	found []lookup
	// byType is what one representation costs, unknown the most expensive of them.
	byType  map[string]ref
	unknown ref
	max     int
	// own is the index of what the call itself costs; forms and unknownForm are byType and unknown in
	// the program.
	own         int32
	forms       map[string]int32
	unknownForm int32
}

// term is an argument or input field whose cost depends on a variable.
type term struct {
	slot   int32
	weight float64
	// absent is what is added when the variable is absent.
	absent float64
	// inside is the index of what the input fields in the variable cost, -1 if they cost nothing.
	inside int32
}

// extra is what the directives of one of several merged selections add.
type extra struct {
	condition int32
	own       float64
	lo, hi    int32
}

// lookup finds a value in a variable.
type lookup struct {
	slot     int32
	steps    []step
	fallback any
	defaults bool
	// list says that the length is asked for.
	list bool
}

// sizeExpr is a list size that depends on variables: the largest of constant and lookups. If none of
// them is given it is that of next, or fallback if next is -1; a negative fallback is no size.
type sizeExpr struct {
	constant float64
	lo, hi   int32
	fallback float64
	next     int32
}

// RootFields returns the coordinates of the root fields that the operation selects, such as
// Mutation.createOrder, sorted and each once, whatever @skip and @include say about variables.
// __typename is left out. The slice is shared and must not be modified.
func (p *Plan) RootFields() []string { return p.fields }

// units measures the memory of the plan, in the units of the cache.
func (p *Plan) units() int {
	units := len(p.conditions) + len(p.nodes) + len(p.calls) + len(p.edges) + len(p.terms) +
		len(p.insides) + len(p.extras) + len(p.lookups) + len(p.sizes) + len(p.variables) +
		len(p.program) + len(p.forms) + len(p.addends) + len(p.owns) + len(p.rules)
	for i := range p.variables {
		units += p.variables[i].values
	}
	for i := range p.functions {
		units += 8 + p.functions[i].values
	}
	for i := range p.entities {
		e := &p.entities[i]
		units += 8 + len(e.forms) + len(e.names) + len(e.found)
	}
	if p.limits != nil && p.limits.nodes != nil {
		units += p.limits.nodes.units()
	}
	return units
}
