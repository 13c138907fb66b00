package cost_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/gqlgen-ratelimit/ratelimit/cost"
)

func TestTheEstimateOfAStreamIsNeverBelowWhatItsEventsCameTo(t *testing.T) {
	t.Parallel()
	for _, weight := range []float64{0, 1, 2.5, -1, -7} {
		schema := gqlparser.MustLoadSchema(&ast.Source{Input: `
			type Query { x: Int }
			type Subscription { users: [User!]! }
			type User { name: String! }`})
		size := 3
		estimator, err := cost.New(schema, cost.Config{
			Weights:   map[string]float64{"Subscription": weight},
			ListSizes: map[string]cost.ListSize{"Subscription.users": {AssumedSize: &size}},
		})
		require.NoError(t, err)
		doc, errs := gqlparser.LoadQueryWithRules(schema, `subscription { users { name } }`, nil)
		require.Empty(t, errs)
		plan, err := estimator.Plan(doc, doc.Operations[0])
		require.NoError(t, err)
		estimate, err := plan.Evaluate(nil)
		require.NoError(t, err)
		outline, err := estimator.Outline(doc, doc.Operations[0])
		require.NoError(t, err)

		tally := outline.Tally(nil)
		for events := range int64(10) {
			spent, err := tally.Cost()
			require.NoError(t, err)
			stream := outline.Stream(estimate, events)
			name := fmt.Sprintf("weight %v, %d events", weight, events)
			require.Equal(t, spent.Base, stream.Base, name)
			require.Equal(t, spent.Field, stream.Field, name)
			require.GreaterOrEqual(t, stream.Type, spent.Type, name)
			if weight >= 0 {
				require.Equal(t, spent.Type, stream.Type, name)
			}
			require.NoError(t, tally.Add([]byte(`{"users":[{"name":"a"},{"name":"b"},{"name":"c"}]}`)))
		}
	}
}

func TestTheEstimateOfAStreamSaturates(t *testing.T) {
	t.Parallel()
	schema := gqlparser.MustLoadSchema(&ast.Source{Input: `type Query { x: Int } type Subscription { tick: Int }`})
	estimator, err := cost.New(schema, cost.Config{})
	require.NoError(t, err)
	doc, errs := gqlparser.LoadQueryWithRules(schema, `subscription { tick }`, nil)
	require.Empty(t, errs)
	outline, err := estimator.Outline(doc, doc.Operations[0])
	require.NoError(t, err)
	endless := cost.Cost{Type: math.Inf(1), Field: math.Inf(1)}
	require.EqualValues(t, cost.MaxPoints, outline.Stream(endless, math.MaxInt64).Points())
	require.Equal(t, cost.Cost{Type: 1}, outline.Stream(endless, 0))
	require.Equal(t, cost.Cost{Type: 1}, outline.Stream(endless, -1))
}
