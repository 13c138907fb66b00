package control_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/control"
)

func TestWhatClientsReadNamesNoPackage(t *testing.T) {
	t.Parallel()
	for want, err := range map[string]error{
		"override.set takes the role operator or admin": access.Authorize(actor("eve", access.Viewer), access.SetOverride, ""),
		"capacity: want more":                           &control.InvalidError{Field: "capacity", Problem: "want more"},
		"a token holds\nits name is long":               errors.Join(errors.New("access: a token holds"), errors.New("access: its name is long")),
		"override: Override.Capacity is 0":              &control.InvalidError{Field: "override", Err: errors.New("bucket: Override.Capacity is 0")},
		// What stands in a document is left.
		"document: line 3: at tiers: it is missing": &control.InvalidError{Field: "document", Problem: "line 3: at tiers: it is missing"},
		"nothing was changed: there is no revision": &control.ConflictError{},
	} {
		require.Equal(t, want, control.Plain(err.Error()))
	}
}
