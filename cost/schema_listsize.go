package cost

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
)

// listSize is a checked ListSize or @listSize directive.
type listSize struct {
	// coordinate is where it stands: at the field, or at that of an interface.
	coordinate string
	// configured says that the Config gave it, and not a directive.
	configured bool
	// assumed is negative if no size is assumed.
	assumed float64
	slicers []*slicer
	// sized are the lists below that are sized, nil if the list is that of the field itself.
	sized *sizedFields
	// one says that a request has to give exactly one slicing argument; reason says so in words.
	one    bool
	reason string
}

// slicer is a slicing argument: the argument, and the path into its value.
type slicer struct {
	arg  *inputField
	path []*inputField
	// steps is the path as values are searched.
	steps []step
	// list says that the length of the value counts, not the value.
	list bool
	// least is the size of a list whose argument is absent. One whose argument is null, so that a resolver takes the default
	// or chooses, is not smaller.
	least float64
}

// name is the path of the slicing argument as it was declared.
func (s *slicer) name() string {
	name := s.arg.name
	for _, in := range s.path {
		name += "." + in.name
	}
	return name
}

// last is the argument or input field that the path leads to.
func (s *slicer) last() *inputField {
	if len(s.path) == 0 {
		return s.arg
	}
	return s.path[len(s.path)-1]
}

// sizesOwn says whether the list that the field itself returns is sized.
func (l *listSize) sizesOwn() bool {
	return l.sized == nil && (l.assumed >= 0 || len(l.slicers) > 0)
}

// declaredSize is a list size as it was declared, and where.
type declaredSize struct {
	ListSize
	coordinate string
	configured bool
	// convention says that names gave it, so that nobody has said of a list that its length counts.
	convention bool
}

// declaredSize returns the list size that holds for a field: its own, that of an interface, that of a pattern,
// or that of a convention.
func (b *builder) declaredSize(coordinate string, def *ast.Definition, field *ast.FieldDefinition, args []*inputField) (declaredSize, bool) {
	pattern, fits := b.patternSize(coordinate, field)
	if given, ok := b.cfg.ListSizes[coordinate]; ok {
		b.used["list "+coordinate] = true
		return declaredSize{ListSize: given, coordinate: coordinate, configured: true}, true
	}
	if directives := field.Directives.ForNames("listSize"); len(directives) > 0 {
		before := len(b.errs)
		given := b.directiveListSize(coordinate, directives)
		return declaredSize{ListSize: given, coordinate: coordinate}, len(b.errs) == before
	}
	for _, name := range def.Interfaces {
		if inherited, ok := b.inherited[name+"."+field.Name]; ok {
			return inherited, true
		}
	}
	if fits {
		return declaredSize{ListSize: pattern, coordinate: coordinate, configured: true}, true
	}
	size, ok := b.connection(field, args)
	return declaredSize{ListSize: size, coordinate: coordinate, configured: true, convention: true}, ok
}

// listSize returns the checked list size of a field of an object type, nil if there is none or it is wrong.
// That of an interface field is checked, and holds for the object types.
func (b *builder) listSize(def *ast.Definition, field *ast.FieldDefinition, args []*inputField) *listSize {
	coordinate := def.Name + "." + field.Name
	given, ok := b.declaredSize(coordinate, def, field, args)
	if !ok {
		return nil
	}
	before := len(b.errs)
	size := &listSize{coordinate: given.coordinate, configured: given.configured, assumed: -1, one: given.requiresOne()}
	if given.AssumedSize != nil {
		size.assumed = float64(*given.AssumedSize)
		if *given.AssumedSize < 0 {
			b.fail(coordinate, "assumedSize %d is negative", *given.AssumedSize)
		}
	}
	if field.Type.Elem == nil && len(given.SizedFields) == 0 {
		b.fail(coordinate, "the field returns no list, and no sizedFields are given")
	}
	if len(given.SizedFields) > 0 {
		size.sized = b.sizedFields(coordinate, field, given.SizedFields, def.Kind == ast.Object)
	}
	for i, path := range given.SlicingArguments {
		if slices.Contains(given.SlicingArguments[:i], path) {
			b.fail(coordinate, "slicing argument %q is given twice", path)
			continue
		}
		s, err := b.slicer(path, args)
		if err != nil {
			b.fail(coordinate, "slicing argument %q %v", path, err)
			continue
		}
		s.list = s.list && !given.convention
		if s.least = size.assumed; s.least < 0 {
			s.least = b.options.listSize
		}
		size.slicers = append(size.slicers, s)
		if def.Kind == ast.Object {
			b.checkReadable(s)
		}
	}
	if given.AssumedSize != nil && len(size.slicers) > 0 && size.one {
		b.fail(coordinate, "assumedSize next to slicingArguments never counts where requireOneSlicingArgument is true: leave one of the two out")
	}
	if len(b.errs) > before {
		return nil
	}
	size.one = size.one && len(size.slicers) > 0
	size.reason = "exactly one of " + strings.Join(given.SlicingArguments, ", ") + " is required"
	if def.Kind == ast.Interface {
		b.inherited[coordinate] = given
	}
	return size
}

// requiresOne says whether a request has to give exactly one slicing argument. An assumedSize is for requests
// that give none.
func (s *ListSize) requiresOne() bool {
	if s.RequireOneSlicingArgument == nil {
		return s.AssumedSize == nil
	}
	return *s.RequireOneSlicingArgument
}

// slicer resolves the path of a slicing argument. The error says what is wrong with it.
func (b *builder) slicer(path string, args []*inputField) (*slicer, error) {
	names := strings.Split(path, ".")
	s := &slicer{}
	fields := args
	for i, name := range names {
		at := slices.IndexFunc(fields, func(in *inputField) bool { return in.name == name })
		if at < 0 {
			return nil, errors.New("does not exist")
		}
		in := fields[at]
		if i == 0 {
			s.arg = in
		} else {
			s.path = append(s.path, in)
			s.steps = append(s.steps, step{name: in.name, fallback: in.value, defaults: in.literal != nil})
		}
		last := i == len(names)-1
		switch {
		case in.declared.Elem != nil && last:
			// How many values a list of lists has its length does not say: it is no size.
			s.list = in.declared.Elem.Elem == nil
		case in.declared.Elem != nil:
			return nil, errors.New("leads through a list")
		case last:
		case in.typ == nil:
			return nil, fmt.Errorf("leads through %s, which is no input object", in.declared)
		default:
			fields = in.typ.fields
		}
	}
	return s, nil
}

// checkReadable notes a slicing argument of whose type no value is a number, or whose default is none.
func (b *builder) checkReadable(s *slicer) {
	in := s.last()
	def := b.schema.Types[in.declared.Name()]
	numbers := in.declared.Elem == nil && def != nil && def.Kind == ast.Scalar && def.Name != "Boolean"
	unreadable := in.value != nil && math.IsInf(sizeOf(in.value, s.list), 1)
	if (!s.list && !numbers || unreadable) && !slices.Contains(b.unreadable, in.coordinate) {
		b.unreadable = append(b.unreadable, in.coordinate)
	}
}

// directiveListSize reads the @listSize directives of a field.
func (b *builder) directiveListSize(coordinate string, directives []*ast.Directive) ListSize {
	size := b.oneListSize(coordinate, directives[0])
	for _, directive := range directives[1:] {
		other := b.oneListSize(coordinate, directive)
		switch {
		case sameNames(size.SizedFields, other.SizedFields):
			// Each bounds the same lists.
			same := sameNames(size.SlicingArguments, other.SlicingArguments)
			one := same && size.requiresOne() && other.requiresOne()
			size.RequireOneSlicingArgument = &one
			size.SlicingArguments = union(size.SlicingArguments, other.SlicingArguments)
			if size.AssumedSize == nil || other.AssumedSize != nil && *other.AssumedSize > *size.AssumedSize {
				size.AssumedSize = other.AssumedSize
			}
		case sameNames(size.SlicingArguments, other.SlicingArguments) && sameSize(size.AssumedSize, other.AssumedSize) &&
			len(size.SizedFields) > 0 && len(other.SizedFields) > 0:
			one := size.requiresOne() || other.requiresOne()
			size.RequireOneSlicingArgument = &one
			size.SizedFields = union(size.SizedFields, other.SizedFields)
		default:
			b.fail(coordinate, "several @listSize have to agree in their sizedFields, or in all else: give a list that others do not size a @listSize at its own field")
			return size
		}
	}
	return size
}

func sameSize(a, b *int) bool { return a == b || a != nil && b != nil && *a == *b }

// sameNames says whether two lists have the same names, in whatever order.
func sameNames(a, b []string) bool {
	return len(union(a, b)) == len(union(a, nil)) && len(union(b, a)) == len(union(b, nil))
}

// union returns the names of both lists, each once.
func union(a, b []string) []string {
	var all []string
	for _, name := range slices.Concat(a, b) {
		if !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}

// oneListSize reads a @listSize directive.
func (b *builder) oneListSize(coordinate string, directive *ast.Directive) ListSize {
	var size ListSize
	for _, arg := range directive.Arguments {
		if arg.Value == nil || arg.Value.Kind == ast.NullValue {
			continue
		}
		ok := true
		switch arg.Name {
		case "assumedSize":
			n, err := strconv.Atoi(arg.Value.Raw)
			ok = arg.Value.Kind == ast.IntValue && err == nil
			size.AssumedSize = &n
		case "slicingArguments":
			size.SlicingArguments, ok = stringValues(arg.Value)
		case "sizedFields":
			size.SizedFields, ok = stringValues(arg.Value)
		case "requireOneSlicingArgument":
			size.RequireOneSlicingArgument = booleanValue(arg.Value)
			ok = size.RequireOneSlicingArgument != nil
		}
		if !ok {
			b.fail(coordinate, "%s of @listSize is not of the right type: %s", arg.Name, arg.Value)
		}
	}
	if directive.Definition != nil && size.RequireOneSlicingArgument == nil && size.AssumedSize == nil {
		// A schema may declare the directive with another default.
		if arg := directive.Definition.Arguments.ForName("requireOneSlicingArgument"); arg != nil && arg.DefaultValue != nil {
			size.RequireOneSlicingArgument = booleanValue(arg.DefaultValue)
		}
	}
	return size
}

func booleanValue(value *ast.Value) *bool {
	if value.Kind != ast.BooleanValue {
		return nil
	}
	is := value.Raw == "true"
	return &is
}

// stringValues reads a list of strings, or one string, which GraphQL takes for a list of one.
func stringValues(value *ast.Value) ([]string, bool) {
	children := value.Children
	if value.Kind != ast.ListValue {
		children = ast.ChildValueList{{Value: value}}
	}
	values := make([]string, 0, len(children))
	for _, child := range children {
		if child.Value == nil || child.Value.Kind != ast.StringValue && child.Value.Kind != ast.BlockValue {
			return nil, false
		}
		values = append(values, child.Value.Raw)
	}
	return values, true
}
