package cost

import (
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
)

// The prices of introspection. They are field cost; introspection types weigh nothing. With them the
// query that tools send to read a whole schema costs about 260 points.
const (
	// introspectionWeight is what each call of __schema and __type costs.
	introspectionWeight = 10
	// introspectionFieldWeight is what each field selected below costs, __typename excepted.
	introspectionFieldWeight = 0.05
	// introspectionListSize is the size of each list of introspection objects. Those of a schema are
	// longer, but reading it once is to stay cheap: the size makes what repeats it, such as aliases and
	// lists in lists, dearer than it is long in the document.
	introspectionListSize = 4
)

// addIntrospection adds __schema and __type to the query type. What they return is priced as any other
// selection is: merged, and by the variables.
func (b *builder) addIntrospection(query *objectType) {
	for name, def := range b.schema.Types {
		if def == nil || def.Kind != ast.Object || !strings.HasPrefix(name, "__") {
			continue
		}
		object := &objectType{name: name, fields: make(map[string]*fieldInfo, len(def.Fields)), conditions: map[string]bool{name: true}}
		b.outputs[name] = &outputType{name: name, objects: []*objectType{object}}
		for _, field := range def.Fields {
			if field.Type == nil {
				continue
			}
			object.fields[field.Name] = &fieldInfo{
				coordinate: name + "." + field.Name, name: field.Name,
				weight: introspectionFieldWeight, scale: 1, argsFree: true,
			}
		}
	}
	for name, output := range b.outputs {
		if !strings.HasPrefix(name, "__") {
			continue
		}
		for _, field := range b.schema.Types[name].Fields {
			if field.Type == nil {
				continue
			}
			info := output.objects[0].fields[field.Name]
			info.output = b.outputs[field.Type.Name()]
			if field.Type.Elem != nil {
				info.depth, info.sizes = 1, &listSize{assumed: introspectionListSize}
			}
		}
	}
	for name, returned := range map[string]string{"__schema": "__Schema", "__type": "__Type"} {
		query.fields[name] = &fieldInfo{
			coordinate: query.name + "." + name, name: name, output: b.outputs[returned],
			weight: introspectionWeight, scale: 1, argsFree: true,
		}
	}
}
