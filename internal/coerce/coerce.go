// Package coerce reads values of arguments as gqlgen reads them for a resolver, so that two spellings of one value are one value.
package coerce

import (
	"reflect"

	"github.com/vektah/gqlparser/v2/ast"
)

// Reader reads values as variables carry them: a map for an object, a slice for a list.
type Reader struct {
	// Types are those of the schema.
	Types map[string]*ast.Definition
	// Scalar returns what a value of a scalar is read as; [Scalar] does.
	Scalar func(name string, value any) any
	// Visit counts values that are read. Where it returns false the rest stays as it came.
	Visit func(n int) bool
}

// Value returns what a value of a declared type is read as. An absent input field has its default, an undeclared one, such
// as __typename, is left out, and a single value for a list is a list of one. Null stays null.
func (r *Reader) Value(typ *ast.Type, value any) any {
	if value == nil || typ == nil || !r.Visit(1) {
		return value
	}
	if typ.Elem != nil {
		return r.list(typ.Elem, value)
	}
	return r.Named(typ, value)
}

// Named is [Reader.Value] for an element of the innermost list of a type.
func (r *Reader) Named(typ *ast.Type, value any) any {
	name := typ.Name()
	def := r.Types[name]
	object, isObject := value.(map[string]any)
	switch {
	case value == nil || def == nil:
		return value
	case def.Kind == ast.InputObject && isObject:
		return r.object(def, object)
	case def.Kind == ast.Scalar:
		return r.Scalar(name, value)
	default:
		return value
	}
}

func (r *Reader) list(elem *ast.Type, value any) any {
	values := reflect.ValueOf(value)
	if values.Kind() != reflect.Slice {
		return []any{r.Value(elem, value)}
	}
	list := make([]any, values.Len())
	for i := range list {
		list[i] = r.Value(elem, values.Index(i).Interface())
	}
	return list
}

func (r *Reader) object(def *ast.Definition, given map[string]any) any {
	fields := make(map[string]any, len(given))
	for _, field := range def.Fields {
		value, present := given[field.Name]
		if !present && field.DefaultValue != nil {
			fallback, err := field.DefaultValue.Value(nil)
			value, present = fallback, err == nil
		}
		if present {
			fields[field.Name] = r.Value(field.Type, value)
		}
	}
	return fields
}
