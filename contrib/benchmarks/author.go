package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
)

// author writes the document of a genome. What it writes is valid but for what a gene marks as wrong, and for
// fields that happen to conflict.
type author struct {
	schema *ast.Schema
	// composites are the types that fragments are on.
	composites []*ast.Definition
	genome     *genome
	// most is how many bytes are written.
	most int
	// written is how many were, and serial how many names were given.
	written, serial int
	// at is the fragment that is written, and its number in its chain; fragments of an operation start with -1.
	at, number int
	text       *definitionText
}

// definitionText is the text of an operation or a fragment.
type definitionText struct {
	strings.Builder

	spreads, variables map[string]bool
}

func newAuthor(schema *ast.Schema, d *genome, most int) *author {
	a := &author{schema: schema, genome: d, most: most}
	for _, name := range slices.Sorted(maps.Keys(schema.Types)) {
		if t := schema.Types[name]; t.IsCompositeType() {
			a.composites = append(a.composites, t)
		}
	}
	return a
}

// document returns the text, with the fragments that its operations reach.
func (a *author) document() string {
	var operations []*definitionText
	for _, g := range a.genome.Operations {
		for range max(1, g.Times) {
			a.at, a.number = -1, 0
			operations = append(operations, a.define(g, a.schema.Query))
		}
	}
	fragments := map[string]*definitionText{}
	for i, g := range a.genome.Fragments {
		for k := range max(1, g.Times) {
			a.at, a.number = i, k
			fragments[fragmentName(i, k)] = a.define(g, a.typeOf(i))
		}
	}
	var b strings.Builder
	used := map[string]bool{}
	for i, operation := range operations {
		reached := reach(operation, fragments)
		variables := maps.Clone(operation.variables)
		for name := range reached {
			used[name] = true
			maps.Copy(variables, fragments[name].variables)
		}
		fmt.Fprintf(&b, "query q%d%s%s ", i, declared(variables), operation.String())
	}
	for _, name := range slices.Sorted(maps.Keys(used)) {
		fmt.Fprintf(&b, "fragment %s on %s%s ", name, a.typeOf(indexOf(name)).Name, fragments[name].String())
	}
	return b.String()
}

// reach returns the fragments that a definition spreads, and those that these spread.
func reach(from *definitionText, fragments map[string]*definitionText) map[string]bool {
	reached := map[string]bool{}
	for next := []*definitionText{from}; len(next) > 0; next = next[1:] {
		for name := range next[0].spreads {
			if !reached[name] {
				reached[name] = true
				next = append(next, fragments[name])
			}
		}
	}
	return reached
}

func declared(variables map[string]bool) string {
	if len(variables) == 0 {
		return ""
	}
	return "(" + strings.Join(slices.Sorted(maps.Keys(variables)), ":Int ") + ":Int)"
}

func fragmentName(i, k int) string { return fmt.Sprintf("f%d_%d", i, k) }

// indexOf returns the gene of a fragment.
func indexOf(name string) (i int) {
	// The name was made by fragmentName.
	_, _ = fmt.Sscanf(name, "f%d_", &i)
	return i
}

func (a *author) typeOf(fragment int) *ast.Definition {
	return a.composites[a.genome.Fragments[fragment].Pick%len(a.composites)]
}

func (a *author) define(g *gene, on *ast.Definition) *definitionText {
	a.text = &definitionText{spreads: map[string]bool{}, variables: map[string]bool{}}
	a.set(g.In, on)
	return a.text
}

func (a *author) write(s string) {
	a.written += len(s)
	a.text.WriteString(s)
}

// set writes a selection set.
func (a *author) set(genes []*gene, on *ast.Definition) {
	a.write("{")
	before := a.text.Len()
	for _, g := range genes {
		for range max(1, g.Times) {
			if a.written > a.most {
				break
			}
			a.selection(g, on)
		}
	}
	if a.text.Len() == before {
		a.write("__typename")
	}
	a.write("}")
}

func (a *author) selection(g *gene, on *ast.Definition) {
	switch {
	case g.has(spread):
		if choices := a.spreads(on); len(choices) > 0 {
			name := choices[g.Pick%len(choices)]
			a.text.spreads[name] = true
			a.write("..." + name + " ")
		}
	case g.has(inline):
		choices := slices.DeleteFunc(slices.Clone(a.composites), func(t *ast.Definition) bool { return !a.possible(on, t) })
		to := choices[g.Pick%len(choices)]
		a.write("...on " + to.Name)
		a.directive(g)
		a.set(g.In, to)
	default:
		a.field(g, on, g.Deep)
	}
}

// spreads returns the fragments that may be spread on a type here without a cycle: those behind.
func (a *author) spreads(on *ast.Definition) []string {
	var names []string
	if a.at >= 0 && a.number+1 < a.genome.Fragments[a.at].Times && a.possible(on, a.typeOf(a.at)) {
		names = append(names, fragmentName(a.at, a.number+1))
	}
	for i := a.at + 1; i < len(a.genome.Fragments); i++ {
		if a.possible(on, a.typeOf(i)) {
			names = append(names, fragmentName(i, 0))
		}
	}
	return names
}

// possible says whether something can be of both types.
func (a *author) possible(x, y *ast.Definition) bool {
	of := a.schema.GetPossibleTypes(y)
	return slices.ContainsFunc(a.schema.GetPossibleTypes(x), func(t *ast.Definition) bool { return slices.Contains(of, t) })
}

func (a *author) directive(g *gene) {
	if g.has(directed) {
		a.write("@include(if:true)")
	}
}

// field writes a field, and in it the same again.
func (a *author) field(g *gene, on *ast.Definition, deep int) {
	if a.written > a.most || len(on.Fields) == 0 {
		return
	}
	if g.has(renamed) {
		a.serial++
		a.write(fmt.Sprintf("x%d:", a.serial))
	}
	if g.has(wrong) {
		a.write(strings.Repeat("w", 1+g.Long) + " ")
		return
	}
	f := on.Fields[g.Pick%len(on.Fields)]
	a.write(f.Name)
	if g.has(argued) && len(f.Arguments) > 0 {
		argument := f.Arguments[(g.Pick/2)%len(f.Arguments)]
		v := g
		if len(g.In) > 0 {
			v = g.In[len(g.In)-1]
		}
		a.write("(" + argument.Name + ":")
		a.value(v, argument.Type, v.Deep)
		a.write(")")
	} else if required := f.Arguments.ForName("name"); required != nil {
		a.write(`(name:"A")`)
	}
	a.directive(g)
	to := a.schema.Types[f.Type.Name()]
	switch {
	case !to.IsCompositeType():
		a.write(" ")
	case deep > 0 && len(to.Fields) > 0:
		a.write("{")
		before := a.text.Len()
		a.field(g, to, deep-1)
		if a.text.Len() == before {
			a.write("__typename")
		}
		a.write("}")
	default:
		a.set(g.In, to)
	}
}

// value writes a value of a type.
func (a *author) value(g *gene, of *ast.Type, deep int) {
	switch named := a.schema.Types[of.Name()]; {
	case a.written > a.most:
		a.write("null")
	case g.has(wrong) && g.has(directed):
		a.write(strings.Repeat("[", 1+deep) + strings.Repeat("]", 1+deep))
	case g.has(wrong):
		a.write(`"` + strings.Repeat("w", g.Long) + `"`)
	case of.Elem != nil:
		a.write("[")
		for range max(1, g.Times) {
			a.value(g, of.Elem, deep)
		}
		a.write("]")
	case named.Kind == ast.InputObject:
		a.object(g, named, deep)
	case named.Kind == ast.Enum:
		a.write(named.EnumValues[0].Name + " ")
	case of.Name() == "Int" && g.has(variable):
		a.serial++
		name := fmt.Sprintf("$v%d", a.serial)
		a.text.variables[name] = true
		a.write(name + " ")
	case of.Name() == "Int":
		a.write("1 ")
	case of.Name() == "Boolean":
		a.write("true ")
	default:
		a.write(`"` + strings.Repeat("s", g.Long) + `"`)
	}
}

// object writes an input object, with others in it.
func (a *author) object(g *gene, of *ast.Definition, deep int) {
	f := of.Fields[g.Pick%len(of.Fields)]
	a.write("{")
	// The last one ends the nesting.
	if nested := a.schema.Types[f.Type.Name()].Kind == ast.InputObject; !nested || deep > 0 {
		a.write(f.Name + ":")
		a.value(g, f.Type, deep-1)
	}
	a.write("}")
}
