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
}

// New reads the directives of the schema and the configuration, once. It keeps nothing of the schema
// and does not change it.
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
		plans:      newPlanCache(b.options.cacheSize),
	}
	for op, def := range map[ast.Operation]*ast.Definition{
		ast.Query: schema.Query, ast.Mutation: schema.Mutation, ast.Subscription: schema.Subscription,
	} {
		if def != nil {
			e.roots[op] = b.objects[def.Name]
		}
	}
	return e, nil
}

// UnsizedLists returns the coordinates of the list fields that nothing sizes, sorted: no @listSize,
// no sizedFields of a parent, no [Config.ListSizes]. They are priced with the default size. Lists of
// scalars and enums without a weight are left out, because their length does not change a price.
func (e *Estimator) UnsizedLists() []string { return slices.Clone(e.unsized) }

// Plan returns the compiled operation, from the cache if it was compiled before. The operation is
// recognised by its pointer, so it pays to cache parsed documents, as gqlgen does; neither the
// document nor the operation may change afterwards. Errors are remembered too.
func (e *Estimator) Plan(doc *ast.QueryDocument, op *ast.OperationDefinition) (*Plan, error) {
	if known := e.plans.get(op); known != nil {
		return known.plan, known.err
	}
	plan, err := e.Compile(doc, op)
	e.plans.add(op, plan, err)
	return plan, err
}

// Compile compiles the operation without the cache. It accepts documents that were not validated:
// what does not fit the schema is an [ErrMalformed], fragments that spread themselves are an
// [ErrCyclicFragment].
func (e *Estimator) Compile(doc *ast.QueryDocument, op *ast.OperationDefinition) (*Plan, error) {
	plan, _, err := e.compile(doc, op)
	return plan, err
}
