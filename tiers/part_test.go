package tiers_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"

	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

func TestSpellingsOfOneValueShareABudget(t *testing.T) {
	t.Parallel()
	type kind string
	for _, same := range [][]any{
		{"ada@x.org", "ADA@X.ORG", " ada@x.org ", kind("ada@x.org")},
		{"straße", "STRAßE", "STRASSE", "ſtraße"},
		// The attack of D11, but for a letter of another alphabet and a NUL that a database keeps.
		{
			"victim@x.de", "VICTIM@X.DE", " victim@x.de", "victim@x.de\t", "victim@x.de\n", "victim@x.de\u00a0", "victim@x.de\u200b",
			"\ufeffvictim@x.de", "v\u0131ct\u0131m@x.de", "\uff56ictim@x.de", "victim@x.de\u00ad", "vi\u0307cti\u0307m@x.de",
			"victim@x.de\u2028", "victim@x.de\u034f", "victim@x.\u1d48e", "victim@x.de\x00", "v\u0130ctim@x.de", "vic\ufe0ftim@x.de",
			"vi\u2060ctim@x.de", "\u202evictim@x.de",
		},
		{"vis@x.de", "vi\u017f@x.de"},
		{"\u00e9", "e\u0301", "\u00c9", "E\u0301", "e\u034f\u0301"},
		// The attack of A3.
		{5, "5", "05", "005", "+5", " 5", "5 ", "\uff15", "+05", json.Number("5"), strings.Repeat("0", 3000) + "5"},
		{-5, "-5", "-05", json.Number("-5")},
		{5, int64(5), uint8(5), 5.0, json.Number("5"), json.Number("5.0"), json.Number("0.5e1"), json.Number("005"), "5"},
		{json.Number("1e20"), json.Number("100000000000000000000"), json.Number("100000000000000000000.0"), 1e20},
		{5, json.Number("5" + strings.Repeat("0", 9) + "." + strings.Repeat("0", 1100) + "e-9"), json.Number("5." + strings.Repeat("0", 100_000))},
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

func TestBlanksBeforeAnAccountMakeNoOtherBudget(t *testing.T) {
	t.Parallel()
	const account = "victim@example.org"
	parts := map[string]bool{}
	for n := 0; n < 5000; n += 9 {
		for _, blank := range []string{" ", "\u200b", "\u00ad "} {
			for _, after := range []string{"", strings.Repeat(blank, 3000)} {
				parts[tiers.PartOf("p", strings.Repeat(blank, n)+account+after)] = true
			}
		}
		parts[tiers.PartOf("p", "vic"+strings.Repeat("\u200b", 10*n)+"tim@example.org")] = true
	}
	require.Len(t, parts, 1, "a server that trims them takes all of these for one account")
	require.True(t, parts[tiers.PartOf("p", account)])
}

func TestDifferentValuesHaveBudgetsOfTheirOwn(t *testing.T) {
	t.Parallel()
	seen := make(map[string]bool)
	for _, value := range []any{
		nil, "", "a", "b", "ab", "a b", true, false, 1, -1, 1.5, json.Number("123456789012345678901234567890"), json.Number("123456789012345678901234567891"),
		"5a", "a5", "+", "-", "--5", "+-5", "5.5.5", "0x5", "victim@\u0445.de", "victim@x.de",
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

// Whatever another spelling does to a text, it leaves the account.
func TestATextIsOneAccountInEverySpelling(t *testing.T) {
	t.Parallel()
	spellings := map[string]func(string) string{
		"capitals":      strings.ToUpper,
		"small letters": strings.ToLower,
		"composed":      norm.NFC.String,
		"decomposed":    norm.NFD.String,
		"compatibility": norm.NFKC.String,
		"apart":         norm.NFKD.String,
		"folded":        func(text string) string { return cases.Fold().String(text) },
		"ignorable":     func(text string) string { return strings.Join(strings.Split(text, ""), "\u200d") },
		"blanks":        func(text string) string { return "\u00a0 \t" + text + "\u3000" },
	}
	runes := rapid.SampledFrom([]*unicode.RangeTable{unicode.Latin, unicode.Greek, unicode.Cyrillic, unicode.Hangul, unicode.Mn, unicode.Nd, unicode.Cf, unicode.So})
	rapid.Check(t, func(t *rapid.T) {
		// Beyond 16 bits x/text composes characters of which only the last 16 bits can be composed.
		drawn := rapid.RuneFrom(nil, runes.Draw(t, "table"), unicode.Latin).Filter(func(r rune) bool { return r <= 0xffff })
		text := rapid.StringOfN(drawn, 0, 12, -1).Draw(t, "text")
		// Folded alone it is a letter, and where it stands among marks decides which; no account has it.
		text = strings.ReplaceAll(text, "\u0345", "")
		want := tiers.PartOf("p", text)
		for name, spell := range spellings {
			require.Equal(t, want, tiers.PartOf("p", spell(text)), "%s of %+q", name, text)
		}
		if normal := tiers.NormalText(text); strings.Count(text, "\u0307") < 3 {
			require.Equal(t, normal, tiers.NormalText(normal), "%+q", text)
		}
	})
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
