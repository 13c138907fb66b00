package cost

import (
	"slices"

	"github.com/vektah/gqlparser/v2/ast"
)

// Types on which the same is selected at the same price are one class, and are told apart before anything
// is compiled for them: an interface may have hundreds of possible types, and a selection of its own fields
// costs the same on all. What tells two types apart is whether a fragment applies to them, what the fields
// that are selected cost on them, and what the types weigh.

// partitionKey addresses how the types of an output are divided by a field or a type condition.
type partitionKey struct {
	output    *outputType
	name      string
	condition bool
}

// classification divides the possible types of an output by some selections.
type classification struct {
	c      *compiler
	output *outputType
	types  partition
	parts  int32
}

// classify returns the classes of an output for the selections of the members.
func (c *compiler) classify(members []occurrence, output *outputType) ([][]*objectType, error) {
	c.classified++
	k := classification{c: c, output: output, types: make(partition, len(output.objects)), parts: 1}
	if err := k.divide(output.byWeight, nil); err != nil {
		return nil, err
	}
	for _, member := range members {
		if err := k.read(member.field.SelectionSet, nil, 0); err != nil {
			return nil, err
		}
	}
	if k.parts == 1 {
		return output.undivided, nil
	}
	classes := make([][]*objectType, k.parts)
	for i, object := range output.objects {
		classes[k.types[i]] = append(classes[k.types[i]], object)
	}
	return classes, nil
}

// divide divides each part as the partition does, among the types for which among is 1, or all if it is nil.
func (k *classification) divide(by, among partition) error {
	if by == nil {
		return nil
	}
	if err := k.c.spend(1 + len(by)/namesPerUnit); err != nil {
		return err
	}
	parts := make(map[[2]int32]int32, k.parts)
	for i, part := range by {
		if among != nil && among[i] == 0 {
			part = -1
		}
		key := [2]int32{k.types[i], part}
		k.types[i] = once(&parts, key, func() int32 { return int32(len(parts)) })
	}
	k.parts = int32(len(parts))
	return nil
}

// read divides the types by a selection set that is selected on those for which among is 1.
func (k *classification) read(selections ast.SelectionSet, among partition, depth int) error {
	if depth > maxDepth {
		return ErrTooDeep
	}
	for _, selection := range selections {
		if err := k.c.spend(1); err != nil {
			return err
		}
		var err error
		switch s := selection.(type) {
		case *ast.Field:
			if s.Name != typenameField.name {
				err = k.divide(k.c.partition(k.output, s.Name, false), among)
			}
		case *ast.InlineFragment:
			err = k.readOn(s.TypeCondition, s.SelectionSet, among, depth)
		case *ast.FragmentSpread:
			// Each fragment divides the types for which it can be included, wherever it is spread.
			if f := k.c.fragments[s.Name]; f.classified != k.c.classified {
				f.classified = k.c.classified
				err = k.readOn(f.def.TypeCondition, f.def.SelectionSet, nil, depth)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// readOn divides the types by selections under a type condition.
func (k *classification) readOn(condition string, selections ast.SelectionSet, among partition, depth int) error {
	if condition != "" {
		by := k.c.partition(k.output, condition, true)
		if err := k.divide(by, among); err != nil {
			return err
		}
		if by != nil && among == nil {
			among = by
		} else if by != nil {
			both := slices.Clone(among)
			for i := range both {
				both[i] = min(both[i], by[i])
			}
			among = both
		} else if !k.output.objects[0].conditions[condition] {
			return nil
		}
	}
	return k.read(selections, among, depth+1)
}

// partition returns how a field, or a type condition, divides the possible types of an output.
func (c *compiler) partition(output *outputType, name string, condition bool) partition {
	key := partitionKey{output, name, condition}
	if known, ok := c.partitions[key]; ok {
		return known
	}
	// The next to spend sees that the limit is passed.
	c.work += len(output.objects) / namesPerUnit
	types := make(partition, len(output.objects))
	for i, object := range output.objects {
		switch info := object.fields[name]; {
		case condition && object.conditions[name]:
			types[i] = 1
		case !condition && info != nil:
			types[i] = info.alike
		}
	}
	if !slices.ContainsFunc(types, func(part int32) bool { return part != types[0] }) {
		types = nil
	}
	c.partitions = remember(c.partitions, key, types)
	return types
}
