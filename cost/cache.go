package cost

import (
	"container/list"
	"sync"

	"github.com/vektah/gqlparser/v2/ast"
)

// unitsPerPlan is how large a plan may be on average when the cache is full. A plan whose every field
// depends on variables has about three units a field; a unit takes some hundred bytes.
const unitsPerPlan = 256

// planCache keeps the plans that were used last, bounded in number and in size.
type planCache struct {
	mu      sync.Mutex
	entries map[*ast.OperationDefinition]*list.Element
	// order has the entry used last in front.
	order list.List
	max   int
	units int
}

type planEntry struct {
	op   *ast.OperationDefinition
	plan *Plan
	err  error
}

func (e *planEntry) units() int {
	if e.plan == nil {
		return 1
	}
	return 1 + e.plan.units()
}

func newPlanCache(size int) *planCache {
	return &planCache{entries: make(map[*ast.OperationDefinition]*list.Element), max: size}
}

func (c *planCache) get(op *ast.OperationDefinition) (*Plan, error, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	element, ok := c.entries[op]
	if !ok {
		return nil, nil, false
	}
	c.order.MoveToFront(element)
	entry := element.Value.(*planEntry)
	return entry.plan, entry.err, true
}

func (c *planCache) add(op *ast.OperationDefinition, plan *Plan, err error) {
	entry := &planEntry{op: op, plan: plan, err: err}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.entries[op]; ok {
		return
	}
	c.entries[op] = c.order.PushFront(entry)
	c.units += entry.units()
	for len(c.entries) > c.max || c.units > c.max*unitsPerPlan && len(c.entries) > 1 {
		last := c.order.Remove(c.order.Back()).(*planEntry)
		delete(c.entries, last.op)
		c.units -= last.units()
	}
}
