package cost_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2/ast"
	"pgregory.net/rapid"
)

// execution is an operation that is executed on a generated schema without anything of the package:
// selections are collected for one assignment of the variables, lists are at most as long as declared,
// and what that cost is read from the objects and calls that there are.
type execution struct {
	oracle
	t *rapid.T
	// left is how many more objects the response may have.
	left int
}

// object is an object of a response.
type object struct {
	def   *ast.Definition
	calls []call
}

// call is a call that was made, with the objects, or the number of scalars, that it returned.
type call struct {
	key     string
	fields  []*ast.Field
	def     *ast.FieldDefinition
	value   any
	objects []*object
	scalars int
	// typename says that the call is __typename.
	typename bool
}

// sizedBelow is what a call says of the lists of the objects that it returns.
type sizedBelow struct {
	fields []string
	// inner are the fields in objects that the objects have, by the name of the field that leads there.
	inner map[string][]string
	size  int
}

// listSizeOf returns the arguments of the list size of a field, which may be that of an interface.
func (e *execution) listSizeOf(parent *ast.Definition, field string) map[string]any {
	if own := directiveOf(parent.Fields.ForName(field).Directives, "listSize"); own != nil {
		return own
	}
	for _, name := range parent.Interfaces {
		if declared := e.schema.Types[name].Fields.ForName(field); declared != nil && declared.Directives.ForName("listSize") != nil {
			return directiveOf(declared.Directives, "listSize")
		}
	}
	return nil
}

// directiveOf returns the arguments of a directive of the schema.
func directiveOf(directives ast.DirectiveList, name string) map[string]any {
	directive := directives.ForName(name)
	if directive == nil {
		return nil
	}
	given := map[string]any{}
	for _, a := range directive.Arguments {
		given[a.Name], _ = a.Value.Value(nil)
	}
	return given
}

func weightOf(directives ast.DirectiveList, fallback float64) float64 {
	if given := directiveOf(directives, "cost"); given != nil {
		weight, err := strconv.ParseFloat(given["weight"].(string), 64)
		if err != nil {
			panic(err)
		}
		return weight
	}
	return fallback
}

// execute makes the calls that are selected on an object.
func (e *execution) execute(def *ast.Definition, sets []ast.SelectionSet, below sizedBelow) *object {
	e.left--
	into, seen := map[string][]*ast.Field{}, map[string]bool{}
	for _, set := range sets {
		e.collect(def, set, seen, into)
	}
	o := &object{def: def}
	for _, key := range slices.Sorted(maps.Keys(into)) {
		if into[key][0].Name == "__typename" {
			o.calls = append(o.calls, call{key: key, typename: true})
			continue
		}
		o.calls = append(o.calls, e.call(def, key, into[key], below))
	}
	return o
}

func (e *execution) call(parent *ast.Definition, key string, fields []*ast.Field, below sizedBelow) call {
	c := call{key: key, fields: fields, def: parent.Fields.ForName(fields[0].Name)}
	values := e.materialised(argumentFields(c.def.Arguments), e.given(fields[0].Arguments))
	size, sizes := -1, e.listSizeOf(parent, c.def.Name)
	if sizes != nil {
		size = declaredSize(sizes, values)
	}
	own, returned := generatedSize, sizedBelow{size: -1}
	switch sized, _ := sizes["sizedFields"].([]any); {
	case len(sized) > 0:
		returned.inner = map[string][]string{}
		for _, path := range sized {
			name, inner, nested := strings.Cut(path.(string), " {")
			if nested {
				returned.inner[name] = strings.Fields(strings.TrimSuffix(inner, "}"))
			} else {
				returned.fields = append(returned.fields, name)
			}
		}
		returned.size = size
	case size >= 0:
		own = size
	}
	if below.size >= 0 && slices.Contains(below.fields, c.def.Name) {
		own = below.size
	}
	if inner := below.inner[c.def.Name]; below.size >= 0 && inner != nil {
		returned = sizedBelow{fields: inner, size: below.size}
	}
	c.value = e.value(&c, c.def.Type, own, returned)
	return c
}

// declaredSize is what a list size says, -1 if it says nothing.
func declaredSize(sizes, values map[string]any) int {
	size := -1
	paths, _ := sizes["slicingArguments"].([]any)
	for _, path := range paths {
		var value any = values
		for _, name := range strings.Split(path.(string), ".") {
			fields, _ := value.(map[string]any)
			value = fields[name]
		}
		switch value := value.(type) {
		case int64:
			size = max(size, int(value), 0)
		case []any:
			size = max(size, len(value))
		}
	}
	if assumed, ok := sizes["assumedSize"].(int64); ok && size < 0 {
		size = int(assumed)
	}
	return size
}

// value returns a value of the type as JSON carries it, and records what is in it.
func (e *execution) value(c *call, typ *ast.Type, size int, below sizedBelow) any {
	if typ.Elem != nil {
		n := size
		if rapid.Bool().Draw(e.t, "shorter") {
			n = rapid.IntRange(0, size).Draw(e.t, "length")
		}
		list := []any{}
		for range n {
			list = append(list, e.value(c, typ.Elem, generatedSize, below))
		}
		return list
	}
	def := e.schema.Types[typ.Name()]
	possible := e.schema.GetPossibleTypes(def)
	switch {
	case rapid.IntRange(0, 9).Draw(e.t, "null") == 9 || e.left <= 0 && def.IsCompositeType():
		return nil
	case def.IsLeafType():
		c.scalars++
		return 1
	case len(possible) == 0:
		return nil
	}
	var sets []ast.SelectionSet
	for _, field := range c.fields {
		sets = append(sets, field.SelectionSet)
	}
	o := e.execute(rapid.SampledFrom(possible).Draw(e.t, "concrete"), sets, below)
	c.objects = append(c.objects, o)
	return o
}

// MarshalJSON writes the object as a server does.
func (o *object) MarshalJSON() ([]byte, error) {
	fields := make(map[string]any, len(o.calls))
	for i := range o.calls {
		c := &o.calls[i]
		if fields[c.key] = c.value; c.typename {
			fields[c.key] = o.def.Name
		}
	}
	return json.Marshal(fields)
}

// listNodes counts the objects in lists, in the object and below it.
func (o *object) listNodes() int {
	nodes := 0
	for i := range o.calls {
		c := &o.calls[i]
		if !c.typename && c.def.Type.Elem != nil {
			nodes += len(c.objects)
		}
		for _, returned := range c.objects {
			nodes += returned.listNodes()
		}
	}
	return nodes
}

// price is what an object and the calls on it cost.
func (e *execution) price(o *object) (typ, field float64) {
	typ = weightOf(o.def.Directives, 1)
	called := map[string]bool{}
	for i := range o.calls {
		c := &o.calls[i]
		name := "__typename"
		if !c.typename {
			name = c.def.Name
		}
		if called[name] {
			field += aliasWeight
		}
		called[name] = true
		if c.typename {
			continue
		}
		own := e.own(c)
		below := 0.0
		for _, returned := range c.objects {
			t, f := e.price(returned)
			below += t
			own += f
		}
		below += float64(c.scalars) * weightOf(e.schema.Types[c.def.Type.Name()].Directives, 0)
		typ += max(0, below)
		field += own
	}
	return typ, field
}

// own is what a call costs without what it returns.
func (e *execution) own(c *call) float64 {
	fallback := 0.0
	if e.schema.Types[c.def.Type.Name()].IsCompositeType() {
		fallback = 1
	}
	own := weightOf(c.def.Directives, fallback) + e.inputs(argumentFields(c.def.Arguments), e.materialised(argumentFields(c.def.Arguments), e.given(c.fields[0].Arguments)))
	dearest := 0.0
	for i, field := range c.fields {
		sum := 0.0
		for _, directive := range field.Directives.ForNames("d") {
			declared := argumentFields(e.schema.Directives["d"].Arguments)
			sum += e.inputs(declared, e.materialised(declared, e.given(directive.Arguments)))
		}
		if i == 0 || sum > dearest {
			dearest = sum
		}
	}
	return max(0, own+dearest)
}

// input is an argument or an input field.
type input struct {
	name       string
	typ        *ast.Type
	literal    *ast.Value
	directives ast.DirectiveList
}

func argumentFields(arguments ast.ArgumentDefinitionList) []input {
	var inputs []input
	for _, a := range arguments {
		inputs = append(inputs, input{a.Name, a.Type, a.DefaultValue, a.Directives})
	}
	return inputs
}

func (e *execution) fieldsOf(typ *ast.Type) []input {
	var inputs []input
	for _, f := range e.schema.Types[typ.Name()].Fields {
		inputs = append(inputs, input{f.Name, f.Type, f.DefaultValue, f.Directives})
	}
	return inputs
}

// given are the arguments as values; one with a variable that is not defined is absent.
func (e *execution) given(arguments ast.ArgumentList) map[string]any {
	values := map[string]any{}
	for _, a := range arguments {
		if value, ok := e.literal(a.Value); ok {
			values[a.Name] = value
		}
	}
	return values
}

func (e *execution) literal(value *ast.Value) (any, bool) {
	switch value.Kind {
	case ast.Variable:
		given, ok := e.variables[value.Raw]
		return given, ok
	case ast.ListValue:
		list := []any{}
		for _, child := range value.Children {
			element, _ := e.literal(child.Value)
			list = append(list, element)
		}
		return list, true
	case ast.ObjectValue:
		fields := map[string]any{}
		for _, child := range value.Children {
			if field, ok := e.literal(child.Value); ok {
				fields[child.Name] = field
			}
		}
		return fields, true
	case ast.NullValue:
		return nil, true
	}
	n, err := strconv.ParseInt(value.Raw, 10, 64)
	require.NoError(e.t, err)
	return n, true
}

// materialised fills in the defaults, at every depth.
func (e *execution) materialised(declared []input, values map[string]any) map[string]any {
	full := map[string]any{}
	for _, in := range declared {
		value, ok := values[in.name]
		if !ok && in.literal != nil {
			value, ok = e.literal(in.literal)
		}
		if ok {
			full[in.name] = e.filled(in.typ, value)
		}
	}
	return full
}

func (e *execution) filled(typ *ast.Type, value any) any {
	switch value := value.(type) {
	case map[string]any:
		return e.materialised(e.fieldsOf(typ), value)
	case []any:
		list := []any{}
		for _, element := range value {
			list = append(list, e.filled(typ, element))
		}
		return list
	}
	return value
}

// inputs is what values cost that have their defaults.
func (e *execution) inputs(declared []input, values map[string]any) float64 {
	total := 0.0
	for _, in := range declared {
		value, ok := values[in.name]
		if !ok {
			continue
		}
		fallback := 0.0
		if e.schema.Types[in.typ.Name()].Kind == ast.InputObject {
			fallback = 1
		}
		total += weightWith(in.directives, fallback, value) + e.inside(in.typ, value)
	}
	return total
}

func (e *execution) inside(typ *ast.Type, value any) float64 {
	total := 0.0
	switch value := value.(type) {
	case map[string]any:
		total = e.inputs(e.fieldsOf(typ), value)
	case []any:
		for _, element := range value {
			total += e.inside(typ, element)
		}
	}
	return total
}
