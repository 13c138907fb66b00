package cost_test

import (
	"slices"
	"strconv"

	"github.com/vektah/gqlparser/v2/ast"
)

// oracle prices by executing: it collects fields for one assignment of the variables as the GraphQL
// specification says, without plans, memory or conditions. It knows only what the generated
// documents need.
type oracle struct {
	schema    *ast.Schema
	doc       *ast.QueryDocument
	variables map[string]any
}

func (o *oracle) included(directives ast.DirectiveList) bool {
	for _, d := range directives {
		if o.variables[d.Arguments[0].Value.Raw].(bool) != (d.Name == "include") {
			return false
		}
	}
	return true
}

func (o *oracle) collect(object *ast.Definition, set ast.SelectionSet, seen map[string]bool, into map[string][]*ast.Field) {
	applies := func(condition string) bool {
		return condition == "" || slices.Contains(o.schema.GetPossibleTypes(o.schema.Types[condition]), object)
	}
	for _, s := range set {
		switch s := s.(type) {
		case *ast.Field:
			if o.included(s.Directives) && s.Name != "__typename" {
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
	for _, fields := range into {
		def := object.Fields.ForName(fields[0].Name)
		args := argumentMap(def, fields[0], o.variables)
		n, below := 1.0, -1.0
		switch def.Name {
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
		var children []ast.SelectionSet
		for _, f := range fields {
			children = append(children, f.SelectionSet)
		}
		var childTyp, childField, weight float64
		if returned := o.schema.Types[def.Type.Name()]; returned.IsCompositeType() {
			weight = 1
			for _, possible := range o.schema.GetPossibleTypes(returned) {
				t, f := o.price(possible, children, below)
				childTyp, childField = max(childTyp, t), max(childField, f)
			}
		}
		own := weight
		if cost := def.Directives.ForName("cost"); cost != nil {
			own, _ = strconv.ParseFloat(cost.Arguments[0].Value.Raw, 64)
		}
		if def.Name == "paged" && fields[0].Arguments.ForName("page") != nil {
			own++
		}
		typ += n * (weight + childTyp)
		field += own + n*childField
	}
	return typ, field
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
