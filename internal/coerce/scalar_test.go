package coerce_test

import (
	"encoding/json"
	"testing"

	"github.com/99designs/gqlgen/graphql"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gqlgen-ratelimit/ratelimit/internal/coerce"
)

// unmarshallers are those of gqlgen.
var unmarshallers = map[string]func(value any) (any, error){
	"Int": func(value any) (any, error) {
		n, err := graphql.UnmarshalInt(value)
		return int64(n), err
	},
	"Float":   func(value any) (any, error) { return graphql.UnmarshalFloat(value) },
	"String":  func(value any) (any, error) { return graphql.UnmarshalString(value) },
	"ID":      func(value any) (any, error) { return graphql.UnmarshalID(value) },
	"Boolean": func(value any) (any, error) { return graphql.UnmarshalBoolean(value) },
}

// requireReadAlike compares what is read of a value with what gqlgen reads of it.
func requireReadAlike(t require.TestingT, name string, value any) {
	want, err := unmarshallers[name](value)
	if err != nil {
		want = value
	}
	require.Equal(t, want, coerce.Scalar(name, value), "%T %v as %s", value, value, name)
}

func TestAScalarIsReadAsGqlgenReadsIt(t *testing.T) {
	t.Parallel()
	for name := range unmarshallers {
		for _, value := range []any{
			"", "2", "02", "+2", "-2", "2.0", "1e1", ".5", "0x10p0", "1_0", " 2", "inf", "1e400", "true", "TRUE", "a",
			json.Number("2"), json.Number("2.0"), json.Number("1e1"), json.Number("-0"), json.Number("9223372036854775808"),
			2, int64(2), int32(2), 2.0, 0.1, 1e21, true, false,
			[]any{"2"},
			map[string]any{},
		} {
			requireReadAlike(t, name, value)
		}
	}
	require.Equal(t, json.Number("2.0"), coerce.Scalar("JSON", json.Number("2.0")), "nobody knows how that is read")
}

func TestWhateverIsGivenIsReadAsGqlgenReadsIt(t *testing.T) {
	t.Parallel()
	spelled := rapid.StringMatching(`[+-]?0{0,3}[0-9]{0,20}(\.[0-9]{0,20})?([eE][+-]?[0-9]{1,3})?`)
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom([]string{"Int", "Float", "String", "ID", "Boolean"}).Draw(t, "scalar")
		requireReadAlike(t, name, rapid.OneOf(
			rapid.Map(spelled, func(text string) any { return text }),
			rapid.Map(spelled, func(text string) any { return json.Number(text) }),
			rapid.Map(rapid.String(), func(text string) any { return text }),
			rapid.Map(rapid.Int64(), func(n int64) any { return n }),
			rapid.Map(rapid.Int(), func(n int) any { return n }),
			rapid.Map(rapid.Float64(), func(n float64) any { return n }),
			rapid.Map(rapid.Bool(), func(b bool) any { return b }),
		).Draw(t, "value"))
	})
}
