package tiers_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

func TestBlanksAndCommentsMakeNoOtherDocument(t *testing.T) {
	t.Parallel()
	for stripped, spellings := range map[string][]string{
		"query SomeQuery($foo:String!$bar:String){someField(foo:$foo bar:$bar){a b{c d}}}": {
			"query SomeQuery($foo: String!, $bar: String) {\n\tsomeField(foo: $foo, bar: $bar) {\r\n\t\ta\n\t\tb { c, d }\n\t}\n}\n",
			"\uFEFF# who asks?\nquery SomeQuery ( $foo : String ! $bar : String )#\n{ someField(foo: $foo,,, bar: $bar) { a b { c d } } }   ",
		},
		`{a(n:-1.5e+3 s:"a # b,  c\" d" e:E)...F ...on Query{b}}`: {
			"{ a ( n : -1.5e+3, s: \"a # b,  c\\\" d\", e: E ) ... F ... on Query { b } }",
		},
		`{a(l:[1 ...])b:c}`:                 {"{a(l:[1 ... ] ) b : c}"},
		`{a(l:[A -1])}`:                     {"{a(l:[A-1])}", "{a(l:[A, -1])}"},
		"{a(s:\"\"\"\nx\n  y\"\"\" b:1)}":   {"{a(s:\"\"\"\n    x\n      y\n  \"\"\", b: 1)}", "{a(s: \"\"\"\n\n x\r\n   y\r\"\"\", b: 1)}"},
		"{a(s:\"\"\"q\\\"\"\" \\\n\"\"\")}": {"{a(s: \"\"\"\n q\\\"\"\" \\\n\"\"\")}"},
	} {
		for _, spelling := range spellings {
			require.Equal(t, tiers.DocumentID(stripped), tiers.DocumentID(spelling), "%q", spelling)
		}
		require.Equal(t, stripped, tiers.StripIgnored(stripped), "it is stripped already")
	}
}

func TestDocumentsThatSayOtherThingsHaveOtherIDs(t *testing.T) {
	t.Parallel()
	seen := make(map[string]string)
	for _, text := range []string{
		"{a b}", "{ab}", "{a:b}", "query a{b}", `{a(s:"x y")}`, `{a(s:"x  y")}`, `{a(s:"x,y")}`, `{a(s:"#x")}`,
		`{a(n:1)}`, `{a(n:11)}`, `{a(n:[1 1])}`, `{a(n:1.1)}`, "{a(s:\"\"\"x\ny\"\"\")}", "{a(s:\"\"\"x y\"\"\")}", "",
	} {
		id := tiers.DocumentID(text)
		require.Empty(t, seen[id], "%q", text)
		seen[id] = text + " "
	}
}
