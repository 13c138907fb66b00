package validation

import (
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/validator/core"
)

// conflict is one that was reported: what is below the field in which it shows.
type conflict struct {
	because string
	at      *ast.Field
}

// conflict reports two fields that cannot be merged, in the words of gqlparser: the highest fields that are not the same
// stand in front, and those below them by their response names.
func (c *check) conflict(a, b int, reason string) {
	names := []string{c.selections.fields[a].response}
	for i := len(c.path) - 1; i >= 0; i-- {
		above, below := c.above(c.path[i], a, b)
		if above == below {
			break
		}
		a, b = above, below
		names = append(names, c.selections.fields[a].response)
	}
	var because strings.Builder
	for i := len(names) - 2; i >= 0; i-- {
		because.WriteString(`subfields "` + names[i] + `" conflict because `)
	}
	because.WriteString(reason)
	told := conflict{because.String(), c.selections.fields[b].written}
	if c.told[told] {
		return
	}
	if c.told == nil {
		c.told = map[conflict]bool{}
	}
	c.told[told] = true
	c.report(
		core.Message(`Fields "%s" conflict because %s. Use different aliases on the fields to fetch both if this was intentional.`,
			names[len(names)-1], told.because),
		core.At(told.at.Position),
	)
}

// above returns the fields that select a and b: one field twice if one selects both.
func (c *check) above(merged []int, a, b int) (aboveA, aboveB int) {
	aboveA, aboveB = -1, -1
	for _, id := range merged {
		hasA, hasB := false, false
		for _, n := range c.expand([]int{c.selections.fields[id].selected}) {
			for _, f := range c.selections.nodes[n].fields {
				hasA, hasB = hasA || f == a, hasB || f == b
			}
		}
		switch {
		case hasA && hasB:
			return id, id
		case hasA && aboveA < 0:
			aboveA = id
		case hasB && aboveB < 0:
			aboveB = id
		}
	}
	return aboveA, aboveB
}
