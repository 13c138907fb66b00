package cost

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"reflect"
	"strconv"
	"strings"

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

// unreadable stands for a value that has to be an object and is none.
type unreadable struct{}

// sizeOf reads a list size: the number, rounded up, or the length if the argument is a list. What is neither is
// infinite, because a resolver may make any size of it. Sizes below 0 are 0. Null has no size, and is none of its values.
func sizeOf(value any, list bool) float64 {
	if value == (unreadable{}) {
		return math.Inf(1)
	}
	if list {
		return float64(lengthOf(value))
	}
	size, ok := numberOf(value)
	if !ok || math.IsNaN(size) {
		return math.Inf(1)
	}
	return max(0, math.Ceil(size))
}

// numberOf reads a number of whatever scalar. Resolvers accept numbers in text, so these count as well.
func numberOf(value any) (number float64, ok bool) {
	switch value := value.(type) {
	case int64:
		return float64(value), true
	case int:
		return float64(value), true
	case float64:
		return value, true
	case json.Number:
		return parseNumber(string(value))
	case string:
		return parseNumber(value)
	}
	v := reflect.Indirect(reflect.ValueOf(value))
	switch {
	case v.Kind() == reflect.String:
		return parseNumber(v.String())
	case v.CanInt():
		return float64(v.Int()), true
	case v.CanUint():
		return float64(v.Uint()), true
	case v.CanFloat():
		return v.Float(), true
	}
	return 0, false
}

// maxDigits is how long a number is that is read. One that fits 64 bits is much shorter, and one
// written with a million zeros would be read again for each call that it sizes.
const maxDigits = 64

// parseNumber reads a number as resolvers do: decimal, or with a prefix such as 0x, and with space around it. One out of
// range is infinite, and so is one that is too long to be read.
func parseNumber(raw string) (float64, bool) {
	if len(raw) > maxDigits {
		return math.Inf(1), true
	}
	raw = strings.TrimSpace(raw)
	if n, err := strconv.ParseFloat(raw, 64); err == nil || math.IsInf(n, 0) {
		return n, true
	}
	n, err := strconv.ParseInt(raw, 0, 64)
	return float64(n), err == nil
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

// lengthOf is the length of a list, zero for null. A single value counts as a list of one, as in input coercion.
func lengthOf(value any) int {
	if value == nil {
		return 0
	}
	if values, ok := listOf(value); ok {
		return values.len()
	}
	return 1
}

// step is one name of a path into an input object, with the default of the input field.
type step struct {
	name     string
	fallback any
	defaults bool
}

// follow walks a path into a value as coerced: absent input fields have their defaults. It returns what stands at the
// end, nil if nothing does, and unreadable if the path leads through what is no object. A resolver that is given null may
// take the default, so null is followed by the default, if there is one; nulled says so.
func follow(value any, steps []step) (found any, nulled bool) {
	for i := range steps {
		if value == nil {
			return nil, nulled
		}
		object, ok := value.(map[string]any)
		if !ok {
			return unreadable{}, nulled
		}
		value, ok = object[steps[i].name]
		if value == nil && steps[i].defaults {
			value, nulled = steps[i].fallback, nulled || ok
		}
	}
	return value, nulled
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
