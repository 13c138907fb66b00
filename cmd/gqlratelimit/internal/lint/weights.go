package lint

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/gqlgen-ratelimit/ratelimit/bucket/doctor"
)

// definitions returns the types of the schema that come from files, in the order of their names.
func (l *linter) definitions() []*ast.Definition {
	var defs []*ast.Definition
	for _, name := range slices.Sorted(maps.Keys(l.schema.Types)) {
		if def := l.schema.Types[name]; def != nil && !def.BuiltIn && !strings.HasPrefix(name, "__") {
			defs = append(defs, def)
		}
	}
	return defs
}

// weights looks for @cost directives that change nothing.
func (l *linter) weights() {
	for _, def := range l.definitions() {
		switch def.Kind {
		case ast.Object:
			l.weight(def.Name, def.Directives, 1)
		case ast.Scalar, ast.Enum:
			l.weight(def.Name, def.Directives, 0)
			continue
		case ast.Interface, ast.Union:
			// cost.New refuses weights there.
			continue
		}
		for _, field := range def.Fields {
			coordinate := def.Name + "." + field.Name
			l.weight(coordinate, field.Directives, l.fallback(field.Type))
			l.argumentWeights(coordinate, field.Arguments)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(l.schema.Directives)) {
		l.argumentWeights("@"+name, l.schema.Directives[name].Arguments)
	}
}

func (l *linter) argumentWeights(owner string, arguments ast.ArgumentDefinitionList) {
	for _, arg := range arguments {
		l.weight(owner+"("+arg.Name+":)", arg.Directives, l.fallback(arg.Type))
	}
}

// fallback is the weight of a field, argument or input field without a directive.
func (l *linter) fallback(typ *ast.Type) float64 {
	def := l.schema.Types[typ.Name()]
	if def == nil || def.IsLeafType() {
		return 0
	}
	return 1
}

func (l *linter) weight(coordinate string, directives ast.DirectiveList, fallback float64) {
	directive := directives.ForName("cost")
	if directive == nil {
		return
	}
	if weight, ok := l.cfg.Weights[coordinate]; ok {
		l.add(doctor.Note, Overridden, coordinate, directive.Position,
			"the configuration gives the weight %s: remove @cost, or keep the weight in one place", number(weight))
		return
	}
	if weight, ok := weightOf(directive); ok && weight == fallback {
		l.add(doctor.Note, UselessWeight, coordinate, directive.Position, "the weight is %s without @cost, too", number(fallback))
	}
}

// weightOf returns the weight that a directive gives, if it is a number.
func weightOf(directive *ast.Directive) (float64, bool) {
	arg := directive.Arguments.ForName("weight")
	if arg == nil || arg.Value == nil {
		return 0, false
	}
	weight, err := strconv.ParseFloat(strings.TrimSpace(arg.Value.Raw), 64)
	return weight, err == nil
}

func number(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }
