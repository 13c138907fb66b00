package cost

import "github.com/vektah/gqlparser/v2/ast"

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
