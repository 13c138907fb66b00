package tiers_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/lexer"

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

// FuzzStripIgnored holds what is stripped against the lexer that servers read with.
func FuzzStripIgnored(f *testing.F) {
	for _, seed := range []string{
		"{a b}", "query Q($a: Int = 1) @d { ...F, ... on T { x(s: \"\\\"#\", b: \"\"\" a\n\n  b \\\"\"\" \"\"\") } } # end", "{a(n:-0.1e-9)...F}", "\uFEFF{a}",
		`"""` + "\n\n  \t\"", `{a(l:[A-1 B"x"])}`, "1...", "\"a\nb",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		stripped := tiers.StripIgnored(text)
		if len(stripped) > 2*len(text) {
			t.Fatalf("%q became longer: %q", text, stripped)
		}
		before, valid := tokens(text)
		// Where four quotes follow each other gqlparser looks for the end of a block string after them.
		if !valid || strings.Contains(text, `""""`) {
			return
		}
		after, stillValid := tokens(stripped)
		if !stillValid || before != after {
			t.Fatalf("%q became %q: %s, %s", text, stripped, before, after)
		}
		if again := tiers.StripIgnored(stripped); again != stripped {
			t.Fatalf("%q, stripped again, became %q", stripped, again)
		}
	})
}

// tokens spells the tokens of a text, if it consists of tokens.
func tokens(text string) (string, bool) {
	lex := lexer.New(&ast.Source{Input: text})
	var spelled strings.Builder
	for {
		token, err := lex.ReadToken()
		switch {
		case err != nil:
			return "", false
		case token.Kind == lexer.EOF:
			return spelled.String(), true
		case token.Kind == lexer.BlockString:
			// Here gqlparser does not indent as the specification says.
			spelled.WriteString(strings.Join(strings.Fields(token.Value), "") + "\n")
		case token.Kind != lexer.Comment:
			spelled.WriteString(token.Kind.String() + " " + token.Value + "\n")
		}
	}
}
