package cost

import "github.com/vektah/gqlparser/v2/ast"

// maxDepth bounds the nesting of selections and of values. encoding/json stops at the same depth.
const maxDepth = 10_000

// inputType is an input object type.
type inputType struct {
	name   string
	fields []*inputField
	byName map[string]*inputField
	// costly are the fields that can cost something.
	costly []*inputField
}

// inputField is an argument or an input field.
type inputField struct {
	coordinate string
	name       string
	weight     float64
	declared   *ast.Type
	// typ is nil if the named type is no input object.
	typ *inputType
	// literal is the default as the schema spells it, nil if there is none; value is the same as a
	// variable would carry it.
	literal *ast.Value
	value   any
	// values are the weights that it has with certain values in the place of its weight, nil if there are none.
	values *valueWeights
	// absent is what the field costs when it is not given: its default with its own weight. One that has to be
	// given costs least, which is what it costs when nothing is known of its value: the dearest weight, and what has
	// to be in it.
	absent, least float64
	state         visitState
}

type visitState uint8

const (
	unvisited visitState = iota
	visiting
	visited
)

// free says that the field costs nothing whatever is given.
func (f *inputField) free() bool {
	return f.weight == 0 && f.absent == 0 && f.values == nil && (f.typ == nil || len(f.typ.costly) == 0)
}

func (b *builder) buildInputs() {
	b.definitions(func(def *ast.Definition) {
		if def.Kind == ast.InputObject {
			b.inputs[def.Name] = &inputType{name: def.Name, byName: make(map[string]*inputField, len(def.Fields))}
		}
	})
	b.definitions(func(def *ast.Definition) {
		in := b.inputs[def.Name]
		if in == nil {
			return
		}
		for _, field := range def.Fields {
			if field.Type == nil {
				continue
			}
			f := b.declare(def.Name+"."+field.Name, field.Name, field.Type, field.DefaultValue, field.Directives)
			in.fields = append(in.fields, f)
			in.byName[f.name] = f
		}
	})
	for _, in := range b.inputs {
		for _, field := range in.fields {
			b.priceDefault(field)
		}
	}
	// A type is costly if one of its fields is, or leads to one that is: repeat until nothing changes.
	for changed := true; changed; {
		changed = false
		for _, in := range b.inputs {
			// What is known stays until the pass is over, because a field can lead to its own type.
			var costly []*inputField
			for _, field := range in.fields {
				if !field.free() {
					costly = append(costly, field)
				}
			}
			changed = changed || len(costly) != len(in.costly)
			in.costly = costly
		}
	}
}

func (b *builder) declare(coordinate, name string, typ *ast.Type, literal *ast.Value, directives ast.DirectiveList) *inputField {
	f := &inputField{coordinate: coordinate, name: name, declared: typ, literal: literal, typ: b.inputs[typ.Name()]}
	fallback := 0.0
	if f.typ != nil {
		fallback = 1
	}
	f.weight = b.weight(coordinate, directives, fallback)
	f.values = b.valueWeights(f, directives)
	if literal != nil {
		f.value = literalValue(literal, 0)
	}
	return f
}

// inputField declares an argument, when all input types are known.
func (b *builder) inputField(coordinate, name string, typ *ast.Type, literal *ast.Value, directives ast.DirectiveList) *inputField {
	f := b.declare(coordinate, name, typ, literal, directives)
	b.priceDefault(f)
	return f
}

// priceDefault computes what the field costs when it is absent. A default that contains itself
// through the defaults of other fields has no value, and is reported.
func (b *builder) priceDefault(f *inputField) float64 {
	switch {
	case f.state == visited:
		return f.absent
	case f.state == visiting && f.literal == nil:
		// No request can give a field that requires itself.
		return 0
	case f.state == visiting:
		b.fail(f.coordinate, "the default value contains itself")
		return 0
	}
	f.state = visiting
	f.least = f.most()
	if f.typ != nil && f.declared.Elem == nil {
		for _, field := range f.typ.fields {
			if field.declared.NonNull && field.literal == nil {
				f.least += b.priceDefault(field)
			}
		}
	}
	switch {
	case f.literal != nil:
		f.absent = b.priceGiven(f, f.literal)
	case f.declared.NonNull:
		f.absent = f.least
	}
	f.state = visited
	return f.absent
}

// priceGiven is what an argument or input field costs with a literal that has no variables.
func (b *builder) priceGiven(f *inputField, literal *ast.Value) float64 {
	return f.weigh(literal) + b.priceLiteral(literal, f.typ)
}

// weigh is the weight with a literal that has no variables. In a list each element has the weight that it has alone,
// if there are weights of values.
func (f *inputField) weigh(literal *ast.Value) float64 {
	switch {
	case f.values == nil:
		return f.weight
	case literal == nil || literal.Kind != ast.ListValue:
		return f.values.of(literalValue(literal, 0))
	}
	total := 0.0
	for _, child := range literal.Children {
		total += f.weigh(child.Value)
	}
	return total
}

func (b *builder) priceLiteral(value *ast.Value, typ *inputType) float64 {
	if typ == nil || value == nil {
		return 0
	}
	total := 0.0
	switch value.Kind {
	case ast.ListValue:
		for _, child := range value.Children {
			total += b.priceLiteral(child.Value, typ)
		}
	case ast.ObjectValue:
		for _, field := range typ.fields {
			if given := value.Children.ForName(field.name); given != nil {
				total += b.priceGiven(field, given)
			} else {
				total += b.priceDefault(field)
			}
		}
	}
	return total
}
