package cost

import (
	"slices"

	"github.com/vektah/gqlparser/v2/ast"
)

// Summing is how an operation is priced that is too large to merge: each selection set of the
// document and each object type once, every selection for itself. Calls that execution would merge
// are paid several times, and negative weights of types count as nothing, so that the sum is never
// below the merged price.
//
// What a selection set costs under sizes that its parent gives is linear in the size. It is
// therefore compiled as two parts, the rest and what is multiplied, and not again for each size.

// sumPart says which part of a selection set is meant.
type sumPart uint8

const (
	// sumWhole is everything, with no size from the parent.
	sumWhole sumPart = iota
	// sumRest is everything but the elements of the lists that the parent sizes.
	sumRest
	// sumElement is one element of each list that the parent sizes.
	sumElement
)

// sumKey addresses the sum of a selection set: that of a field, of a fragment, or of the operation.
type sumKey struct {
	field    *ast.Field
	fragment *fragment
	object   *objectType
	sizes    *listSize
	part     sumPart
}

func (c *compiler) sum(key sumKey, set ast.SelectionSet) (ref, error) {
	if r, ok := c.sums[key]; ok {
		return r, nil
	}
	if err := c.descend(); err != nil {
		return ref{}, err
	}
	defer c.ascend()
	var total sumBuilder
	if err := c.addSelections(&total, key, set, always, 0); err != nil {
		return ref{}, err
	}
	r := c.addSum(total)
	c.sums[key] = r
	return r, nil
}

func (c *compiler) addSelections(total *sumBuilder, key sumKey, set ast.SelectionSet, outer int32, depth int) error {
	if depth > maxDepth {
		return ErrTooDeep
	}
	for _, selection := range set {
		if err := c.spend(1); err != nil {
			return err
		}
		var directives ast.DirectiveList
		var condition string
		switch s := selection.(type) {
		case *ast.Field:
			if s.Name == "__typename" {
				continue
			}
			directives = s.Directives
		case *ast.InlineFragment:
			directives, condition = s.Directives, s.TypeCondition
		case *ast.FragmentSpread:
			directives, condition = s.Directives, c.fragments[s.Name].def.TypeCondition
		}
		applies, err := c.applies(condition, key.object)
		if err != nil {
			return err
		}
		if err := c.spend(len(directives)); err != nil {
			return err
		}
		included := c.included(outer, directives)
		if !applies || included == never {
			continue
		}
		switch s := selection.(type) {
		case *ast.Field:
			r, err := c.summedCall(key, s, included)
			if err != nil {
				return err
			}
			total.add(r)
		case *ast.InlineFragment:
			if err := c.addSelections(total, key, s.SelectionSet, included, depth+1); err != nil {
				return err
			}
		case *ast.FragmentSpread:
			f := c.fragments[s.Name]
			r, err := c.sum(sumKey{fragment: f, object: key.object, sizes: key.sizes, part: key.part}, f.def.SelectionSet)
			if err != nil {
				return err
			}
			total.add(c.gate(included, r))
		}
	}
	return nil
}

// gate lets a result count only under a condition.
func (c *compiler) gate(condition int32, r ref) ref {
	if condition == always || r == fixed(pair{}) {
		return r
	}
	lo := int32(len(c.plan.edges))
	c.plan.edges = append(c.plan.edges, r)
	return ref{node: c.addNode(node{kind: nodeGate, lo: lo, hi: lo + 1, condition: condition})}
}

// summedCall prices the part of one call.
func (c *compiler) summedCall(key sumKey, field *ast.Field, condition int32) (ref, error) {
	info := key.object.fields[field.Name]
	if info == nil {
		return ref{}, malformed("%s has no field %q", key.object.name, field.Name)
	}
	sized := key.part != sumWhole && info.depth > 0 && slices.Contains(key.sizes.sized, info.name)
	if key.part == sumElement && !sized || c.costsNothing(field, info) {
		return fixed(pair{}), nil
	}
	cl, err := c.prepare(group{key: responseName(field), info: info, members: []occurrence{{field, condition}}})
	if err != nil {
		return ref{}, err
	}
	cl.weight = max(0, cl.weight)
	switch {
	case info.kind == constant, sized && key.part == sumRest && info.complexity == nil:
		return c.finish(cl), nil
	case sized && key.part == sumRest:
		// A function is no product with a size, so it is asked here, and the elements are paid besides.
	case info.kind == entities:
		return c.entityCall(cl, field, func(object *objectType) (ref, error) {
			return c.sum(sumKey{field: field, object: object}, field.SelectionSet)
		})
	case sized:
		cl = call{info: info, key: cl.key, condition: condition, weight: cl.weight, n: info.scale, size: -1, child: cl.child}
	default:
		if cl.n, cl.size, err = c.size(field, info, 0); err != nil {
			return ref{}, err
		}
	}
	if info.output != nil {
		if cl.child, err = c.summedValue(field, info); err != nil {
			return ref{}, err
		}
	}
	if key.part == sumElement {
		return c.finish(cl), nil
	}
	return c.finishCall(cl, field)
}

// summedValue prices what a call returns.
func (c *compiler) summedValue(field *ast.Field, info *fieldInfo) (ref, error) {
	if info.sizes == nil || len(info.sizes.sized) == 0 {
		return c.highest(field, info, sumWhole)
	}
	spec, err := c.spec(field, info)
	if err != nil {
		return ref{}, err
	}
	n, settled := spec.expr.settled()
	if settled && n < 0 {
		return c.highest(field, info, sumWhole)
	}
	edges := make([]edge, 0, 3)
	for _, part := range []sumPart{sumRest, sumElement, sumWhole} {
		r, err := c.highest(field, info, part)
		if err != nil {
			return ref{}, err
		}
		edges = append(edges, r)
	}
	lo := int32(len(c.plan.edges))
	c.plan.edges = append(c.plan.edges, edges...)
	return ref{node: c.addNode(node{kind: nodeSized, lo: lo, hi: lo + 3, size: c.addSize(spec.expr)})}, nil
}

// highestKey addresses the maximum over the possible types of what is selected below a field.
type highestKey struct {
	field  *ast.Field
	output *outputType
	sizes  *listSize
	part   sumPart
}

// highest is the maximum over the possible types of the part of the selections of a field. Each of
// hundreds of types may have the field, and return one of as many, so it is found out once for all.
func (c *compiler) highest(field *ast.Field, info *fieldInfo, part sumPart) (ref, error) {
	whole := highestKey{field: field, output: info.output, part: part}
	if part != sumWhole {
		whole.sizes = info.sizes.like
	}
	if r, ok := c.highests[whole]; ok {
		return r, nil
	}
	var b maxBuilder
	for _, object := range info.output.objects {
		if err := c.spend(1); err != nil {
			return ref{}, err
		}
		r, err := c.sum(sumKey{field: field, object: object, sizes: whole.sizes, part: part}, field.SelectionSet)
		if err != nil {
			return ref{}, err
		}
		b.add(r)
	}
	r := c.addMax(b)
	c.highests[whole] = r
	return r, nil
}
