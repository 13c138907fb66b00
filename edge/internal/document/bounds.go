// Package document knows documents by their texts: the bounds that a text keeps without being parsed, what it takes in memory
// when it was, and a cache of those that were.
package document

import (
	"fmt"
	"math"

	"github.com/vektah/gqlparser/v2/lexer"
)

// text is what is known of the text of a document without parsing it.
type text struct {
	tokens, depth, operations, fragments int
	// name is the length of the longest name or number.
	name int
}

// Bounds are those of a text, as edge.DocumentConfig describes them. math.MaxInt is none.
type Bounds struct {
	MaxBytes, MaxTokens, MaxDepth, MaxOperations, MaxFragments, MaxName, MaxReach int
}

// Broken is a bound that a text breaks.
type Broken struct {
	// Rule names it for clients.
	Rule string
	// Given is what the text has, as far as it was counted, and Allowed what it may have.
	Given, Allowed int
}

// Count returns the first bound that the text breaks, nil if it breaks none. It reads the text with the lexer of gqlparser, so
// that both see the same tokens, and ends there, or at the first mistake, where the parser ends as well.
func (b *Bounds) Count(document string) *Broken {
	if len(document) > b.MaxBytes {
		return &Broken{RuleBytes, len(document), b.MaxBytes}
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
		if broken := b.broken(&t); broken != nil {
			return broken
		}
	}
	if b.MaxReach < math.MaxInt {
		if reached := r.sum(b.MaxReach); reached > b.MaxReach {
			return &Broken{ruleReach, reached, b.MaxReach}
		}
	}
	return nil
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
func (b *Bounds) broken(t *text) *Broken {
	switch {
	case t.tokens > b.MaxTokens:
		return &Broken{ruleTokens, t.tokens, b.MaxTokens}
	case t.depth > b.MaxDepth:
		return &Broken{ruleNesting, t.depth, b.MaxDepth}
	case t.name > b.MaxName:
		return &Broken{ruleName, t.name, b.MaxName}
	case t.operations > b.MaxOperations:
		return &Broken{ruleOperations, t.operations, b.MaxOperations}
	case t.fragments > b.MaxFragments:
		return &Broken{ruleFragments, t.fragments, b.MaxFragments}
	default:
		return nil
	}
}

// Complaint says to people what breaks the bound, which is not [RuleBytes].
func (b *Broken) Complaint() string { return fmt.Sprintf(complaints[b.Rule], b.Allowed) }

// The bounds of a document, as clients read them in extensions.rule.
const (
	// RuleBytes is that of [Bounds.MaxBytes]: the text is too long, whatever is in it.
	RuleBytes      = "bytes"
	ruleTokens     = "tokens"
	ruleNesting    = "nesting"
	ruleName       = "name"
	ruleOperations = "operations"
	ruleFragments  = "fragments"
	ruleReach      = "reach"
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
}
