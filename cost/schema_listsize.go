package cost

import (
	"slices"
	"strconv"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
)

// listSize is a checked ListSize or @listSize directive.
type listSize struct {
	// configured says that the Config gave it, and not a directive.
	configured bool
	// assumed is negative if no size is assumed.
	assumed float64
	slicers []*slicer
	sized   []string
	// like is the first list size with the same sized fields, which stands for all of them where only
	// these matter.
	like *listSize
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
}

// name is the path of the slicing argument as it was declared.
func (s *slicer) name() string {
	name := s.arg.name
	for _, in := range s.path {
		name += "." + in.name
	}
	return name
}

// sizesOwn says whether the list that the field itself returns is sized.
func (l *listSize) sizesOwn() bool {
	return len(l.sized) == 0 && (l.assumed >= 0 || len(l.slicers) > 0)
}

// names says whether the list size gives one to a field of the returned object.
func (l *listSize) names(info *fieldInfo) bool {
	return info.depth > 0 && slices.Contains(l.sized, info.name)
}

// listSize returns the checked list size of a field, nil if there is none or it is wrong. That of an
// interface field is not effective: it is only checked.
func (b *builder) listSize(coordinate string, field *ast.FieldDefinition, args []*inputField, effective bool) *listSize {
	given, ok := b.cfg.ListSizes[coordinate]
	directive := field.Directives.ForName("listSize")
	switch {
	case ok:
		b.used["list "+coordinate] = true
	case directive == nil:
		if given, ok = b.connection(field); !ok {
			return nil
		}
	default:
		before := len(b.errs)
		given = b.directiveListSize(coordinate, field.Directives, directive)
		if len(b.errs) > before {
			return nil
		}
	}
	before := len(b.errs)
	size := &listSize{configured: ok, assumed: -1, one: given.RequireOneSlicingArgument == nil || *given.RequireOneSlicingArgument}
	if given.AssumedSize != nil {
		size.assumed = float64(*given.AssumedSize)
		if *given.AssumedSize < 0 {
			b.fail(coordinate, "assumedSize %d is negative", *given.AssumedSize)
		}
	}
	if field.Type.Elem == nil && len(given.SizedFields) == 0 {
		b.fail(coordinate, "the field returns no list, and no sizedFields are given")
	}
	b.checkSized(coordinate, field, given.SizedFields, effective)
	size.sized = given.SizedFields
	hasDefault := false
	for i, path := range given.SlicingArguments {
		if slices.Contains(given.SlicingArguments[:i], path) {
			b.fail(coordinate, "slicing argument %q is given twice", path)
			continue
		}
		if s := b.slicer(coordinate, path, args); s != nil {
			size.slicers = append(size.slicers, s)
			_, present := s.fallback()
			hasDefault = hasDefault || present
		}
	}
	if given.AssumedSize != nil && len(size.slicers) > 0 && (hasDefault || size.one) {
		b.fail(coordinate, "assumedSize next to slicingArguments never counts unless requireOneSlicingArgument is false and no slicing argument has a default")
	}
	if len(b.errs) > before {
		return nil
	}
	size.one = size.one && len(size.slicers) > 0
	size.reason = "exactly one of " + strings.Join(given.SlicingArguments, ", ") + " is required"
	names := strings.Join(size.sized, " ")
	if b.sizedLike[names] == nil {
		b.sizedLike[names] = size
	}
	size.like = b.sizedLike[names]
	return size
}

// checkSized checks that the sized fields are lists of the returned type, and, if
// the list size is effective, records them as sized.
func (b *builder) checkSized(coordinate string, field *ast.FieldDefinition, sized []string, effective bool) {
	def := b.schema.Types[field.Type.Name()]
	for i, name := range sized {
		if slices.Contains(sized[:i], name) {
			b.fail(coordinate, "sized field %q is given twice", name)
			continue
		}
		if def == nil || !def.IsCompositeType() {
			b.fail(coordinate, "sized field %q cannot be a field of %s", name, field.Type.Name())
			continue
		}
		found := false
		// Fields are looked up as pricing does: on the object types, which all have the fields of
		// their interfaces.
		for _, object := range b.schema.GetPossibleTypes(def) {
			target := object.Fields.ForName(name)
			if target == nil {
				continue
			}
			found = true
			if target.Type.Elem == nil {
				b.fail(coordinate, "sized field %q is not a list on %s", name, object.Name)
			}
			if effective {
				b.sizedBy[object.Name+"."+name] = true
			}
		}
		if !found {
			b.fail(coordinate, "sized field %q is no field of %s", name, def.Name)
		}
	}
}

// slicer resolves the path of a slicing argument, nil if it is wrong.
func (b *builder) slicer(coordinate, path string, args []*inputField) *slicer {
	names := strings.Split(path, ".")
	s := &slicer{}
	fields := args
	for i, name := range names {
		at := slices.IndexFunc(fields, func(in *inputField) bool { return in.name == name })
		if at < 0 {
			b.fail(coordinate, "slicing argument %q does not exist", path)
			return nil
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
			s.list = true
		case in.declared.Elem != nil:
			b.fail(coordinate, "slicing argument %q leads through a list", path)
			return nil
		case last && in.declared.Name() != "Int":
			b.fail(coordinate, "slicing argument %q is of type %s, not Int or a list", path, in.declared)
			return nil
		case !last && in.typ == nil:
			b.fail(coordinate, "slicing argument %q leads through %s, which is no input object", path, in.declared)
			return nil
		case !last:
			fields = in.typ.fields
		}
	}
	return s
}

// directiveListSize reads a @listSize directive.
func (b *builder) directiveListSize(coordinate string, directives ast.DirectiveList, directive *ast.Directive) ListSize {
	var size ListSize
	if len(directives.ForNames("listSize")) > 1 {
		b.fail(coordinate, "@listSize is given more than once")
	}
	if directive.Definition != nil {
		// A schema may declare the directive with another default.
		if arg := directive.Definition.Arguments.ForName("requireOneSlicingArgument"); arg != nil && arg.DefaultValue != nil {
			size.RequireOneSlicingArgument = booleanValue(arg.DefaultValue)
		}
	}
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

// Connections sizes lists by the names of arguments and fields, for schemas that follow a convention
// and have no @listSize, such as those with Relay connections:
//
//	cost.Connections{SlicingArguments: []string{"first", "last"}, SizedFields: []string{"nodes", "edges"}}
//
// It holds for each field of an object type that neither @listSize nor [Config.ListSizes] sizes and that
// has at least one of the arguments. If the field returns a list, the arguments size it; if it returns
// an object, they size those of its SizedFields that are lists. A request that gives none of the
// arguments is priced with the default size. The zero value sizes nothing.
type Connections struct {
	// SlicingArguments are names of arguments of type Int. The largest that is given counts.
	SlicingArguments []string
	// SizedFields are names of the fields of a connection that hold its lists.
	SizedFields []string
}

// connection returns the list size that the convention gives to a field, or false if it gives none.
func (b *builder) connection(field *ast.FieldDefinition) (ListSize, bool) {
	var size ListSize
	for _, name := range b.cfg.Connections.SlicingArguments {
		arg := field.Arguments.ForName(name)
		if arg != nil && arg.Type.Elem == nil && arg.Type.Name() == "Int" && !slices.Contains(size.SlicingArguments, name) {
			size.SlicingArguments = append(size.SlicingArguments, name)
		}
	}
	if len(size.SlicingArguments) == 0 {
		return ListSize{}, false
	}
	if field.Type.Elem == nil {
		for _, name := range b.cfg.Connections.SizedFields {
			if b.isList(field.Type.Name(), name) && !slices.Contains(size.SizedFields, name) {
				size.SizedFields = append(size.SizedFields, name)
			}
		}
		if len(size.SizedFields) == 0 {
			return ListSize{}, false
		}
	}
	one := false
	size.RequireOneSlicingArgument = &one
	return size, true
}

// isList says whether the type, or one of its possible types, has such a field, and all that have it
// return a list.
func (b *builder) isList(typeName, fieldName string) bool {
	def := b.schema.Types[typeName]
	if def == nil || !def.IsCompositeType() {
		return false
	}
	found := false
	for _, object := range b.schema.GetPossibleTypes(def) {
		field := object.Fields.ForName(fieldName)
		if field == nil {
			continue
		}
		if field.Type.Elem == nil {
			return false
		}
		found = true
	}
	return found
}
