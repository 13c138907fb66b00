package cost

import "github.com/vektah/gqlparser/v2/ast"

// call appends one field call with its merged selections; what is selected below it is compiled later.
func (c *compiler) call(key string, info *fieldInfo, members []occurrence) (err error) {
	c.form.calls = append(c.form.calls, call{key: key, info: info, condition: c.anyOf(members), further: never, value: -1, slicing: -1, special: -1})
	cl, field := &c.form.calls[len(c.form.calls)-1], members[0].field
	if !info.argsFree {
		if cl.own, err = c.ownArguments(field, info); err != nil {
			return err
		}
	}
	if len(c.index.directives) > 0 {
		if cl.directives, err = c.directives(members); err != nil {
			return err
		}
	}
	if info.sizes != nil {
		if cl.slicing, err = c.slicing(field, info); err != nil {
			return err
		}
	}
	switch {
	case info.kind == entities:
		cl.special, err = c.representations(field)
	case info.complexity != nil:
		cl.special, err = c.function(field, cl.condition)
	}
	return err
}

// ownArguments prices the arguments of a call, given and defaulted. Calls of one selection share the rows.
func (c *compiler) ownArguments(field *ast.Field, info *fieldInfo) (ownCost, error) {
	key := inputKey{field, info}
	if own, ok := c.owns[key]; ok {
		// Each evaluation adds the terms up for every call.
		return own, c.spend(int(own.terms.hi - own.terms.lo))
	}
	own := c.nothing()
	if err := c.given(&own, info.args, field.Arguments); err != nil {
		return ownCost{}, err
	}
	c.owns = remember(c.owns, key, own)
	return own, nil
}

// nothing is the cost of no arguments, at the end of the tables.
func (c *compiler) nothing() ownCost {
	terms, args := int32(len(c.form.terms)), int32(len(c.form.arguments))
	return ownCost{terms: span{terms, terms}, args: span{args, args}}
}

// given adds what the declared arguments cost that are given, or have a default.
func (c *compiler) given(own *ownCost, declared []*inputField, arguments ast.ArgumentList) error {
	if err := c.spend(scans(len(declared), len(arguments))); err != nil {
		return err
	}
	for _, in := range declared {
		if in.free() {
			continue
		}
		var given *ast.Value
		if arg := arguments.ForName(in.name); arg != nil {
			given = arg.Value
		}
		lo := own.terms.hi
		price, err := c.input(in, given, 0)
		if err != nil {
			return err
		}
		own.constant += price
		own.terms.hi = int32(len(c.form.terms))
		if price != 0 || lo < own.terms.hi {
			c.form.arguments = append(c.form.arguments, argument{declared: in, constant: price, terms: span{lo, own.terms.hi}})
			own.args.hi++
		}
	}
	return nil
}

// namesPerUnit is how many names are compared in the time that one selection takes.
const namesPerUnit = 8

// scans is the work of looking for names in a list that has no index.
func scans(names, list int) int { return names * list / namesPerUnit }

// input prices an argument or input field with the given value, nil if it is absent. Parts that
// depend on variables become terms.
func (c *compiler) input(in *inputField, given *ast.Value, depth int) (float64, error) {
	if given == nil {
		return in.absent, nil
	}
	if given.Kind == ast.Variable {
		slot := c.slot(given.Raw)
		t := term{slot: slot, weight: in.weight, values: in.values, absent: in.absent, inside: c.inside(slot, in.typ)}
		if c.required[given.Raw] {
			t.absent = in.least
		}
		c.form.terms = append(c.form.terms, t)
		return 0, c.spend(1)
	}
	inner, err := c.literal(in.typ, given, depth)
	if err != nil {
		return 0, err
	}
	weight, err := c.weigh(in, given, depth)
	return weight + inner, err
}

// weigh returns the weight of an argument or input field with a literal. Elements that depend on variables become
// terms.
func (c *compiler) weigh(in *inputField, given *ast.Value, depth int) (float64, error) {
	switch {
	case in.values == nil:
		return in.weight, nil
	case depth > maxDepth:
		return 0, ErrTooDeep
	case given == nil:
		return in.values.other, nil
	case given.Kind == ast.Variable:
		// An element that is absent is null.
		c.form.terms = append(c.form.terms, term{slot: c.slot(given.Raw), weight: in.weight, values: in.values, absent: in.values.other, inside: -1})
		return 0, c.spend(1)
	case given.Kind != ast.ListValue:
		return in.values.of(literalValue(given, 0)), c.spend(1)
	}
	total := 0.0
	for _, child := range given.Children {
		weight, err := c.weigh(in, child.Value, depth+1)
		if err != nil {
			return 0, err
		}
		total += weight
	}
	return total, c.spend(1)
}

// literal prices the input fields inside a literal.
func (c *compiler) literal(typ *inputType, given *ast.Value, depth int) (float64, error) {
	if typ == nil || len(typ.costly) == 0 || given == nil {
		return 0, nil
	}
	if depth > maxDepth {
		return 0, ErrTooDeep
	}
	if err := c.spend(1 + len(given.Children)); err != nil {
		return 0, err
	}
	total := 0.0
	switch given.Kind {
	case ast.Variable:
		// An element of a list has no weight of its own.
		slot := c.slot(given.Raw)
		c.form.terms = append(c.form.terms, term{slot: slot, inside: c.inside(slot, typ)})
	case ast.ListValue:
		for _, child := range given.Children {
			inner, err := c.literal(typ, child.Value, depth+1)
			if err != nil {
				return 0, err
			}
			total += inner
		}
	case ast.ObjectValue:
		if err := c.spend(scans(len(typ.costly), len(given.Children))); err != nil {
			return 0, err
		}
		for _, in := range typ.costly {
			inner, err := c.input(in, given.Children.ForName(in.name), depth+1)
			if err != nil {
				return 0, err
			}
			total += inner
		}
	}
	return total, nil
}

// inside returns the index of what the fields in the variable cost, -1 if they cost nothing.
func (c *compiler) inside(slot int32, typ *inputType) int32 {
	if typ == nil || len(typ.costly) == 0 {
		return -1
	}
	key := inside{slot, typ}
	return row(&c.insides, &c.form.insides, key, key)
}

// directives prices the directives of each of the merged selections, if any of them has one with a price.
func (c *compiler) directives(members []occurrence) (span, error) {
	lo := int32(len(c.form.directives))
	priced := false
	for _, member := range members {
		cost := directiveCost{condition: member.condition, own: c.nothing()}
		for _, directive := range member.field.Directives {
			if directive == nil || c.index.directives[directive.Name] == nil {
				continue
			}
			priced = true
			if err := c.given(&cost.own, c.index.directives[directive.Name], directive.Arguments); err != nil {
				return span{}, err
			}
		}
		c.form.directives = append(c.form.directives, cost)
	}
	if !priced {
		c.form.directives = c.form.directives[:lo]
		return span{}, nil
	}
	return span{lo, int32(len(c.form.directives))}, nil
}

// representations reads the argument of _entities, which is a variable in all but hand-written queries.
func (c *compiler) representations(field *ast.Field) (int32, error) {
	r := representations{whole: -1}
	if arg := field.Arguments.ForName("representations"); arg != nil && arg.Value != nil {
		switch arg.Value.Kind {
		case ast.Variable:
			r.whole = c.slot(arg.Value.Raw)
		case ast.ListValue:
			if err := c.spend(len(arg.Value.Children)); err != nil {
				return -1, err
			}
			for _, child := range arg.Value.Children {
				c.representation(&r, child.Value)
			}
		default:
			// Input coercion makes a list of a single value.
			c.representation(&r, arg.Value)
		}
	}
	return push(&c.form.representations, r), nil
}

// typenamePath leads from a representation to the name of its type.
var typenamePath = []step{{name: "__typename"}}

func (c *compiler) representation(r *representations, given *ast.Value) {
	name := ""
	if given != nil && given.Kind == ast.Variable {
		r.found = remember(r.found, len(r.names), lookup{slot: c.slot(given.Raw), steps: typenamePath})
	} else if given != nil && given.Kind == ast.ObjectValue {
		if typename := given.Children.ForName("__typename"); typename != nil && typename.Kind == ast.Variable {
			r.found = remember(r.found, len(r.names), lookup{slot: c.slot(typename.Raw)})
		} else if typename != nil {
			name = typename.Raw
		}
	}
	r.names = append(r.names, name)
}

// function is what a form knows of a call whose field has a function.
type function struct {
	// condition says whether the call really happens.
	condition int32
	arguments ast.ArgumentList
	// values is how many values the arguments consist of, slots are the variables in them.
	values int
	slots  []int32
}

func (c *compiler) function(field *ast.Field, condition int32) (int32, error) {
	f := function{condition: condition, arguments: field.Arguments}
	for _, arg := range field.Arguments {
		c.readArgument(&f, arg.Value, 0)
	}
	return push(&c.form.functions, f), c.spend(1 + f.values)
}

// readArgument counts the values of an argument and notes its variables.
func (c *compiler) readArgument(f *function, given *ast.Value, depth int) {
	if given == nil || depth > maxDepth {
		return
	}
	f.values++
	if given.Kind == ast.Variable {
		f.slots = append(f.slots, c.slot(given.Raw))
	}
	for _, child := range given.Children {
		c.readArgument(f, child.Value, depth+1)
	}
}

// happen finds the conditions under which calls with functions really happen, going down from the root:
// a set stands after those below it.
func (c *compiler) happen() error {
	f := c.form
	if len(f.functions) == 0 {
		return nil
	}
	if err := c.spend(len(f.calls) + len(f.includes)); err != nil {
		return err
	}
	reached := make([][]int32, len(f.sets))
	reached[f.root] = []int32{always}
	for i := len(f.sets) - 1; i > 0; i-- {
		if len(reached[i]) == 0 {
			continue
		}
		condition := c.either(reached[i])
		reached[i] = nil
		s := &f.sets[i]
		for _, below := range f.includes[s.includes.lo:s.includes.hi] {
			reached[below.set] = append(reached[below.set], c.both(condition, below.condition))
		}
		for j := s.calls.lo; j < s.calls.hi; j++ {
			cl := &f.calls[j]
			happens := c.both(condition, cl.condition)
			if cl.info.complexity != nil {
				f.functions[cl.special].condition = happens
			}
			if cl.value < 0 {
				continue
			}
			classes := f.values[cl.value].classes
			for _, below := range f.classes[classes.lo:classes.hi] {
				reached[below.set] = append(reached[below.set], happens)
			}
		}
	}
	return nil
}
