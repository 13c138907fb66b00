package cost

import (
	"math"
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/gqlgen-ratelimit/ratelimit/internal/coerce"
)

// rootCall is a call on the root type as the document makes it.
type rootCall struct {
	info      *fieldInfo
	condition int32
	// given are the arguments of the document.
	given ast.ArgumentList
}

// rootCalls are the calls on the root type, as execution merges them.
type rootCalls struct {
	calls []rootCall
	// conditions are those of the form, nil if no call depends on one.
	conditions []condition
	// values is how many values the arguments consist of.
	values int
}

// keepRoots keeps the calls that groups on the root type come to. The conditions of their members are not merged yet.
//
// It is no work to be counted: each argument is counted where it is priced.
func (c *compiler) keepRoots(groups []group) {
	c.roots.calls = slices.Grow(c.roots.calls, len(groups))
	for i := range groups {
		g := &groups[i]
		if g.info == typenameField {
			continue
		}
		given := g.members[0].field.Arguments
		for _, arg := range given {
			c.roots.values += valuesIn(arg.Value, 0)
		}
		c.roots.calls = append(c.roots.calls, rootCall{info: g.info, condition: c.anyOf(g.members), given: given})
	}
}

// settleRoots returns the calls that were kept. Where selections are summed they are found now.
func (c *compiler) settleRoots() (rootCalls, error) {
	if c.form.summed {
		lo, err := c.collect(nil, c.form.rootType)
		if err != nil {
			return rootCalls{}, err
		}
		c.keepRoots(c.collector.groups[lo:])
		c.release(lo)
	}
	for i := range c.roots.calls {
		if c.roots.calls[i].condition != always {
			c.roots.conditions = c.form.conditions
			break
		}
	}
	return c.roots, nil
}

// Calls are the calls that an operation makes on its root type with the variables of one request: one for each response
// name, whatever it costs, without __typename. Two aliases are two calls; what @skip and @include leave out is none.
// The zero value has none.
//
// What stands in them is found out when it is asked for: a request that nobody asks about costs nothing, and one without
// conditions at its root needs no memory of its own. They read no more values than [Config.MaxValues] in all. They are
// not safe for concurrent use, and read the variables that they were made with.
type Calls struct {
	plan      *Plan
	variables map[string]any
	// happen are the places of the calls, once known if they depend on conditions.
	happen []int
	known  bool
	// left is how many values may still be read; it is negative when there were too many.
	left int
}

// Calls returns the calls on the root type with the given variables, which are coerced as for [Plan.Evaluate].
func (p *Plan) Calls(variables map[string]any) Calls {
	return Calls{plan: p, variables: variables, left: p.maxValues}
}

// Len returns how many calls there are.
func (c *Calls) Len() int {
	switch {
	case c.plan == nil:
		return 0
	case c.plan.roots.conditions == nil:
		return len(c.plan.roots.calls)
	}
	if !c.known {
		c.decide()
	}
	return len(c.happen)
}

// decide finds out which calls happen.
func (c *Calls) decide() {
	roots := &c.plan.roots
	holds := make([]bool, len(roots.conditions))
	decide(roots.conditions, holds, func(slot int32) any {
		v := &c.plan.variables[slot]
		if value, present := c.variables[v.name]; present || !v.defaults {
			return value
		}
		return v.fallback
	})
	for i := range roots.calls {
		if holds[roots.calls[i].condition] {
			c.happen = append(c.happen, i)
		}
	}
	c.known = true
}

func (c *Calls) at(i int) *rootCall {
	if c.Len() > 0 && c.plan.roots.conditions != nil {
		i = c.happen[i]
	}
	return &c.plan.roots.calls[i]
}

// Field returns the coordinate of the field that a call calls, such as Mutation.login. The calls are numbered from 0 to
// Len-1.
func (c *Calls) Field(i int) string { return c.at(i).info.coordinate }

// Values yields the values that a call is given at a path into its arguments, such as input.email. A path leads through
// lists: each of their elements is asked. A list at its end yields each of its elements. What is absent has its default;
// what has none, or is null, and a path that leads nowhere yield nil. A value of a built-in scalar is yielded as gqlgen reads
// it for a resolver, also within an input object: an int64 for Int, a float64 for Float, a string for String and ID. Other
// values are as variables carry them, which means json.Number for the numbers of a document and text for its enums. Values
// must not be changed.
//
// It stops where yield returns false. It returns false if the operation has more values than it may read. A number counts as
// one more for every 64 bytes in which it is written.
func (c *Calls) Values(i int, path string, yield func(value any) bool) bool {
	going := true
	reader := coerce.Reader{Types: c.plan.types, Scalar: c.scalar, Visit: c.visit}
	c.find(i, path, func(in *inputField, value any) bool {
		going = going && c.elements(value, 0, func(element any) bool {
			if in != nil {
				element = reader.Named(in.declared, element)
			}
			return c.left >= 0 && yield(element)
		})
		return going
	})
	return c.left >= 0
}

// scalar reads a value of a scalar. It counts the digits of a number, since hundreds of calls may have one of a million.
func (c *Calls) scalar(name string, value any) any {
	if name == "Int" || name == "Float" {
		if spelled, ok := coerce.Spelled(value); ok && !c.visit(len(spelled)/maxDigits) {
			return nil
		}
	}
	return coerce.Scalar(name, value)
}

// Size returns what a call asks for at a path into its arguments, such as origins: the length of a list, also of one in a
// scalar, or a number. A list of lists counts what stands in these, and each of them as one at least.
// Behind a list in the path all that its elements ask for is added up. What is absent without a default or null, or no
// number, is 1, and what is below 0 is 0. A single value for a list is a list of one. It is infinite if the operation has
// more values than may be read.
func (c *Calls) Size(i int, path string) float64 {
	total := 0.0
	c.find(i, path, func(in *inputField, value any) bool {
		total += c.amountOf(in, value)
		return true
	})
	if c.left < 0 {
		return math.Inf(1)
	}
	return total
}

// amountOf is what one value asks for.
func (c *Calls) amountOf(in *inputField, value any) float64 {
	if value == nil {
		return 1
	}
	values, isList := listOf(value)
	switch number, ok := numberOf(value); {
	case isList && c.holdsNoLists(in):
		return float64(values.len())
	case isList:
		return c.lengthOf(values, 0)
	case in != nil && in.declared.Elem != nil || !ok:
		return 1
	case math.IsNaN(number):
		return math.Inf(1)
	default:
		return max(0, number)
	}
}

// holdsNoLists reports whether the elements of a list are declared to be no lists, and no scalar that may be one.
func (c *Calls) holdsNoLists(in *inputField) bool {
	if in == nil || in.declared.Elem == nil || in.declared.Elem.Elem != nil {
		return false
	}
	def := c.plan.types[in.declared.Name()]
	return def != nil && (def.Kind != ast.Scalar || def.BuiltIn)
}

// lengthOf is the length of a list, or what stands in the lists in it if that is more. It is infinite if that is more than may
// be read.
func (c *Calls) lengthOf(values list, depth int) float64 {
	if depth > maxDepth || !c.visit(values.len()) {
		return math.Inf(1)
	}
	total := 0.0
	for i := range values.len() {
		if inner, isList := listOf(values.at(i)); isList {
			total += c.lengthOf(inner, depth+1)
		} else {
			total++
		}
	}
	return max(total, float64(values.len()))
}

// visit counts values that are read.
func (c *Calls) visit(n int) bool {
	if c.left >= 0 {
		c.left -= n
	}
	return c.left >= 0
}

// find tells the values at a path, with what declares them: nil where the path leads nowhere.
func (c *Calls) find(i int, path string, tell func(in *inputField, value any) bool) {
	call := c.at(i)
	name, rest, _ := strings.Cut(path, ".")
	for _, in := range call.info.args {
		if in.name != name {
			continue
		}
		var literal *ast.Value
		if arg := call.given.ForName(name); arg != nil {
			literal = arg.Value
		}
		c.follow(in, c.given(in, literal), rest, 0, tell)
		return
	}
	tell(nil, nil)
}

// given returns the value of an argument as variables carry it: what the document gives, or the default.
func (c *Calls) given(in *inputField, literal *ast.Value) any {
	if literal != nil && literal.Kind == ast.Variable {
		value, present := c.variable(literal)
		if !present {
			return in.value
		}
		return value
	}
	if literal == nil {
		return in.value
	}
	return c.literal(literal, 0)
}

// variable returns the value of a variable, and whether it has one.
func (c *Calls) variable(literal *ast.Value) (any, bool) {
	value, present := c.variables[literal.Raw]
	if def := literal.VariableDefinition; !present && def != nil && def.DefaultValue != nil {
		// Coerced variables have their defaults already.
		return c.literal(def.DefaultValue, 0), true
	}
	return value, present
}

// literal turns a literal into what a variable would carry, with the variables in it.
func (c *Calls) literal(value *ast.Value, depth int) any {
	if value == nil || depth > maxDepth || !c.visit(1) {
		return nil
	}
	switch value.Kind {
	case ast.Variable:
		given, _ := c.variable(value)
		return given
	case ast.ListValue:
		list := make([]any, 0, len(value.Children))
		for _, child := range value.Children {
			list = append(list, c.literal(child.Value, depth+1))
		}
		return list
	case ast.ObjectValue:
		object := make(map[string]any, len(value.Children))
		for _, child := range value.Children {
			if child.Value != nil && child.Value.Kind == ast.Variable {
				// An input field that is given by an absent variable is absent.
				if given, present := c.variable(child.Value); present {
					object[child.Name] = given
				}
				continue
			}
			object[child.Name] = c.literal(child.Value, depth+1)
		}
		return object
	default:
		return literalValue(value, depth)
	}
}

// follow walks a path into a value, through lists.
func (c *Calls) follow(in *inputField, value any, path string, depth int, tell func(in *inputField, value any) bool) bool {
	if path == "" {
		return tell(in, value)
	}
	if depth > maxDepth || !c.visit(1) {
		return false
	}
	if object, ok := value.(map[string]any); ok {
		name, rest, _ := strings.Cut(path, ".")
		// A scalar may be an object too, of which nothing is declared.
		var field *inputField
		if in != nil && in.typ != nil {
			field = in.typ.byName[name]
		}
		inner, present := object[name]
		if !present && field != nil {
			inner = field.value
		}
		return c.follow(field, inner, rest, depth+1, tell)
	}
	values, ok := listOf(value)
	if !ok {
		return tell(nil, nil)
	}
	for i := range values.len() {
		if !c.follow(in, values.at(i), path, depth+1, tell) {
			return false
		}
	}
	return true
}

// elements yields the elements of a list, those of lists in it as well, and other values as they are.
func (c *Calls) elements(value any, depth int, yield func(value any) bool) bool {
	if depth > maxDepth || !c.visit(1) {
		return false
	}
	values, isList := list{}, false
	switch value.(type) {
	case nil, string, bool, map[string]any:
	default:
		values, isList = listOf(value)
	}
	if !isList {
		return yield(value)
	}
	for i := range values.len() {
		if !c.elements(values.at(i), depth+1, yield) {
			return false
		}
	}
	return true
}
