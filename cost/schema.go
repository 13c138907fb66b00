package cost

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
)

// index is a schema as pricing needs it, with the configuration. It is immutable.
type index struct {
	options settings
	// types are those of the schema.
	types      map[string]*ast.Definition
	objects    map[string]*objectType
	outputs    map[string]*outputType
	directives map[string][]*inputField
	roots      map[ast.Operation]*objectType
	// unsized are the coordinates of the list fields that nothing sizes, sorted.
	unsized []string
	// unreadable are the coordinates of the slicing arguments that cannot be read as numbers, sorted.
	unreadable []string
}

// objectType is an object type as pricing needs it.
type objectType struct {
	name   string
	weight float64
	fields map[string]*fieldInfo
	// conditions are the names of the types whose fragments apply to the object: its own, those of its
	// interfaces and of its unions.
	conditions map[string]bool
}

// outputType is a composite type that a field can return.
type outputType struct {
	name string
	// weight is the largest of the possible types.
	weight  float64
	objects []*objectType
	// undivided are the objects as one class, if there are any.
	undivided [][]*objectType
	// byWeight divides the objects by what they weigh, nil if they all weigh the same.
	byWeight partition
}

// fieldInfo is a field of an object type.
type fieldInfo struct {
	coordinate string
	name       string
	kind       fieldKind
	weight     float64
	// output is nil if the field returns a scalar or an enum, whose weight is then leaf.
	output *outputType
	leaf   float64
	// depth is how many lists are nested: 0 for no list. scale is what all but the outermost one
	// multiply the size with; of a field of introspection without a list how often there is a value.
	depth int
	scale float64
	sizes *listSize
	args  []*inputField
	// argsFree says that no argument can cost anything.
	argsFree bool
	// complexity is nil if the field has no function.
	complexity *complexity
	// introspects says that the field reads the schema itself.
	introspects bool
	// alike is a number that fields share which cost the same wherever they are called.
	alike int32
}

// free says that no call of the field costs anything, directives of the query aside.
func (f *fieldInfo) free() bool {
	return f.output == nil && f.weight <= 0 && f.leaf <= 0 && f.argsFree && f.sizes == nil && f.complexity == nil
}

type fieldKind uint8

const (
	ordinary fieldKind = iota
	// constant is a field whose price is its weight, whatever is selected below.
	constant
	// entities is the _entities field of a federation subgraph.
	entities
)

// typenameField is __typename in a form. It costs nothing, but tells types in a response.
var typenameField = &fieldInfo{coordinate: "__typename", name: "__typename", kind: constant, argsFree: true}

// serviceWeight is the price of _service, which is constant.
const serviceWeight = 1

// builder turns a schema and a configuration into an index, collecting mistakes.
type builder struct {
	index
	schema *ast.Schema
	cfg    Config
	errs   []*SchemaError
	// used are the coordinates of the configuration that named something.
	used   map[string]bool
	inputs map[string]*inputType
	// sizedBy are the list fields that a sizedFields of some parent sizes.
	sizedBy map[string]bool
	// sized are the sized fields of list sizes, by their spelling.
	sized map[string]*sizedFields
	// passages are the fields that list sizes lead through.
	passages []passage
	// inherited are the list sizes of interface fields.
	inherited map[string]declaredSize
	// applied are the directives of the schema whose arguments can cost something.
	applied  map[string][]*inputField
	patterns []sizePattern
}

// newIndex reads the directives of the schema and the configuration. The error joins a [SchemaError] for
// every mistake, in the order of their coordinates.
func newIndex(schema *ast.Schema, cfg Config) (*index, error) {
	if schema == nil {
		return nil, &SchemaError{Coordinate: "schema", Reason: "there is none"}
	}
	b := &builder{
		index: index{
			types:      schema.Types,
			objects:    map[string]*objectType{},
			outputs:    map[string]*outputType{},
			directives: map[string][]*inputField{},
			roots:      map[ast.Operation]*objectType{},
		},
		schema:    schema,
		cfg:       cfg,
		used:      map[string]bool{},
		inputs:    map[string]*inputType{},
		sizedBy:   map[string]bool{},
		inherited: map[string]declaredSize{},
		applied:   map[string][]*inputField{},
	}
	b.options = b.settings(cfg)
	b.build()
	if len(b.errs) > 0 {
		return nil, b.err()
	}
	b.findAlike()
	for op, def := range b.rootTypes() {
		if def != nil {
			b.roots[op] = b.objects[def.Name]
		}
	}
	b.weighIntrospection()
	return &b.index, nil
}

func (b *builder) fail(coordinate, format string, args ...any) {
	b.errs = append(b.errs, &SchemaError{Coordinate: coordinate, Reason: fmt.Sprintf(format, args...)})
}

// err joins the mistakes in the order of their coordinates.
func (b *builder) err() error {
	slices.SortFunc(b.errs, func(x, y *SchemaError) int {
		return cmp.Or(cmp.Compare(x.Coordinate, y.Coordinate), cmp.Compare(x.Reason, y.Reason))
	})
	errs := make([]error, len(b.errs))
	for i, err := range b.errs {
		errs[i] = err
	}
	return errors.Join(errs...)
}

// definitions visits the types of the schema in the order of their names, without the introspection
// types, which neither directives nor the configuration price.
func (b *builder) definitions(visit func(*ast.Definition)) {
	for _, name := range slices.Sorted(maps.Keys(b.schema.Types)) {
		if def := b.schema.Types[name]; def != nil && !strings.HasPrefix(name, "__") {
			visit(def)
		}
	}
}

func (b *builder) build() {
	b.buildInputs()
	b.buildDirectives()
	b.definitions(func(def *ast.Definition) {
		switch def.Kind {
		case ast.Object:
			b.objects[def.Name] = &objectType{
				name:       def.Name,
				weight:     b.weight(def.Name, def.Directives, 1),
				fields:     make(map[string]*fieldInfo, len(def.Fields)),
				conditions: map[string]bool{def.Name: true},
			}
		case ast.Scalar, ast.Enum:
			b.leafWeight(def.Name)
		case ast.Interface, ast.Union, ast.InputObject:
			b.refuseWeight(def.Name, def.Directives, "weights of "+strings.ToLower(strings.ReplaceAll(string(def.Kind), "_", " "))+
				" types are not allowed; give the object types or the fields weights")
		}
	})
	b.buildOutputs()
	b.readPatterns()
	b.definitions(func(def *ast.Definition) {
		if def.Kind == ast.Interface {
			b.readInterface(def)
		}
	})
	b.definitions(func(def *ast.Definition) {
		if def.Kind == ast.Object {
			b.buildFields(def)
		}
	})
	b.checkPassages()
	b.addMetaFields()
	b.findUnsized()
	b.checkUsed()
}

func (b *builder) buildOutputs() {
	b.definitions(func(def *ast.Definition) {
		if !def.IsCompositeType() {
			return
		}
		out := &outputType{name: def.Name, weight: 1}
		for _, possible := range b.schema.GetPossibleTypes(def) {
			object := b.objects[possible.Name]
			if object == nil || slices.Contains(out.objects, object) {
				continue
			}
			if len(out.objects) == 0 || object.weight > out.weight {
				out.weight = object.weight
			}
			object.conditions[def.Name] = true
			out.objects = append(out.objects, object)
		}
		b.outputs[def.Name] = out
	})
}

func (b *builder) buildFields(def *ast.Definition) {
	object := b.objects[def.Name]
	for _, field := range def.Fields {
		if strings.HasPrefix(field.Name, "__") || field.Type == nil {
			continue
		}
		coordinate := def.Name + "." + field.Name
		info := &fieldInfo{coordinate: coordinate, name: field.Name, scale: 1, leaf: b.leafWeight(field.Type.Name())}
		info.output = b.outputs[field.Type.Name()]
		fallback := 0.0
		if info.output != nil {
			fallback = 1
		}
		info.weight = b.weight(coordinate, field.Directives, fallback) + b.appliedCost(field.Directives)
		for t := field.Type; t.Elem != nil; t = t.Elem {
			info.depth++
			if info.depth > 1 {
				info.scale *= b.options.listSize
			}
		}
		info.argsFree = true
		for _, arg := range field.Arguments {
			in := b.inputField(coordinate+"("+arg.Name+":)", arg.Name, arg.Type, arg.DefaultValue, arg.Directives)
			info.args = append(info.args, in)
			info.argsFree = info.argsFree && in.free()
		}
		info.sizes = b.listSize(def, field, info.args)
		b.buildComplexity(def, field, info)
		object.fields[field.Name] = info
	}
}

// leafWeight is the weight of the values of a scalar or enum type.
func (b *builder) leafWeight(name string) float64 {
	def := b.schema.Types[name]
	if def == nil || !def.IsLeafType() {
		return 0
	}
	return b.weight(name, def.Directives, 0)
}

// readInterface reports weights where the directives forbid them, and reads list sizes, which hold for
// the fields of the object types.
func (b *builder) readInterface(def *ast.Definition) {
	for _, field := range def.Fields {
		if field.Type == nil {
			continue
		}
		coordinate := def.Name + "." + field.Name
		b.refuseWeight(coordinate, field.Directives, "weights of interface fields are not allowed; give the fields of the object types weights")
		_, configured := b.cfg.ListSizes[coordinate]
		if !configured && field.Directives.ForName("listSize") == nil {
			continue
		}
		args := make([]*inputField, 0, len(field.Arguments))
		for _, arg := range field.Arguments {
			args = append(args, &inputField{name: arg.Name, declared: arg.Type, literal: arg.DefaultValue, typ: b.inputs[arg.Type.Name()]})
		}
		b.listSize(def, field, args)
	}
}

// addMetaFields adds what every query type has, and what a federation subgraph adds to it.
func (b *builder) addMetaFields() {
	if b.schema.Query == nil {
		return
	}
	query := b.objects[b.schema.Query.Name]
	if query == nil {
		return
	}
	b.addIntrospection(query)
	if service := query.fields["_service"]; service != nil {
		service.kind, service.weight = constant, serviceWeight
	}
	if field := query.fields["_entities"]; field != nil && field.output != nil && field.depth == 1 {
		field.kind = entities
	}
}

// findUnsized lists the list fields that nothing sizes, not even a function. Lists whose elements weigh nothing are left
// out, since their length does not change the price.
func (b *builder) findUnsized() {
	for _, object := range b.objects {
		for _, field := range object.fields {
			if field.depth == 0 || field.kind != ordinary || field.output == nil && field.leaf == 0 {
				continue
			}
			if field.sizes != nil && field.sizes.sizesOwn() || b.sizedBy[field.coordinate] {
				continue
			}
			if field.complexity != nil {
				field.complexity.sizes = true
				continue
			}
			b.unsized = append(b.unsized, field.coordinate)
		}
	}
	slices.Sort(b.unsized)
	slices.Sort(b.unreadable)
	if b.cfg.RequireListSizes {
		for _, coordinate := range b.unsized {
			b.fail(coordinate, "nothing sizes the list, and RequireListSizes is set")
		}
		for _, coordinate := range b.unreadable {
			b.fail(coordinate, "it sizes a list and is no number, and RequireListSizes is set")
		}
	}
}

// checkUsed reports the coordinates of the configuration that name nothing.
func (b *builder) checkUsed() {
	for coordinate := range b.cfg.Weights {
		if !b.used[coordinate] {
			b.fail(coordinate, "Config.Weights names nothing in the schema that can have a weight")
		}
	}
	for coordinate := range b.cfg.ValueWeights {
		if !b.used["value "+coordinate] {
			b.fail(coordinate, "Config.ValueWeights names no argument or input field")
		}
	}
	for coordinate := range b.cfg.Complexity {
		if !b.used["complexity "+coordinate] {
			b.fail(coordinate, "Config.Complexity names no field of an object type")
		}
	}
	for coordinate := range b.cfg.ListSizes {
		if !b.used["list "+coordinate] {
			b.fail(coordinate, "Config.ListSizes names no field of an object type or interface that it can size")
		}
	}
}
