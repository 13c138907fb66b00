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
	entries map[*ast.OperationDefinition]*planEntry
	// order has the operation used last in front.
	order list.List
	max   int
	units int
}

type planEntry struct {
	plan  *Plan
	err   error
	place *list.Element
}

func (e *planEntry) units() int {
	if e.plan == nil {
		return 1
	}
	return 1 + e.plan.units()
}

func newPlanCache(size int) *planCache {
	return &planCache{entries: make(map[*ast.OperationDefinition]*planEntry), max: size}
}

// get returns what compiling the operation led to, nil if the cache does not know it.
func (c *planCache) get(op *ast.OperationDefinition) *planEntry {
	c.mu.Lock()
	defer c.mu.Unlock()
	entry := c.entries[op]
	if entry != nil {
		c.order.MoveToFront(entry.place)
	}
	return entry
}

func (c *planCache) add(op *ast.OperationDefinition, plan *Plan, err error) {
	entry := &planEntry{plan: plan, err: err}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.entries[op]; ok {
		return
	}
	entry.place = c.order.PushFront(op)
	c.entries[op] = entry
	c.units += entry.units()
	for len(c.entries) > c.max || c.units > c.max*unitsPerPlan && len(c.entries) > 1 {
		last, ok := c.order.Remove(c.order.Back()).(*ast.OperationDefinition)
		if !ok {
			return
		}
		c.units -= c.entries[last].units()
		delete(c.entries, last)
	}
}
