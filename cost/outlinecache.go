package cost

import (
	"container/list"
	"sync"
	"sync/atomic"
)

// planOutline is what a plan keeps of its outline.
type planOutline struct {
	// compiling is held while the outline is compiled, so that callers who ask for it at the same time
	// wait for one of them.
	compiling sync.Mutex
	// known is nil while nobody has asked, and after the cache took it away.
	known atomic.Pointer[outlineEntry]
	// holders is how many entries of the cache of plans have the plan. Without one no outline is kept.
	holders atomic.Int32
	// place is that of the plan in the queue of the cache, guarded by its mutex. It is nil outside.
	place *list.Element
}

// outlineEntry is what outlining an operation led to.
type outlineEntry struct {
	outline *Outline
	err     error
	// used says that somebody has found the entry since the cache last came by.
	used atomic.Bool
}

func (e *outlineEntry) units() int {
	if e.outline == nil {
		return 1
	}
	return e.outline.units()
}

// outlineCache bounds the outlines that plans keep, in their size together; their number is bounded by
// that of the plans. A plan finds its outline without it; the cache only decides which plan has to let go
// of its own: the one that has had it longest and was not asked for it since the cache last came by.
type outlineCache struct {
	mu    sync.Mutex
	queue list.List
	units int
	max   int
}

// get returns the outline of a plan, and compiles it if the plan has none.
func (c *outlineCache) get(plan *Plan, compile func() (*Outline, error)) (*Outline, error) {
	if known := plan.outline.find(); known != nil {
		return known.outline, known.err
	}
	plan.outline.compiling.Lock()
	defer plan.outline.compiling.Unlock()
	if known := plan.outline.find(); known != nil {
		return known.outline, known.err
	}
	entry := &outlineEntry{}
	entry.outline, entry.err = compile()
	if entry.units() <= c.max {
		c.add(plan, entry)
	}
	return entry.outline, entry.err
}

func (p *planOutline) find() *outlineEntry {
	entry := p.known.Load()
	if entry != nil && !entry.used.Load() {
		// Only written when it changes, so that processors do not take it from each other.
		entry.used.Store(true)
	}
	return entry
}

// add gives the plan its outline, and takes others away until there is room. A plan that has left its
// cache meanwhile, which was or will be released, gets none.
func (c *outlineCache) add(plan *Plan, entry *outlineEntry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if plan.outline.holders.Load() == 0 {
		return
	}
	plan.outline.known.Store(entry)
	plan.outline.place = c.queue.PushBack(plan)
	c.units += entry.units()
	for c.units > c.max {
		oldest, ok := c.queue.Front().Value.(*Plan)
		if !ok {
			return
		}
		if oldest.outline.known.Load().used.Swap(false) {
			c.queue.MoveToBack(oldest.outline.place)
			continue
		}
		c.drop(oldest)
	}
}

// release takes the outline of a plan away that no entry of the cache of plans has any more.
func (c *outlineCache) release(plan *Plan) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if plan.outline.place != nil {
		c.drop(plan)
	}
}

// drop takes the outline of a plan away that has one.
func (c *outlineCache) drop(plan *Plan) {
	c.queue.Remove(plan.outline.place)
	plan.outline.place = nil
	c.units -= plan.outline.known.Swap(nil).units()
}
