package coerce_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/gqlgen-ratelimit/ratelimit/internal/coerce"
)

const inputs = `
	scalar JSON
	enum Kind { SMALL }
	input In { s: String, n: Int = 5, x: Float, ids: [[ID!]], in: In, kind: Kind, any: JSON, tags: [String!] = "a" }
	type Query { f(in: In, list: [In!]): Int }`

// read reads the JSON of a value of the type, and no more values than may be read.
func read(t *testing.T, typ *ast.Type, value string, most int) any {
	t.Helper()
	schema, err := gqlparser.LoadSchema(&ast.Source{Input: inputs})
	require.NoError(t, err)
	reader := coerce.Reader{Types: schema.Types, Scalar: coerce.Scalar, Visit: func(n int) bool {
		most -= n
		return most >= 0
	}}
	return reader.Value(typ, decoded(t, value))
}

func decoded(t *testing.T, text string) (value any) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(text), &value))
	return value
}

func TestValuesAreReadByTheirTypesInDepth(t *testing.T) {
	t.Parallel()
	in := ast.NamedType("In", nil)
	for given, want := range map[string]map[string]any{
		`{}`:                        {"n": int64(5), "tags": []any{"a"}},
		`{"n": null, "tags": []}`:   {"n": nil, "tags": []any{}},
		`{"x": "0.50", "tags": []}`: {"n": int64(5), "x": 0.5, "tags": []any{}},
		`{"n": "02", "s": "02", "kind": "SMALL", "tags": "b"}`:             {"n": int64(2), "s": "02", "kind": "SMALL", "tags": []any{"b"}},
		`{"n": "1", "in": {"n": "1", "tags": ["c"]}, "tags": ["c"]}`:       {"n": int64(1), "in": map[string]any{"n": int64(1), "tags": []any{"c"}}, "tags": []any{"c"}},
		`{"ids": "1", "any": {"n": "02"}, "tags": [], "__typename": "In"}`: {"n": int64(5), "ids": []any{[]any{"1"}}, "any": map[string]any{"n": "02"}, "tags": []any{}},
	} {
		require.Equal(t, any(want), read(t, in, given, 100), given)
		require.Equal(t, any([]any{want}), read(t, ast.ListType(in, nil), given, 100), given)
	}
	require.Nil(t, read(t, in, `null`, 100))
	require.Equal(t, "no object", read(t, in, `"no object"`, 100))
}

func TestBeyondTheBoundValuesStayAsTheyCame(t *testing.T) {
	t.Parallel()
	ints := ast.ListType(ast.NamedType("Int", nil), nil)
	require.Equal(t, []any{int64(1), int64(2), "03"}, read(t, ints, `["01", "02", "03"]`, 3))
}
