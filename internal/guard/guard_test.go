package guard_test

import (
	"bytes"
	"errors"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/internal/guard"
)

func TestAPanicIsAnErrorThatNamesWhatWasCalled(t *testing.T) {
	t.Parallel()
	require.EqualError(t, guard.Call("Config.Subject", func() error { panic("broken") }), "ratelimit: Config.Subject panicked: broken")
	wrong := errors.New("wrong")
	require.Equal(t, wrong, guard.Call("Config.Subject", func() error { return wrong }))
}

func TestAPanicIsLoggedWithTheNameOfWhatWasCalled(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	require.False(t, guard.Run(t.Context(), logger, "Config.Pricing.Points", func() { panic("broken") }))
	require.Contains(t, log.String(), `level=ERROR msg="ratelimit: Config.Pricing.Points panicked" cause=broken`)

	log.Reset()
	called := false
	require.True(t, guard.Run(t.Context(), logger, "Config.Pricing.Points", func() { called = true }))
	require.True(t, called)
	require.Empty(t, log.String())
}

func TestACallOfWhatUsersWroteTakesNoMemory(t *testing.T) {
	price := 0
	require.Zero(t, testing.AllocsPerRun(100, func() {
		guard.Run(t.Context(), nil, "Config.Pricing.Points", func() { price++ })
	}))
	require.Positive(t, price)
}
