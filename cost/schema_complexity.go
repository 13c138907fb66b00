package cost

import (
	"math"

	"github.com/vektah/gqlparser/v2/ast"
)

// ComplexityFunc prices the calls of one field, in the form of gqlgen's complexity functions. It is
// given what is selected below the call on one element, and the arguments: those of the query with the
// values of variables, and the defaults of the schema. It returns ok = false if it cannot read the
// arguments, and the call then costs +Inf.
//
// It must be safe for concurrent use, must not keep or change the arguments, and must not return less
// for more below it; otherwise the price of an operation that is too large to be merged may be below
// the merged price. The price is an upper bound only if the function is.
type ComplexityFunc func(childComplexity int, arguments map[string]any) (complexity int, ok bool)

// maxChildComplexity is the largest cost that a function is asked about. Above it the call costs +Inf,
// because what a function multiplies it with may have 32 bits, and the product must not wrap.
const maxChildComplexity = math.MaxInt32

// complexity is the function of a field.
type complexity struct {
	function ComplexityFunc
	declared ast.ArgumentDefinitionList
	// sizes says that nothing else sizes the list of the field.
	sizes bool
}

// functionPrice is what a function says about a call.
type functionPrice struct {
	// field is its field cost, typ its type cost, which is negative if the function does not decide it.
	field, typ float64
	// none says that the function returned a negative number, which is no price.
	none bool
}

// price asks the function. weight is that of one element and child what is selected on it. A function
// that panics prices the call at +Inf.
func (x *complexity) price(given ast.ArgumentList, variables map[string]any, weight float64, child pair) (price functionPrice) {
	defer func() {
		if recover() != nil {
			price = functionPrice{field: math.Inf(1), typ: math.Inf(1)}
		}
	}()
	// gqlgen reads arguments with this method too.
	field := ast.Field{Arguments: given, Definition: &ast.FieldDefinition{Arguments: x.declared}}
	arguments := field.ArgumentMap(variables)
	price = functionPrice{field: x.ask(child.field, arguments), typ: -1}
	price.none = price.field < 0
	if price.none || !x.sizes {
		return price
	}
	switch whole := x.ask(child.field+max(0, weight+child.typ), arguments); {
	case math.IsInf(whole, 1):
		price.typ = whole
	case whole >= 0:
		price.typ = max(0, whole-price.field)
	}
	return price
}

func (x *complexity) ask(child float64, arguments map[string]any) float64 {
	child = roundUp(child)
	if child > maxChildComplexity {
		return math.Inf(1)
	}
	answer, ok := x.function(int(child), arguments)
	if !ok {
		return math.Inf(1)
	}
	return float64(answer)
}

// buildComplexity gives the fields their functions. A weight beats a function, and the fields with
// prices of their own keep them.
func (b *builder) buildComplexity(def *ast.Definition, field *ast.FieldDefinition, info *fieldInfo) {
	function, ok := b.cfg.Complexity[info.coordinate]
	if !ok {
		return
	}
	b.used["complexity "+info.coordinate] = true
	if function == nil {
		b.fail(info.coordinate, "the function in Config.Complexity is nil")
	}
	_, weighted := b.cfg.Weights[info.coordinate]
	isRoot := b.schema.Query != nil && def.Name == b.schema.Query.Name
	meta := isRoot && (field.Name == "_service" || field.Name == "_entities")
	if weighted || meta || field.Directives.ForName("cost") != nil {
		return
	}
	info.complexity = &complexity{function: function, declared: field.Arguments}
}

// with returns what the function decides of the price of a call whose arguments cost so much, and 1 for each
// component that it does not decide.
func (f functionPrice) with(own float64) (price, ordinary pair) {
	switch {
	case f.none:
		return pair{}, pair{1, 1}
	case f.typ < 0:
		return pair{field: f.field + own}, pair{typ: 1}
	default:
		return pair{f.typ, f.field + own}, pair{}
	}
}
