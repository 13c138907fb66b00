package validation

import (
	"sync"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"
	"github.com/vektah/gqlparser/v2/validator"
	"github.com/vektah/gqlparser/v2/validator/rules"
)

// dialect is what versions of gqlparser see differently: older ones let pass what the specification refuses.
type dialect struct {
	// values says that lists and objects are compared by what is in them, and not taken for equal.
	values bool
	// lists says that it matters whether a list may be null.
	lists bool
	// leaves says that an object conflicts with a scalar or an enum.
	leaves bool
}

// installed is the dialect of the gqlparser in this program, found out by asking its rule.
var installed = sync.OnceValue(func() dialect {
	schema := gqlparser.MustLoadSchema(&ast.Source{Input: `
		type Query { p(v: [Int]): Int u: U }
		union U = A | B
		type A { s: Int l: [Int] }
		type B { s: A l: [Int]! }
	`})
	refuses := func(text string) bool {
		document, err := parser.ParseQuery(&ast.Source{Input: text})
		return err == nil && len(validator.ValidateWithRules(schema, document, rules.NewRules(rules.OverlappingFieldsCanBeMergedRule))) > 0
	}
	return dialect{
		values: refuses(`{ p(v: [1]) p(v: [2]) }`),
		lists:  refuses(`{ u { ... on A { l } ... on B { l } } }`),
		leaves: refuses(`{ u { ... on A { s } ... on B { s { s } } } }`),
	}
})
