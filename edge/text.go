package edge

import (
	"fmt"
	"strings"

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

// count reads the text as a lexer would, and ends at the first bound that it breaks. It agrees with the parser up to the
// first mistake in the text, where the parser ends as well.
func (c *DocumentConfig) count(document string) *bound {
	if over(len(document), c.MaxBytes) {
		return &bound{ruleBytes, len(document), c.MaxBytes}
	}
	var t text
	var r reach
	nesting, fragment, begun := 0, false, false
	for at := 0; at < len(document); {
		start := at
		b := document[at]
		at = endOfToken(document, at)
		if ignored(b) && b != '#' {
			continue
		}
		// A walker comes to no comment.
		if b != '#' {
			r.token(document[start:at])
		}
		switch {
		case b == '{' || b == '(' || b == '[':
			if b == '{' && nesting == 0 {
				t.define(fragment)
				r.begin()
				fragment, begun = false, false
			}
			nesting++
			t.depth = max(t.depth, nesting)
		case b == '}' || b == ')' || b == ']':
			nesting = max(0, nesting-1)
			if nesting == 0 && b == '}' {
				r.end()
			}
		case inName(b) || b == '-':
			if nesting == 0 && !begun {
				fragment, begun = document[start:at] == "fragment", true
			}
			t.name = max(t.name, at-start)
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

// countOf counts the tokens and the comments of a text.
func countOf(document string) (tokens, comments int) {
	for at := 0; at < len(document); at = endOfToken(document, at) {
		switch b := document[at]; {
		case b == '#':
			comments++
		case !ignored(b):
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

// ignored says whether a token that starts with the byte means nothing.
func ignored(b byte) bool {
	return b == ' ' || b == ',' || b == '\n' || b == '\t' || b == '\r' || b == '#'
}

// inName says whether the byte belongs to a name or a number.
func inName(b byte) bool {
	return b == '_' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9'
}

// endOfToken returns where the token ends that starts there.
func endOfToken(document string, at int) int {
	rest := document[at:]
	switch b := rest[0]; {
	case b == '#':
		if end := strings.IndexAny(rest, "\r\n"); end >= 0 {
			return at + end
		}
		return len(document)
	case strings.HasPrefix(rest, `"""`):
		return at + endOfBlock(rest)
	case b == '"':
		return at + endOfString(rest)
	case inName(b) || b == '-':
		end := 1
		for end < len(rest) && (inName(rest[end]) || b != '_' && !letter(b) && inNumber(rest[end])) {
			end++
		}
		return at + end
	case strings.HasPrefix(rest, "..."):
		return at + len("...")
	default:
		return at + 1
	}
}

func letter(b byte) bool { return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' }

func inNumber(b byte) bool { return b == '.' || b == '+' || b == '-' }

// endOfString returns the length of the string that the text starts with. One that does not end on its line is a mistake.
func endOfString(s string) int {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		case '\n', '\r':
			return len(s)
		}
	}
	return len(s)
}

// endOfBlock returns the length of the block string that the text starts with.
func endOfBlock(s string) int {
	for i := len(`"""`); i < len(s); i++ {
		switch {
		case strings.HasPrefix(s[i:], `\"""`):
			i += len(`"""`)
		case strings.HasPrefix(s[i:], `"""`):
			return i + len(`"""`)
		}
	}
	return len(s)
}

// refusal refuses a document that breaks the bound.
func (b *bound) refusal() *refusal {
	if b.rule == ruleBytes {
		return tooLargeFor("the document", int64(b.allowed))
	}
	r := refused(ratelimitclient.CodeQueryLimitExceeded, LayerDocument, fmt.Sprintf(complaints[b.rule], b.allowed), 0)
	r.Rule, r.Given, r.Allowed = b.rule, int64(b.given), int64(b.allowed)
	return r
}

// The bounds of a text, as clients read them in extensions.rule.
const (
	ruleBytes      = "bytes"
	ruleTokens     = "tokens"
	ruleNesting    = "nesting"
	ruleName       = "name"
	ruleOperations = "operations"
	ruleFragments  = "fragments"
	ruleReach      = "reach"
)

// complaints say to people what breaks a bound.
var complaints = map[string]string{
	ruleTokens:     "the document has more than %d tokens",
	ruleNesting:    "the document has more than %d levels of braces and brackets",
	ruleName:       "the document has a name or a number of more than %d bytes: shorten it",
	ruleOperations: "the document has more than %d operations",
	ruleFragments:  "the document has more than %d fragments",
	ruleReach: "the operations and fragments of the document have more than %d tokens, counted with those of the fragments that each spreads: " +
		"send one operation in a document, and spread large fragments from fewer others",
}
