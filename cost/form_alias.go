package cost

import (
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
)

// A field that is selected on an object under several response names is called as often, and where it is a scalar that
// costs nothing but bytes. All of its calls but one pay for that. Which one does not is decided by the variables: of
// those that happen, the first.

// earlierCall is a field that is called in a set already, and under which condition.
type earlierCall struct{ set, condition int32 }

// mayRepeat says whether a selection may be one of several of a field. None is of one that has no alias anywhere. Where
// selections are summed nobody knows what stands beside them, and those with an alias pay, which are all but one at least.
func (c *compiler) mayRepeat(field *ast.Field) bool {
	if c.index.options.alias == 0 || !c.aliased[field.Name] {
		return false
	}
	return !c.form.summed || isAliased(field)
}

// isAliased says whether the response name of a field is not its name.
func isAliased(field *ast.Field) bool { return field.Alias != "" && field.Alias != field.Name }

// repeat finds the calls of further aliases among those of a set, the last ones from lo on, and drops what costs nothing
// even so. It returns the groups that are left.
func (c *compiler) repeat(lo int32, groups []group, object *objectType) []group {
	calls := c.form.calls[lo:]
	if c.form.document.shape.aliases == 0 || c.index.options.alias == 0 {
		return groups
	}
	// What reads the schema pays for each call already, and what reads the budget is free.
	meta := strings.HasPrefix(object.name, "__")
	// Only a set with an alias has several calls of a field, or one of a document that is not valid.
	several := slices.ContainsFunc(groups, func(g group) bool { return g.next != 0 || isAliased(g.members[0].field) })
	c.repeated++
	left := 0
	for i := range calls {
		cl, field := &calls[i], groups[i].members[0].field
		earlier := c.earlier[cl.info]
		switch {
		case !several || meta || cl.info.introspects || c.index.options.free[cl.info.coordinate]:
		case c.form.summed:
			if isAliased(field) {
				cl.further = cl.condition
			}
		case earlier.set == c.repeated:
			cl.further = c.both(cl.condition, earlier.condition)
			c.earlier[cl.info] = earlierCall{c.repeated, c.either([]int32{earlier.condition, cl.condition})}
		default:
			c.earlier = remember(c.earlier, cl.info, earlierCall{c.repeated, cl.condition})
		}
		tells := c.whole || object == c.form.rootType && cl.info != typenameField
		if !tells && cl.further == never && c.costsNothing(field, cl.info) {
			continue
		}
		calls[left], groups[left] = *cl, groups[i]
		left++
	}
	c.form.calls = c.form.calls[:int(lo)+left]
	return groups[:left]
}

// repeats says whether some field is called under several response names.
func (f *form) repeats() bool {
	if f.document.shape.aliases == 0 {
		return false
	}
	for i := range f.calls {
		if f.calls[i].further != never {
			return true
		}
	}
	return false
}

// alias is what a call pays for being one of a further alias.
func (r *reading) alias(c *call) float64 {
	if c.further == never || !r.m.holds[c.further] {
		return 0
	}
	return r.index.options.alias
}
