package cost_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
	"pgregory.net/rapid"
)

// Of generated schemas: weights are multiples of a quarter, so that sums of them are exact.
var generatedWeights = []string{"-3", "-1", "-0.75", "0", "0.25", "1", "2.5", "7"}

// generatedSize is the default size under which generated schemas are priced.
const generatedSize = 2

// typeText is a composite type of a generated schema.
type typeText struct {
	kind, name string
	// interfaces are those of an object, members those of a union.
	interfaces, members []string
	fields              []*fieldText
}

// fieldText is a field of a generated schema.
type fieldText struct {
	name, typ string
	// lists is how many lists are nested around the type.
	lists int
	// arguments declares them, without the parentheses.
	arguments string
	// defaulted says that the argument first has a default.
	defaulted bool
	// plain says that the field has no list size, so that those of parents can lead through it.
	plain bool
}

// schemaDraw draws a schema of objects, interfaces, a union, input objects with defaults, and a
// directive with weighted arguments. Fields of different types have different names, but for those of
// an interface.
type schemaDraw struct {
	t     *rapid.T
	types []*typeText
}

func drawSchema(t *rapid.T) string {
	d := schemaDraw{t: t}
	d.types = []*typeText{{kind: "type", name: "Query"}, {kind: "interface", name: "X"}, {kind: "interface", name: "Y"}}
	// Each interface has an object.
	d.types = append(d.types,
		&typeText{kind: "type", name: "A", interfaces: d.some([]string{"X", "Y"}, 1)},
		&typeText{kind: "type", name: "B", interfaces: d.some([]string{"X", "Y"}, 0)},
		&typeText{kind: "type", name: "C", interfaces: d.some([]string{"Y", "X"}, 1)},
		&typeText{kind: "type", name: "P"},
	)
	d.types = append(d.types, &typeText{kind: "union", name: "U", members: d.some([]string{"A", "B", "C"}, 1)})
	for _, typ := range d.types {
		if typ.kind != "union" {
			d.fields(typ)
		}
	}
	for _, typ := range d.types {
		for _, name := range typ.interfaces {
			typ.fields = append(typ.fields, d.named(name).fields...)
		}
	}
	return d.String()
}

func (d *schemaDraw) pick(label string, from ...string) string {
	return rapid.SampledFrom(from).Draw(d.t, label)
}

func (d *schemaDraw) chance(label string, of int) bool {
	return rapid.IntRange(0, of-1).Draw(d.t, label) == of-1
}

// some returns a subset with at least so many elements.
func (d *schemaDraw) some(from []string, least int) []string {
	subset := slices.Clone(from[:least])
	for _, name := range from[least:] {
		if d.chance("in", 2) {
			subset = append(subset, name)
		}
	}
	return subset
}

func (d *schemaDraw) named(name string) *typeText {
	at := slices.IndexFunc(d.types, func(t *typeText) bool { return t.name == name })
	if at < 0 {
		return nil
	}
	return d.types[at]
}

func (d *schemaDraw) fields(typ *typeText) {
	for i := range rapid.IntRange(2, 4).Draw(d.t, "fields") {
		f := &fieldText{
			name:  fmt.Sprintf("%s%d", strings.ToLower(typ.name), i),
			typ:   d.pick("type", "S", "Int", "A", "B", "C", "X", "Y", "U", "P"),
			lists: rapid.SampledFrom([]int{0, 0, 1, 1, 2}).Draw(d.t, "lists"),
		}
		f.defaulted = d.chance("default", 3)
		first := "first: Int"
		if f.defaulted {
			first += " = 3"
		}
		f.arguments = first + d.weight() + d.valueWeight() + ", last: Int, ids: [Int]" + d.valueWeight() + ", in: In" +
			d.pick("default", "", " = {}", ` = {q: 1, list: [{}, {n: {q: 2}}]}`) + d.weight()
		// Only one object of an object type can be led through.
		f.plain = f.typ == "P" && f.lists == 0 && typ.kind == "type"
		typ.fields = append(typ.fields, f)
	}
}

// valueWeight gives weights to some of the values that operations and variables have.
func (d *schemaDraw) valueWeight() string {
	if !d.chance("values weighted", 3) {
		return ""
	}
	return fmt.Sprintf(` @costWhen(value: "2", weight: %q) @costWhen(value: "1", weight: %q)`, d.pick("of 2", generatedWeights...), d.pick("of 1", generatedWeights...))
}

func (d *schemaDraw) weight() string {
	if !d.chance("weighted", 3) {
		return ""
	}
	return fmt.Sprintf(` @cost(weight: %q)`, d.pick("weight", generatedWeights...))
}

// lists are the names of the fields that return lists.
func (*schemaDraw) lists(fields []*fieldText) []string {
	var names []string
	for _, f := range fields {
		if f.lists > 0 {
			names = append(names, f.name)
		}
	}
	return names
}

// size sizes the list of a field, or lists of what it returns.
func (d *schemaDraw) size(f *fieldText) string {
	var sized []string
	if returned := d.named(f.typ); returned != nil {
		fields := returned.fields
		for _, member := range returned.members {
			fields = append(slices.Clone(fields), d.named(member).fields...)
		}
		for _, below := range fields {
			if below.plain {
				if inner := d.lists(d.named("P").fields); len(inner) > 0 {
					sized = append(sized, fmt.Sprintf("\"%s { %s }\"", below.name, strings.Join(d.some(inner, 1), " ")))
				}
			}
			if below.lists > 0 && !slices.Contains(sized, fmt.Sprintf("%q", below.name)) {
				sized = append(sized, fmt.Sprintf("%q", below.name))
			}
		}
	}
	if f.plain || f.lists == 0 && len(sized) == 0 {
		return ""
	}
	var parts []string
	if len(sized) > 0 && (f.lists == 0 || d.chance("sizes below", 3)) {
		parts = append(parts, "sizedFields: ["+strings.Join(d.some(sized, 1), ", ")+"]")
	}
	assumed := fmt.Sprintf("assumedSize: %d", rapid.IntRange(0, 3).Draw(d.t, "assumed"))
	switch d.pick("size", "none", "assumed", "first", "both", "path", "length", "first or assumed") {
	case "none":
		return ""
	case "assumed":
		parts = append(parts, assumed)
	case "first":
		parts = append(parts, `slicingArguments: ["first"]`)
	case "both":
		parts = append(parts, `slicingArguments: ["last", "first"]`)
	case "path":
		parts = append(parts, `slicingArguments: ["in.q"]`)
	case "length":
		parts = append(parts, `slicingArguments: ["ids"]`)
	case "first or assumed":
		parts = append(parts, `slicingArguments: ["first"]`)
		parts = append(parts, assumed)
	}
	return " @listSize(requireOneSlicingArgument: false, " + strings.Join(parts, ", ") + ")"
}

func (d *schemaDraw) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "scalar S%s\n", d.weight())
	fmt.Fprintf(&b, "directive @d(w: Int%s, v: In = {}%s) repeatable on FIELD\n", d.weight(), d.weight())
	fmt.Fprintf(&b, "input In { q: Int%s%s%s n: In%s list: [In]%s deep: Deep = {}%s }\n", d.pick("default", "", " = 1", " = null"), d.weight(), d.valueWeight(), d.weight(), d.weight(), d.weight())
	fmt.Fprintf(&b, "input Deep { x: Int = 3%s y: Int%s%s }\n", d.weight(), d.weight(), d.valueWeight())
	for _, typ := range d.types {
		fmt.Fprintf(&b, "%s %s", typ.kind, typ.name)
		switch {
		case typ.kind == "union":
			fmt.Fprintf(&b, " = %s\n", strings.Join(typ.members, " | "))
			continue
		case len(typ.interfaces) > 0:
			b.WriteString(" implements " + strings.Join(typ.interfaces, " & "))
		}
		switch {
		case typ.name == "P":
			// A size does not lead through what lowers the price.
			b.WriteString(d.pick("weight of P", "", ` @cost(weight: "0")`, ` @cost(weight: "2.5")`))
		case typ.kind == "type":
			b.WriteString(d.weight())
		}
		b.WriteString(" {\n")
		for _, f := range typ.fields {
			returned := strings.Repeat("[", f.lists) + f.typ + strings.Repeat("]", f.lists)
			arguments := f.arguments
			fmt.Fprintf(&b, "  %s(%s): %s", f.name, arguments, returned)
			if typ.kind == "type" {
				b.WriteString(d.weight())
			}
			b.WriteString(d.size(f))
			b.WriteString("\n")
		}
		b.WriteString("}\n")
	}
	return b.String()
}

// operationDraw draws an operation over a schema. A response name always stands for one field with the
// same arguments, so that what has it can be merged.
type operationDraw struct {
	t      *rapid.T
	schema *ast.Schema
	// typed selects __typename in every set.
	typed     bool
	fragments []fragmentText
	names     map[string]string
}

// drawOperation draws an operation, and variables for it. It says whether all objects tell their type.
func drawOperation(t *rapid.T, schema *ast.Schema) (operation document, variables map[string]any, typed bool) {
	d := operationDraw{t: t, schema: schema, typed: rapid.Bool().Draw(t, "typed"), names: map[string]string{}}
	composite := []string{"Query", "A", "B", "C", "X", "Y", "U", "P"}
	for range rapid.IntRange(0, 3).Draw(t, "fragments") {
		on := rapid.SampledFrom(composite).Draw(t, "on")
		d.fragments = append(d.fragments, fragmentText{on, d.set(on, 2)})
	}
	set := d.set("Query", 3)
	variables = map[string]any{"x": rapid.Bool().Draw(t, "x"), "y": rapid.Bool().Draw(t, "y")}
	for _, name := range []string{"n", "m"} {
		switch rapid.IntRange(0, 5).Draw(t, name+" given") {
		case 0:
		case 1:
			variables[name] = nil
		default:
			variables[name] = rapid.Int64Range(-1, 3).Draw(t, name)
		}
	}
	if rapid.Bool().Draw(t, "in given") {
		variables["in"] = map[string]any{"q": int64(2), "list": []any{map[string]any{"n": map[string]any{}}, map[string]any{"q": nil}}}
	}
	return document{header: generatedHeader, set: set, fragments: d.fragments}, variables, d.typed
}

const generatedHeader = "query ($x: Boolean!, $y: Boolean!, $n: Int, $m: Int, $in: In) "

func (d *operationDraw) set(on string, depth int) []selection {
	set := []selection{}
	if d.typed {
		set = append(set, selection{head: "__typename"})
	}
	def := d.schema.Types[on]
	for range rapid.IntRange(1, 3).Draw(d.t, "selections") {
		where := rapid.SampledFrom(wheres).Draw(d.t, "where")
		kind := rapid.IntRange(0, 9).Draw(d.t, "kind")
		if len(def.Fields) == 0 {
			kind = min(kind, 2)
		}
		switch {
		case kind <= 1 && depth > 0:
			if condition := rapid.SampledFrom([]string{on, "A", "B", "C", "X", "Y", "U"}).Draw(d.t, "condition"); d.overlap(on, condition) {
				set = append(set, selection{"... on " + condition, where, d.set(condition, depth-1)})
			}
		case kind == 2 && len(d.fragments) > 0:
			if i := rapid.IntRange(0, len(d.fragments)-1).Draw(d.t, "spread"); d.overlap(on, d.fragments[i].on) {
				set = append(set, selection{head: fmt.Sprintf("...F%d", i), where: where})
			}
		case kind > 2:
			set = d.field(set, def, where, depth)
		}
	}
	if len(set) == 0 {
		set = append(set, selection{head: "__typename"})
	}
	return set
}

func (d *operationDraw) overlap(a, b string) bool {
	for _, object := range d.schema.GetPossibleTypes(d.schema.Types[a]) {
		if slices.Contains(d.schema.GetPossibleTypes(d.schema.Types[b]), object) {
			return true
		}
	}
	return false
}

func (d *operationDraw) field(set []selection, def *ast.Definition, where string, depth int) []selection {
	// gqlparser gives the query type its meta-fields.
	fields := slices.DeleteFunc(slices.Clone(def.Fields), func(f *ast.FieldDefinition) bool { return strings.HasPrefix(f.Name, "__") })
	field := rapid.SampledFrom(fields).Draw(d.t, "field")
	call := field.Name + rapid.SampledFrom([]string{
		"", "", "(first: $n)", "(first: 2, last: $m)", "(first: null)", "(first: 3, in: {q: $n, n: {q: 1}})",
		"(in: $in, ids: [1, 2])", "(ids: [$n], in: {list: [{q: 1}, {n: $in, deep: {y: $m}}]})", "(first: -1, in: null)",
	}).Draw(d.t, "arguments")
	if d.names[call] == "" {
		d.names[call] = fmt.Sprintf("r%d", len(d.names))
	}
	where += rapid.SampledFrom([]string{"", "", "", " @d(w: 1)", " @d(w: $n) @d", " @d(v: {q: 1, list: [$in]})"}).Draw(d.t, "directive")
	s := selection{head: d.names[call] + ": " + call, where: where}
	if d.schema.Types[field.Type.Name()].IsCompositeType() {
		if depth == 0 {
			return set
		}
		s.below = d.set(field.Type.Name(), depth-1)
	}
	return append(set, s)
}
