package cost_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/gqlgen-ratelimit/ratelimit/cost"
)

func TestTheFieldThatReadsTheBudgetIsFreeWhateverTheQueryTypeIsCalled(t *testing.T) {
	t.Parallel()
	schema, err := gqlparser.LoadSchema(&ast.Source{Input: `
		schema { query: Root }
		type Root { rateLimit: Budget other: Int }
		type Budget { cost: Int }`})
	require.NoError(t, err)
	estimator, err := cost.New(schema, cost.Config{})
	require.NoError(t, err)
	doc, errs := gqlparser.LoadQueryWithRules(schema, `{ rateLimit { cost } }`, nil)
	require.Empty(t, errs)
	plan, err := estimator.Compile(doc, doc.Operations[0])
	require.NoError(t, err)
	price, err := plan.Evaluate(nil)
	require.NoError(t, err)
	require.Zero(t, price.Points())
}
