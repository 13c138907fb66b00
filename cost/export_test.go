package cost

import (
	"slices"

	"github.com/vektah/gqlparser/v2/ast"
)

// Work compiles an operation and returns the work that it took: selections visited and values read.
func (e *Estimator) Work(doc *ast.QueryDocument, op *ast.OperationDefinition) (int, error) {
	_, work, err := e.compile(doc, op)
	return work, err
}

// Cached returns how many plans the cache holds, and their units.
func (e *Estimator) Cached() (plans, units int) {
	e.plans.mu.Lock()
	defer e.plans.mu.Unlock()
	return len(e.plans.entries), e.plans.units
}

// CompileSummed compiles an operation as if it were past the work limit.
func (e *Estimator) CompileSummed(doc *ast.QueryDocument, op *ast.OperationDefinition) (*Plan, int, error) {
	c := e.newCompiler(op, 1<<30)
	c.summing = true
	root := e.roots[op.Operation]
	if err := c.run(doc, root); err != nil {
		return nil, c.work, err
	}
	c.plan.weight, c.plan.approximate = root.weight, true
	lower(c.plan)
	return c.plan, c.work, nil
}

// Values evaluates the plan and returns how many values in variables it read.
func (p *Plan) Values(variables map[string]any) int {
	m := new(machine)
	_, _ = m.run(p, variables)
	return p.values - m.left
}

// Again returns an evaluation whose memory is that of the one before.
func (p *Plan) Again(variables map[string]any) func() {
	m := new(machine)
	return func() { _, _ = m.run(p, variables) }
}

// PlanWith is Plan with another compiler.
func (e *Estimator) PlanWith(op *ast.OperationDefinition, compile func() (*Plan, error)) (*Plan, error) {
	return e.plans.get(planKey{op: op}, op, compile)
}

// OutlineWith is Outline of a plan of the cache, with another compiler.
func (e *Estimator) OutlineWith(plan *Plan, compile func() (*Outline, error)) (*Outline, error) {
	return e.outlines.get(plan, compile)
}

// Skips says whether the scanner of responses reads the data as one value, to its end.
func Skips(data []byte) bool {
	s := scanner{data: data}
	return s.skip() && s.end()
}

// Unfolded explains and returns how many calls were looked at.
func (o *Outline) Unfolded(variables map[string]any, maxEntries int) int {
	u := unfolding{r: o.read(variables), max: maxEntries, bytes: DefaultMaxBytes}
	u.run()
	return u.made
}

// LargestSet returns how many calls the largest set of the outline has.
func (o *Outline) LargestSet() int {
	largest := o.root.hi - o.root.lo
	for _, set := range o.sets {
		largest = max(largest, set.hi-set.lo)
	}
	return largest
}

// OutlineSize returns the units of the outline.
func (o *Outline) OutlineSize() int { return o.units() }

// Outlined returns how many outlines are kept, and their units as the cache counts them.
func (e *Estimator) Outlined() (outlines, units int) {
	e.outlines.mu.Lock()
	defer e.outlines.mu.Unlock()
	return e.outlines.queue.Len(), e.outlines.units
}

// Units returns the memory of the plan, in the units of the cache.
func (p *Plan) Units() int { return p.units() }

// Apart returns the outline for a Tally that finds out the type of each object before it prices it.
func (o *Outline) Apart() *Outline {
	apart := *o
	apart.values = slices.Clone(o.values)
	for i := range apart.values {
		apart.values[i].agree = false
	}
	return &apart
}
