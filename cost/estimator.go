package cost

import (
	"slices"

	"github.com/vektah/gqlparser/v2/ast"
)

// Estimator prices the operations of one schema. It is safe for concurrent use.
type Estimator struct {
	options    settings
	objects    map[string]*objectType
	outputs    map[string]*outputType
	directives map[string][]*inputField
	roots      map[ast.Operation]*objectType
	unsized    []string
	plans      *planCache
	outlines   outlineCache
	// nodes prices operations by their list nodes, nil if these are not limited.
	nodes *Estimator
}

// New reads the directives of the schema and the configuration, once. It keeps nothing of the schema
// but the arguments of fields that have a function, and does not change it.
//
// The error joins a [SchemaError] for every mistake, in the order of their coordinates.
func New(schema *ast.Schema, cfg Config) (*Estimator, error) {
	if schema == nil {
		return nil, &SchemaError{Coordinate: "schema", Reason: "there is none"}
	}
	b := &builder{
		schema:     schema,
		cfg:        cfg,
		used:       map[string]bool{},
		objects:    map[string]*objectType{},
		outputs:    map[string]*outputType{},
		inputs:     map[string]*inputType{},
		directives: map[string][]*inputField{},
		sizedBy:    map[string]bool{},
		sizedLike:  map[string]*listSize{},
	}
	b.options = b.settings(cfg)
	b.build()
	if len(b.errs) > 0 {
		return nil, b.err()
	}
	e := &Estimator{
		options:    b.options,
		objects:    b.objects,
		outputs:    b.outputs,
		directives: b.directives,
		roots:      map[ast.Operation]*objectType{},
		unsized:    b.unsized,
		outlines:   outlineCache{max: b.options.cacheSize * unitsPerPlan},
	}
	e.plans = newPlanCache(b.options.cacheSize, e.outlines.release)
	for op, def := range map[ast.Operation]*ast.Definition{
		ast.Query: schema.Query, ast.Mutation: schema.Mutation, ast.Subscription: schema.Subscription,
	} {
		if def != nil {
			e.roots[op] = b.objects[def.Name]
		}
	}
	if e.options.limits.MaxListNodes > 0 {
		e.nodes = e.countingNodes()
	}
	return e, nil
}

// UnsizedLists returns the coordinates of the list fields that nothing sizes, sorted: no @listSize,
// no sizedFields of a parent, no [Config.ListSizes]. They are priced with the default size. Lists of
// scalars and enums without a weight are left out, because their length does not change a price.
func (e *Estimator) UnsizedLists() []string { return slices.Clone(e.unsized) }

// Plan returns the compiled operation, from the cache if it was compiled before. The operation is
// recognised by its pointer, so it pays to cache parsed documents, as gqlgen does; neither the
// document nor the operation may change afterwards, and those of the last [Config.PlanCacheSize]
// operations stay in memory. Errors are remembered too. Callers who ask for one operation at the same
// time wait for one of them to compile it.
func (e *Estimator) Plan(doc *ast.QueryDocument, op *ast.OperationDefinition) (*Plan, error) {
	if op == nil {
		return e.Compile(doc, op)
	}
	key := planKey{op: op}
	if known := e.plans.find(&key); known != nil && known.wait() {
		return known.plan, known.err
	}
	return e.plans.get(key, op, func() (*Plan, error) { return e.Compile(doc, op) })
}

// PlanText is [Estimator.Plan] for a caller who knows the text that the document was parsed from. It
// finds the plan of an operation that was parsed again, as happens on a server without a cache of
// documents, and keeps no such document in memory. The document must say what the text says: one that
// was rewritten after it was parsed is for Plan. An empty text is none.
func (e *Estimator) PlanText(text string, doc *ast.QueryDocument, op *ast.OperationDefinition) (*Plan, error) {
	if op == nil || doc == nil || text == "" || doc.Operations.ForName(op.Name) != op {
		return e.Plan(doc, op)
	}
	key := planKey{op: op}
	if known := e.plans.find(&key); known != nil && known.wait() {
		return known.plan, known.err
	}
	if op.Position != nil && op.Position.Src != nil && op.Position.Src.Input != text {
		return e.Plan(doc, op)
	}
	return e.plans.get(planKey{text: text, name: op.Name}, op, func() (*Plan, error) { return e.Compile(doc, op) })
}

// Compile compiles the operation without the cache. It accepts documents that were not validated:
// what does not fit the schema is an [ErrMalformed], fragments that spread themselves are an
// [ErrCyclicFragment].
func (e *Estimator) Compile(doc *ast.QueryDocument, op *ast.OperationDefinition) (*Plan, error) {
	plan, _, err := e.compile(doc, op)
	return plan, err
}
