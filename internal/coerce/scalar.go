package coerce

import (
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
)

// Scalar returns what gqlgen's unmarshaller of a built-in scalar reads of a value: an int64 for Int, a float64 for Float, a
// string for String and ID, and a bool for Boolean. A value that the unmarshaller refuses stays as it is, and so does every
// value of another scalar.
func Scalar(name string, value any) any {
	switch name {
	case "Int":
		return integer(value)
	case "Float":
		return float(value)
	case "String":
		return text(value, -1)
	case "ID":
		return text(value, idFraction)
	case "Boolean":
		return boolean(value)
	default:
		return value
	}
}

// idFraction is how many digits behind its point a float64 has as an ID.
const idFraction = 6

// Spelled returns the text of a value that is a text, or a number of a document or of JSON.
func Spelled(value any) (string, bool) {
	switch value := value.(type) {
	case string:
		return value, true
	case json.Number:
		return string(value), true
	default:
		return "", false
	}
}

func integer(value any) any {
	if spelled, ok := Spelled(value); ok {
		if n, err := strconv.ParseInt(spelled, 10, 64); err == nil {
			return n
		}
		return value
	}
	if v := reflect.ValueOf(value); v.CanInt() {
		return v.Int()
	}
	return value
}

func float(value any) any {
	if spelled, ok := Spelled(value); ok {
		if n, err := strconv.ParseFloat(spelled, 64); err == nil {
			return n
		}
		return value
	}
	switch n := value.(type) {
	case int:
		return float64(n)
	case int64:
		return float64(n)
	default:
		return value
	}
}

func text(value any, fraction int) any {
	if spelled, ok := Spelled(value); ok {
		return spelled
	}
	switch value := value.(type) {
	case int:
		return strconv.Itoa(value)
	case int64:
		return strconv.FormatInt(value, 10)
	case float64:
		return strconv.FormatFloat(value, 'f', fraction, 64)
	case bool:
		return strconv.FormatBool(value)
	default:
		return value
	}
}

func boolean(value any) any {
	switch value := value.(type) {
	case string:
		return strings.EqualFold(value, "true")
	case int:
		return value != 0
	default:
		return value
	}
}
