package validation_test

import (
	"testing"

	"github.com/vektah/gqlparser/v2/validator"
	"github.com/vektah/gqlparser/v2/validator/rules"

	"github.com/gqlgen-ratelimit/ratelimit/validation"
)

var shortDocs = map[string]string{"s": `{s}`, "aliases":`query Q($n: Int) { a: of(count: $n) { s } b: of(count: 2) { n { s } } }`, "frag": `query Q { n { ...f } } fragment f on Query { s n { s __typename } }`}

func BenchmarkShort(b *testing.B) {
	for name, text := range shortDocs {
	for r, f := range map[string]func() *rules.Rules{"ours": validation.Rules, "gqlparser": rules.NewDefaultRules} {
		b.Run(name+"/"+r, func(b *testing.B) {
			b.ReportAllocs()
			doc := document(b, text)
			for b.Loop() {
				validator.ValidateWithRules(valued, doc, f())
			}
		})
	}}
}
