package claims

import (
	"strings"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/gqlgen-ratelimit/ratelimit/internal/coerce"
	"github.com/gqlgen-ratelimit/ratelimit/internal/number"
)

// maxCoerced is how many values in the variables of an operation are read. What comes after them stays as it came.
const maxCoerced = 1 << 18

// coerced returns the variables of an operation as a resolver reads them, so that what it reads as one value has one
// fingerprint.
func coerced(schema *ast.Schema, op *ast.OperationDefinition, variables map[string]any) map[string]any {
	left := maxCoerced
	reader := coerce.Reader{Types: schema.Types, Scalar: spelled, Visit: func(n int) bool {
		left -= n
		return left >= 0
	}}
	read := make(map[string]any, len(variables))
	// One order for all requests, since it decides which values come after the last one that is read.
	for _, v := range op.VariableDefinitions {
		if value, given := variables[v.Variable]; given {
			read[v.Variable] = reader.Value(v.Type, value)
		}
	}
	return read
}

// spelled returns what a value of a scalar is read as. That of a Float is a text with all its digits.
func spelled(name string, value any) any {
	if name != "Float" {
		return coerce.Scalar(name, value)
	}
	text, ok := coerce.Scalar("String", value).(string)
	if !ok {
		return value
	}
	if plain, isPlain := plainFloat(text); isPlain {
		return plain
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
