package document_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"
	"github.com/vektah/gqlparser/v2/validator/core"

	"github.com/gqlgen-ratelimit/ratelimit/edge/internal/document"
)

var schema = gqlparser.MustLoadSchema(&ast.Source{Input: "type Query { a: Int q: Query }"})

// reachWithin is what MaxReach bounds in a document, or a part of it that is more than most.
func reachWithin(text string, most int) int {
	const none = math.MaxInt
	bounds := document.Bounds{
		MaxBytes: none, MaxTokens: none, MaxDepth: none, MaxOperations: none, MaxFragments: none, MaxName: none, MaxReach: most,
	}
	if broken := bounds.Count(text); broken != nil {
		return broken.Given
	}
	return most
}

// reachOf measures a document with more and more room.
func reachOf(document string) int {
	for most := 0; ; most = 2*most + 1 {
		if reached := reachWithin(document, most); reached > most {
			continue
		} else if most == 0 {
			return 0
		}
		// It is more than the half of it.
		low, high := (most-1)/2, most
		for low+1 < high {
			if middle := (low + high) / 2; reachWithin(document, middle) > middle {
				low = middle
			} else {
				high = middle
			}
		}
		return high
	}
}

func TestTheReachIsWhatAWalkerComesTo(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		n := 1 + r.IntN(8)
		spreads := func() string {
			var b strings.Builder
			for range r.IntN(4) {
				// One that is not defined, fragments that spread themselves, and one of the name of a keyword.
				b.WriteString([]string{" ...f%d", " ...on Query{...f%d}", " q{...f%d}", " ...@include(if:true){q{...f%d}}", " ...fragment # ...f%d\n"}[r.IntN(5)])
			}
			filled := b.String()
			for strings.Contains(filled, "%d") {
				filled = strings.Replace(filled, "%d", fmt.Sprint(r.IntN(n+1)), 1)
			}
			return filled
		}
		var b strings.Builder
		for i := range 1 + r.IntN(3) {
			fmt.Fprintf(&b, "query q%d($i:In={x:[1]}){ FIELD%s}", i, spreads())
		}
		b.WriteString("fragment fragment on Query{ FIELD" + spreads() + "}") //nolint:dupword // it has that name
		for i := range n {
			fmt.Fprintf(&b, "fragment f%d on Query{%s FIELD FIELD}", i, spreads())
		}
		text := b.String()
		plain, aliased := strings.ReplaceAll(text, "FIELD", "a"), strings.ReplaceAll(text, "FIELD", "x:a")
		parsed, err := parser.ParseQuery(&ast.Source{Input: plain})
		require.NoError(t, err, plain)
		visits, events := 0, &core.Events{}
		events.OnField(func(_ *core.Walker, field *ast.Field) {
			if field.Name == "a" {
				visits++
			}
		})
		core.Walk(schema, parsed, events)
		// An alias has two tokens.
		require.Equal(t, 2*visits, reachOf(aliased)-reachOf(plain), plain)
	}
}

// chain is an operation and n fragments of which each spreads the next.
func chain(n int) string {
	var text strings.Builder
	text.WriteString("{...f0}")
	for i := range n {
		fmt.Fprintf(&text, "fragment f%d on Query{...f%d}", i, i+1)
	}
	return text.String()
}

func TestCountingAReachEndsWhereItIsTooMuch(t *testing.T) {
	t.Parallel()
	for _, n := range []int{100, 1000, 10_000} {
		reached := reachWithin(chain(n), 100_000)
		require.LessOrEqual(t, reached, 100_000+9*n)
	}
}

func BenchmarkCountText(b *testing.B) {
	for name, text := range map[string]string{
		"a chain of fragments": chain(86), "one field": "{" + strings.Repeat("a ", 1990) + "}",
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				reachWithin(text, 1<<30)
			}
		})
	}
}
