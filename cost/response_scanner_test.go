package cost_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"

	"github.com/gqlgen-ratelimit/ratelimit/cost"
)

// responses are pieces of JSON, right and wrong.
var responses = []string{
	`{"items": [{"id": "1"}, null], "node": {"__typename": "User", "heavy": 2}}`,
	` [1, -0.5e+3, "a\"\\\u00e9", {"a": {}}, [], true, false, null] `,
	`{"a": 1,}`, `[1 2]`, `{"a" 1}`, `{a: 1}`, `01`, `1.`, `.5`, `-`, `1e`, `+1`, `"\x"`, `"\u12g4"`, "\"a\nb\"", `"a`,
	`tru`, `nulll`, `[}`, `{]`, `{"a": [1}`, ``, ` `, `{} {}`, "\xff", "\"\xff\xfe\"", "{\"a\u0000\": 1}", `{"\u0061": 1}`,
}

func TestTheScannerReadsWhatEncodingJSONReads(t *testing.T) {
	t.Parallel()
	for _, text := range responses {
		require.Equal(t, json.Valid([]byte(text)), cost.Skips([]byte(text)), "%q", text)
	}
}

func TestAResponseThatIsNestedTooDeeplyIsAnError(t *testing.T) {
	t.Parallel()
	for depth, want := range map[int]bool{9_999: true, 10_001: false, 1_000_000: false} {
		text := []byte(strings.Repeat("[", depth) + strings.Repeat("]", depth))
		require.Equal(t, want, cost.Skips(text), depth)
		require.Equal(t, want, json.Valid(text), depth)
	}
}

func FuzzScanner(f *testing.F) {
	for _, text := range responses {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		require.Equal(t, json.Valid(data), cost.Skips(data), "%q", data)
	})
}

// FuzzTally prices whatever bytes as the response to whatever operation parses.
func FuzzTally(f *testing.F) {
	seed(f, func(query, _ string) {
		for _, data := range responses[:2] {
			f.Add(query, []byte(data))
		}
	})
	f.Add(`{ node { id ... on Item { heavy } ... on User { heavy } } }`, []byte(`{"node": {"id": 1, "heavy": 2}}`))
	f.Add(`{ node { __typename ... on Item { heavy } } }`, []byte(`{"node": {"heavy": 2, "__typename": "Item"}}`))
	estimator, _ := newEstimator(f, "bypass", cost.Config{WorkLimit: 5000})
	f.Fuzz(func(t *testing.T, query string, data []byte) {
		doc, err := parser.ParseQuery(&ast.Source{Input: query})
		if err != nil {
			return
		}
		for _, op := range doc.Operations {
			outline, err := estimator.Outline(doc, op)
			if err != nil {
				continue
			}
			tally := outline.Tally(nil)
			err = tally.Add(data)
			actual, unknown := tally.Cost()
			require.Equal(t, err, unknown)
			requireSane(t, actual)
			if err != nil {
				var response *cost.ResponseError
				require.ErrorAs(t, err, &response)
				require.LessOrEqual(t, response.Offset, len(data))
				continue
			}
			require.True(t, len(strings.Trim(string(data), " \t\r\n")) == 0 || json.Valid(data), "%q", data)
		}
	})
}
