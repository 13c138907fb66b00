package e2e_test

import (
	"context"
	"errors"
	"testing"

	"github.com/99designs/gqlgen/graphql"
	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/gqlgen-ratelimit/ratelimit"
)

// clearing is an extension that takes errors out of responses.
type clearing struct{}

func (clearing) ExtensionName() string                   { return "Clearing" }
func (clearing) Validate(graphql.ExecutableSchema) error { return nil }
func (clearing) InterceptResponse(ctx context.Context, next graphql.ResponseHandler) *graphql.Response {
	response := next(ctx)
	if response != nil {
		response.Errors = nil
	}
	return response
}

func TestWorkWhoseErrorsNobodySeesIsPaid(t *testing.T) {
	t.Parallel()
	const (
		null    = `{ users(first: 300) { name } export(rows: 1) }`
		partial = `{ users(first: 300) { name } fails }`
		parts   = `{ users(first: 300) { name } ... @defer { fails } }`
	)
	present := func(f *fixture) {
		f.server.SetErrorPresenter(func(context.Context, error) *gqlerror.Error { return nil })
	}
	for _, test := range []struct {
		name, query string
		hide        func(*fixture)
		panics      bool
		spent       int64
	}{
		{"data is null, and an error presenter returns none", null, present, false, 307},
		{"a field is null, and an error presenter returns none", partial, present, false, 302},
		{"a field of a later part is null, and an error presenter returns none", parts, present, false, 302},
		{"a resolver panics, and an error presenter returns none", null, present, true, 307},
		{"data is null, and an extension takes the errors out", null, func(f *fixture) { f.server.Use(clearing{}) }, false, 307},
		{"a field is null, and an extension takes the errors out", partial, func(f *fixture) { f.server.Use(clearing{}) }, false, 302},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			f := newSettledFixture(t, ratelimit.SettlementConfig{Refund: true}, nil)
			test.hide(f)
			f.resolver.OnExport = func(context.Context, int) error {
				if test.panics {
					panic("after all the work")
				}
				return errors.New("after all the work")
			}
			if test.query == parts {
				f.multipartMixed(request{Query: test.query})
			} else {
				require.NotContains(t, f.post(request{Query: test.query}).Body, `"errors"`)
			}
			require.Equal(t, test.spent, f.spent("free"))
			require.Empty(t, f.store.Settlements())
		})
	}
}

func TestNothingButNullIsAFailureWhetherOrNotItsErrorsAreSeen(t *testing.T) {
	t.Parallel()
	f := newSettledFixture(t, ratelimit.SettlementConfig{Refund: true, FailedShare: 0.5}, nil)
	f.server.SetErrorPresenter(func(context.Context, error) *gqlerror.Error { return nil })
	f.resolver.OnExport = func(context.Context, int) error { return context.DeadlineExceeded }
	f.post(request{Query: failing})
	require.EqualValues(t, 36-18, f.spent("free"))
}
