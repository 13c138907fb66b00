package ratelimitclient

import "encoding/json"

// Breakdown says what an operation costs and which calls of fields make it so. A server sends it to
// those whom it permits to ask with the header GraphQL-Cost: report or validate.
//
// Type cost counts the objects that the operation can return, field cost the calls that it can cause,
// both by weight. The price in points is base, type cost and field cost together, rounded up, unless
// the server prices in another way. A number that is infinite stands as the largest finite one.
type Breakdown struct {
	// Cost is what all of it comes to.
	Cost BreakdownCost `json:"cost"`
	// Entries are the calls that add something, in the order of the response. The first is the root type,
	// with an empty path, if it has a weight.
	Entries []BreakdownEntry `json:"entries"`
	// Omitted says how many entries were left out because there are too many, and OmittedType and
	// OmittedField what they add.
	Omitted      int     `json:"omitted,omitempty"`
	OmittedType  float64 `json:"omittedType,omitempty"`
	OmittedField float64 `json:"omittedField,omitempty"`
}

// UnmarshalJSON reads a breakdown. More than 2000 entries are an error.
func (b *Breakdown) UnmarshalJSON(data []byte) error {
	type plain Breakdown
	wire := struct {
		*plain

		Entries json.RawMessage `json:"entries"`
	}{(*plain)(b), nil}
	if err := json.Unmarshal(data, &wire); err != nil {
		return err
	}
	return readList(&b.Entries, wire.Entries, maxEntries)
}

// BreakdownCost is the cost of an operation before it is made a price.
type BreakdownCost struct {
	// Base is what an operation of its kind costs before anything is selected.
	Base float64 `json:"base"`
	// Type is the type cost.
	Type float64 `json:"type"`
	// Field is the field cost.
	Field float64 `json:"field"`
}

// BreakdownEntry is one call of a field and what it adds, for all the times that it happens.
type BreakdownEntry struct {
	// Path leads to the call by response names, without list indices.
	Path []string `json:"path"`
	// Coordinate is the field in the schema, such as Query.search; for the root type its name.
	Coordinate string `json:"coordinate"`
	// Calls is how often the call happens: the product of the sizes of the lists that it lies in.
	Calls float64 `json:"calls"`
	// Weight is the weight of the field, and Arguments what its arguments and directives add to it.
	// ArgumentCosts has the latter one by one, if not zero.
	Weight        float64                 `json:"weight"`
	Arguments     float64                 `json:"arguments,omitempty"`
	ArgumentCosts []BreakdownArgumentCost `json:"argumentCosts,omitempty"`
	// Alias is what the call pays in Field because its field is called under another response name too.
	Alias float64 `json:"alias,omitempty"`
	// TypeWeight is the weight of each object that the call returns.
	TypeWeight float64 `json:"typeWeight,omitempty"`
	// List says how many of them there are and why. It is nil if the field returns no list.
	List *BreakdownList `json:"list,omitempty"`
	// Type and Field are what the entry itself adds to the cost, without what lies below.
	Type  float64 `json:"type"`
	Field float64 `json:"field"`
	// TypeClamped says that negative weights would take the type cost of the call, with all below it,
	// below 0, which is where it ends. FieldClamped says the same of Weight and Arguments.
	TypeClamped  bool `json:"typeClamped,omitempty"`
	FieldClamped bool `json:"fieldClamped,omitempty"`
	// Complexity says that a complexity function gave Field, instead of Weight and with all that is
	// below the call, and Type too if there is no List where the field returns one.
	Complexity bool `json:"complexity,omitempty"`
	// Whole says that the operation is too large to be taken apart further: Type and Field include all
	// that lies below.
	Whole bool `json:"whole,omitempty"`
}

// UnmarshalJSON reads an entry. More than 2000 names in its path, or costs of arguments, are an error.
func (e *BreakdownEntry) UnmarshalJSON(data []byte) error {
	type plain BreakdownEntry
	wire := struct {
		*plain

		Path          json.RawMessage `json:"path"`
		ArgumentCosts json.RawMessage `json:"argumentCosts"`
	}{(*plain)(e), nil, nil}
	if err := json.Unmarshal(data, &wire); err != nil {
		return err
	}
	if err := readList(&e.Path, wire.Path, maxEntries); err != nil {
		return err
	}
	return readList(&e.ArgumentCosts, wire.ArgumentCosts, maxEntries)
}

// BreakdownArgumentCost is what one argument of a field, or of a directive in the query, costs.
type BreakdownArgumentCost struct {
	// Coordinate is the argument, such as Query.search(filter:) or @approx(tolerance:).
	Coordinate string `json:"coordinate"`
	// Cost is what it costs with the input fields in it.
	Cost float64 `json:"cost"`
}

// BreakdownList says how long a list was taken to be, and why.
type BreakdownList struct {
	// Size is the number of elements, those of all inner lists together in a list of lists.
	Size float64 `json:"size"`
	// Rule is the rule that gave the size: slicingArgument, assumedSize, defaultListSize,
	// representations or introspection. Further words may come.
	Rule string `json:"rule"`
	// Coordinate is the field whose list size was used, empty for rules that are no field's. It is that of
	// a parent if Inherited.
	Coordinate string `json:"coordinate,omitempty"`
	Inherited  bool   `json:"inherited,omitempty"`
	// Argument is the slicing argument, or the path to it, such as page.first.
	Argument string `json:"argument,omitempty"`
	// Source says where the value of the argument came from: literal, variable or schemaDefault. Variable
	// is the name of the variable.
	Source   string `json:"source,omitempty"`
	Variable string `json:"variable,omitempty"`
}
