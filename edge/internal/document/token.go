package document

import (
	"iter"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/lexer"
)

// fragmentKeyword begins the definition of a fragment.
const fragmentKeyword = "fragment"

// tokensOf are the tokens of a text and its comments, up to the first mistake.
func tokensOf(document string) iter.Seq[lexer.Token] {
	return func(yield func(lexer.Token) bool) {
		lex := lexer.New(&ast.Source{Input: document})
		for {
			token, err := lex.ReadToken()
			if err != nil || token.Kind == lexer.EOF || !yield(token) {
				return
			}
		}
	}
}

// countOf counts the tokens and the comments of a text.
func countOf(document string) (tokens, comments int) {
	for token := range tokensOf(document) {
		if token.Kind == lexer.Comment {
			comments++
		} else {
			tokens++
		}
	}
	return tokens, comments
}
