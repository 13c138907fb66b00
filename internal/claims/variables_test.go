package claims_test

import (
	"encoding/json"
	"log/slog"
	"math"
	"net/http"
	"strings"
	"testing"

	"github.com/99designs/gqlgen/graphql"
	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/validator"
	"pgregory.net/rapid"

	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
	"github.com/gqlgen-ratelimit/ratelimit/internal/claims"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

const fingerprintSchema = `
	scalar Any
	input In { n: Int, x: Float, b: Boolean, id: ID, s: String, ids: [ID!], inner: In, any: Any, size: Int = 5 }
	type Query { f(n: Int, x: Float, id: ID, s: String, any: Any, ns: [Int!], in: In): Int }`

const fingerprintQuery = `query ($n: Int, $x: Float, $id: ID, $s: String, $any: Any, $ns: [Int!], $in: In) {
	f(n: $n, x: $x, id: $id, s: $s, any: $any, ns: $ns, in: $in)
}`

func fingerprinted(t *testing.T) (*ast.Schema, *ast.QueryDocument) {
	t.Helper()
	schema, err := gqlparser.LoadSchema(&ast.Source{Input: fingerprintSchema})
	require.NoError(t, err)
	doc, errs := gqlparser.LoadQueryWithRules(schema, fingerprintQuery, nil)
	require.Empty(t, errs)
	return schema, doc
}

// coercedBy returns the variables of a request with this JSON as gqlgen decodes and coerces them.
func coercedBy(t *testing.T, variables string) (map[string]any, error) {
	t.Helper()
	schema, doc := fingerprinted(t)
	var given map[string]any
	decoder := json.NewDecoder(strings.NewReader(variables))
	decoder.UseNumber()
	require.NoError(t, decoder.Decode(&given))
	return validator.VariableValues(schema, doc.Operations[0], given)
}

// fingerprintOf returns the fingerprint of a request with the JSON of its variables, as gqlgen decodes and coerces them.
func fingerprintOf(t *testing.T, variables string) idempotency.Fingerprint {
	t.Helper()
	values, err := coercedBy(t, variables)
	require.NoError(t, err, variables)
	schema, doc := fingerprinted(t)
	keeper := claims.New(claims.Config{Schema: schema, Headers: []string{"Idempotency-Key"}, Logger: slog.New(slog.DiscardHandler)})
	claim, err := keeper.Claim(&graphql.OperationContext{
		RawQuery: fingerprintQuery, Doc: doc, Operation: doc.Operations[0], Variables: values,
		Headers: http.Header{"Idempotency-Key": {"key-of-a-request"}},
	}, tiers.Subject{Tenant: "acme"}, false)
	require.NoError(t, err)
	return claim.Fingerprint
}

func TestAFingerprintReadsCoercedValues(t *testing.T) {
	t.Parallel()
	for _, same := range [][]string{
		{`{"n": 2}`, `{"n": "2"}`, `{"n": "02"}`, `{"n": "+2"}`},
		{`{"x": 2}`, `{"x": "2"}`, `{"x": 2.0}`, `{"x": 2e0}`, `{"x": "2.0"}`, `{"x": "20e-1"}`},
		{`{"id": 2}`, `{"id": "2"}`},
		{`{"id": 2.0}`, `{"id": "2.0"}`},
		{`{"s": 2}`, `{"s": "2"}`},
		{`{"s": 1e1}`, `{"s": "1e1"}`},
		{`{"in": {"s": 2.0}}`, `{"in": {"s": "2.0", "size": 5}}`, `{"in": {"s": "2.0", "__typename": "In"}}`},
		{`{"ns": 2}`, `{"ns": "2"}`, `{"ns": [2]}`, `{"ns": ["2"]}`},
		{`{"in": {"n": 2, "ids": [5], "inner": {"n": 3}}}`, `{"in": {"n": "2", "ids": "5", "inner": {"n": "03"}}}`},
		{`{"x": 1}`, `{"x": 1.0}`, `{"x": "1"}`, `{"x": 1e0}`, `{"x": 10e-1}`, `{"x": "+01.00E+00"}`, `{"x": ".1e1"}`, `{"x": "1."}`},
		{`{"x": 0}`, `{"x": "0.00"}`, `{"x": "0e5"}`, `{"x": "0e-5"}`},
		{`{"x": 1e21}`, `{"x": "1000000000000000000000"}`},
		{`{"in": {"x": 1}}`, `{"in": {"x": 1.0}}`, `{"in": {"x": "1"}}`, `{"in": {"x": 1e0}}`, `{"in": {"x": 10e-1}}`},
	} {
		want := fingerprintOf(t, same[0])
		for _, other := range same[1:] {
			require.Equal(t, want, fingerprintOf(t, other), "%s and %s", same[0], other)
		}
	}
}

func TestValuesThatDifferHaveFingerprintsOfTheirOwn(t *testing.T) {
	t.Parallel()
	seen := map[idempotency.Fingerprint]string{}
	for _, variables := range []string{
		`{}`, `{"n": null}`, `{"n": 2}`, `{"n": 3}`, `{"n": -2}`, `{"x": 2}`, `{"x": 2.5}`,
		`{"x": "9007199254740993"}`, `{"x": "9007199254740992"}`, `{"x": 0.1}`, `{"x": "0.1000000000000000000001"}`,
		`{"in": {"x": 9007199254740993}}`, `{"in": {"x": 9007199254740992}}`, `{"x": "-2"}`, `{"x": "20"}`, `{"x": "0.2"}`, `{"x": "2e10"}`,
		`{"x": "0x1p-2"}`, `{"x": "0x2p-3"}`, `{"x": "0.25"}`, `{"x": "1e-99999999999"}`, `{"x": "1e-99999999998"}`, `{"x": "0"}`, `{"x": "-0"}`,
		`{"id": "2"}`, `{"id": "02"}`, `{"s": "2"}`, `{"s": "02"}`, `{"s": "+2"}`, `{"s": 2.0}`, `{"s": 2e0}`, `{"s": ""}`, `{"s": null}`,
		`{"any": 2}`, `{"any": "2"}`, `{"any": [2]}`, `{"any": {"n": 2}}`, `{"any": {"n": "2"}}`,
		`{"ns": []}`, `{"ns": [2]}`, `{"ns": [2, 2]}`, `{"in": {"n": 2}}`, `{"in": {"any": 2}}`, `{"in": {"any": "2"}}`,
	} {
		fingerprint := fingerprintOf(t, variables)
		require.Empty(t, seen[fingerprint], variables)
		seen[fingerprint] = variables
	}
}

// One value of a resolver has one fingerprint, but that each digit and each notation of a Float counts. Two have two.
func TestFingerprintsAreWhatUnmarshallersRead(t *testing.T) {
	t.Parallel()
	spelled := rapid.StringMatching(`[+-]?0{0,2}[0-3][0-2]{0,2}|[0-3](\.[0-5]0{0,20})?(e[+-]?[0-2])?|true|a`)
	quoted := func(r *rapid.T, text string) string {
		if json.Valid([]byte(text)) && rapid.Bool().Draw(r, "plain") {
			return text
		}
		return `"` + text + `"`
	}
	rapid.Check(t, func(r *rapid.T) {
		name := rapid.SampledFrom([]string{"s", "id", "n", "x"}).Draw(r, "variable")
		read := func(given string) (alone, within idempotency.Fingerprint, read any) {
			if _, err := coercedBy(t, `{"`+name+`": `+given+`}`); err != nil {
				r.SkipNow()
			}
			values, err := coercedBy(t, `{"in": {"`+name+`": `+given+`}}`)
			require.NoError(t, err)
			read, err = unmarshal(name, values["in"].(map[string]any)[name])
			require.NoError(t, err)
			return fingerprintOf(t, `{"`+name+`": `+given+`}`), fingerprintOf(t, `{"in": {"`+name+`": `+given+`}}`), read
		}
		text := spelled.Draw(r, "one")
		one, other := quoted(r, text), quoted(r, rapid.OneOf(rapid.Just(text), spelled).Draw(r, "other"))
		alone, within, first := read(one)
		another, withinAnother, second := read(other)
		require.Equal(r, first == second, alone == another, "%s and %s for %s", one, other, name)
		require.Equal(r, first == second, within == withinAnother, "%s and %s in an object for %s", one, other, name)
	})
}

// unmarshal reads what gqlgen reads. The zero below zero is another Float than zero.
func unmarshal(name string, value any) (any, error) {
	switch name {
	case "s":
		return graphql.UnmarshalString(value)
	case "id":
		return graphql.UnmarshalID(value)
	case "n":
		return graphql.UnmarshalInt(value)
	default:
		n, err := graphql.UnmarshalFloat(value)
		return math.Float64bits(n), err
	}
}
