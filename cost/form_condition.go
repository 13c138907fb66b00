package cost

import (
	"slices"

	"github.com/vektah/gqlparser/v2/ast"
)

// Indices of conditions that need no evaluation.
const (
	never  int32 = -1
	always int32 = 0
)

// condition is a gate of the circuit that decides which selections are included. Fragments that are
// spread several times under different conditions are reached under their disjunction, so the
// circuit grows with the document and not with the number of ways through it.
type condition struct {
	op conditionOp
	// a and b are the operands of conditionAnd; a is the variable of conditionVariable.
	a, b int32
	// want is the value of the variable that includes.
	want bool
	// any are the operands of conditionOr.
	any []int32
}

type conditionOp uint8

const (
	conditionAlways conditionOp = iota
	conditionVariable
	conditionAnd
	conditionOr
)

type conditionKey struct {
	op   conditionOp
	a, b int32
	want bool
}

// included returns the condition under which a selection with the directives is included, given
// that of its surroundings.
func (c *compiler) included(outer int32, directives ast.DirectiveList) int32 {
	for _, directive := range directives {
		if outer == never {
			return never
		}
		if directive == nil || directive.Name != "skip" && directive.Name != "include" {
			continue
		}
		want := directive.Name == "include"
		arg := directive.Arguments.ForName("if")
		// A directive without a usable value can only come from a document that was not validated.
		// Pricing the selection is the safe reading.
		if arg == nil || arg.Value == nil {
			continue
		}
		switch arg.Value.Kind {
		case ast.BooleanValue:
			if (arg.Value.Raw == "true") != want {
				return never
			}
		case ast.Variable:
			literal := c.condition(conditionKey{op: conditionVariable, a: c.slot(arg.Value.Raw), want: want})
			outer = c.both(outer, literal)
		}
	}
	return outer
}

func (c *compiler) condition(key conditionKey) int32 {
	return row(&c.conditionIDs, &c.form.conditions, key, condition{op: key.op, a: key.a, b: key.b, want: key.want})
}

func (c *compiler) both(a, b int32) int32 {
	switch {
	case a == never || b == never:
		return never
	case a == always || a == b:
		return b
	case b == always:
		return a
	}
	return c.condition(conditionKey{op: conditionAnd, a: min(a, b), b: max(a, b)})
}

// either returns the disjunction. It sorts the given slice.
func (c *compiler) either(ids []int32) int32 {
	slices.Sort(ids)
	ids = slices.Compact(ids)
	if len(ids) > 0 && ids[0] == never {
		ids = ids[1:]
	}
	switch {
	case len(ids) == 0:
		return never
	case ids[0] == always || len(ids) == 1:
		return ids[0]
	}
	// Equal disjunctions have to be one, or sets of selections that are equal would be compiled again.
	return row(&c.disjunctions, &c.form.conditions, spelled(ids), condition{op: conditionOr, any: slices.Clone(ids)})
}

// anyOf returns the condition under which one of the members is included.
func (c *compiler) anyOf(members []occurrence) int32 {
	if len(members) == 1 {
		return members[0].condition
	}
	conditions := make([]int32, len(members))
	for i, member := range members {
		conditions[i] = member.condition
	}
	return c.either(conditions)
}

// decide writes which conditions hold into holds, given the values of the variables by their slots.
func decide(conditions []condition, holds []bool, value func(slot int32) any) {
	for i := range conditions {
		g := &conditions[i]
		switch g.op {
		case conditionVariable:
			is, ok := value(g.a).(bool)
			// What is no Boolean fails before execution; pricing the selection is the safe reading.
			holds[i] = !ok || is == g.want
		case conditionAnd:
			holds[i] = holds[g.a] && holds[g.b]
		case conditionOr:
			holds[i] = slices.ContainsFunc(g.any, func(id int32) bool { return holds[id] })
		default:
			holds[i] = true
		}
	}
}
