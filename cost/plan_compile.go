package cost

import (
	"errors"
	"slices"

	"github.com/vektah/gqlparser/v2/ast"
)

// summingFactor is how much more work summing may do than merging: it is linear in the document, but
// repeats for the possible types of a schema that may have hundreds.
const summingFactor = 20

// compile returns the form of an operation with its program, and the work that both took. A whole form
// has the calls that cost nothing too.
func (x *index) compile(doc *ast.QueryDocument, op *ast.OperationDefinition, whole bool) (*form, *Plan, int, error) {
	if doc == nil || op == nil {
		return nil, nil, 0, malformed("there is no operation")
	}
	kind := op.Operation
	if kind == "" {
		kind = ast.Query
	}
	root := x.roots[kind]
	if root == nil {
		return nil, nil, 0, malformed("the schema has no %s type", kind)
	}
	work := 0
	for summed := false; ; summed = true {
		c := x.compiler(op, root, whole, summed)
		plan, err := c.compile(doc)
		work += c.work
		if err == nil {
			plan.base = x.options.base[kind]
			return c.form, plan, work, nil
		}
		if summed || x.options.refuse || !errors.Is(err, ErrWorkLimit) {
			return nil, nil, work, err
		}
	}
}

func (x *index) compiler(op *ast.OperationDefinition, root *objectType, whole, summed bool) *compiler {
	c := &compiler{index: x, op: op, whole: whole, limit: x.options.workLimit}
	if summed {
		c.limit *= summingFactor
	}
	c.form = &form{index: x, rootType: root, summed: summed}
	c.form.conditions = []condition{{op: conditionAlways}}
	return c
}

// compile compiles the form, and lowers it to a plan.
func (c *compiler) compile(doc *ast.QueryDocument) (*Plan, error) {
	if err := c.run(doc); err != nil {
		return nil, err
	}
	f, options := c.form, &c.index.options
	if err := c.happen(); err != nil {
		return nil, err
	}
	p := &Plan{
		free: true, approximate: f.summed, weight: f.rootType.weight,
		maxValues: options.maxValues, maxEntries: options.maxEntries, maxNodes: options.limits.MaxListNodes,
		types: c.index.types,
	}
	var names map[string]bool
	roots := f.sets[f.root].calls
	fields := make([]string, 0, roots.hi-roots.lo)
	f.rootCalls(f.root, map[int32]bool{}, func(c *call) {
		if options.limits.MaxRootFields > 0 {
			names = remember(names, c.key, true)
		}
		fields = append(fields, c.info.coordinate)
		p.free = p.free && options.free[c.info.coordinate]
	})
	p.free = p.free && !f.repeats()
	slices.Sort(fields)
	// The plan keeps each once, and no room for all of them.
	p.fields = append(p.fields, slices.Compact(fields)...)
	var err error
	if p.roots, err = c.settleRoots(); err != nil {
		return nil, err
	}
	p.shape = options.limits.first(f.document.shape, len(names))
	p.price = c.lower(false)
	if p.maxNodes > 0 {
		nodes := c.lower(true)
		p.nodes = &nodes
	}
	if p.price.constant() && p.nodes == nil {
		// Nobody will read a variable.
		p.variables = f.variables
		return p, nil
	}
	p.tables = f.tables
	// Of these only the form tells anybody.
	p.arguments, p.slicings, p.bounds = nil, nil, nil
	if len(p.price.rules) > 0 || len(p.price.entities) > 0 {
		p.form = f
	}
	return p, nil
}
