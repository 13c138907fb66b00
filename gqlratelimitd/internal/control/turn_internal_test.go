package control

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDocumentsAreReadOneByOneAndWhoOnlyLooksKeepsNobodyFromPublishing(t *testing.T) {
	t.Parallel()
	c := &Control{compiles: newTurn(), checks: newTurn()}
	leave, err := c.checks.take(t.Context())
	require.NoError(t, err)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = c.checks.take(gone)
	require.ErrorIs(t, err, context.Canceled, "somebody reads, and who waits has left")
	publish, err := c.compiles.take(t.Context())
	require.NoError(t, err)
	publish()
	leave()
	leave, err = c.checks.take(t.Context())
	require.NoError(t, err)
	leave()
}
