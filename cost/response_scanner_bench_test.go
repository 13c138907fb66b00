package cost_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/gqlgen-ratelimit/ratelimit/cost"
)

const catalogue = `
interface Party {
  name: String
}
type Person implements Party {
  name: String
  age: Int @cost(weight: "1")
}
type Company implements Party {
  name: String
  size: Int @cost(weight: "2")
}
type Product {
  id: ID
  title: String
  description: String
  price: Float
  tags: [String]
  seller: Party
  reviews(first: Int): [Review] @listSize(slicingArguments: ["first"])
}
type Review {
  stars: Int
  body: String
}
type Query {
  products(first: Int): [Product] @listSize(slicingArguments: ["first"])
}
`

// catalogueResponse is the data of a response with n products of three reviews, about 470 bytes each.
func catalogueResponse(n int) []byte {
	var b strings.Builder
	b.WriteString(`{"products":[`)
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"id":"product-%06d","title":"Tea of the %dth harvest","description":"Grown in the shade, picked by hand, `+
			`and carried down the hill in the morning.","price":%d.95,"tags":["tea","green","organic"],"seller":`, i, i, i%90)
		if i%2 == 0 {
			b.WriteString(`{"name":"Ann","age":41,"__typename":"Person"}`)
		} else {
			b.WriteString(`{"name":"Hill & Sons","size":12,"__typename":"Company"}`)
		}
		b.WriteString(`,"reviews":[{"stars":5,"body":"Never had better."},{"stars":4,"body":"Good."},null]}`)
	}
	b.WriteString(`]}`)
	return []byte(b.String())
}

// BenchmarkTally reads responses, and beside it what encoding/json takes to read the same bytes.
func BenchmarkTally(b *testing.B) {
	schema := loadSchema(b, catalogue, "")
	estimator, err := cost.New(schema, cost.Config{})
	require.NoError(b, err)
	for _, told := range []bool{true, false} {
		selected := "name ... on Person { age } ... on Company { size }"
		if told {
			selected += " __typename"
		}
		doc := parse(b, schema, `query ($n: Int) { products(first: $n) { id title description price tags seller { `+selected+` } reviews(first: 3) { stars body } } }`, false)
		variables := map[string]any{"n": int64(2000)}
		for _, n := range []int{0, 10, 200, 2000} {
			data := catalogueResponse(n)
			if !told {
				data = []byte(strings.NewReplacer(`,"__typename":"Person"`, "", `,"__typename":"Company"`, "").Replace(string(data)))
			}
			name := fmt.Sprintf("%s/%dB", map[bool]string{true: "typename", false: "names"}[told], len(data))
			b.Run(name, func(b *testing.B) {
				b.SetBytes(int64(len(data)))
				b.ReportAllocs()
				for b.Loop() {
					outline, err := estimator.Outline(doc, doc.Operations[0])
					if err != nil {
						b.Fatal(err)
					}
					if err := outline.Tally(variables).Add(data); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
	data := catalogueResponse(200)
	b.Run(fmt.Sprintf("json.Valid/%dB", len(data)), func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		b.ReportAllocs()
		for b.Loop() {
			if !json.Valid(data) {
				b.Fatal("invalid")
			}
		}
	})
	b.Run(fmt.Sprintf("json.Unmarshal/%dB", len(data)), func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		b.ReportAllocs()
		for b.Loop() {
			var into map[string]any
			if err := json.Unmarshal(data, &into); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkExplain explains an operation of 160 fields, and the largest tree that there is.
func BenchmarkExplain(b *testing.B) {
	estimator, _ := newEstimator(b, "bypass", cost.Config{})
	for name, query := range map[string]string{
		"160 fields": "query ($n: Int) {" + repeat(40, " f%[1]d: items(first: $n) { id heavy rel(first: 3) { heavy } }") + " }",
		"V1":         hostile["nested aliases, V1"](40),
	} {
		doc := raw(b, query)
		outline, err := estimator.Outline(doc, doc.Operations[0])
		require.NoError(b, err)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				outline.Explain(map[string]any{"n": int64(5)}, cost.ExplainOptions{})
			}
		})
	}
	doc := raw(b, hostile["fields"](160))
	b.Run("outline of 160 fields", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			// Another operation each time, so that nothing is cached.
			op := *doc.Operations[0]
			if _, err := estimator.Outline(&ast.QueryDocument{Operations: ast.OperationList{&op}}, &op); err != nil {
				b.Fatal(err)
			}
		}
	})
}
