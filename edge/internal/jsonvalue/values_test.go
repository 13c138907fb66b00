package jsonvalue_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gqlgen-ratelimit/ratelimit/edge/internal/jsonvalue"
)

// in counts the values of a text that comes in chunks of so many bytes.
func in(text []byte, chunk int) int {
	var c jsonvalue.Counter
	for at := 0; at < len(text); at += chunk {
		c.Count(text[at:min(len(text), at+chunk)])
	}
	return c.N
}

// valuesOf counts what was decoded.
func valuesOf(value any) int {
	n := 1
	switch value := value.(type) {
	case map[string]any:
		for _, element := range value {
			n += valuesOf(element)
		}
	case []any:
		for _, element := range value {
			n += valuesOf(element)
		}
	}
	return n
}

// anyJSON draws a value.
func anyJSON(t *rapid.T, depth int) any {
	kinds := 5
	if depth == 0 {
		kinds = 3
	}
	switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
	case 0:
		return rapid.SampledFrom([]string{"", `"`, `\`, `\"`, "{", "]", ",,", "a"}).Draw(t, "text")
	case 1:
		return rapid.Bool().Draw(t, "bool")
	case 2:
		return nil
	case 3:
		list := make([]any, rapid.IntRange(0, 3).Draw(t, "length"))
		for i := range list {
			list[i] = anyJSON(t, depth-1)
		}
		return list
	default:
		object := map[string]any{}
		for i := range rapid.IntRange(0, 3).Draw(t, "members") {
			object[fmt.Sprintf(`%d,"{`, i)] = anyJSON(t, depth-1)
		}
		return object
	}
}

func TestTheValuesOfATextAreThoseThatDecodingFinds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		value := anyJSON(t, 4)
		indent := rapid.SampledFrom([]string{"", " ", "\n\t"}).Draw(t, "indent")
		text, err := json.MarshalIndent(value, indent, indent)
		require.NoError(t, err)
		require.Equal(t, valuesOf(value), in(text, rapid.IntRange(1, 9).Draw(t, "chunk")), string(text))
	})
}
