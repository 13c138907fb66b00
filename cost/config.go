package cost

import (
	"math"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
)

// None is the value of a number for none at all, where a field says so. Zero is always the default.
const None = -1

// DefaultListSize is the size of a list that nothing sizes, unless [Config.DefaultListSize] says otherwise.
const DefaultListSize = 10

// Defaults of a [Config], used where its field is zero.
const (
	defaultWorkLimit          = 50_000
	defaultPlanCacheSize      = 1024
	defaultMaxRepresentations = 10_000
	defaultMaxValues          = 250_000
	defaultOperationBase      = 10
	defaultAliasWeight        = 0.1
	defaultMaxAliases         = 200
)

// maxWeight bounds weights so that no sum of them overflows: only a product with list sizes can.
const maxWeight = 1 << 53

// Config says how an [Estimator] prices. The zero value is the default in each field. New reports
// every mistake in it.
type Config struct {
	// DefaultListSize is the size of a list that nothing sizes, and of each inner list of a list of
	// lists. Zero means [DefaultListSize].
	DefaultListSize int
	// Weights gives weights by schema coordinate: a type ("Product"), a field ("Query.search"), an
	// argument ("Query.search(first:)"), an input field ("ProductFilter.text") or the argument of a
	// directive ("@approx(tolerance:)"). A weight beats the @cost directive at the same place.
	Weights map[string]float64
	// ValueWeights gives the weights that arguments and input fields have with certain values, by their coordinate and
	// then by the value: {"Mutation.generate(model:)": {"LARGE": 50}}. They hold in the place of the weight, and replace
	// the @costWhen directives at the same place as a whole. The values are of an enum, Int, Boolean, ID, String or a
	// scalar that is text; any other value, and null, has the weight, and one that a request does not tell has the dearest. In a
	// list each element weighs what it does alone.
	ValueWeights map[string]map[string]float64
	// ListSizes gives list sizes by the coordinate of the field. One replaces the @listSize directive
	// at the same place as a whole. That of an interface field holds for the fields of the object types that have none of
	// their own.
	//
	// A key with a star, such as "*.errors" or "*Payload.*", is a pattern: it sizes the fields of object types
	// that it fits and that neither a directive nor a coordinate sizes, and passes over the others: those that
	// return no list, or have none of its slicing arguments or sized fields. Of several the one with the most letters counts.
	ListSizes map[string]ListSize
	// Connections sizes lists by convention where neither a directive nor ListSizes does.
	Connections Connections
	// Complexity prices fields by functions, by the coordinate of the field. The field cost of a call is
	// what its function says of the field cost of what is selected on one element, rounded up, plus the
	// weights of its arguments; the weight of the field and the size of its list do not count besides. A
	// @cost directive or a weight of the field beats the function.
	//
	// The type cost is sized by the list size of the field as ever. If nothing sizes the list, the
	// function does: type and field cost together are what it says of both costs of one element.
	//
	// A function is asked at each evaluation, once or twice for each selection that happens. A negative
	// answer is none, and the call costs what it would without the function. A function that
	// panics or cannot read its arguments prices the call at +Inf, and so does a cost below the call that
	// exceeds 2^31 - 1, about which it is not asked.
	Complexity map[string]ComplexityFunc
	// AliasWeight is what each further alias of a field adds to the field cost, also where the field costs nothing: a field
	// that is selected on an object under several response names, with whatever arguments, pays it for all of them but
	// one. It bounds what aliases make of a text. Zero means 0.1, [None] nothing.
	AliasWeight float64
	// RequireListSizes makes a list that nothing sizes an error of [New], and an argument that sizes a list and is no
	// number ([Estimator.UnreadableSizes]).
	RequireListSizes bool
	// Base is the base cost by kind of operation. A kind that is absent has its default: 0 for a query,
	// 10 for a mutation or subscription.
	Base map[ast.Operation]float64
	// WorkLimit is how many selections are merged for one operation before merging is replaced by the
	// sum, which is linear and costs at least as much. Zero means 50 000: a document of 2 000 tokens, which
	// servers should not exceed, has at most about 1 000 selections, so each may be visited fifty times, for
	// fragments and possible types. Merging that many takes some milliseconds.
	WorkLimit int
	// RefuseOverWork makes an operation past the WorkLimit an error instead of a sum.
	RefuseOverWork bool
	// PlanCacheSize is how many plans are kept. Fewer are kept if they are large. Zero means 1024.
	PlanCacheSize int
	// FreeFields are the coordinates of root fields that only read the budget. An operation that
	// selects nothing but these and __typename costs 0 points. Nil means the field rateLimit of the query
	// type: Query.rateLimit.
	FreeFields []string
	// MaxRepresentations is how many representations one _entities field may carry. Zero means
	// 10 000.
	MaxRepresentations int
	// MaxValues is how many values in variables are read to price one operation: each object and each
	// element of a list that can have input fields with a weight, once for each such field, and each
	// representation of each _entities field, and all values that a function in Complexity is given, once
	// for each call. What a variable costs is found out once, however often it
	// is used. An operation with more costs +Inf, so that no limit admits it. Zero means
	// 250 000, which take some milliseconds to read.
	MaxValues int
	// Shape bounds the shape of an operation: its depth, aliases, root fields, directives and the objects
	// in its lists. The zero value bounds aliases alone.
	Shape Shape
}

// ListSize says how long the list is that a field returns, in the words of the @listSize directive.
type ListSize struct {
	// AssumedSize is the size when no slicing argument is given. Nil assumes none.
	AssumedSize *int
	// SlicingArguments are the arguments that bound the size: names, or paths into input objects such
	// as page.first. They are numbers of whatever scalar, also as text. An argument that is a list counts with its length.
	SlicingArguments []string
	// SizedFields are the fields of the returned object that hold the lists, when the field itself
	// is not what is sized: names, or paths such as "results { page }" through fields that return one object
	// of an object type.
	SizedFields []string
	// RequireOneSlicingArgument asks each request for exactly one of the slicing arguments. Nil means
	// true, as in the directive, but false beside an AssumedSize, which is for requests that give none. It means
	// nothing without SlicingArguments.
	RequireOneSlicingArgument *bool
}

// settings is a Config with its defaults filled in.
type settings struct {
	listSize   float64
	base       map[ast.Operation]float64
	workLimit  int
	refuse     bool
	cacheSize  int
	free       map[string]bool
	maxEntries int
	maxValues  int
	limits     Shape
	alias      float64
}

func (b *builder) settings(cfg Config) settings {
	s := settings{
		listSize:   float64(b.count("Config.DefaultListSize", cfg.DefaultListSize, DefaultListSize)),
		base:       map[ast.Operation]float64{ast.Query: 0, ast.Mutation: defaultOperationBase, ast.Subscription: defaultOperationBase},
		workLimit:  b.count("Config.WorkLimit", cfg.WorkLimit, defaultWorkLimit),
		refuse:     cfg.RefuseOverWork,
		cacheSize:  b.count("Config.PlanCacheSize", cfg.PlanCacheSize, defaultPlanCacheSize),
		free:       map[string]bool{},
		maxEntries: b.count("Config.MaxRepresentations", cfg.MaxRepresentations, defaultMaxRepresentations),
		maxValues:  b.count("Config.MaxValues", cfg.MaxValues, defaultMaxValues),
		limits:     b.limits(cfg.Shape),
		alias:      b.aliasWeight(cfg.AliasWeight),
	}
	if b.schema.Query != nil {
		s.free[b.schema.Query.Name+".rateLimit"] = true
	}
	for op, base := range cfg.Base {
		if _, known := s.base[op]; !known {
			b.fail("Config.Base", "unknown operation %q", op)
			continue
		}
		// The negated form also catches NaN.
		if !(base >= 0 && base <= maxWeight) {
			b.fail("Config.Base", "base cost %v of %s is not between 0 and 2^53", base, op)
			continue
		}
		s.base[op] = base
	}
	if cfg.FreeFields != nil {
		s.free = make(map[string]bool, len(cfg.FreeFields))
		for _, coordinate := range cfg.FreeFields {
			s.free[coordinate] = true
			if !b.isRootField(coordinate) {
				b.fail(coordinate, "free field is not a field of a root operation type")
			}
		}
	}
	return s
}

func (b *builder) aliasWeight(given float64) float64 {
	switch {
	case given == 0:
		return defaultAliasWeight
	case given == None:
		return 0
	case !(given > 0 && given <= maxWeight):
		b.fail("Config.AliasWeight", "%v is not between 0 and 2^53, nor None", given)
	}
	return given
}

func (b *builder) count(coordinate string, given, fallback int) int {
	if given < 0 {
		b.fail(coordinate, "%d is negative", given)
	}
	if given == 0 {
		return fallback
	}
	return given
}

// rootTypes are those of the operations, nil where the schema has none.
func (b *builder) rootTypes() map[ast.Operation]*ast.Definition {
	return map[ast.Operation]*ast.Definition{
		ast.Query: b.schema.Query, ast.Mutation: b.schema.Mutation, ast.Subscription: b.schema.Subscription,
	}
}

func (b *builder) isRootField(coordinate string) bool {
	typeName, field, _ := strings.Cut(coordinate, ".")
	for _, root := range b.rootTypes() {
		if root != nil && root.Name == typeName && root.Fields.ForName(field) != nil {
			return true
		}
	}
	return false
}

func validWeight(w float64) bool { return math.Abs(w) <= maxWeight }
