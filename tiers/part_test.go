package tiers_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

func TestSpellingsOfOneValueShareABudget(t *testing.T) {
	t.Parallel()
	type kind string
	for _, same := range [][]any{
		{"ada@x.org", "ADA@X.ORG", " ada@x.org ", kind("ada@x.org")},
		{"straße", "STRAßE"},
		{5, int64(5), uint8(5), 5.0, json.Number("5"), json.Number("5.0"), json.Number("0.5e1"), json.Number("005"), "5"},
		{json.Number("-0"), 0, json.Number("0"), json.Number("-0.0"), math.Copysign(0, -1)},
		{json.Number("123456789012345678901234567890"), "123456789012345678901234567890"},
		{1.5, float32(1.5), json.Number("1.5"), json.Number("15e-1")},
		{map[string]any{"a": 1, "b": nil}, map[string]any{"a": "1"}},
		{[]any{"A", 1}, []string{"a", "1"}},
		{strings.Repeat("x", 2000), strings.Repeat("x", 3000)},
	} {
		for _, other := range same {
			require.Equal(t, tiers.PartOf("p", same[0]), tiers.PartOf("p", other), "%v", other)
		}
	}
}

func TestBlanksBeforeAnAccountMakeNoMoreThanOneOtherBudget(t *testing.T) {
	t.Parallel()
	const account = "victim@example.org"
	parts := map[string]bool{}
	for blanks := range 5000 {
		for _, after := range []string{"", strings.Repeat(" ", 3000)} {
			parts[tiers.PartOf("p", strings.Repeat(" ", blanks)+account+after)] = true
		}
	}
	require.LessOrEqual(t, len(parts), 2, "a server that trims them takes all of these for one account")
	require.True(t, parts[tiers.PartOf("p", account)])
}

func TestDifferentValuesHaveBudgetsOfTheirOwn(t *testing.T) {
	t.Parallel()
	seen := make(map[string]bool)
	for _, value := range []any{
		nil, "", "a", "b", "ab", "a b", true, false, 1, -1, 1.5, json.Number("123456789012345678901234567890"), json.Number("123456789012345678901234567891"),
		[]any{},
		[]any{"a"},
		[]any{[]any{"a"}},
		[]any{"a", "b"},
		[]any{"ab"},
		map[string]any{},
		map[string]any{"a": "b"},
		map[string]any{"ab": ""},
		map[string]any{"a": []any{"b"}},
		math.Inf(1), strings.Repeat("x", 1024), strings.Repeat("x", 1023),
	} {
		part := tiers.PartOf("p", value)
		require.False(t, seen[part], "%v", value)
		seen[part] = true
	}
	require.NotEqual(t, tiers.PartOf("a", "b"), tiers.PartOf("b", "a"))
	require.NotEqual(t, tiers.PartOf("ab", "c"), tiers.PartOf("a", "bc"))
	require.NotEqual(t, tiers.PartOf("p", "user:ada"), tiers.UserPart("ada"))
}

// FuzzPart reads values as variables carry them. What JSON says twice in other words is one value.
func FuzzPart(f *testing.F) {
	for _, seed := range []string{`"a"`, `{"a":[1,2.50,{"b":null}]}`, `1e999`, `-0`, `[[[[]]]]`, `"\u0000 É"`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var floats, numbers any
		if json.Unmarshal([]byte(text), &floats) != nil {
			return
		}
		decoder := json.NewDecoder(strings.NewReader(text))
		decoder.UseNumber()
		if err := decoder.Decode(&numbers); err != nil {
			t.Skip(err)
		}
		part := tiers.PartOf("p", numbers)
		if len(part) != len("by:")+32 || part != tiers.PartOf("p", numbers) {
			t.Fatal(part)
		}
		if value, isText := numbers.(string); isText && part != tiers.PartOf("p", "\t"+strings.ToUpper(value)) && len(value) < 500 {
			t.Fatalf("%q in capitals is another value", value)
		}
		if again, err := json.Marshal(floats); err == nil && !strings.ContainsAny(text, "0123456789") && tiers.PartOf("p", floats) != part {
			t.Fatalf("%s is not %s", fmt.Sprint(numbers), again)
		}
	})
}
