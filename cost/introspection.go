package cost

import (
	"maps"
	"slices"
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
	// introspectionListSize is the size of each list of introspection objects in an operation that calls
	// no list twice. Those of a schema are longer, but reading it once is to stay cheap. It is also the
	// least size in one that repeats lists, whose sizes are those of the schema.
	introspectionListSize = 4
)

// addIntrospection adds __schema and __type to the query type. What they return is priced as any other
// selection is: merged, and by the variables.
func (b *builder) addIntrospection(query *objectType) {
	lengths := lengthsOf(b.schema)
	once := b.introspection(nil, func(string) float64 { return introspectionListSize })
	// From one type on, which may be the largest, lists lead to many, among which the mean counts.
	many := b.introspection(nil, func(coordinate string) float64 { return max(introspectionListSize, lengths[coordinate].mean) })
	one := b.introspection(many, func(coordinate string) float64 { return max(introspectionListSize, lengths[coordinate].largest) })
	maps.Copy(b.outputs, once)
	for name, returned := range map[string]string{"__schema": "__Schema", "__type": "__Type"} {
		info := &fieldInfo{
			coordinate: query.name + "." + name, name: name, output: once[returned],
			weight: introspectionWeight, scale: 1, argsFree: true,
		}
		repeating := *info
		repeating.output = one[returned]
		info.repeating = &repeating
		query.fields[name] = info
	}
}

// introspection returns the introspection types, with lists as long as size says. What is in a list is
// one of the types in lists, or one of the same types if these are nil.
func (b *builder) introspection(lists map[string]*outputType, size func(coordinate string) float64) map[string]*outputType {
	outputs := map[string]*outputType{}
	for name, def := range b.schema.Types {
		if def != nil && def.Kind == ast.Object && strings.HasPrefix(name, "__") {
			object := &objectType{name: name, fields: make(map[string]*fieldInfo, len(def.Fields)), conditions: map[string]bool{name: true}}
			outputs[name] = &outputType{name: name, objects: []*objectType{object}}
		}
	}
	if lists == nil {
		lists = outputs
	}
	list := introspectionLists(1)
	for _, name := range slices.Sorted(maps.Keys(outputs)) {
		for _, field := range b.schema.Types[name].Fields {
			if field.Type == nil {
				continue
			}
			info := &fieldInfo{
				coordinate: name + "." + field.Name, name: field.Name, output: outputs[field.Type.Name()],
				weight: introspectionFieldWeight, scale: 1, argsFree: true,
			}
			outputs[name].objects[0].fields[field.Name] = info
			if field.Type.Elem == nil {
				continue
			}
			info.depth, info.sizes = 1, &listSize{assumed: size(info.coordinate)}
			if info.output != nil {
				info.output = lists[field.Type.Name()]
				// Should there ever be more lists than bits, the last ones count as one.
				info.list = list
				list = max(list, list<<1)
			}
		}
	}
	return outputs
}

// introspectionLists is a set of lists of introspection objects, by their coordinates.
type introspectionLists uint32

// introspectionCalls says which lists of introspection objects are called, and which more than once.
type introspectionCalls struct{ once, repeated introspectionLists }

// plus adds calls beside these.
func (c introspectionCalls) plus(d introspectionCalls) introspectionCalls {
	return introspectionCalls{once: c.once | d.once, repeated: c.repeated | d.repeated | c.once&d.once}
}

// schemaLength is how long the lists of one coordinate of introspection are in a schema: the largest,
// and the mean over all objects that have one. Where these are types it is the mean over the types of
// all fields, of all arguments or of all input fields, if one is more: a type that many fields have is met often.
type schemaLength struct{ largest, mean float64 }

// lengthsOf measures the lists of introspection objects of a schema.
func lengthsOf(schema *ast.Schema) map[string]schemaLength {
	l := lengths{uses: map[string]typeUses{}, lists: map[string]*listLengths{}}
	for _, def := range schema.Types {
		for _, field := range def.Fields {
			if def.Kind == ast.InputObject {
				l.use(field.Type, usedByInput)
			} else {
				l.use(field.Type, usedByField)
			}
			for _, arg := range field.Arguments {
				l.use(arg.Type, usedByArgument)
			}
		}
	}
	for _, def := range schema.Types {
		fields, inputs := 0, 0
		for _, field := range def.Fields {
			switch {
			case def.Kind == ast.InputObject:
				inputs++
			case !strings.HasPrefix(field.Name, "__"):
				fields++
				l.add("__Field.args", len(field.Arguments), typeUses{})
			}
		}
		possible := 0
		if def.IsAbstractType() {
			possible = len(schema.GetPossibleTypes(def))
		}
		uses := l.uses[def.Name]
		l.add("__Type.fields", fields, uses)
		l.add("__Type.inputFields", inputs, uses)
		l.add("__Type.enumValues", len(def.EnumValues), uses)
		l.add("__Type.interfaces", len(def.Interfaces), uses)
		l.add("__Type.possibleTypes", possible, uses)
	}
	for _, directive := range schema.Directives {
		l.add("__Directive.args", len(directive.Arguments), typeUses{})
	}
	l.add("__Schema.types", len(schema.Types), typeUses{})
	l.add("__Schema.directives", len(schema.Directives), typeUses{})
	measured := make(map[string]schemaLength, len(l.lists))
	for coordinate, list := range l.lists {
		measured[coordinate] = list.measured()
	}
	return measured
}

// typeUses is how many fields, arguments and input fields have a type.
type typeUses [usedByInput + 1]int

const (
	usedByField = iota
	usedByArgument
	usedByInput
)

// lengths adds up the lengths of lists.
type lengths struct {
	uses  map[string]typeUses
	lists map[string]*listLengths
}

// listLengths adds up the lengths of the lists of one coordinate: over all that there are, and over the
// uses of the types that have them.
type listLengths struct {
	largest, count, total int
	uses, used            typeUses
}

func (l *lengths) use(typ *ast.Type, by int) {
	if typ != nil {
		uses := l.uses[typ.Name()]
		uses[by]++
		l.uses[typ.Name()] = uses
	}
}

func (l *lengths) add(coordinate string, length int, uses typeUses) {
	list := l.lists[coordinate]
	if list == nil {
		list = &listLengths{}
		l.lists[coordinate] = list
	}
	list.largest = max(list.largest, length)
	list.count++
	list.total += length
	for by, n := range uses {
		list.uses[by] += n
		list.used[by] += n * length
	}
}

func (l *listLengths) measured() schemaLength {
	mean := float64(l.total) / float64(l.count)
	for by, n := range l.uses {
		if n > 0 {
			mean = max(mean, float64(l.used[by])/float64(n))
		}
	}
	return schemaLength{largest: float64(l.largest), mean: mean}
}
