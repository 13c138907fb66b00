package cost

import (
	"math"

	"github.com/vektah/gqlparser/v2/ast"
)

// ownCost is what arguments cost: a constant, and the terms that depend on variables.
type ownCost struct {
	constant float64
	lo, hi   int32
}

// call prices one field call with its merged selections.
func (c *compiler) call(g group, inherit int32) (ref, error) {
	cl, err := c.prepare(g)
	if err != nil {
		return ref{}, err
	}
	if g.info.kind == constant {
		return c.finish(cl), nil
	}
	field := g.members[0].field
	unconditional(g.members)
	if g.info.kind == entities {
		return c.entityCall(cl, field, func(object *objectType) (ref, error) { return c.set(g.members, object, 0) })
	}
	if cl.n, cl.size, err = c.size(field, g.info, inherit); err != nil {
		return ref{}, err
	}
	if g.info.output != nil {
		below, err := c.inherited(field, g.info)
		if err != nil {
			return ref{}, err
		}
		if cl.child, err = c.value(g.members, g.info, below); err != nil {
			return ref{}, err
		}
	}
	return c.finishCall(cl, field)
}

// unconditional drops a condition that all members share: it is that of the call.
func unconditional(members []occurrence) {
	for _, member := range members[1:] {
		if member.condition != members[0].condition {
			return
		}
	}
	for i := range members {
		members[i].condition = always
	}
}

// prepare fills in everything of a call but the size and the child.
func (c *compiler) prepare(g group) (call, error) {
	info, field := g.info, g.members[0].field
	cl := call{
		info: info, key: g.key, condition: c.anyOf(g.members), size: -1, weight: info.leaf,
		child: fixed(pair{}), own: info.weight,
	}
	if info.output != nil {
		cl.weight = info.output.weight
	}
	own, err := c.arguments(field, info)
	if err != nil {
		return call{}, err
	}
	cl.own += own.constant
	cl.termsLo, cl.termsHi = own.lo, own.hi
	if len(c.e.directives) > 0 {
		if err := c.directives(&cl, g.members); err != nil {
			return call{}, err
		}
	}
	if info.sizes != nil && info.sizes.one {
		spec, err := c.spec(field, info)
		if err != nil {
			return call{}, err
		}
		cl.given, cl.lookupsLo, cl.lookupsHi = spec.given, spec.expr.lo, spec.expr.hi
		// A violation that is certain stays in the plan: whether the call happens at all may depend
		// on variables.
		cl.rule = spec.given != 1 || spec.expr.lo < spec.expr.hi
	}
	return cl, nil
}

// finish folds a call into a constant if nothing in it depends on variables, else makes it a node.
func (c *compiler) finish(cl call) ref {
	plain := cl.termsLo == cl.termsHi && cl.extrasLo == cl.extrasHi && !cl.rule && cl.child.isFixed()
	if plain && cl.size < 0 {
		price := priceCall(cl.own, cl.n, cl.weight, cl.child.constant)
		if cl.condition == always || price == (pair{}) {
			return fixed(price)
		}
	}
	if plain && cl.own <= 0 && cl.weight <= 0 && cl.child.constant == (pair{}) {
		return fixed(pair{})
	}
	c.plan.calls = append(c.plan.calls, cl)
	return ref{node: c.addNode(node{kind: nodeCall, lo: int32(len(c.plan.calls) - 1)})}
}

// arguments prices the arguments of a call, given and defaulted.
func (c *compiler) arguments(field *ast.Field, info *fieldInfo) (ownCost, error) {
	if info.argsFree {
		return ownCost{}, nil
	}
	key := inputKey{field, info}
	if own, ok := c.inputs[key]; ok {
		// The calls share the terms, but each evaluation adds them up for every call.
		return own, c.spend(int(own.hi - own.lo))
	}
	own, err := c.given(info.args, field.Arguments)
	if err != nil {
		return ownCost{}, err
	}
	c.inputs[key] = own
	return own, nil
}

func (c *compiler) given(declared []*inputField, arguments ast.ArgumentList) (ownCost, error) {
	if err := c.spend(scans(len(declared), len(arguments))); err != nil {
		return ownCost{}, err
	}
	own := ownCost{lo: int32(len(c.plan.terms))}
	for _, in := range declared {
		if in.free() {
			continue
		}
		var value *ast.Value
		if arg := arguments.ForName(in.name); arg != nil {
			value = arg.Value
		}
		constant, err := c.input(in, value, 0)
		if err != nil {
			return ownCost{}, err
		}
		own.constant += constant
	}
	own.hi = int32(len(c.plan.terms))
	return own, nil
}

// namesPerUnit is how many names are compared in the time that one selection takes.
const namesPerUnit = 8

// scans is the work of looking for names in a list that has no index.
func scans(names, list int) int { return names * list / namesPerUnit }

// input prices an argument or input field with the given value, nil if it is absent. Parts that
// depend on variables become terms.
func (c *compiler) input(in *inputField, value *ast.Value, depth int) (float64, error) {
	if value == nil {
		return in.absent, nil
	}
	if value.Kind == ast.Variable {
		slot := c.slot(value.Raw)
		c.plan.terms = append(c.plan.terms, term{slot: slot, weight: in.weight, absent: in.absent, inside: c.inside(slot, in.typ)})
		return 0, c.spend(1)
	}
	inner, err := c.literal(in.typ, value, depth)
	return in.weight + inner, err
}

// literal prices the input fields inside a literal.
func (c *compiler) literal(typ *inputType, value *ast.Value, depth int) (float64, error) {
	if typ == nil || len(typ.costly) == 0 || value == nil {
		return 0, nil
	}
	if depth > maxDepth {
		return 0, ErrTooDeep
	}
	if err := c.spend(1 + len(value.Children)); err != nil {
		return 0, err
	}
	total := 0.0
	switch value.Kind {
	case ast.Variable:
		// An element of a list has no weight of its own.
		slot := c.slot(value.Raw)
		c.plan.terms = append(c.plan.terms, term{slot: slot, inside: c.inside(slot, typ)})
	case ast.ListValue:
		for _, child := range value.Children {
			inner, err := c.literal(typ, child.Value, depth+1)
			if err != nil {
				return 0, err
			}
			total += inner
		}
	case ast.ObjectValue:
		if err := c.spend(scans(len(typ.costly), len(value.Children))); err != nil {
			return 0, err
		}
		for _, in := range typ.costly {
			inner, err := c.input(in, value.Children.ForName(in.name), depth+1)
			if err != nil {
				return 0, err
			}
			total += inner
		}
	}
	return total, nil
}

// directives adds the cost of the directives of the query, by the most expensive member.
func (c *compiler) directives(cl *call, members []occurrence) error {
	lo := int32(len(c.plan.extras))
	constant, settled := math.Inf(-1), true
	for _, member := range members {
		x := extra{condition: member.condition, lo: int32(len(c.plan.terms))}
		for _, directive := range member.field.Directives {
			if directive == nil || c.e.directives[directive.Name] == nil {
				continue
			}
			own, err := c.given(c.e.directives[directive.Name], directive.Arguments)
			if err != nil {
				return err
			}
			x.own += own.constant
		}
		x.hi = int32(len(c.plan.terms))
		settled = settled && x.lo == x.hi && (x.condition == members[0].condition || x.own == constant)
		constant = max(constant, x.own)
		c.plan.extras = append(c.plan.extras, x)
	}
	if settled {
		c.plan.extras = c.plan.extras[:lo]
		cl.own += constant
		return nil
	}
	cl.extrasLo, cl.extrasHi = lo, int32(len(c.plan.extras))
	return nil
}
