package cost_test

import (
	"math"
	"slices"
	"strconv"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/gqlgen-ratelimit/ratelimit/cost"
)

// oracle prices by executing: it collects fields for one assignment of the variables as the GraphQL
// specification says, without plans, memory or conditions. It knows only what the generated
// documents need.
type oracle struct {
	schema    *ast.Schema
	doc       *ast.QueryDocument
	variables map[string]any
	// weights are those of the configuration.
	weights map[string]float64
	// nodes lets the type cost count the elements of lists of objects and nothing else.
	nodes bool
	// functions are those of Config.Complexity, for fields whose list is sized.
	functions map[string]cost.ComplexityFunc
}

func (o *oracle) included(directives ast.DirectiveList) bool {
	for _, d := range directives {
		if d.Name != "skip" && d.Name != "include" {
			continue
		}
		if o.variables[d.Arguments[0].Value.Raw].(bool) != (d.Name == "include") {
			return false
		}
	}
	return true
}

func (o *oracle) weight(coordinate string, directives ast.DirectiveList, fallback float64) float64 {
	if w, ok := o.weights[coordinate]; ok {
		return w
	}
	if d := directives.ForName("cost"); d != nil {
		fallback, _ = strconv.ParseFloat(d.Arguments[0].Value.Raw, 64)
	}
	return fallback
}

// own returns what a call costs itself.
func (o *oracle) own(object *ast.Definition, def *ast.FieldDefinition, field *ast.Field) float64 {
	fallback := 0.0
	if o.schema.Types[def.Type.Name()].IsCompositeType() {
		fallback = 1
	}
	own := o.weight(object.Name+"."+def.Name, def.Directives, fallback)
	if def.Name == "paged" && field.Arguments.ForName("page") != nil {
		own++
	}
	return max(0, own)
}

func (o *oracle) collect(object *ast.Definition, set ast.SelectionSet, seen map[string]bool, into map[string][]*ast.Field) {
	applies := func(condition string) bool {
		return condition == "" || slices.Contains(o.schema.GetPossibleTypes(o.schema.Types[condition]), object)
	}
	for _, s := range set {
		switch s := s.(type) {
		case *ast.Field:
			if o.included(s.Directives) {
				into[s.Alias] = append(into[s.Alias], s)
			}
		case *ast.InlineFragment:
			if o.included(s.Directives) && applies(s.TypeCondition) {
				o.collect(object, s.SelectionSet, seen, into)
			}
		case *ast.FragmentSpread:
			if o.included(s.Directives) && !seen[s.Name] {
				seen[s.Name] = true
				if f := o.doc.Fragments.ForName(s.Name); applies(f.TypeCondition) {
					o.collect(object, f.SelectionSet, seen, into)
				}
			}
		}
	}
}

// price returns type and field cost of selection sets on an object; sized is the size that the
// parent gives to its field edges, negative for none.
func (o *oracle) price(object *ast.Definition, sets []ast.SelectionSet, sized float64) (typ, field float64) {
	into, seen := map[string][]*ast.Field{}, map[string]bool{}
	for _, set := range sets {
		o.collect(object, set, seen, into)
	}
	if !o.nodes {
		field += o.furtherAliases(into)
	}
	for _, fields := range into {
		if fields[0].Name == "__typename" {
			continue
		}
		def := object.Fields.ForName(fields[0].Name)
		args := argumentMap(def, fields[0], o.variables)
		n, below := sizes(def.Name, args, sized)
		var children []ast.SelectionSet
		for _, f := range fields {
			children = append(children, f.SelectionSet)
		}
		var childTyp, childField, weight float64
		if returned := o.schema.Types[def.Type.Name()]; returned.IsCompositeType() {
			weight = math.Inf(-1)
			for _, possible := range o.schema.GetPossibleTypes(returned) {
				weight = max(weight, o.weight(possible.Name, possible.Directives, 1))
				t, f := o.price(possible, children, below)
				childTyp, childField = max(childTyp, t), max(childField, f)
			}
		}
		if o.nodes && def.Type.Elem == nil {
			weight = 0
		}
		typ += max(0, n*(weight+childTyp))
		answer := -1
		if function := o.functions[object.Name+"."+def.Name]; function != nil && def.Directives.ForName("cost") == nil {
			answer, _ = function(int(math.Ceil(childField)), args)
		}
		if answer < 0 {
			field += o.own(object, def, fields[0]) + n*childField
			continue
		}
		field += float64(answer)
		if def.Name == "paged" && fields[0].Arguments.ForName("page") != nil {
			field++
		}
	}
	return typ, field
}

// furtherAliases is what the calls of an object pay for all response names of each field but one.
func (o *oracle) furtherAliases(into map[string][]*ast.Field) (price float64) {
	names := map[string]int{}
	for _, fields := range into {
		if names[fields[0].Name]++; names[fields[0].Name] > 1 {
			price += aliasWeight
		}
	}
	return price
}

// sizes returns how long the list of a field may be, 1 if it is none, and the size that it gives to the
// field edges below, negative for none.
func sizes(field string, args map[string]any, sized float64) (n, below float64) {
	n, below = 1.0, -1.0
	switch field {
	case "items":
		n = sizeGiven(20, args["first"], args["last"])
	case "paged":
		page, _ := args["page"].(map[string]any)
		n = sizeGiven(10, page["first"])
	case "users", "posts", "rel", "def":
		n = sizeGiven(10, args["first"])
	case "conn":
		below = sizeGiven(-1, args["first"])
	case "edges":
		if n = 10; sized >= 0 {
			n = sized
		}
	}
	return n, below
}

func argumentMap(def *ast.FieldDefinition, field *ast.Field, variables map[string]any) map[string]any {
	called := *field
	called.Definition = def
	return called.ArgumentMap(variables)
}

func sizeGiven(fallback float64, values ...any) float64 {
	largest, given := 0.0, false
	for _, value := range values {
		if n, ok := value.(int64); ok {
			largest, given = max(largest, float64(n)), true
		}
	}
	if !given {
		return fallback
	}
	return largest
}
