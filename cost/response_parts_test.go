package cost_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2/ast"
	"pgregory.net/rapid"

	"github.com/gqlgen-ratelimit/ratelimit/cost"
)

// rootNames finds which field the root type calls under each response name.
func rootNames(doc *ast.QueryDocument, set ast.SelectionSet, names map[string]string) {
	for _, s := range set {
		switch s := s.(type) {
		case *ast.Field:
			names[s.Alias] = s.Name
		case *ast.InlineFragment:
			rootNames(doc, s.SelectionSet, names)
		case *ast.FragmentSpread:
			rootNames(doc, doc.Fragments.ForName(s.Name).SelectionSet, names)
		}
	}
}

func TestPartsOfAResponseCostNoMoreThanTheyWereEstimated(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := drawPriced(t)
		op := d.doc.Operations[0]
		keep := map[string]bool{}
		for _, field := range d.plan.RootFields() {
			keep[field] = rapid.Bool().Draw(t, field)
		}
		parts := d.plan.Parts(d.variables)
		estimate := parts.Cost(func(field string) bool { return keep[field] })

		e := execution{oracle: oracle{schema: d.schema, doc: d.doc, variables: d.variables}, t: t, left: 300}
		response := e.execute(d.schema.Query, []ast.SelectionSet{op.SelectionSet}, sizedBelow{size: -1})
		data, err := json.Marshal(response)
		require.NoError(t, err)
		outline, err := d.estimator.Outline(d.doc, op)
		require.NoError(t, err)
		tally := outline.Tally(d.variables)
		tally.KeepParts()
		if tally.Add(data) != nil {
			return
		}
		whole, err := tally.Cost()
		require.NoError(t, err)
		all, err := tally.PartCost(func(string) bool { return true })
		require.NoError(t, err)
		require.Equal(t, whole, all, "%v\n%s", d, data)
		part, err := tally.PartCost(func(field string) bool { return keep[field] })
		require.NoError(t, err)
		if !whole.Approximate {
			noLess(t, estimate, part, "%v\n%v\n%s", keep, d, data)
		}

		// As an operation of its own it would have come to the same.
		names, answered, kept := map[string]string{}, map[string]json.RawMessage{}, map[string]json.RawMessage{}
		rootNames(d.doc, op.SelectionSet, names)
		require.NoError(t, json.Unmarshal(data, &answered))
		for name, value := range answered {
			if names[name] == "__typename" || keep[d.schema.Query.Name+"."+names[name]] {
				kept[name] = value
			}
		}
		data, err = json.Marshal(kept)
		require.NoError(t, err)
		alone := outline.Tally(d.variables)
		require.NoError(t, alone.Add(data))
		want, err := alone.Cost()
		require.NoError(t, err)
		require.InDelta(t, want.Type, part.Type, 1e-9, "%v\n%v\n%s", keep, d, data)
		require.InDelta(t, want.Field, part.Field, 1e-9, "%v\n%v\n%s", keep, d, data)
	})
}

func TestWhatIsDeferredBelongsToTheRootFieldAboveIt(t *testing.T) {
	t.Parallel()
	outline, _ := outlineChain(t, `{ links { __typename ... @defer { next { __typename } } } link { __typename } ... @defer { other: link { __typename } } }`)
	tally := outline.Tally(nil)
	tally.KeepParts()
	of := func(fields ...string) cost.Cost {
		t.Helper()
		part, err := tally.PartCost(func(field string) bool {
			for _, f := range fields {
				if f == field {
					return true
				}
			}
			return false
		})
		require.NoError(t, err)
		return part
	}
	require.NoError(t, tally.Add([]byte(`{"links": [{"__typename": "Gold", "next": null}], "link": {"__typename": "Iron"}, "other": null}`)))
	links, link := of("Query.links"), of("Query.link")
	at := ast.Path{ast.PathName("links"), ast.PathIndex(0)}
	require.NoError(t, tally.AddAt(at, []byte(`{"next": {"__typename": "Gold"}}`)))
	require.Equal(t, link, of("Query.link"))
	later := of("Query.links")
	require.Greater(t, later.Points(), links.Points())
	require.NoError(t, tally.AddAt(nil, []byte(`{"other": {"__typename": "Gold"}}`)))
	require.Equal(t, later, of("Query.links"))
	require.Greater(t, of("Query.link").Points(), link.Points())
	whole, err := tally.Cost()
	require.NoError(t, err)
	require.Equal(t, whole, of("Query.links", "Query.link"))
}

func TestWhereNobodyKnowsPartsEachCameToTheWhole(t *testing.T) {
	t.Parallel()
	none := func(string) bool { return false }
	outline, _ := outlineChain(t, `{ link { __typename } links { __typename } }`)
	tally := outline.Tally(nil)
	require.NoError(t, tally.Add([]byte(`{"link": {"__typename": "Iron"}, "links": []}`)))
	whole, err := tally.Cost()
	require.NoError(t, err)
	part, err := tally.PartCost(none)
	require.NoError(t, err)
	require.Equal(t, whole, part, "nobody said that it keeps them")

	outline, _ = outlineChain(t, `{ link { __typename } }`)
	tally = outline.Tally(nil)
	tally.KeepParts()
	require.NoError(t, tally.Add([]byte(`{"link": {"__typename": "Iron"}}`)))
	part, err = tally.PartCost(none)
	require.NoError(t, err)
	require.Equal(t, cost.Cost{Base: whole.Base, Type: 1}, part, "the base and the root type")
	require.Error(t, tally.Add([]byte(`{`)))
	_, err = tally.PartCost(none)
	require.Error(t, err)
}
