package e2e_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/99designs/gqlgen/graphql"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit"
)

// again begins each operation twice, as one does that tries again, and answers with the second.
type again struct{}

func (again) ExtensionName() string                   { return "Again" }
func (again) Validate(graphql.ExecutableSchema) error { return nil }

func (again) InterceptOperation(ctx context.Context, next graphql.OperationHandler) graphql.ResponseHandler {
	next(ctx)
	return next(ctx)
}

func TestAnOperationThatIsRunTwiceIsDecidedTwiceAtItsPrice(t *testing.T) {
	t.Parallel()
	f := newFixtureWithin(t, nil, again{})
	got := f.post(request{Query: half})
	require.Equal(t, http.StatusOK, got.Status, got.Body)
	require.EqualValues(t, 22, got.rateLimit(t)["charged"], got.Body)
	require.EqualValues(t, 100-2*22, got.rateLimit(t)["remaining"])
	require.Len(t, f.store.Takes(), 2)
}

// A goroutine that a resolver has left behind keeps its operation, whatever requests come after.
func TestALateChargeIsOneOfItsOwnOperation(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	contexts := make(chan context.Context, 1)
	f.resolver.OnExport = func(ctx context.Context, _ int) error {
		contexts <- ctx
		return nil
	}
	first := f.post(request{Query: `{ export(rows: 1) }`, Tenant: "late"})
	require.Equal(t, http.StatusOK, first.Status, first.Body)
	late := <-contexts
	charged := make(chan error)
	go func() {
		for range 20 {
			if err := ratelimit.Charge(late, "points", 1); err != nil {
				charged <- err
				return
			}
		}
		charged <- nil
	}()
	for range 5 {
		other := f.post(request{Query: cheapQuery, Tenant: "other"})
		require.Equal(t, http.StatusOK, other.Status)
	}
	require.NoError(t, <-charged)
	d, found := ratelimit.FromContext(late)
	require.True(t, found)
	require.Equal(t, "late", d.Subject.Tenant)
	require.EqualValues(t, 20, d.Charged-d.Points)
	require.EqualValues(t, 100-6*3, f.post(request{Query: cheapQuery, Tenant: "other"}).rateLimit(t)["remaining"])
}
