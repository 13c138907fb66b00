package cost

import (
	"slices"

	"github.com/vektah/gqlparser/v2/ast"
)

// Defaults that tests are about.
const (
	DefaultWorkLimit = defaultWorkLimit
	DefaultMaxBytes  = defaultMaxBytes
)

// Work compiles an operation and returns the work that it took: selections visited and values read.
func (e *Estimator) Work(doc *ast.QueryDocument, op *ast.OperationDefinition) (int, error) {
	_, _, work, err := e.index.compile(doc, op, false)
	return work, err
}

// OutlineWork is Work for an outline.
func (e *Estimator) OutlineWork(doc *ast.QueryDocument, op *ast.OperationDefinition) (int, error) {
	_, _, work, err := e.index.compile(doc, op, true)
	return work, err
}

// Cached returns how many plans the cache holds, and their units with those of their outlines.
func (e *Estimator) Cached() (plans, units int) {
	e.plans.mu.Lock()
	defer e.plans.mu.Unlock()
	return len(e.plans.entries), e.plans.units
}

// CompileSummed compiles an operation as if it were past the work limit.
func (e *Estimator) CompileSummed(doc *ast.QueryDocument, op *ast.OperationDefinition) (*Plan, int, error) {
	x := *e.index
	x.options.workLimit = 1 << 30
	c := x.compiler(op, x.roots[op.Operation], false, true)
	plan, err := c.compile(doc)
	return plan, c.work, err
}

// OutlineSummed outlines an operation as if it were past the work limit.
func (e *Estimator) OutlineSummed(doc *ast.QueryDocument, op *ast.OperationDefinition) (*Outline, error) {
	x := *e.index
	x.options.workLimit = 1 << 30
	c := x.compiler(op, x.roots[op.Operation], true, true)
	plan, err := c.compile(doc)
	if err != nil {
		return nil, err
	}
	plan.base = x.options.base[op.Operation]
	o := &Outline{form: c.form, plan: plan}
	o.prepareResponses()
	return o, nil
}

// Interpreted returns what the operation costs by reading the outline call by call, as explanations do.
func (o *Outline) Interpreted(variables map[string]any) Cost {
	r := new(reading).begin(o.form, variables)
	total := r.set(o.root, parentSizes{})
	if r.m.left < 0 {
		total = infinite
	}
	return Cost{Type: max(0, o.rootType.weight+total.typ), Field: total.field, Base: o.plan.base, Free: o.plan.free, Approximate: o.summed}
}

// Values evaluates the plan and returns how many values in variables it read.
func (p *Plan) Values(variables map[string]any) int {
	m := new(machine)
	m.load(&p.tables, variables, p.maxValues)
	m.run(p, &p.price)
	return p.maxValues - m.left
}

// Again returns an evaluation whose memory is that of the one before.
func (p *Plan) Again(variables map[string]any) func() {
	m := new(machine)
	return func() {
		m.load(&p.tables, variables, p.maxValues)
		m.run(p, &p.price)
	}
}

// PlanWith is Plan with another compiler.
func (e *Estimator) PlanWith(op *ast.OperationDefinition, compile func() (*Plan, error)) (*Plan, error) {
	entry := e.plans.get(keyOf(op), op, func() (*Plan, *Outline, error) {
		plan, err := compile()
		return plan, nil, err
	})
	return entry.plan, entry.err
}

// Skips says whether the scanner of responses reads the data as one value, to its end.
func Skips(data []byte) bool {
	s := scanner{data: data}
	return s.skip() && s.end()
}

// Unfolded explains and returns how many calls were looked at.
func (o *Outline) Unfolded(variables map[string]any, maxEntries int) int {
	u := unfolding{r: new(reading).begin(o.form, variables), max: maxEntries, bytes: defaultMaxBytes}
	u.run()
	return u.made
}

// LargestSet returns how many calls the largest set of the outline has.
func (o *Outline) LargestSet() int {
	largest := 0
	for _, set := range o.sets {
		largest = max(largest, int(set.calls.hi-set.calls.lo))
	}
	return largest
}

// OutlineSize returns the units of the outline.
func (o *Outline) OutlineSize() int { return o.units() }

// Units returns the memory of the plan, in the units of the cache.
func (p *Plan) Units() int { return p.units() }

// Apart returns the outline for a Tally that finds out the type of each object before it prices it.
func (o *Outline) Apart() *Outline {
	apart := *o
	apart.told = slices.Clone(o.told)
	for i := range apart.told {
		apart.told[i].agree = false
	}
	return &apart
}
