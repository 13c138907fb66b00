package cost

import (
	"math"
	"slices"
	"sync/atomic"

	"github.com/vektah/gqlparser/v2/ast"
)

// Plan is an operation compiled for pricing. Nothing of it changes, and it is safe for concurrent use, and holds
// nothing of the document but strings, the arguments of its root calls, and those that [Config.Complexity] is given.
//
// Only what depends on variables is in it: the rest is folded into constants.
type Plan struct {
	tables
	base        float64
	free        bool
	approximate bool
	fields      []string
	// roots are the calls on the root type.
	roots rootCalls
	// document is what somebody calls the document, nil until it was asked for.
	document atomic.Pointer[string]
	// outlined is the outline of a plan of the cache, which another one does not have.
	outlined *planOutline
	// weight is that of the root type, and price the cost of what is selected on it.
	weight float64
	price  program
	// nodes counts the objects in lists, of which there may be maxNodes; nil if they are not limited.
	nodes    *program
	maxNodes int
	// shape is the limit that the document breaks whatever the variables are, nil if there is none.
	shape *ShapeError
	// maxValues is how many values one evaluation may read, maxEntries how many representations there may be.
	maxValues, maxEntries int
	// types are those of the schema, which say how the arguments of calls are read.
	types map[string]*ast.Definition
	// form stays where a request can break a rule of a field, to find the call that does.
	form *form
}

// RootFields returns the coordinates of the root fields that the operation selects, such as
// Mutation.createOrder, sorted and each once, whatever @skip and @include say about variables.
// __typename is left out. The slice is shared and must not be modified.
func (p *Plan) RootFields() []string { return p.fields }

// Document returns what identify calls the text of the document that the plan was compiled from. It asks once, and the
// plan remembers: each request with the document has the name for nothing.
func (p *Plan) Document(text string, identify func(text string) string) string {
	if known := p.document.Load(); known != nil {
		return *known
	}
	id := identify(text)
	p.document.Store(&id)
	return id
}

// Outline returns the outline of a plan that an [Estimator] has cached, without looking for it. It is nil until one was asked for:
// [Estimator.OutlineText] compiles it.
func (p *Plan) Outline() *Outline {
	if p.outlined == nil {
		return nil
	}
	return p.outlined.known.Load()
}

// Variables returns the names of the variables on which the price can depend, or whether a limit is broken,
// sorted. No other variable changes what [Plan.Evaluate] returns. The lists whose elements
// [Shape.MaxListNodes] counts are those of the price, also where they cost nothing.
func (p *Plan) Variables() []string {
	var names []string
	for i := range p.variables {
		names = append(names, p.variables[i].name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Evaluate returns the cost with the given variables, coerced as gqlparser's validator does; the map
// is only read. It never panics, whatever the variables hold, and reads no more of them than
// [Config.MaxValues]: if there is more, the cost is infinite.
//
// The only error is a [ShapeError]: the request breaks one of the [Shape], or a rule of a field that it
// really calls. The cost is valid even then. The error may be shared and must not be modified.
func (p *Plan) Evaluate(variables map[string]any) (Cost, error) {
	cost := Cost{Base: p.base, Free: p.free, Approximate: p.approximate}
	if p.price.constant() && p.nodes == nil {
		cost.Type, cost.Field = max(0, p.weight+p.price.result.constant.typ), p.price.result.constant.field
		return cost, p.broken(nil)
	}
	m := p.machine(variables)
	root, kept := m.run(p, &p.price)
	cost.Type, cost.Field = max(0, p.weight+root.typ), root.field
	var err error
	if p.shape != nil || !kept {
		err = p.broken(m)
	}
	if err == nil && p.nodes != nil {
		err = p.countNodes(m)
	}
	m.done()
	return cost, err
}

// machine returns the working memory of an evaluation with the variables.
func (p *Plan) machine(variables map[string]any) *machine {
	m, ok := machines.Get().(*machine)
	if !ok {
		m = new(machine)
	}
	m.load(&p.tables, variables, p.maxValues)
	return m
}

// BreaksShape returns the limit of the [Shape] that the operation breaks whatever its variables are, nil if there is none. It
// may be shared and must not be modified.
func (p *Plan) BreaksShape() *ShapeError { return p.shape }

// broken returns the first limit or rule of a field that is broken, nil if only calls break rules that the
// variables exclude. Without a machine no call breaks a rule.
func (p *Plan) broken(m *machine) error {
	if p.shape != nil {
		return p.shape
	}
	if m == nil {
		return nil
	}
	s := search{form: p.form, m: m, max: p.maxEntries, seen: make([]bool, len(p.form.sets))}
	if s.set(p.form.root) {
		return s.found
	}
	return nil
}

// countNodes says whether there are too many objects in lists.
func (p *Plan) countNodes(m *machine) error {
	m.allow(p.maxValues)
	counted, _ := m.run(p, p.nodes)
	if counted.typ <= float64(p.maxNodes) {
		return nil
	}
	given := maxCount
	if counted.typ < maxCount {
		given = int(math.Ceil(counted.typ))
	}
	return &ShapeError{Rule: RuleListNodes, Reason: "the lists have too many elements", Given: given, Allowed: p.maxNodes}
}

// units measures the memory of the plan, in the units of the cache.
func (p *Plan) units() int {
	units := p.tables.units() + p.price.units() + len(p.roots.calls) + p.roots.values
	if p.nodes != nil {
		units += p.nodes.units()
	}
	if p.form != nil {
		units += p.form.units()
	}
	return units
}

// search goes down from the root of a form to the first call that breaks a rule and really happens.
type search struct {
	form  *form
	m     *machine
	max   int
	seen  []bool
	path  []string
	found *ShapeError
}

func (s *search) set(at int32) bool {
	if s.seen[at] {
		return false
	}
	s.seen[at] = true
	set := &s.form.sets[at]
	for i := set.calls.lo; i < set.calls.hi; i++ {
		if c := &s.form.calls[i]; s.m.holds[c.condition] && s.call(c) {
			return true
		}
	}
	return slices.ContainsFunc(s.form.includes[set.includes.lo:set.includes.hi], func(i include) bool {
		return s.m.holds[i.condition] && s.set(i.set)
	})
}

func (s *search) call(c *call) bool {
	s.path = append(s.path, c.key)
	if c.info.kind == entities {
		if given := s.m.represented(&s.form.representations[c.special]); given > s.max {
			return s.report(c, RuleRepresentations, "there are too many representations", given, s.max)
		}
	}
	if sizes := c.info.sizes; sizes != nil && sizes.one {
		slicing := &s.form.slicings[c.slicing]
		if given := int(slicing.given) + s.m.given(&s.form.tables, slicing.lookups); given != 1 {
			return s.report(c, RuleSlicingArguments, sizes.reason, given, 1)
		}
	}
	if c.value >= 0 {
		classes := s.form.values[c.value].classes
		for _, class := range s.form.classes[classes.lo:classes.hi] {
			if s.set(class.set) {
				return true
			}
		}
	}
	s.path = s.path[:len(s.path)-1]
	return false
}

func (s *search) report(c *call, rule Rule, reason string, given, allowed int) bool {
	s.found = &ShapeError{Rule: rule, Coordinate: c.info.coordinate, Path: slices.Clone(s.path), Reason: reason, Given: given, Allowed: allowed}
	return true
}
