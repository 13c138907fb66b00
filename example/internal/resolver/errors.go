package resolver

import (
	"context"
	"errors"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/errcode"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/gqlgen-ratelimit/ratelimit/example/internal/codehost"
)

// PresentError gives the errors of resolvers the extensions.code that clients act on. Errors that
// come from elsewhere keep theirs. It is a [graphql.ErrorPresenterFunc].
func PresentError(ctx context.Context, err error) *gqlerror.Error {
	presented := graphql.DefaultErrorPresenter(ctx, err)
	switch {
	case errors.Is(err, ErrAnonymous):
		errcode.Set(presented, "UNAUTHENTICATED")
	case errors.Is(err, codehost.ErrNotFound):
		errcode.Set(presented, "NOT_FOUND")
	case errors.Is(err, codehost.ErrInvalid):
		errcode.Set(presented, "BAD_USER_INPUT")
	case errors.Is(err, codehost.ErrBusy):
		errcode.Set(presented, "UNAVAILABLE")
	}
	return presented
}
