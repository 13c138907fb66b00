package edge

import (
	"fmt"
	"iter"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/lexer"

	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
)

// text is what is known of the text of a document without parsing it.
type text struct {
	tokens, depth, operations, fragments int
	// name is the length of the longest name or number.
	name int
}

// bound is a bound that a text breaks.
type bound struct {
	// rule names it for clients.
	rule           string
	given, allowed int
}

// count reads the text with the lexer of gqlparser, so that both see the same tokens, and ends at the first bound that it
// breaks, or at the first mistake, where the parser ends as well.
func (c *DocumentConfig) count(document string) *bound {
	if over(len(document), c.MaxBytes) {
		return &bound{ruleBytes, len(document), c.MaxBytes}
	}
	var t text
	var r reach
	nesting, fragment, begun := 0, false, false
	for token := range tokensOf(document) {
		// A walker comes to no comment.
		if token.Kind != lexer.Comment {
			r.token(&token)
		}
		switch token.Kind {
		case lexer.BraceL, lexer.ParenL, lexer.BracketL:
			if token.Kind == lexer.BraceL && nesting == 0 {
				t.define(fragment)
				r.begin()
				fragment, begun = false, false
			}
			nesting++
			t.depth = max(t.depth, nesting)
		case lexer.BraceR, lexer.ParenR, lexer.BracketR:
			nesting = max(0, nesting-1)
			if nesting == 0 && token.Kind == lexer.BraceR {
				r.end()
			}
		case lexer.Name, lexer.Int, lexer.Float:
			if nesting == 0 && !begun {
				fragment, begun = token.Value == fragmentKeyword, true
			}
			t.name = max(t.name, len(token.Value))
		default:
		}
		t.tokens++
		if broken := c.broken(&t); broken != nil {
			return broken
		}
	}
	if c.MaxReach >= 0 {
		if reached := r.sum(c.MaxReach); reached > c.MaxReach {
			return &bound{ruleReach, reached, c.MaxReach}
		}
	}
	return nil
}

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

// define counts a definition.
func (t *text) define(fragment bool) {
	if fragment {
		t.fragments++
	} else {
		t.operations++
	}
}

// broken returns the bound that the text breaks so far, nil if it breaks none.
func (c *DocumentConfig) broken(t *text) *bound {
	switch {
	case over(t.tokens, c.MaxTokens):
		return &bound{ruleTokens, t.tokens, c.MaxTokens}
	case over(t.depth, c.MaxDepth):
		return &bound{ruleNesting, t.depth, c.MaxDepth}
	case over(t.name, c.MaxName):
		return &bound{ruleName, t.name, c.MaxName}
	case over(t.operations, c.MaxOperations):
		return &bound{ruleOperations, t.operations, c.MaxOperations}
	case over(t.fragments, c.MaxFragments):
		return &bound{ruleFragments, t.fragments, c.MaxFragments}
	default:
		return nil
	}
}

// over says that a bound is broken. A negative one is none.
func over(n, most int) bool { return most >= 0 && n > most }

// refusal refuses a document that breaks the bound.
func (b *bound) refusal() *refusal {
	if b.rule == ruleBytes {
		return tooLargeFor("the document", int64(b.allowed))
	}
	r := refused(ratelimitclient.CodeQueryLimitExceeded, LayerDocument, fmt.Sprintf(complaints[b.rule], b.allowed), 0)
	r.Rule, r.Given, r.Allowed = b.rule, int64(b.given), int64(b.allowed)
	return r
}

// The bounds of an operation, as clients read them in extensions.rule.
const (
	ruleBytes      = "bytes"
	ruleTokens     = "tokens"
	ruleNesting    = "nesting"
	ruleName       = "name"
	ruleOperations = "operations"
	ruleFragments  = "fragments"
	ruleReach      = "reach"
	ruleExtensions = "extensions"
	ruleValues     = "values"
)

// complaints say to people what breaks a bound.
var complaints = map[string]string{
	ruleTokens:     "the document has more than %d tokens: ask for less at once, and send lists in variables",
	ruleNesting:    "the document has more than %d levels of braces and brackets: nest it less",
	ruleName:       "the document has a name or a number of more than %d bytes: shorten it",
	ruleOperations: "the document has more than %d operations: send the one that is to run",
	ruleFragments:  "the document has more than %d fragments: send those that the operation spreads",
	ruleReach: "the operations and fragments of the document have more than %d tokens, counted with those of the fragments that each spreads: " +
		"send one operation in a document, and spread large fragments from fewer others",
	ruleExtensions: "the extensions of the operation have more than %d values",
	ruleValues:     "the operation has more than %d values of JSON in its variables: send them in several operations",
}
