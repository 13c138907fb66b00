package ratelimit

import (
	"fmt"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// rootFields are the coordinates of all root fields, as [Decision.RootFields] spells them.
func rootFields(schema *ast.Schema) []string {
	var fields []string
	for _, root := range []*ast.Definition{schema.Query, schema.Mutation, schema.Subscription} {
		if root == nil {
			continue
		}
		for _, field := range root.Fields {
			fields = append(fields, root.Name+"."+field.Name)
		}
	}
	return fields
}

// mostUnmatched is how many operation rules are named under which nothing falls: a policy that is made for several servers has many.
const mostUnmatched = 10

// unmatched says under which operation rules of a policy no operation of this server falls.
func unmatched(s *tiers.Snapshot, fields []string) []string {
	var texts []string
	warnings := s.Unmatched(fields)
	for i := range warnings {
		if i == mostUnmatched {
			return append(texts, fmt.Sprintf("nothing falls under %d more operation rules", len(warnings)-i))
		}
		texts = append(texts, warnings[i].String())
	}
	return texts
}
