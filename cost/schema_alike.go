package cost

import (
	"fmt"
	"slices"
	"strings"
)

// partition divides the possible types of an output: types[i] is the part of the i-th type. It is nil if
// all of them are in one part.
type partition []int32

// findAlike numbers the fields so that those have the same number that cost the same wherever they are
// called, whatever type they are on, and divides the possible types of each output by what they weigh.
func (b *builder) findAlike() {
	numbers := map[string]int32{}
	for _, object := range b.objects {
		for _, field := range object.fields {
			field.alike = once(&numbers, field.price(), func() int32 { return int32(len(numbers) + 1) })
		}
	}
	for _, output := range b.outputs {
		if len(output.objects) > 0 {
			output.undivided = [][]*objectType{output.objects}
		}
		weights := map[float64]int32{}
		parts := make(partition, len(output.objects))
		for i, object := range output.objects {
			parts[i] = once(&weights, object.weight, func() int32 { return int32(len(weights)) })
		}
		if len(weights) > 1 {
			output.byWeight = parts
		}
	}
}

// price spells out all that the price of a call of the field depends on.
func (f *fieldInfo) price() string {
	var b strings.Builder
	fmt.Fprint(&b, f.kind, f.weight, f.leaf, f.depth, f.scale)
	if f.output != nil {
		fmt.Fprint(&b, " of ", f.output.name)
	}
	if f.complexity != nil {
		// No two functions are the same.
		fmt.Fprint(&b, " function ", f.coordinate)
	}
	if f.sizes != nil {
		fmt.Fprint(&b, " sized ", f.sizes.configured, f.sizes.assumed, f.sizes.one)
		if f.sizes.sized != nil {
			fmt.Fprint(&b, " at ", f.sizes.sized.spelled)
		}
		for _, slicer := range f.sizes.slicers {
			fmt.Fprint(&b, " ", slicer.name(), slicer.list)
		}
	}
	for _, arg := range f.args {
		if arg.free() && (f.sizes == nil || !slices.ContainsFunc(f.sizes.slicers, func(s *slicer) bool { return s.arg == arg })) {
			continue
		}
		fmt.Fprint(&b, " (", arg.name, ": ", arg.declared.String(), arg.weight)
		if arg.values != nil {
			fmt.Fprint(&b, " values ", arg.values.spelled)
		}
		if arg.literal != nil {
			fmt.Fprint(&b, " = ", arg.literal.String())
		}
		b.WriteString(")")
	}
	return b.String()
}
