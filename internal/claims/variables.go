package claims

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/gqlgen-ratelimit/ratelimit/internal/number"
)

// maxVariableDepth is how deep values are spelled in one way. What is deeper stays as it came.
const maxVariableDepth = 64

// coerced returns the variables of an operation with one spelling for each value of an Int, a Float or an ID, so that what a
// resolver reads as one value has one fingerprint.
func coerced(schema *ast.Schema, op *ast.OperationDefinition, variables map[string]any) map[string]any {
	spelled := make(map[string]any, len(variables))
	for name, value := range variables {
		spelled[name] = value
		if v := op.VariableDefinitions.ForName(name); v != nil {
			spelled[name] = coerce(schema, v.Type, value, 0)
		}
	}
	return spelled
}

func coerce(schema *ast.Schema, typ *ast.Type, value any, depth int) any {
	if value == nil || typ == nil || depth > maxVariableDepth {
		return value
	}
	if typ.Elem != nil {
		return coerceList(schema, typ.Elem, value, depth)
	}
	def := schema.Types[typ.NamedType]
	object, isObject := value.(map[string]any)
	switch {
	case def == nil:
		return value
	case def.Kind == ast.InputObject && isObject:
		fields := make(map[string]any, len(object))
		for name, given := range object {
			fields[name] = given
			if field := def.Fields.ForName(name); field != nil {
				fields[name] = coerce(schema, field.Type, given, depth+1)
			}
		}
		return fields
	case def.Kind == ast.Scalar:
		return coerceScalar(def.Name, value)
	default:
		return value
	}
}

// coerceList spells the elements of a list. gqlgen has made a list of a single value.
func coerceList(schema *ast.Schema, elem *ast.Type, value any, depth int) any {
	values := reflect.ValueOf(value)
	if values.Kind() != reflect.Slice {
		return value
	}
	list := make([]any, values.Len())
	for i := range list {
		list[i] = coerce(schema, elem, values.Index(i).Interface(), depth+1)
	}
	return list
}

// coerceScalar spells a number in the one way that its type has. The values of one type are spelled alike, so text is as good
// as a number.
func coerceScalar(name string, value any) any {
	switch value.(type) {
	case string, json.Number, int, int32, int64, float32, float64:
	default:
		return value
	}
	text := fmt.Sprint(value)
	switch name {
	case "Int":
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return strconv.FormatInt(n, 10)
		}
	case "Float":
		if spelled, ok := plainFloat(text); ok {
			return spelled
		}
	case "ID":
		return text
	}
	return value
}

// plainFloat spells a decimal number with all its digits, since a resolver may read more of them than a float64 holds. The zero
// below zero stays another number than zero.
func plainFloat(text string) (spelled string, ok bool) {
	spelled, ok = number.Plain(strings.TrimPrefix(text, "+"))
	if spelled == "0" && text[0] == '-' {
		spelled = "-0"
	}
	return spelled, ok
}
