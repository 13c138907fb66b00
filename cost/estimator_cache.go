package cost

import (
	"reflect"
	"sync"
	"sync/atomic"
	"weak"

	"github.com/vektah/gqlparser/v2/ast"
)

const (
	// unitsPerPlan is how large a plan and its outline may be on average when the cache is full. A plan whose
	// every field depends on a variable of its own has about five units a field, as many as its outline; a
	// unit takes some hundred bytes.
	unitsPerPlan = 512
	// bytesPerUnit is how much of a text counts as a unit.
	bytesPerUnit = 100
)

// planCache keeps the plans of operations that are used, bounded in number and in size. A plan is
// compiled once however many callers ask for it at the same time. What was used since it was last in
// turn to go stays, which costs those who find a plan no more than a flag.
type planCache struct {
	// operations finds entries by the address of the operation, which takes no lock.
	operations sync.Map

	// mu guards what follows.
	mu sync.Mutex
	// texts finds the entries of texts. Whoever asks for one has parsed it, which takes far longer.
	texts map[planKey]*planEntry
	// entries are all there are; that at hand is the next in turn to go.
	entries []*planEntry
	hand    int
	max     int
	units   int
}

// planKey names an operation: by its address, or by the text of its document and its own name. An address keeps no
// document in memory, whose selections take up to two hundred times that of their text.
type planKey struct {
	op         uintptr
	text, name string
}

// keyOf names an operation by its address.
func keyOf(op *ast.OperationDefinition) planKey { return planKey{op: reflect.ValueOf(op).Pointer()} }

// unitsOf measures the memory of a text, in the units of the cache.
func unitsOf(text string) int { return 1 + len(text)/bytesPerUnit }

// planEntry is what compiling an operation led to, or the promise of it.
type planEntry struct {
	key planKey
	// operation is whose address the key has. When it is gone, another one may have the address.
	operation weak.Pointer[ast.OperationDefinition]
	// used says that the entry was found since it was last in turn to go.
	used atomic.Bool
	// reader is the address of the operation that was last priced by the entry. It is only compared.
	reader atomic.Uintptr

	// done is closed when plan and err are there, or when the caller who compiled has panicked.
	done     chan struct{}
	ready    atomic.Bool
	plan     *Plan
	err      error
	panicked bool
	outline  *planOutline

	// units and place, which is -1 for an entry that was removed, are guarded by the mutex of the cache.
	units int
	place int
}

// planOutline is the outline of a plan, which the entries of the plan share.
type planOutline struct {
	// compiling is held while the outline is compiled, so that callers who ask for it at the same time
	// wait for one of them.
	compiling sync.Mutex
	known     atomic.Pointer[Outline]
}

func newPlanCache(size int) *planCache {
	return &planCache{texts: map[planKey]*planEntry{}, max: size}
}

// find returns the entry of the key of an operation, nil if there is none. It may not be ready.
func (c *planCache) find(key *planKey, op *ast.OperationDefinition) *planEntry {
	if key.op == 0 {
		c.mu.Lock()
		defer c.mu.Unlock()
	}
	entry := c.known(key, op)
	if entry != nil && !entry.used.Load() {
		// Only written when it changes, so that processors do not take it from each other.
		entry.used.Store(true)
	}
	return entry
}

func (c *planCache) known(key *planKey, op *ast.OperationDefinition) *planEntry {
	if key.op == 0 {
		return c.texts[*key]
	}
	if entry := c.at(key.op); entry != nil && entry.operation.Value() == op {
		return entry
	}
	return nil
}

// at returns the entry of an address, which may be that of an operation that is gone.
func (c *planCache) at(address uintptr) *planEntry {
	known, _ := c.operations.Load(address)
	entry, _ := known.(*planEntry)
	return entry
}

// get returns the entry of an operation by the key, and compiles it if the cache does not have it. Callers
// who ask for it meanwhile wait. If compile panics, one of them compiles again.
func (c *planCache) get(key planKey, op *ast.OperationDefinition, compile func() (*Plan, *Outline, error)) *planEntry {
	for {
		entry := c.find(&key, op)
		if entry == nil {
			var own bool
			if entry, own = c.promise(key, op); own {
				c.fulfil(entry, &planOutline{}, compile)
				return entry
			}
		}
		if entry.wait() {
			return entry
		}
	}
}

// priced notes that an operation was priced by the entry. One that was the last to be is of a document that seems to be
// cached, so that the next request need not find the text.
func (c *planCache) priced(entry *planEntry, op *ast.OperationDefinition) {
	if address := keyOf(op); entry.key.op == 0 && entry.reader.Swap(address.op) == address.op {
		c.share(address, op, entry)
	}
}

// wait returns when the entry is ready; it returns false when it never will be.
func (e *planEntry) wait() bool {
	if e.ready.Load() {
		return true
	}
	<-e.done
	return !e.panicked
}

// promise adds an entry that is not ready. It says whether the caller has to fulfil it, because it may
// have been there already.
func (c *planCache) promise(key planKey, op *ast.OperationDefinition) (entry *planEntry, own bool) {
	entry = &planEntry{key: key, done: make(chan struct{}), units: unitsOf(key.text)}
	if key.op != 0 {
		entry.operation = weak.Make(op)
		if op.Position != nil && op.Position.Src != nil {
			// Names of the plan are parts of the text.
			entry.units = unitsOf(op.Position.Src.Input)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if known := c.known(&key, op); known != nil {
		return known, false
	}
	if key.op != 0 {
		if gone := c.at(key.op); gone != nil {
			c.remove(gone)
		}
		c.operations.Store(key.op, entry)
	} else {
		c.texts[key] = entry
	}
	entry.place = len(c.entries)
	c.entries = append(c.entries, entry)
	c.units += entry.units
	c.shrink(entry)
	return entry, true
}

// fulfil compiles, and makes the entry ready.
func (c *planCache) fulfil(entry *planEntry, outline *planOutline, compile func() (*Plan, *Outline, error)) {
	units := 0
	entry.outline = outline
	entry.panicked = true
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if entry.panicked {
			c.remove(entry)
		} else {
			c.grow(entry, units)
			entry.ready.Store(true)
		}
		close(entry.done)
	}()
	var known *Outline
	if entry.plan, known, entry.err = compile(); entry.plan != nil {
		units = entry.plan.units()
		if entry.plan.outlined == nil {
			// Entries of a plan that is in the cache already have its outline.
			entry.plan.outlined = outline
		}
	}
	if known != nil {
		outline.known.Store(known)
		units += known.units()
	}
	entry.panicked = false
}

// share adds an entry with the result of another one.
func (c *planCache) share(key planKey, op *ast.OperationDefinition, from *planEntry) {
	if entry, own := c.promise(key, op); own {
		c.fulfil(entry, from.outline, func() (*Plan, *Outline, error) { return from.plan, nil, from.err })
	}
}

// outline returns the outline of an entry's plan, and compiles it if the plan has none.
func (c *planCache) outline(entry *planEntry, compile func() (*Outline, error)) (*Outline, error) {
	own := entry.outline
	if known := own.known.Load(); known != nil {
		return known, nil
	}
	own.compiling.Lock()
	defer own.compiling.Unlock()
	if known := own.known.Load(); known != nil {
		return known, nil
	}
	outline, err := compile()
	if err != nil {
		return nil, err
	}
	own.known.Store(outline)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.grow(entry, outline.units()+outline.plan.units())
	return outline, nil
}

// grow counts what an entry leads to.
func (c *planCache) grow(entry *planEntry, units int) {
	if entry.place < 0 {
		return
	}
	entry.units += units
	c.units += units
	c.shrink(entry)
}

// shrink removes entries until the cache is within its bounds, but not the given one.
func (c *planCache) shrink(keep *planEntry) {
	spared := 0
	for len(c.entries) > c.max || c.units > c.max*unitsPerPlan && len(c.entries) > 1 {
		c.hand %= len(c.entries)
		entry := c.entries[c.hand]
		// The last entry takes the place of one that goes, so the hand moves on in any case.
		c.hand++
		// Readers who set the flag faster than the hand goes round do not stop it.
		if entry == keep || entry.used.Swap(false) && spared < len(c.entries) {
			spared++
			continue
		}
		c.remove(entry)
	}
}

// remove takes an entry out, if it is in.
func (c *planCache) remove(entry *planEntry) {
	if entry.place < 0 {
		return
	}
	last := len(c.entries) - 1
	c.entries[entry.place] = c.entries[last]
	c.entries[entry.place].place = entry.place
	c.entries[last] = nil
	c.entries = c.entries[:last]
	c.units -= entry.units
	entry.place = -1
	if entry.key.op != 0 {
		c.operations.Delete(entry.key.op)
	} else {
		delete(c.texts, entry.key)
	}
}
