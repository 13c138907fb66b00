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
	// longer, but reading a schema once is to stay cheap.
	introspectionListSize = 4
)

// addIntrospection adds __schema and __type to the query type. What they return is priced as any other
// selection is: merged, and by the variables.
func (b *builder) addIntrospection(query *objectType) {
	types := map[string]*ast.Definition{}
	for name, def := range b.schema.Types {
		if def != nil && def.Kind == ast.Object && strings.HasPrefix(name, "__") {
			types[name] = def
			object := &objectType{name: name, fields: make(map[string]*fieldInfo, len(def.Fields)), conditions: map[string]bool{name: true}}
			b.outputs[name] = &outputType{name: name, objects: []*objectType{object}}
		}
	}
	for name, def := range types {
		for _, field := range def.Fields {
			if field.Type == nil {
				continue
			}
			info := &fieldInfo{
				coordinate: name + "." + field.Name, name: field.Name, output: b.outputs[field.Type.Name()],
				weight: introspectionFieldWeight, scale: 1, argsFree: true, introspects: true,
			}
			if field.Type.Elem != nil {
				info.depth, info.sizes = 1, &listSize{assumed: introspectionListSize}
			}
			b.outputs[name].objects[0].fields[field.Name] = info
		}
	}
	for name, returned := range map[string]string{"__schema": "__Schema", "__type": "__Type"} {
		query.fields[name] = &fieldInfo{
			coordinate: query.name + "." + name, name: name, output: b.outputs[returned],
			weight: introspectionWeight, scale: 1, argsFree: true, introspects: true,
		}
	}
}
