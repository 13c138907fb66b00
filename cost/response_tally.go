package cost

import (
	"fmt"
	"hash/maphash"
	"math"
	"sync"

	"github.com/vektah/gqlparser/v2/ast"
)

// maxObserved is how many types of objects a Tally is told. What is observed beyond is forgotten, and
// the dearest possible type counts.
const maxObserved = 10_000

// ResponseError says that a response cannot be priced, because it is no JSON or does not have the
// shape that the operation asks for. The actual cost is unknown then.
type ResponseError struct {
	// Offset is the position in the data, in bytes.
	Offset int
	// Reason says what is wrong there.
	Reason string
}

// Error returns the position and the reason.
func (e *ResponseError) Error() string {
	return fmt.Sprintf("cost: response at byte %d: %s", e.Offset, e.Reason)
}

// Tally adds up what an operation really cost, from the responses to it. Make one for each execution
// with [Outline.Tally]. Its methods may be called concurrently.
//
// The cost has the rules of the estimate, applied to what is there: a call is paid if its response name
// is in the data, whether its value is null or not, with its own weight and those of its arguments and
// directives; a list counts with the elements that it has, a null adds no type cost. Introspection and
// _service cost what was estimated, and a call whose field has a function costs the field cost that was.
// For every response that respects the declared sizes the actual cost is not above the estimate of
// [Plan.Evaluate].
//
// A null that an error carried upwards hides the calls below it, which may have run: whoever gives
// budget back should not do so for responses with errors.
//
// An object has the type that was observed ([Tally.Observe]) or that its representation says, or else
// the one that its __typename says, under whatever alias, or that the response names in it leave. Among
// several that are left it costs the maximum, component by component. That alone can be above the
// estimate, where a list is longer than a type declares that the object only might have had.
//
// Objects whose type nothing tells are read several times, for each of the types that they may have, but all of
// them together for no more than 16 times the bytes of the payload and 4 KiB. Past that the actual cost is unknown, a
// [ResponseError], and nothing may be given back. __typename in the selections, or Observe, avoids it.
type Tally struct {
	mu    sync.Mutex
	o     *Outline
	r     reading
	owns  map[int32]float64
	total pair
	// guessed says that some object was priced as the maximum over several types.
	guessed bool
	err     error
	seed    maphash.Seed
	// hashing says that paths are hashed, because something is known of some of them.
	hashing bool
	// observed are types by the hash of the path, which nobody can foresee.
	observed map[uint64]string
	// gathered are merged selections, where those of the outline are not merged.
	gathered gathering
	// awaited are the hashes of the paths to calls that were paid while their value was null, which may
	// come in a later payload.
	awaited map[uint64]bool
}

// Tally begins to add up an execution of the operation with the given variables, coerced as for
// [Plan.Evaluate]. The map is only read, and not after the last call of a method.
func (o *Outline) Tally(variables map[string]any) *Tally {
	t := &Tally{o: o}
	t.r.begin(o.form, variables)
	if o.document.defers {
		t.hashPaths()
	}
	return t
}

// hashPaths begins to hash paths.
func (t *Tally) hashPaths() {
	if !t.hashing {
		t.hashing, t.seed = true, maphash.MakeSeed()
	}
}

// Add prices the data of a response as JSON: the whole of a query or mutation, the first payload of one
// with @defer, or an event of a subscription. No data, or null, adds nothing. The data is not kept.
//
// The error is a [ResponseError]. It is also what Cost reports from then on, because a part of the
// cost is missing.
func (t *Tally) Add(data []byte) error { return t.AddAt(nil, data) }

// AddAt prices the data of a payload that belongs at a path of the response, as a part of it that was
// deferred does. The object at the path was counted with the payload before; what is added are the
// calls in the data. A call whose value was null before, as gqlgen writes for what it defers, is paid
// once; one that has a value in several payloads is paid in each. Negative weights of types take effect
// only within one payload.
func (t *Tally) AddAt(path ast.Path, data []byte) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	err := t.add(path, data)
	if err != nil && t.err == nil {
		t.err = err
	}
	return err
}

func (t *Tally) add(path ast.Path, data []byte) error {
	v := responseVisit{t: t, scanner: scanner{data: data}, left: extraFactor*len(data) + extraBytes}
	if v.end() || v.null() {
		if !v.end() {
			return v.malformed()
		}
		return nil
	}
	classes, err := t.classesAt(path)
	if err != nil {
		return err
	}
	price, ok := v.object(classes, false, t.hash(path), "", true)
	if ok && !v.end() {
		v.fail("there is more than one value")
		ok = false
	}
	if !ok {
		return v.malformed()
	}
	t.total = t.total.plus(price)
	return nil
}

// classesAt returns what may be selected on the object at a path.
func (t *Tally) classesAt(path ast.Path) ([]typeClass, error) {
	classes := t.o.query
	for _, element := range path {
		name, ok := element.(ast.PathName)
		if !ok {
			continue
		}
		var below []typeClass
		seen := map[int32]bool{}
		for _, class := range classes {
			first, others, ok := t.find(class.set, -1, []byte(name))
			if !ok {
				continue
			}
			if c := &t.r.calls[first]; c.value >= 0 && !seen[first] {
				seen[first] = true
				below = append(below, t.merged(c, others).classes...)
			}
		}
		if len(below) == 0 {
			return nil, &ResponseError{Reason: fmt.Sprintf("path %s leads to no object of the operation", path)}
		}
		classes = below
	}
	return classes, nil
}

// Observe tells the type of the object at a path of the response, of which gqlgen knows it while it
// executes: graphql.FieldContext.Object is the type of the object that a field is on. Observe is of use
// for the types of [Outline.NeedsType] only, and only before the payload with the object is added.
func (t *Tally) Observe(path ast.Path, typeName string) {
	if !t.o.NeedsType(typeName) {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.observed == nil {
		t.observed = map[uint64]string{}
		t.hashPaths()
	}
	if at := t.hash(path); len(t.observed) < maxObserved {
		t.observed[at] = typeName
	}
}

// pathStep is one step of the hash of a path.
type pathStep struct {
	before uint64
	name   string
	number int
}

func (t *Tally) hash(path ast.Path) uint64 {
	at := uint64(0)
	for _, element := range path {
		switch element := element.(type) {
		case ast.PathName:
			at = t.step(at, string(element), 0)
		case ast.PathIndex:
			at = t.step(at, "", int(element)+1)
		}
	}
	return at
}

// step returns the hash of the path to a field, or to an element, whose number is one above its index. Where
// nothing is known of any path nobody asks.
func (t *Tally) step(at uint64, name string, number int) uint64 {
	if !t.hashing {
		return 0
	}
	return maphash.Comparable(t.seed, pathStep{at, name, number})
}

// Cost returns what was added up so far: the base and the weight of the root type once, and the calls
// of all payloads. For a subscription, whose estimate is the base and one event, that is the base and
// all its events. Approximate says that the type of some object was not told, so that the cost is an
// upper bound of what was really spent.
//
// The error is the first that Add or AddAt returned: the cost is unknown, and the one returned with it
// is what could be read.
func (t *Tally) Cost() (Cost, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	cost := Cost{Base: t.o.plan.base, Free: t.o.plan.free, Approximate: t.guessed || t.r.summed}
	cost.Type, cost.Field = max(0, t.o.rootType.weight+t.total.typ), t.total.field
	if t.r.m.left < 0 {
		// Some variable was too large to be read.
		cost.Type, cost.Field = math.Inf(1), math.Inf(1)
	}
	return cost, t.err
}

// await remembers a call that was paid while its value was null.
func (t *Tally) await(path uint64) {
	if !t.o.document.defers || len(t.awaited) >= maxObserved {
		return
	}
	if t.awaited == nil {
		t.awaited = map[uint64]bool{}
	}
	t.awaited[path] = true
}

// own returns what a call costs without what is below it. A function says what it costs with it, which
// is the whole of its field cost.
func (t *Tally) own(at int32) (own float64, whole bool) {
	own, whole = t.withoutAlias(at)
	return own + t.r.alias(&t.r.calls[at]), whole
}

// withoutAlias is own without what the call pays for being one of a further alias.
func (t *Tally) withoutAlias(at int32) (own float64, whole bool) {
	c := &t.r.calls[at]
	if c.info.complexity != nil {
		if function := t.r.function(c); !function.none {
			return function.field + t.r.extra(c), true
		}
	}
	if c.info.argsFree && c.directives.empty() {
		return max(0, c.info.weight), false
	}
	own, ok := t.owns[at]
	if !ok {
		own = t.r.own(c)
		t.owns = remember(t.owns, at, own)
	}
	return own, false
}
