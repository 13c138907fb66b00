package e2e_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/lexer"

	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// FuzzDocumentID holds ids of documents against the tokens that servers read.
func FuzzDocumentID(f *testing.F) {
	for _, seed := range []string{
		half, "{a b}", "query Q($a: Int = 1) @d { ...F, ... on T { x(s: \"\\\"#\", b: \"\"\" a\n\n  b \\\"\"\" \"\"\") } } # end",
		"{a(n:-0.1e-9)...F}", "{a(l:[A-1 B\"x\"])}", "1...", "{a(s:\"\"\"\n\n  \t\"\"\")}",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		// Where four quotes follow each other gqlparser looks for the end of a block string after them, and it counts
		// characters where we count bytes.
		if strings.Contains(text, `""""`) || strings.IndexFunc(text, func(r rune) bool { return r >= utf8.RuneSelf }) >= 0 {
			return
		}
		tokens, valid := tokensOf(text)
		if !valid {
			return
		}
		id := tiers.DocumentID(text)
		for _, between := range []string{" ", ",\r\n\t", "#, \"\n", "\uFEFF\n"} {
			if again := tiers.DocumentID(between + strings.Join(tokens, between) + between); again != id {
				t.Fatalf("%q between the tokens of %q makes another document", between, text)
			}
		}
		for i := range tokens {
			less := strings.Join(append(append([]string{}, tokens[:i]...), tokens[i+1:]...), " ")
			if tiers.DocumentID(less) == id {
				t.Fatalf("%q without its token %d is the same document", text, i)
			}
		}
	})
}

// tokensOf returns the tokens of a text as they are spelled, if it consists of tokens.
func tokensOf(text string) (tokens []string, valid bool) {
	lex := lexer.New(&ast.Source{Input: text})
	for {
		token, err := lex.ReadToken()
		switch {
		case err != nil:
			return nil, false
		case token.Kind == lexer.EOF:
			return tokens, true
		case token.Kind != lexer.Comment:
			if token.Pos.Start >= token.Pos.End || token.Pos.End > len(text) {
				return nil, false
			}
			tokens = append(tokens, text[token.Pos.Start:token.Pos.End])
		}
	}
}
