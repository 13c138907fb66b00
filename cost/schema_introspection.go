package cost

import (
	"math"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"
)

// The prices of introspection. They are field cost; introspection types weigh nothing.
const (
	// introspectionWeight is what each call of __schema and __type costs.
	introspectionWeight = 10
	// wholeSchema is what reading the whole schema costs besides, as tools do. Other selections cost as much of it as
	// they read.
	wholeSchema = 30
)

// addIntrospection adds __schema and __type to the query type. What they return is priced as any other
// selection is: merged, and by the variables. Lists are as long as those of the schema.
func (b *builder) addIntrospection(query *objectType) {
	types := map[string]*ast.Definition{}
	for name, def := range b.schema.Types {
		if def != nil && def.Kind == ast.Object && strings.HasPrefix(name, "__") {
			types[name] = def
			object := &objectType{name: name, fields: make(map[string]*fieldInfo, len(def.Fields)), conditions: map[string]bool{name: true}}
			b.outputs[name] = &outputType{name: name, objects: []*objectType{object}}
		}
	}
	sizes := introspectionSizes(b.schema)
	for name, def := range types {
		for _, field := range def.Fields {
			if field.Type == nil {
				continue
			}
			info := &fieldInfo{
				coordinate: name + "." + field.Name, name: field.Name, output: b.outputs[field.Type.Name()],
				weight: 1, scale: 1, argsFree: true, introspects: true,
			}
			average := math.Ceil(10*sizes[info.coordinate]) / 10
			if field.Type.Elem != nil {
				info.depth, info.sizes = 1, &listSize{assumed: average}
			} else if field.Name == "ofType" {
				info.scale = average
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

// introspectionSizes are how long the lists of introspection are on average, by their coordinate. A type has as many
// fields as types have: all of them, or those that fields return, whichever is more, because selections can go from
// type to field to type. Of __Type.ofType it is how many types have one, as they are met below each other.
func introspectionSizes(schema *ast.Schema) map[string]float64 {
	sizes := map[string]float64{
		"__Schema.types": float64(len(schema.Types)), "__Schema.directives": float64(len(schema.Directives)),
	}
	all, returned := map[string]float64{}, map[string]float64{}
	fields, arguments, wrappers := 0.0, 0.0, 0.0
	for _, def := range schema.Types {
		if def == nil {
			continue
		}
		countLists(schema, def, all)
		for _, field := range def.Fields {
			if field.Type == nil {
				continue
			}
			fields++
			arguments += float64(len(field.Arguments))
			for typ := field.Type; typ != nil; typ = typ.Elem {
				if typ.Elem != nil {
					wrappers++
				}
				if typ.NonNull {
					wrappers++
				}
			}
			if to := schema.Types[field.Type.Name()]; to != nil {
				countLists(schema, to, returned)
			}
		}
	}
	for coordinate, count := range all {
		sizes[coordinate] = max(count/float64(len(schema.Types)), returned[coordinate]/max(1, fields))
	}
	sizes["__Type.ofType"] = wrappers / max(1, wrappers+fields)
	sizes["__Field.args"] = arguments / max(1, fields)
	arguments = 0
	for _, directive := range schema.Directives {
		if directive != nil {
			arguments += float64(len(directive.Arguments))
		}
	}
	sizes["__Directive.args"] = arguments / max(1, float64(len(schema.Directives)))
	return sizes
}

// countLists adds what the lists of a type have.
func countLists(schema *ast.Schema, def *ast.Definition, counts map[string]float64) {
	fields := "__Type.fields"
	if def.Kind == ast.InputObject {
		fields = "__Type.inputFields"
	}
	counts[fields] += float64(len(def.Fields))
	counts["__Type.interfaces"] += float64(len(def.Interfaces))
	counts["__Type.enumValues"] += float64(len(def.EnumValues))
	if def.Kind == ast.Interface || def.Kind == ast.Union {
		counts["__Type.possibleTypes"] += float64(len(schema.PossibleTypes[def.Name]))
	}
}

// weighIntrospection gives the fields of introspection weights with which the query of tools costs [wholeSchema].
// In a schema without some of them, which no parser makes, they keep the weight of 1.
func (b *builder) weighIntrospection() {
	root, types := b.roots[ast.Query], b.outputs["__Schema"]
	if root == nil || types == nil {
		return
	}
	doc, err := parser.ParseQuery(&ast.Source{Input: toolQuery})
	if err != nil {
		return
	}
	c := b.compiler(doc.Operations[0], root, false, false)
	c.limit = defaultWorkLimit
	plan, err := c.compile(doc)
	if err != nil {
		return
	}
	weight := wholeSchema / (plan.price.result.constant.field - introspectionWeight)
	// Whoever reads a breakdown is glad of short numbers.
	magnitude := math.Pow(10, 3-math.Ceil(math.Log10(weight)))
	weight = math.Round(weight*magnitude) / magnitude
	for name, output := range b.outputs {
		if strings.HasPrefix(name, "__") {
			for _, field := range output.objects[0].fields {
				field.weight = weight
			}
		}
	}
}

// toolQuery is how tools read a whole schema: the query of graphql-js with all of its options that gqlparser knows
// in every version.
const toolQuery = `{
  __schema {
    description
    queryType { name kind } mutationType { name kind } subscriptionType { name kind }
    types { ...FullType }
    directives { name description isRepeatable locations args { ...InputValue } }
  }
}
fragment FullType on __Type {
  kind name description specifiedByURL
  fields { name description args { ...InputValue } type { ...TypeRef } isDeprecated deprecationReason }
  inputFields { ...InputValue }
  interfaces { ...TypeRef }
  enumValues { name description isDeprecated deprecationReason }
  possibleTypes { ...TypeRef }
}
fragment InputValue on __InputValue { name description type { ...TypeRef } defaultValue isDeprecated deprecationReason }
fragment TypeRef on __Type {
  kind name ofType { kind name ofType { kind name ofType { kind name ofType { kind name
  ofType { kind name ofType { kind name ofType { kind name ofType { kind name ofType { kind name } } } } } } } } }
}`
