package cost

// Defaults of [ExplainOptions], used where a field is zero.
const (
	defaultMaxEntries = 1000
	defaultMaxBytes   = 256 << 10
)

// ExplainOptions bound a breakdown. The zero value is the default in each field.
type ExplainOptions struct {
	// MaxEntries is how many entries there are at most; the dearest are kept. It also bounds the time
	// and the memory that explaining takes. Zero and less mean 1000.
	MaxEntries int
	// MaxBytes is how many bytes the names in all entries take at most, about as JSON: those in paths, of
	// fields, arguments and variables. A client chooses how long they are, and a short document repeats
	// them in many entries. An entry that does not fit is left out. Zero and less mean 256 KiB.
	MaxBytes int
}

// Breakdown says what an operation costs and which calls make it so.
//
// The Type of all entries and OmittedType add up to Cost.Type, the Field of all entries and
// OmittedField to Cost.Field. Sums of fractions may differ from it by rounding, and nothing adds up
// to an infinite cost.
//
// As JSON, which has no infinity, an infinite number stands as the largest finite one,
// [math.MaxFloat64]; the entries hold it already.
type Breakdown struct {
	// Cost is that of [Plan.Evaluate]. Its Base is no entry.
	Cost Cost `json:"cost"`
	// Entries are the calls that add something, each before those below it, in the order of the operation.
	// The first is the root type,
	// with an empty path, if it has a weight. Where an abstract type costs the maximum over its possible
	// types, the entries are those of the dearest type; those of two types if one has the highest type
	// cost and another the highest field cost.
	Entries []Entry `json:"entries"`
	// Omitted says how many entries that were found were left out because there are too many or their names too long, and
	// OmittedType and OmittedField what all that is left out adds.
	Omitted      int     `json:"omitted,omitempty"`
	OmittedType  float64 `json:"omittedType,omitempty"`
	OmittedField float64 `json:"omittedField,omitempty"`
}

// Entry is one call of a field and what it adds to the cost, for all the times that it happens.
type Entry struct {
	// Path leads to the call by response names, without list indices.
	Path []string `json:"path"`
	// Coordinate is the field on its object type, such as Query.search; for the root type its name.
	Coordinate string `json:"coordinate"`
	// Calls is how often the call happens: the product of the sizes of the lists that it lies in.
	Calls float64 `json:"calls"`
	// Weight is the weight of the field, and Arguments what its arguments, their input fields and the
	// arguments of query directives add to it. ArgumentCosts has the latter one by one, if not zero.
	Weight        float64        `json:"weight"`
	Arguments     float64        `json:"arguments,omitempty"`
	ArgumentCosts []ArgumentCost `json:"argumentCosts,omitempty"`
	// Alias is what the call pays in Field because its field is called under another response name too
	// ([Config.AliasWeight]).
	Alias float64 `json:"alias,omitempty"`
	// TypeWeight is the weight of each object, or scalar, that the call returns.
	TypeWeight float64 `json:"typeWeight,omitempty"`
	// List says how many of them there are and why, nil if the field returns no list.
	List *ListSource `json:"list,omitempty"`
	// Type and Field are what the entry itself adds to the type cost and the field cost of the operation.
	// Where it is of the dearest type for one component only, the other is 0.
	Type  float64 `json:"type"`
	Field float64 `json:"field"`
	// TypeClamped says that negative weights would take the type cost of the call, with all below it,
	// below 0, which is where it ends: neither the call nor anything below adds type cost. FieldClamped
	// says the same of Weight and Arguments.
	TypeClamped  bool `json:"typeClamped,omitempty"`
	FieldClamped bool `json:"fieldClamped,omitempty"`
	// Complexity says that a function of [Config.Complexity] gave Field, in the place of Weight and with
	// all that is below the call. If there is no List where the field returns one, it gave Type too.
	Complexity bool `json:"complexity,omitempty"`
	// Whole says that the operation is too large to be taken apart further: Type and Field include all
	// that is below.
	Whole bool `json:"whole,omitempty"`
}

// ArgumentCost is what one argument of a field, or of a directive in the query, costs with the input
// fields in it.
type ArgumentCost struct {
	// Coordinate is the argument, such as Query.search(filter:) or @approx(tolerance:).
	Coordinate string  `json:"coordinate"`
	Cost       float64 `json:"cost"`
}

// Explain breaks the cost with the given variables down to the calls of fields. The variables are
// coerced, as for [Plan.Evaluate], which says whether a rule is broken; they are only read.
//
// It takes time by the size of the operation and by [ExplainOptions.MaxEntries], however often
// fragments are repeated, and works on large lists as fast as on small ones.
func (o *Outline) Explain(variables map[string]any, opts ExplainOptions) Breakdown {
	if opts.MaxEntries <= 0 {
		opts.MaxEntries = defaultMaxEntries
	}
	if opts.MaxBytes <= 0 {
		opts.MaxBytes = defaultMaxBytes
	}
	// A broken rule does not change the cost.
	cost, _ := o.plan.Evaluate(variables)
	u := unfolding{r: new(reading).begin(o.form, variables), max: opts.MaxEntries, bytes: opts.MaxBytes}
	u.run()
	b := Breakdown{Cost: cost, Entries: u.entries, Omitted: u.omitted}
	typ, field := 0.0, 0.0
	for i := range b.Entries {
		typ += b.Entries[i].Type
		field += b.Entries[i].Field
	}
	if u.omitted > 0 {
		b.OmittedType, b.OmittedField = left(cost.Type, typ), left(cost.Field, field)
	}
	return b
}
