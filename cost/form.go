package cost

// A form is an operation as it is priced: the selections of each possible type, merged as execution merges
// them, and what each call of a field reads in its arguments. Everything else about the price reads it: the
// program that a plan runs is compiled from it, a breakdown and the tally of a response interpret it.
//
// Equal selections are one value, and types on which the same is selected at the same price are one
// class of it, so a form is as large as the document and not as what the document unfolds into.
type form struct {
	// index is the schema that the operation was compiled for.
	index *index
	tables
	rootType *objectType
	// summed says that selections were not merged, because there are too many: each selection is a call of
	// its own, and a set includes those of the fragments that it spreads.
	summed bool
	// root is the set of the operation. Each set stands after those below it.
	root     int32
	sets     []set
	includes []include
	calls    []call
	values   []value
	classes  []class

	document survey
}

// span is a range of one of the lists of a form.
type span struct{ lo, hi int32 }

func (s span) empty() bool { return s.lo == s.hi }

// set is what is selected on an object type: calls, and other sets that are included.
type set struct{ calls, includes span }

// include is a set that is a part of another one where the condition holds.
type include struct{ set, condition int32 }

// call is one call of a field: all selections of a response name on an object type.
type call struct {
	key  string
	info *fieldInfo
	// condition decides whether the call happens, and further whether it is one of a field that is called under another
	// response name too, and pays for that: all of these but one do.
	condition, further int32
	// value is what is selected on what the call returns, -1 if nothing is, or nothing that has a price of
	// its own.
	value int32
	// own is what the arguments cost, directives what the directives of each of the selections cost; the
	// dearest of these counts.
	own        ownCost
	directives span
	// slicing is what the list size of the field says about the call, -1 if it has none.
	slicing int32
	// special is the index of the representations of _entities, or of the function of the field; -1 for
	// other fields.
	special int32
}

// value is what is selected on a composite value, by classes of its possible types.
type value struct {
	output  *outputType
	classes span
}

// class is a group of possible types on which the same is selected at the same price.
type class struct {
	set int32
	// objects are the types; the first stands for all.
	objects []*objectType
}

// tables are what a form and its program read in variables.
type tables struct {
	variables []variable
	// conditions are a Boolean circuit; the first is true.
	conditions      []condition
	arguments       []argument
	terms           []term
	insides         []inside
	directives      []directiveCost
	slicings        []slicing
	bounds          []bound
	lookups         []lookup
	representations []representations
	functions       []function
}

// variable is a variable that the operation reads, with the default that it gives it.
type variable struct {
	name     string
	fallback any
	defaults bool
	// required says that a request has to give it.
	required bool
	// values is how many values the default consists of.
	values int
}

// ownCost is what arguments cost: a constant, and the terms that depend on variables. Both are made of the
// arguments in args.
type ownCost struct {
	constant float64
	terms    span
	args     span
}

// argument is what one argument costs.
type argument struct {
	declared *inputField
	constant float64
	terms    span
}

// term is an argument or input field whose cost depends on a variable.
type term struct {
	slot   int32
	weight float64
	// values are the weights that it has with certain values, nil if there are none.
	values *valueWeights
	// absent is what is added when the variable is absent.
	absent float64
	// inside is the index of what the input fields in the variable cost, -1 if they cost nothing.
	inside int32
}

// inside is a variable of which the form needs what the input fields in its value cost. All terms with
// the same variable and type share one.
type inside struct {
	slot int32
	typ  *inputType
}

// directiveCost is what the directives of one of several merged selections cost.
type directiveCost struct {
	condition int32
	own       ownCost
}

// slicing is what the list size of a field says about one call.
type slicing struct {
	// bounds are the slicing arguments that give a size, or may give one.
	bounds span
	// constant is the largest size that does not depend on variables, negative if there is none.
	constant float64
	// lookups find the slicing arguments that variables give; given of them are constant.
	lookups span
	given   int32
}

// bound is a slicing argument of a call: its size, or, if lookup is not negative, where to find it.
type bound struct {
	slicer *slicer
	size   float64
	lookup int32
	// defaulted says that the size is the default of the schema, and not a literal.
	defaulted bool
}

// lookup finds a value in a variable.
type lookup struct {
	slot     int32
	steps    []step
	fallback any
	defaults bool
	// list says that the length is asked for.
	list bool
	// least is the least size where null stands in the place of a default.
	least float64
}

// representations are those of a call of _entities: a list in a variable, or a literal list of which
// each element, or each __typename, is a constant or in a variable.
type representations struct {
	// whole is the variable that carries the list, -1 if the list is a literal.
	whole int32
	// names are the constant typenames of a literal list, and empty where found has a lookup of the typename.
	names []string
	found map[int]lookup
}

// units measures the memory of the tables, in the units of the cache.
func (t *tables) units() int {
	units := len(t.variables) + len(t.conditions) + len(t.arguments) + len(t.terms) + len(t.insides) + len(t.directives) +
		len(t.slicings) + len(t.bounds) + len(t.lookups)
	for i := range t.variables {
		units += t.variables[i].values
	}
	for i := range t.functions {
		units += 8 + t.functions[i].values
	}
	for i := range t.representations {
		units += 8 + len(t.representations[i].names)
	}
	return units
}

// units measures the memory of the form, in the units of the cache.
func (f *form) units() int {
	return 1 + f.tables.units() + len(f.sets) + len(f.includes) + len(f.calls) + len(f.values) + len(f.classes)
}

// weight is what one element of a call's value weighs. Where selections are summed a negative one counts
// as nothing, because it would count more than once.
func (f *form) weight(c *call) float64 {
	weight := c.info.leaf
	if c.info.output != nil {
		weight = c.info.output.weight
	}
	return f.counted(weight)
}

// classOf is what is selected on the only type that a call returns.
func (f *form) classOf(c *call) *class { return &f.classes[f.values[c.value].classes.lo] }

func (f *form) counted(weight float64) float64 {
	if f.summed {
		return max(0, weight)
	}
	return weight
}

// rootCalls tells the calls on the root type that a request may make, as often as they are selected.
func (f *form) rootCalls(set int32, seen map[int32]bool, tell func(*call)) {
	if seen[set] {
		return
	}
	seen[set] = true
	s := &f.sets[set]
	for i := s.calls.lo; i < s.calls.hi; i++ {
		if c := &f.calls[i]; c.info != typenameField {
			tell(c)
		}
	}
	for _, i := range f.includes[s.includes.lo:s.includes.hi] {
		f.rootCalls(i.set, seen, tell)
	}
}
