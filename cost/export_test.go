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
