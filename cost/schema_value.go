package cost

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"reflect"
	"strconv"

	"github.com/vektah/gqlparser/v2/ast"
)

// literalValue turns a literal without variables into what a variable would carry. Numbers stay
// text, as json.Number, because nothing but their size is asked for.
func literalValue(value *ast.Value, depth int) any {
	if value == nil || depth > maxDepth {
		return nil
	}
	switch value.Kind {
	case ast.IntValue, ast.FloatValue:
		return json.Number(value.Raw)
	case ast.StringValue, ast.BlockValue, ast.EnumValue:
		return value.Raw
	case ast.BooleanValue:
		return value.Raw == "true"
	case ast.ListValue:
		list := make([]any, 0, len(value.Children))
		for _, child := range value.Children {
			list = append(list, literalValue(child.Value, depth+1))
		}
		return list
	case ast.ObjectValue:
		object := make(map[string]any, len(value.Children))
		for _, child := range value.Children {
			object[child.Name] = literalValue(child.Value, depth+1)
		}
		return object
	default:
		return nil
	}
}

// valuesIn counts the values that a literal consists of, itself included.
func valuesIn(value *ast.Value, depth int) int {
	if value == nil || depth > maxDepth {
		return 0
	}
	count := 1
	for _, child := range value.Children {
		count += valuesIn(child.Value, depth+1)
	}
	return count
}

// sizeOf reads a list size: the number, or the length if the argument is a list. gqlgen accepts
// numbers in strings, so they count as well. What is no number has no size. Sizes below 0 are 0.
func sizeOf(value any, list bool) (size float64, ok bool) {
	if list {
		length, ok := lengthOf(value)
		return float64(length), ok
	}
	switch value := value.(type) {
	case int64:
		size, ok = float64(value), true
	case int:
		size, ok = float64(value), true
	case float64:
		size, ok = value, true
	case json.Number:
		size, ok = parseSize(string(value))
	case string:
		size, ok = parseSize(value)
	default:
		v := reflect.ValueOf(value)
		switch {
		case !v.IsValid():
		case v.CanInt():
			size, ok = float64(v.Int()), true
		case v.CanUint():
			size, ok = float64(v.Uint()), true
		case v.CanFloat():
			size, ok = v.Float(), true
		}
	}
	if math.IsNaN(size) {
		return math.Inf(1), true
	}
	return max(0, size), ok
}

// maxDigits is how long a number is that is read. One that fits 64 bits is much shorter, and one
// written with a million zeros would be read again for each call that it sizes.
const maxDigits = 64

// parseSize reads a number; one out of range is infinite, which ParseFloat returns with its error, and
// so is one that is too long to be read.
func parseSize(raw string) (float64, bool) {
	if len(raw) > maxDigits {
		return math.Inf(1), true
	}
	n, err := strconv.ParseFloat(raw, 64)
	return n, err == nil || math.IsInf(n, 0)
}

// list is a list as a variable carries it.
type list struct {
	values []any
	// typed is a list of another type, such as gqlparser makes of a single value.
	typed reflect.Value
}

// listOf says whether a value is a list, and which.
func listOf(value any) (list, bool) {
	if values, ok := value.([]any); ok {
		return list{values: values}, true
	}
	typed := reflect.ValueOf(value)
	return list{typed: typed}, typed.Kind() == reflect.Slice
}

func (l *list) len() int {
	if l.typed.IsValid() {
		return l.typed.Len()
	}
	return len(l.values)
}

func (l *list) at(i int) any {
	if l.typed.IsValid() {
		return l.typed.Index(i).Interface()
	}
	return l.values[i]
}

// lengthOf is the length of a list. A single value counts as a list of one, as in input coercion.
func lengthOf(value any) (length int, ok bool) {
	if value == nil {
		return 0, false
	}
	if values, ok := listOf(value); ok {
		return values.len(), true
	}
	return 1, true
}

// step is one name of a path into an input object, with the default of the input field.
type step struct {
	name     string
	fallback any
	defaults bool
}

// follow walks a path into a value as coerced: absent input fields have their defaults. It returns what stands at the
// end, nil if that is null or nothing does.
func follow(value any, steps []step) any {
	for i := range steps {
		object, ok := value.(map[string]any)
		if !ok {
			return nil
		}
		value, ok = object[steps[i].name]
		if !ok {
			if !steps[i].defaults {
				return nil
			}
			value = steps[i].fallback
		}
	}
	return value
}

// remember puts a value into a map that is made when it is first needed: few operations need all.
func remember[K comparable, V any](known map[K]V, key K, value V) map[K]V {
	if known == nil {
		known = make(map[K]V)
	}
	known[key] = value
	return known
}

// row returns where a table has what the key stands for, and adds it if it is new.
func row[K comparable, T any](rows *map[K]int32, table *[]T, key K, what T) int32 {
	return once(rows, key, func() int32 { return push(table, what) })
}

// push appends to a table and returns where.
func push[T any](table *[]T, what T) int32 {
	*table = append(*table, what)
	return int32(len(*table) - 1)
}

// spelled is a list of numbers as the key of a map.
func spelled(ids []int32) string {
	key := make([]byte, 0, 4*len(ids))
	for _, id := range ids {
		key = binary.LittleEndian.AppendUint32(key, uint32(id))
	}
	return string(key)
}

// once returns what is known of the key, and finds it out if it is not.
func once[K comparable, V any](known *map[K]V, key K, find func() V) V {
	value, ok := (*known)[key]
	if !ok {
		value = find()
		*known = remember(*known, key, value)
	}
	return value
}
