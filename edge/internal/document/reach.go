package document

import "github.com/vektah/gqlparser/v2/lexer"

// reach is what the definitions of a text reach: each its own tokens, and those of all fragments that it spreads, directly
// or not, once. The validation of gqlparser walks through just that.
type reach struct {
	definitions []definition
	// ahead is what stands before the braces of the next definition, and open says that one is being read.
	ahead definition
	open  bool
	// words is how many tokens ahead has, and spread says that the last token was one of three dots.
	words  int
	spread bool
}

// definition is an operation or a fragment.
type definition struct {
	// fragment is the name of a fragment.
	fragment string
	isNamed  bool
	// weight is how many tokens it has.
	weight  int
	spreads []string
	// stamp is the number of the definition that reached it last.
	stamp int
}

// bytesPerWeight is how many bytes of one token weigh as much as another token.
const bytesPerWeight = 64

// token reads a token that is no comment.
func (r *reach) token(token *lexer.Token) {
	to := &r.ahead
	if r.open {
		to = &r.definitions[len(r.definitions)-1]
	} else {
		r.words++
		switch {
		case r.words == 1:
			to.isNamed = token.Kind == lexer.Name && token.Value == fragmentKeyword
		case r.words == 2 && to.isNamed:
			to.fragment = token.Value
		}
	}
	to.weight += 1 + len(token.Value)/bytesPerWeight
	if r.spread && token.Kind == lexer.Name && token.Value != "on" {
		to.spreads = append(to.spreads, token.Value)
	}
	r.spread = token.Kind == lexer.Spread
}

// begin is called where the selections of a definition begin, and end where they end.
func (r *reach) begin() {
	r.definitions = append(r.definitions, r.ahead)
	r.ahead, r.words, r.open = definition{}, 0, true
}

func (r *reach) end() { r.open = false }

// sum returns how many tokens all definitions reach, or a part of them that is more than most.
func (r *reach) sum(most int) (total int) {
	var fragments map[string]int
	for i := range r.definitions {
		d := &r.definitions[i]
		total += d.weight
		if !d.isNamed {
			continue
		}
		if fragments == nil {
			fragments = make(map[string]int)
		}
		if _, twice := fragments[d.fragment]; !twice {
			fragments[d.fragment] = i
		}
	}
	if fragments == nil {
		return total
	}
	var stack []int
	for i := range r.definitions {
		stack = append(stack[:0], i)
		for len(stack) > 0 && total <= most {
			d := &r.definitions[stack[len(stack)-1]]
			stack = stack[:len(stack)-1]
			for _, name := range d.spreads {
				// A definition does not count as reached from itself, as long as it does not spread itself.
				if at, defined := fragments[name]; defined && r.definitions[at].stamp != i+1 {
					r.definitions[at].stamp = i + 1
					total += r.definitions[at].weight
					stack = append(stack, at)
				}
			}
		}
	}
	return total
}
