package cost

import (
	"slices"
	"strconv"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
)

// weight returns what the configuration says about the coordinate, else its @cost directive, else
// the fallback.
func (b *builder) weight(coordinate string, directives ast.DirectiveList, fallback float64) float64 {
	if w, ok := b.cfg.Weights[coordinate]; ok {
		first := !b.used[coordinate]
		b.used[coordinate] = true
		if validWeight(w) {
			return w
		}
		if first {
			b.fail(coordinate, "weight %v in Config.Weights is not a number between -2^53 and 2^53", w)
		}
		return fallback
	}
	directive := directives.ForName("cost")
	if directive == nil {
		return fallback
	}
	first := !b.used["@cost "+coordinate]
	b.used["@cost "+coordinate] = true
	w, reason := directiveWeight(directives, directive)
	if reason != "" {
		// Scalars are asked for at each field that returns them, and reported once.
		if first {
			b.fail(coordinate, "%s", reason)
		}
		return fallback
	}
	return w
}

// refuseWeight reports a weight where none may be.
func (b *builder) refuseWeight(coordinate string, directives ast.DirectiveList, reason string) {
	_, configured := b.cfg.Weights[coordinate]
	if configured {
		b.used[coordinate] = true
	}
	if configured || directives.ForName("cost") != nil {
		b.fail(coordinate, "%s", reason)
	}
}

// directiveWeight reads the weight of a @cost directive.
func directiveWeight(directives ast.DirectiveList, directive *ast.Directive) (weight float64, reason string) {
	if len(directives.ForNames("cost")) > 1 {
		return 0, "@cost is given more than once"
	}
	return weightArgument("cost", directive)
}

// weightArgument reads the weight of a directive of the name, declared as String, Int or Float.
func weightArgument(name string, directive *ast.Directive) (weight float64, reason string) {
	arg := directive.Arguments.ForName("weight")
	if arg == nil || arg.Value == nil {
		return 0, "@" + name + " has no weight"
	}
	switch arg.Value.Kind {
	case ast.IntValue, ast.FloatValue, ast.StringValue, ast.BlockValue:
	default:
		return 0, "weight " + arg.Value.String() + " of @" + name + " is not a number"
	}
	raw := strings.TrimSpace(arg.Value.Raw)
	// ParseFloat also reads Inf, NaN and hexadecimal numbers, which no other server does.
	if strings.Trim(raw, "0123456789+-.eE") != "" {
		return 0, "weight " + strconv.Quote(raw) + " of @" + name + " is not a finite decimal number"
	}
	w, err := strconv.ParseFloat(raw, 64)
	if err != nil || !validWeight(w) {
		return 0, "weight " + strconv.Quote(raw) + " of @" + name + " is not a number between -2^53 and 2^53"
	}
	return w, ""
}

// buildDirectives keeps the directives whose arguments can cost something: those of queries in the index.
func (b *builder) buildDirectives() {
	for name, def := range b.schema.Directives {
		if def == nil {
			continue
		}
		free := true
		var args []*inputField
		for _, arg := range def.Arguments {
			in := b.inputField("@"+name+"("+arg.Name+":)", arg.Name, arg.Type, arg.DefaultValue, arg.Directives)
			args = append(args, in)
			free = free && in.free()
		}
		if free {
			continue
		}
		if slices.Contains(def.Locations, ast.LocationFieldDefinition) {
			b.applied[name] = args
		}
		if slices.Contains(def.Locations, ast.LocationField) {
			b.directives[name] = args
		}
	}
}

// appliedCost is what the directives cost that the schema applies to a field, by their arguments.
func (b *builder) appliedCost(directives ast.DirectiveList) float64 {
	total := 0.0
	for _, directive := range directives {
		for _, in := range b.applied[directive.Name] {
			if arg := directive.Arguments.ForName(in.name); arg != nil {
				total += b.priceGiven(in, arg.Value)
			} else {
				total += in.absent
			}
		}
	}
	return total
}
