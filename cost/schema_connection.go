package cost

import (
	"slices"

	"github.com/vektah/gqlparser/v2/ast"
)

// Connections sizes lists by the names of arguments and fields, for schemas that follow a convention
// and have no @listSize, such as those with Relay connections:
//
//	cost.Connections{SlicingArguments: []string{"first", "last"}, SizedFields: []string{"nodes", "edges"}}
//
// It holds for each field of an object type that neither @listSize, also that of an interface, nor [Config.ListSizes] sizes and that
// has at least one of the arguments. If the field returns a list, the arguments size it; if it returns
// an object, they size those of its SizedFields that are lists. A request that gives none of the
// arguments is priced with the default size. The zero value sizes nothing.
type Connections struct {
	// SlicingArguments are names of arguments, or paths into input objects such as page.first, that say how many
	// elements a request wants. The largest that is given counts. One that is a list is read as what is no number, because
	// nobody has said that its length counts.
	SlicingArguments []string
	// SizedFields are names of the fields of a connection that hold its lists.
	SizedFields []string
}

// connection returns the list size that the convention gives to a field, or false if it gives none.
func (b *builder) connection(field *ast.FieldDefinition, args []*inputField) (ListSize, bool) {
	var size ListSize
	for _, path := range b.cfg.Connections.SlicingArguments {
		if _, err := b.slicer(path, args); err == nil && !slices.Contains(size.SlicingArguments, path) {
			size.SlicingArguments = append(size.SlicingArguments, path)
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
