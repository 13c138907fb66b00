package cost

import (
	"cmp"
	"slices"
)

// VariableUse says what a variable of an operation decides of its price. Who prices an operation without the
// variable knows by it what is missing: a few points, or the size of a list.
type VariableUse struct {
	// Name is the name of the variable.
	Name string
	// Required says that a request has to give it: its type is not null, and it has no default.
	Required bool
	// Sizes are the slicing arguments that it gives, or gives a part of, such as first or page.size, sorted and each once.
	// They decide how long lists are.
	Sizes []string
	// Includes says that @skip or @include reads it.
	Includes bool
	// Represents says that the representations of _entities, or a part of them, are in it: a price for each.
	Represents bool
	// Computes says that a function of [Config.Complexity] reads it.
	Computes bool
	// Weighs says that an argument or input field with a weight is in it, so that it adds what the input weighs.
	Weighs bool
}

// VariableUses returns what the variables of the operation decide, sorted by name. A variable that is not in it changes
// nothing. The slices are the caller's.
func (o *Outline) VariableUses() []VariableUse {
	uses := make([]VariableUse, len(o.variables))
	for i := range o.variables {
		uses[i].Name, uses[i].Required = o.variables[i].name, o.variables[i].required
	}
	for i := range o.conditions {
		if c := &o.conditions[i]; c.op == conditionVariable {
			uses[c.a].Includes = true
		}
	}
	for i := range o.terms {
		uses[o.terms[i].slot].Weighs = true
	}
	for i := range o.bounds {
		if b := &o.bounds[i]; b.lookup >= 0 {
			use := &uses[o.lookups[b.lookup].slot]
			use.Sizes = append(use.Sizes, b.slicer.name())
		}
	}
	for i := range o.representations {
		r := &o.representations[i]
		if r.whole >= 0 {
			uses[r.whole].Represents = true
		}
		for _, found := range r.found {
			uses[found.slot].Represents = true
		}
	}
	for i := range o.functions {
		for _, slot := range o.functions[i].slots {
			uses[slot].Computes = true
		}
	}
	for i := range uses {
		slices.Sort(uses[i].Sizes)
		uses[i].Sizes = slices.Compact(uses[i].Sizes)
	}
	slices.SortFunc(uses, func(a, b VariableUse) int { return cmp.Compare(a.Name, b.Name) })
	return uses
}
