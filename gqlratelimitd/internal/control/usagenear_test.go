package control_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/control"
)

func TestTenantsNearALimitOnMostOfSevenDaysAreCountedOnce(t *testing.T) {
	t.Parallel()
	s := newScene(t, control.Config{})
	_, some, err := s.NearTenants(s.ctx())
	require.NoError(t, err)
	require.False(t, some, "nothing was collected")
	s.filledUp()
	tenants, some, err := s.NearTenants(s.ctx())
	require.NoError(t, err)
	require.True(t, some)
	require.Equal(t, 5, tenants, "those of four days and more")
}
