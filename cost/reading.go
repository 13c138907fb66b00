package cost

import (
	"math"

	"github.com/vektah/gqlparser/v2/ast"
)

// reading is an outline with the variables of one request. It is not safe for concurrent use.
type reading struct {
	o         *Outline
	variables map[string]any
	holds     []bool
	// m reads values in variables, as many as the plan may.
	m machine
	// givens are what the arguments of fields and the directives of selections cost, owns both by call.
	givens  map[inputKey]ownPrice
	owns    map[*outlineCall]ownPrice
	insides map[insideKey]float64
	prices  map[valueKey]valuePrice
	shared  map[*outlineCall]shared
	// functions is what the functions of fields said.
	functions map[*outlineCall]functionPrice
}

// ownPrice is what the arguments of a call cost, in the order of their declaration, and those of its
// directives. The slices are shared.
type ownPrice struct {
	total                 float64
	arguments, directives []ArgumentCost
}

// insideKey is a variable that is read as a type.
type insideKey struct {
	name string
	typ  *inputType
}

// parentSizes is the size that a call gives to some lists in its value. The zero value gives none.
type parentSizes struct {
	sizes  *listSize
	source ListSource
}

// valueKey is a value and what its parent says about the lists in it.
type valueKey struct {
	value  int32
	parent parentSizes
}

// valuePrice is the maximum over the possible types, and which of them it is of.
type valuePrice struct {
	price pair
	// typ and field are indices of possible types, -1 if nothing has a price.
	typ, field int
}

func (o *Outline) read(variables map[string]any) *reading {
	r := &reading{o: o, variables: variables, holds: make([]bool, len(o.conditions))}
	r.m.left = o.plan.values
	decide(o.conditions, r.holds, func(slot int32) any {
		value, _ := r.variable(o.slots[slot])
		return value
	})
	return r
}

// variable returns the value of a variable, or its default, and whether it has one.
func (r *reading) variable(name string) (value any, present bool) {
	if value, present = r.variables[name]; !present {
		value, present = r.o.defaults[name]
	}
	return value, present
}

// own returns what the arguments of a call and its directives cost, together and one by one.
func (r *reading) own(c *outlineCall) ownPrice {
	if c.settled {
		return ownPrice{}
	}
	own, known := r.owns[c]
	if known {
		return own
	}
	field := c.members[0].field
	if !c.info.argsFree {
		key := inputKey{field, c.info}
		if own, known = r.givens[key]; !known {
			own = r.given(c.info.args, field.Arguments)
			r.givens = remember(r.givens, key, own)
		}
	}
	if dearest, ok := r.dearest(c); ok {
		own.total, own.directives = own.total+dearest.total, dearest.arguments
	}
	r.owns = remember(r.owns, c, own)
	return own
}

// dearest returns what the directives of the dearest of a call's selections cost, if any is included.
func (r *reading) dearest(c *outlineCall) (dearest ownPrice, ok bool) {
	if len(r.o.e.directives) == 0 {
		return ownPrice{}, false
	}
	for _, member := range c.members {
		if !r.holds[member.condition] {
			continue
		}
		if x := r.directives(member.field); !ok || x.total > dearest.total {
			dearest, ok = x, true
		}
	}
	return dearest, ok
}

// directives returns what the arguments of the directives of a selection cost, read once.
func (r *reading) directives(field *ast.Field) ownPrice {
	key := inputKey{field: field}
	total, known := r.givens[key]
	if known || len(field.Directives) == 0 {
		return total
	}
	for _, directive := range field.Directives {
		if directive == nil {
			continue
		}
		if declared := r.o.e.directives[directive.Name]; declared != nil {
			given := r.given(declared, directive.Arguments)
			total.total += given.total
			total.arguments = append(total.arguments, given.arguments...)
		}
	}
	r.givens = remember(r.givens, key, total)
	return total
}

func (r *reading) given(declared []*inputField, arguments ast.ArgumentList) ownPrice {
	var own ownPrice
	for _, in := range declared {
		if in.free() {
			continue
		}
		var value *ast.Value
		if arg := arguments.ForName(in.name); arg != nil {
			value = arg.Value
		}
		if price := r.input(in, value, 0); price != 0 {
			own.total += price
			own.arguments = append(own.arguments, ArgumentCost{Coordinate: in.coordinate, Cost: finite(price)})
		}
	}
	return own
}

// input prices an argument or input field with the given value, nil if it is absent.
func (r *reading) input(in *inputField, value *ast.Value, depth int) float64 {
	switch {
	case value == nil:
		return in.absent
	case value.Kind != ast.Variable:
		return in.weight + r.literal(in.typ, value, depth)
	}
	if _, present := r.variable(value.Raw); !present {
		return in.absent
	}
	return in.weight + r.inside(in.typ, value.Raw)
}

// literal prices the input fields inside a literal.
func (r *reading) literal(typ *inputType, value *ast.Value, depth int) float64 {
	if typ == nil || len(typ.costly) == 0 || value == nil || depth > maxDepth {
		return 0
	}
	total := 0.0
	switch value.Kind {
	case ast.Variable:
		total = r.inside(typ, value.Raw)
	case ast.ListValue:
		for _, child := range value.Children {
			total += r.literal(typ, child.Value, depth+1)
		}
	case ast.ObjectValue:
		for _, in := range typ.costly {
			total += r.input(in, value.Children.ForName(in.name), depth+1)
		}
	}
	return total
}

// inside prices the input fields inside a variable, once.
func (r *reading) inside(typ *inputType, name string) float64 {
	if typ == nil || len(typ.costly) == 0 {
		return 0
	}
	key := insideKey{name, typ}
	price, known := r.insides[key]
	if !known {
		value, _ := r.variable(name)
		price = r.m.value(typ, value, 0)
		r.insides = remember(r.insides, key, price)
	}
	return price
}

// field is the field cost of one call without its elements.
func (r *reading) field(c *outlineCall) float64 { return max(0, c.info.weight+r.own(c).total) }

// weight is what one element of a call's value weighs.
func (c *outlineCall) weight() float64 {
	if c.info.output != nil {
		return c.info.output.weight
	}
	return c.info.leaf
}

// elements is the type cost of the n elements of a call, with what is below them.
func (c *outlineCall) elements(n float64, child pair) float64 {
	if c.info.kind == constant {
		return 0
	}
	return max(0, times(n, c.weight()+child.typ))
}

// call prices one call, given what its parent says about lists.
func (r *reading) call(c *outlineCall, parent parentSizes) pair {
	if !r.holds[c.condition] || c.info == typenameField {
		return pair{}
	}
	price := pair{field: r.field(c)}
	if c.info.kind == entities {
		shares := r.shares(c).shares
		for i := range shares {
			price = price.plus(shares[i].price())
		}
		return price
	}
	n := r.size(c, parent).Size
	child := r.below(c).price
	price = price.plus(pair{c.elements(n, child), times(n, child.field)})
	if c.info.complexity != nil {
		return r.function(c).of(price, r.extra(c))
	}
	return price
}

// function asks the function of a call's field, once.
func (r *reading) function(c *outlineCall) functionPrice {
	price, known := r.functions[c]
	if known {
		return price
	}
	arguments := c.members[0].field.Arguments
	for _, arg := range arguments {
		r.readArgument(arg.Value, 0)
	}
	if r.m.left < 0 {
		price = functionPrice{field: math.Inf(1), typ: math.Inf(1)}
	} else {
		price = c.info.complexity.price(arguments, r.variables, c.weight(), r.below(c).price)
	}
	r.functions = remember(r.functions, c, price)
	return price
}

// readArgument counts what a function is given.
func (r *reading) readArgument(value *ast.Value, depth int) {
	if value == nil || depth > maxDepth {
		return
	}
	r.m.visit(1)
	if value.Kind == ast.Variable {
		given, _ := r.variable(value.Raw)
		r.m.visitAll(given, 0)
	}
	for _, child := range value.Children {
		r.readArgument(child.Value, depth+1)
	}
}

// extra is the field cost of a call's arguments and directives.
func (r *reading) extra(c *outlineCall) float64 { return max(0, r.own(c).total) }

// below prices what is selected below a call.
func (r *reading) below(c *outlineCall) valuePrice {
	if c.value < 0 {
		return valuePrice{typ: -1, field: -1}
	}
	return r.value(valueKey{c.value, r.gives(c)})
}

func (r *reading) value(key valueKey) valuePrice {
	if price, ok := r.prices[key]; ok {
		return price
	}
	v := &r.o.values[key.value]
	highest := valuePrice{typ: -1, field: -1}
	for i := range v.output.objects {
		price := r.set(r.o.sets[int(v.lo)+i], key.parent)
		if price.typ > highest.price.typ {
			highest.price.typ, highest.typ = price.typ, i
		}
		if price.field > highest.price.field {
			highest.price.field, highest.field = price.field, i
		}
	}
	r.prices = remember(r.prices, key, highest)
	return highest
}

// remember puts a value into a map that is made when it is first needed: reading a response rarely
// needs one.
func remember[K comparable, V any](known map[K]V, key K, value V) map[K]V {
	if known == nil {
		known = make(map[K]V)
	}
	known[key] = value
	return known
}

func (r *reading) set(set span, parent parentSizes) pair {
	var total pair
	for i := set.lo; i < set.hi; i++ {
		total = total.plus(r.call(&r.o.calls[i], parent))
	}
	return total
}
