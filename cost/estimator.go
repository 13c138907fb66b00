package cost

import (
	"slices"
	"sync/atomic"

	"github.com/vektah/gqlparser/v2/ast"
)

// Estimator prices the operations of one schema. It is safe for concurrent use.
type Estimator struct {
	index *index
	plans *planCache
	// outlined says that somebody has asked for an outline. New operations are compiled with theirs from then on,
	// because whoever follows one operation follows all.
	outlined atomic.Bool
}

// New reads the directives of the schema and the configuration, once. It keeps the types of the schema, to read arguments by
// them, and does not change it.
//
// The error joins a [SchemaError] for every mistake, in the order of their coordinates.
func New(schema *ast.Schema, cfg Config) (*Estimator, error) {
	x, err := newIndex(schema, cfg)
	if err != nil {
		return nil, err
	}
	return &Estimator{index: x, plans: newPlanCache(x.options.cacheSize)}, nil
}

// UnsizedLists returns the coordinates of the list fields that nothing sizes, sorted: no @listSize,
// no sizedFields of a parent, no [Config.ListSizes]. They are priced with the default size. Lists of
// scalars and enums without a weight are left out, because their length does not change a price.
func (e *Estimator) UnsizedLists() []string { return slices.Clone(e.index.unsized) }

// UnreadableSizes returns the coordinates of the arguments and input fields that size lists and cannot be read, sorted: those
// of enums, Booleans, input objects, and lists whose length nobody counts, and those whose default is no number. A list
// has no bound where a request gives one of them, so that its price is infinite, and so it is with a value of a scalar
// that is no number. [Config.ListSizes] with an AssumedSize alone gives the list a size.
func (e *Estimator) UnreadableSizes() []string { return slices.Clone(e.index.unreadable) }

// Plan returns the compiled operation, from the cache if it was compiled before. The operation is
// recognised by its pointer, so it pays to cache parsed documents, as gqlgen does; neither the
// document nor the operation may change afterwards. The cache keeps neither in memory. Errors are
// remembered too. Callers who ask for one operation at the same time wait for one of them to compile it.
func (e *Estimator) Plan(doc *ast.QueryDocument, op *ast.OperationDefinition) (*Plan, error) {
	return e.PlanText("", doc, op)
}

// PlanText is [Estimator.Plan] for a caller who knows the text that the document was parsed from. It
// finds the plan of an operation that was parsed again, as happens on a server without a cache of
// documents, and keeps no such document in memory. The document must say what the text says: one that
// was rewritten after it was parsed is for Plan. An empty text is none.
func (e *Estimator) PlanText(text string, doc *ast.QueryDocument, op *ast.OperationDefinition) (*Plan, error) {
	if op == nil {
		return e.Compile(doc, op)
	}
	entry := e.entry(text, doc, op)
	e.plans.priced(entry, op)
	return entry.plan, entry.err
}

// entry returns the operation from the cache, where it is compiled if it is new.
func (e *Estimator) entry(text string, doc *ast.QueryDocument, op *ast.OperationDefinition) *planEntry {
	key := keyOf(op)
	if known := e.plans.find(&key, op); known != nil && known.wait() {
		return known
	}
	named := text != "" && doc != nil && doc.Operations.ForName(op.Name) == op
	if named && (op.Position == nil || op.Position.Src == nil || op.Position.Src.Input == text) {
		key = planKey{text: text, name: op.Name}
	}
	return e.plans.get(key, op, func() (*Plan, *Outline, error) {
		if e.outlined.Load() {
			return e.index.outline(doc, op)
		}
		plan, err := e.Compile(doc, op)
		return plan, nil, err
	})
}

// Compile compiles the operation without the cache. It accepts documents that were not validated:
// what does not fit the schema is an [ErrMalformed], fragments that spread themselves are an
// [ErrCyclicFragment].
func (e *Estimator) Compile(doc *ast.QueryDocument, op *ast.OperationDefinition) (*Plan, error) {
	_, plan, _, err := e.index.compile(doc, op, false)
	return plan, err
}

// Outline returns the operation compiled for reading, from the cache if it was asked for before. It
// belongs to the cached [Plan] of the operation, is compiled when it is first asked for, and leaves the
// cache with the plan. As for [Estimator.Plan], neither the document nor the operation may change
// afterwards. Callers who ask for one outline at the same time wait for one of them to compile it.
//
// The errors are those of [Estimator.Plan].
func (e *Estimator) Outline(doc *ast.QueryDocument, op *ast.OperationDefinition) (*Outline, error) {
	return e.OutlineText("", doc, op)
}

// OutlineText is [Estimator.Outline] for a caller who knows the text that the document was parsed from,
// as [Estimator.PlanText] is. It finds the outline of an operation that was parsed again.
func (e *Estimator) OutlineText(text string, doc *ast.QueryDocument, op *ast.OperationDefinition) (*Outline, error) {
	if op == nil {
		_, err := e.Compile(doc, op)
		return nil, err
	}
	if !e.outlined.Load() {
		e.outlined.Store(true)
	}
	entry := e.entry(text, doc, op)
	if entry.err != nil {
		return nil, entry.err
	}
	return e.plans.outline(entry, func() (*Outline, error) {
		_, outline, err := e.index.outline(doc, op)
		return outline, err
	})
}
